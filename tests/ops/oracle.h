// Oracles of operators: straight loops on the host, written independently of the tensor expressions.
#pragma once

#include "graph/evaluate.h"
#include "ops/common.h"

#include <map>

namespace bevel::test {

using namespace ops;

/// The results of a call with constant shapes; absent inputs are null.
using Oracle = Result<HostTensors> (*)(const OpCall&, const HostTensors& inputs);
using Oracles = std::map<std::string, Oracle>;

/// By operator; null where there is none.
Oracle findOracle(const std::string& op);
/// Runs the operator's oracle. Fails when it has none or shapes are symbolic.
Result<HostTensors> evaluate(const GraphCall& call, const HostTensors& inputs);

// ---- for the oracles

/// Values of a kShape argument.
std::optional<Ints> constValues(const OpCall& call, size_t i);
/// Row-major position arithmetic over a static shape.
int64_t count(const Ints& shape);
Ints stridesOf(const Ints& shape);
/// Calls f(index) for every index, in row-major order.
void forEachIndex(const Ints& shape, FunctionRef<void(const Ints&)> f);
int64_t offsetOf(const Ints& index, const Ints& strides);
/// Numpy broadcast of static shapes (already checked).
Ints broadcastDims(const Ints& a, const Ints& b);
/// Flat position in `from` of a result index.
int64_t broadcastOffset(const Ints& from, const Ints& index);
/// Static result shape of a call.
Ints hostShape(const OpCall& call, size_t result = 0);
Ints hostDims(const Array<Expr>& shape);

/// Element by element on the host: floats through f, integers and bool through g.
Ref<TensorObject> mapHost(const Tensor& x, DType out, FunctionRef<double(double)> f,
                          FunctionRef<int64_t(int64_t)> g);
/// Copies element j of src to element i of dst (same dtype), any dtype, strings included.
void copyElement(TensorObject& dst, int64_t i, const TensorObject& src, int64_t j);
/// A tensor filled by position: element i of the result is element source(index) of src; -1 gives `fill` (may
/// be null: 0).
Ref<TensorObject> gatherHost(const Tensor& src, const Ints& shape, FunctionRef<int64_t(const Ints&)> source,
                             const Tensor& fill = nullptr);

} // namespace bevel::test
