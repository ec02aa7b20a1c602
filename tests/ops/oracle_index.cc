// Naive host evaluation of the operators of src/ops/index.cc.
#include "ops/oracle.h"

namespace bevel::test {
namespace {

Result<int64_t> hostPosition(const OpCall& call, int64_t i, int64_t n) {
  if (i < -n || i >= n) return call.invalid(fmt::format("index {} is out of range for {} elements", i, n));
  return i < 0 ? i + n : i;
}

Result<HostTensors> takeEval(const OpCall& call, const HostTensors& in) {
  BEVEL_TRY(int64_t axis, normalizeAxis(call, call.i("axis"), call.rank(0)));
  const Ints& shape = in[0]->shape;
  int64_t n = shape[size_t(axis)], inner = count(Ints(shape.begin() + axis + 1, shape.end()));
  int64_t outer = count(Ints(shape.begin(), shape.begin() + axis)), m = in[1]->size();
  auto y = TensorObject::zeros(in[0]->dtype, hostShape(call));
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t k = 0; k < m; ++k) {
      BEVEL_TRY(int64_t p, hostPosition(call, in[1]->asInt(k), n));
      for (int64_t i = 0; i < inner; ++i)
        copyElement(*y, (o * m + k) * inner + i, *in[0], (o * n + p) * inner + i);
    }
  return HostTensors{y};
}

Result<HostTensors> gatherElementsEval(const OpCall& call, const HostTensors& in) {
  BEVEL_TRY(int64_t axis, normalizeAxis(call, call.i("axis"), call.rank(0)));
  Ints strides = stridesOf(in[0]->shape);
  auto y = TensorObject::zeros(in[0]->dtype, in[1]->shape);
  Status status;
  int64_t k = 0;
  forEachIndex(y->shape, [&](const Ints& i) {
    Ints at = i;
    auto p = hostPosition(call, in[1]->asInt(k), in[0]->shape[size_t(axis)]);
    if (!p)
      status = fail(p.error());
    else {
      at[size_t(axis)] = *p;
      copyElement(*y, k, *in[0], offsetOf(at, strides));
    }
    ++k;
  });
  if (!status) return fail(std::move(status.error()));
  return HostTensors{y};
}

// ---- gather_nd

Result<int64_t> tupleLength(const OpCall& call, size_t batch) {
  if (call.rank(1) == 0) return call.invalid("the indices are a scalar");
  auto n = asConst(call.shape(1).back());
  if (!n) return call.unsupported("the last dimension of the indices is symbolic");
  if (*n < 0 || batch + size_t(*n) > call.rank(0))
    return call.invalid(fmt::format("index tuples of {} for rank {}", *n, call.rank(0)));
  return *n;
}

Result<HostTensors> gatherNdEval(const OpCall& call, const HostTensors& in) {
  size_t batch = size_t(call.i("batch_dims")), k = call.rank(1) - 1;
  BEVEL_TRY(int64_t n, tupleLength(call, batch));
  Ints strides = stridesOf(in[0]->shape), at(in[0]->shape.size());
  Status status;
  auto y = gatherHost(in[0], hostShape(call), [&](const Ints& i) -> int64_t {
    int64_t row = 0;
    for (size_t d = 0; d < k; ++d) row = row * in[1]->shape[d] + i[d];
    for (size_t d = 0; d < batch; ++d) at[d] = i[d];
    for (int64_t t = 0; t < n; ++t) {
      auto p = hostPosition(call, in[1]->asInt(row * n + t), in[0]->shape[batch + size_t(t)]);
      if (!p) status = fail(p.error());
      at[batch + size_t(t)] = p ? *p : 0;
    }
    for (size_t d = k; d < i.size(); ++d) at[batch + size_t(n) + d - k] = i[d];
    return status ? offsetOf(at, strides) : -1;
  });
  if (!status) return fail(std::move(status.error()));
  return HostTensors{y};
}

void combineHost(const std::string& r, TensorObject& y, int64_t at, const TensorObject& update, int64_t k) {
  if (r == "none") return copyElement(y, at, update, k);
  if (y.dtype.isFloat()) {
    double a = y.asDouble(at), b = update.asDouble(k);
    bool nan = std::isnan(a) || std::isnan(b);
    y.setDouble(at, r == "add"   ? a + b
                    : r == "mul" ? a * b
                    : nan        ? NAN
                    : r == "max" ? std::max(a, b)
                                 : std::min(a, b));
    return;
  }
  int64_t a = y.asInt(at), b = update.asInt(k);
  bool less = y.dtype.isUInt() ? uint64_t(a) < uint64_t(b) : a < b;
  y.setInt(at, r == "add"             ? int64_t(uint64_t(a) + uint64_t(b))
               : r == "mul"           ? int64_t(uint64_t(a) * uint64_t(b))
               : (r == "max") == less ? b
                                      : a);
}

Result<HostTensors> scatterElementsEval(const OpCall& call, const HostTensors& in) {
  BEVEL_TRY(int64_t axis, normalizeAxis(call, call.i("axis"), call.rank(0)));
  auto y =
      gatherHost(in[0], in[0]->shape, [&](const Ints& i) { return offsetOf(i, stridesOf(in[0]->shape)); });
  Ints strides = stridesOf(y->shape);
  Status status;
  int64_t k = 0;
  forEachIndex(in[1]->shape, [&](const Ints& i) {
    Ints at = i;
    auto p = hostPosition(call, in[1]->asInt(k), y->shape[size_t(axis)]);
    bool inside = p.has_value();
    for (size_t d = 0; d < at.size(); ++d) inside = inside && (d == size_t(axis) || at[d] < y->shape[d]);
    if (!inside)
      status = call.invalid("an index is out of range");
    else {
      at[size_t(axis)] = *p;
      combineHost(call.s("reduction"), *y, offsetOf(at, strides), *in[2], k);
    }
    ++k;
  });
  if (!status) return fail(std::move(status.error()));
  return HostTensors{y};
}

Result<HostTensors> scatterNdEval(const OpCall& call, const HostTensors& in) {
  BEVEL_TRY(int64_t n, tupleLength(call, 0));
  Ints strides = stridesOf(in[0]->shape);
  auto y = gatherHost(in[0], in[0]->shape, [&](const Ints& i) { return offsetOf(i, strides); });
  int64_t inner = count(Ints(y->shape.begin() + n, y->shape.end())),
          rows = count(Ints(in[1]->shape.begin(), in[1]->shape.end() - 1));
  for (int64_t r = 0; r < rows; ++r) {
    int64_t at = 0;
    for (int64_t t = 0; t < n; ++t) {
      BEVEL_TRY(int64_t p, hostPosition(call, in[1]->asInt(r * n + t), y->shape[size_t(t)]));
      at += p * strides[size_t(t)];
    }
    for (int64_t i = 0; i < inner; ++i) combineHost(call.s("reduction"), *y, at + i, *in[2], r * inner + i);
  }
  return HostTensors{y};
}

Result<HostTensors> oneHotEval(const OpCall& call, const HostTensors& in) {
  BEVEL_TRY(int64_t axis, normalizeAxis(call, call.i("axis"), call.rank(0) + 1));
  int64_t depth = (*constValues(call, 2))[0], k = 0;
  Ints strides = stridesOf(in[0]->shape);
  auto y = TensorObject::zeros(in[1]->dtype, hostShape(call));
  forEachIndex(y->shape, [&](const Ints& i) {
    Ints at = i;
    at.erase(at.begin() + axis);
    int64_t hot = in[0]->asInt(offsetOf(at, strides));
    copyElement(*y, k++, *in[1], (hot < 0 ? hot + depth : hot) == i[size_t(axis)]);
  });
  return HostTensors{y};
}

} // namespace

void add_index(Oracles& oracles) {
  oracles["take"] = takeEval;
  oracles["gather_elements"] = gatherElementsEval;
  oracles["gather_nd"] = gatherNdEval;
  oracles["scatter_elements"] = scatterElementsEval;
  oracles["scatter_nd"] = scatterNdEval;
  oracles["one_hot"] = oneHotEval;
}

} // namespace bevel::test
