// Helpers of the lowering tests: small schedule edits by loop name, and runs of programs on small integers.
#pragma once

#include "base/result.h"
#include "ir/graph.h"

#include <string>
#include <vector>

namespace bevel::test {

/// The loop of that name becomes name_o and name_i; blocks below get the predicate where the factor does not
/// divide.
PrimFunc splitLoop(const PrimFunc& f, const std::string& name, int64_t factor);
PrimFunc setLoopKind(const PrimFunc& f, const std::string& name, ForKind kind);
/// Buffers of that name get the scope.
PrimFunc setScope(const PrimFunc& f, const std::string& buffer, const std::string& scope);

/// Interprets f on copies of the arguments; the tensors after the run. `filled`: see InterpretOptions.
Result<std::vector<Ref<TensorObject>>>
runCopy(const PrimFunc& f, const std::vector<Ref<TensorObject>>& arguments, bool filled = false);

/// Runs f and f after every prefix of the lowering passes: all results must be identical. An empty string, or
/// what differs (the pass, and the program before and after it).
std::string lowerDifference(const PrimFunc& f, const std::vector<std::pair<std::string, int64_t>>& dims = {});
/// Breaks of the flat-form contract (loop/lower.h) in a lowered function; "" when there are none.
std::string flatFormFaults(const PrimFunc& lowered);

} // namespace bevel::test
