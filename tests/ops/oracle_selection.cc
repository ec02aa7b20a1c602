// Naive host evaluation of the operators of src/ops/selection.cc.
#include "ops/oracle.h"

namespace bevel::test {
namespace {

Result<HostTensors> topkEval(const OpCall& call, const HostTensors& in) {
  BEVEL_TRY(int64_t axis, normalizeAxis(call, call.i("axis"), call.rank(0)));
  bool largest = call.i("largest") != 0, real = in[0]->dtype.isFloat(), isUnsigned = in[0]->dtype.isUInt();
  Ints shape = in[0]->shape, strides = stridesOf(shape);
  int64_t n = shape[size_t(axis)], k = (*constValues(call, 1))[0], step = strides[size_t(axis)];
  shape[size_t(axis)] = k;
  auto values = TensorObject::zeros(in[0]->dtype, shape), indices = TensorObject::zeros(kInt64, shape);
  Ints outStrides = stridesOf(shape), outer = shape;
  outer[size_t(axis)] = std::min<int64_t>(k, 1);
  forEachIndex(outer, [&](const Ints& at) {
    int64_t start = offsetOf(at, strides), out = offsetOf(at, outStrides);
    std::vector<int64_t> order;
    for (int64_t i = 0; i < n; ++i) order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [&](int64_t p, int64_t q) {
      if (!largest) std::swap(p, q);
      if (real) {
        double a = in[0]->asDouble(start + p * step), b = in[0]->asDouble(start + q * step);
        return std::isnan(a) ? !std::isnan(b) : a > b;
      }
      int64_t a = in[0]->asInt(start + p * step), b = in[0]->asInt(start + q * step);
      return isUnsigned ? uint64_t(a) > uint64_t(b) : a > b;
    });
    for (int64_t i = 0; i < k; ++i) {
      copyElement(*values, out + i * outStrides[size_t(axis)], *in[0], start + order[size_t(i)] * step);
      indices->setInt(out + i * outStrides[size_t(axis)], order[size_t(i)]);
    }
  });
  return HostTensors{values, indices};
}

Result<HostTensors> nonzeroEval(const OpCall& call, const HostTensors& in) {
  int64_t n = (*constValues(call, 1))[0], at = 0, k = 0;
  auto y = TensorObject::zeros(kInt64, {int64_t(in[0]->shape.size()), n});
  forEachIndex(in[0]->shape, [&](const Ints& i) {
    bool set = in[0]->dtype.isFloat() ? in[0]->asDouble(k) != 0 : in[0]->asInt(k) != 0;
    if (set && at < n) {
      for (size_t d = 0; d < i.size(); ++d) y->setInt(int64_t(d) * n + at, i[d]);
      ++at;
    }
    ++k;
  });
  if (at != n) return call.invalid("the count differs from the number of elements that are not zero");
  return HostTensors{y};
}

Result<HostTensors> bitcastEval(const OpCall& call, const HostTensors& in) {
  auto y = TensorObject::zeros(call.dtypeAttr("dtype"), in[0]->shape);
  if (y->byteSize()) std::memcpy(y->mutableBytes(), in[0]->bytes(), size_t(y->byteSize()));
  return HostTensors{y};
}

} // namespace

void add_selection(Oracles& oracles) {
  oracles["topk"] = topkEval;
  oracles["nonzero"] = nonzeroEval;
  oracles["bitcast"] = bitcastEval;
}

} // namespace bevel::test
