// Naive host evaluation of the operators of src/ops/shape.cc.
#include "ops/oracle.h"

namespace bevel::test {
namespace {

Ref<TensorObject> withShape(const Tensor& x, const Ints& shape) {
  auto y = TensorObject::zeros(x->dtype, shape);
  if (x->dtype.isString())
    y->strings = x->strings;
  else if (x->size())
    std::memcpy(y->mutableBytes(), x->bytes(), size_t(x->byteSize()));
  return y;
}

Result<HostTensors> reshapeEval(const OpCall& call, const HostTensors& in) {
  return HostTensors{withShape(in[0], hostShape(call))};
}

// ---- permute_dims

Result<Ints> permutation(const OpCall& call) {
  size_t rank = call.rank(0);
  Ints axes = call.ints("axes");
  if (!call.hasAttr("axes"))
    for (size_t i = rank; i-- > 0;) axes.push_back(int64_t(i));
  if (axes.size() != rank) return call.invalid(fmt::format("{} axes given for rank {}", axes.size(), rank));
  for (int64_t& a : axes) {
    BEVEL_TRY(a, normalizeAxis(call, a, rank));
  }
  BEVEL_CHECK(normalizeAxes(call, axes, rank)); // unique
  return axes;
}

Result<HostTensors> permuteEval(const OpCall& call, const HostTensors& in) {
  BEVEL_TRY(Ints axes, permutation(call));
  Ints strides = stridesOf(in[0]->shape);
  return HostTensors{gatherHost(in[0], hostShape(call), [&](const Ints& i) {
    int64_t at = 0;
    for (size_t d = 0; d < axes.size(); ++d) at += i[d] * strides[size_t(axes[d])];
    return at;
  })};
}

Result<HostTensors> broadcastToEval(const OpCall& call, const HostTensors& in) {
  return HostTensors{
      gatherHost(in[0], hostShape(call), [&](const Ints& i) { return broadcastOffset(in[0]->shape, i); })};
}

Result<HostTensors> shapeToTensorEval(const OpCall& call, const HostTensors&) {
  return HostTensors{TensorObject::of(kInt64, {int64_t(call.values(0).size())}, *constValues(call, 0))};
}

} // namespace

void add_shape(Oracles& oracles) {
  oracles["reshape"] = reshapeEval;
  oracles["expand_dims"] = reshapeEval;
  oracles["squeeze"] = reshapeEval;
  oracles["permute_dims"] = permuteEval;
  oracles["broadcast_to"] = broadcastToEval;
  oracles["shape_to_tensor"] = shapeToTensorEval;
}

} // namespace bevel::test
