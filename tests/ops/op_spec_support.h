// Test cases of operators: the one-line notation of Op::tests (graph/op.h) as a call with concrete inputs.
#pragma once

#include "graph/evaluate.h"

#include <string>

namespace bevel::test {

struct OpCase {
  GraphCall call;
  HostTensors inputs; // parallel to the call's args; null for shapes and absent inputs
};
/// Reads a case of `op`; the values follow from `seed`.
Result<OpCase> parseOpCase(const std::string& op, const std::string& spec, uint64_t seed = 1);

/// The results of the call's tensor program, by the reference interpreter.
Result<HostTensors> interpretCall(const OpCase& c);
/// "" when all elements agree within the dtype's tolerance (NaN agrees with NaN), else the first difference.
std::string difference(const TensorObject& expected, const TensorObject& actual);

} // namespace bevel::test
