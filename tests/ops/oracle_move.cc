// Naive host evaluation of the operators of src/ops/move.cc.
#include "ops/oracle.h"

namespace bevel::test {
namespace {

Result<HostTensors> concatEval(const OpCall& call, const HostTensors& in) {
  BEVEL_TRY(int64_t axis, normalizeAxis(call, call.i("axis"), call.rank(0)));
  auto y = TensorObject::zeros(in[0]->dtype, hostShape(call));
  Ints strides = stridesOf(y->shape);
  int64_t start = 0;
  for (const Tensor& t : in) {
    int64_t k = 0;
    forEachIndex(t->shape, [&](const Ints& index) {
      copyElement(*y, offsetOf(index, strides) + start * strides[size_t(axis)], *t, k++);
    });
    start += t->shape[size_t(axis)];
  }
  return HostTensors{y};
}

// ---- strided_slice

struct Slice {
  Expr begin, step, extent;
};

// A longer step than any dimension takes one element, as kLongStep does, and would overflow.
constexpr int64_t kLongStep = int64_t(1) << 40;

Expr clampExpr(Analyzer& an, const Expr& e, const Expr& lo, const Expr& hi) {
  if (an.prove(e >= lo) && an.prove(e <= hi)) return e;
  return an.simplify(max(min(e, hi), lo));
}

// The same with a step that only the run knows: its sign chooses the limits. A step of zero gives nothing.
Slice sliceByStep(Analyzer& an, const Expr& dim, const Expr& begin, const Expr& end, const Expr& given) {
  Expr step = max(min(given, intImm(kLongStep)), intImm(-kLongStep));
  Expr zero = intImm(0), forward = step > zero;
  Expr low = select(forward, zero, intImm(-1)), high = select(forward, dim, dim - 1);
  auto bound = [&](const Expr& e) { return max(min(select(e < zero, e + dim, e), high), low); };
  Expr b = bound(begin), e = bound(end);
  Expr up = floordiv(e - b + step - 1, max(step, intImm(1))),
       down = floordiv(b - e - step - 1, max(negate(step), intImm(1)));
  Expr count = select(eq(step, zero), zero, max(select(forward, up, down), zero));
  return {an.simplify(b), step, an.simplify(count)};
}

// ONNX's rules: negative bounds count from the end, then both are clamped.
Result<Slice> sliceOf(const OpCall& call, Analyzer& an, const Expr& dim, const Expr& begin, const Expr& end,
                      const Expr& step) {
  auto cs = asConst(step);
  if (!cs) return sliceByStep(an, dim, begin, end, step);
  if (*cs == 0) return call.invalid("a step of zero");
  int64_t stride = std::clamp(*cs, -kLongStep, kLongStep);
  auto fromEnd = [&](const Expr& e) -> Expr {
    if (auto c = asConst(e)) {
      // Exporters write such numbers for "to the end"; a dimension that only the run knows is taken to be
      // smaller.
      constexpr int64_t kFar = 1000000000;
      if (*c >= kFar && !asConst(dim)) return dim;
      if (*c < -kLongStep) return intImm(-1); // before any start; clamped below
      return *c < 0 ? an.simplify(dim + e) : e;
    }
    if (an.prove(e >= intImm(0))) return e;
    return select(e < intImm(0), e + dim, e);
  };
  bool far = asConst(end) && *asConst(end) < -kLongStep;
  Expr b = fromEnd(begin), e = fromEnd(end), zero = intImm(0);
  Slice s;
  s.step = intImm(stride);
  if (stride > 0) {
    s.begin = clampExpr(an, b, zero, dim);
    e = clampExpr(an, e, zero, dim);
    Expr n = an.simplify(e - s.begin);
    if (stride > 1) n = an.simplify(floordiv(n + intImm(stride - 1), s.step));
    s.extent = an.prove(n >= zero) ? n : an.simplify(max(n, zero));
  } else {
    Expr last = an.simplify(dim - 1);
    s.begin = clampExpr(an, b, intImm(-1), last);
    e = far ? intImm(-1) : clampExpr(an, e, intImm(-1), last);
    Expr n = an.simplify(s.begin - e);
    if (stride < -1) n = an.simplify(floordiv(n + intImm(-stride - 1), intImm(-stride)));
    s.extent = an.prove(n >= zero) ? n : an.simplify(max(n, zero));
  }
  return s;
}

Result<std::vector<Slice>> slicesOf(const OpCall& call, Analyzer& an) {
  size_t rank = call.rank(0);
  const Array<Expr>&begin = call.values(1), &end = call.values(2);
  Ints axes = call.ints("axes");
  if (!call.hasAttr("axes"))
    for (size_t i = 0; i < begin.size(); ++i) axes.push_back(int64_t(i));
  bool steps = call.has(3);
  if (begin.size() != axes.size() || end.size() != axes.size() ||
      (steps && call.values(3).size() != axes.size()))
    return call.invalid("begin, end, strides and axes have different lengths");
  BEVEL_CHECK(normalizeAxes(call, axes, rank));
  std::vector<Slice> out;
  for (size_t d = 0; d < rank; ++d) out.push_back({intImm(0), intImm(1), call.shape(0)[d]});
  for (size_t k = 0; k < axes.size(); ++k) {
    BEVEL_TRY(int64_t axis, normalizeAxis(call, axes[k], rank));
    Expr step = steps ? call.values(3)[k] : intImm(1);
    BEVEL_TRY(out[size_t(axis)], sliceOf(call, an, call.shape(0)[size_t(axis)], begin[k], end[k], step));
  }
  return out;
}

Result<HostTensors> sliceEval(const OpCall& call, const HostTensors& in) {
  Analyzer an;
  BEVEL_TRY(std::vector<Slice> slices, slicesOf(call, an));
  Ints shape, begin, step, strides = stridesOf(in[0]->shape);
  for (const Slice& s : slices) {
    shape.push_back(*asConst(s.extent));
    begin.push_back(*asConst(s.begin));
    step.push_back(*asConst(s.step));
  }
  return HostTensors{gatherHost(in[0], shape, [&](const Ints& i) {
    int64_t at = 0;
    for (size_t d = 0; d < shape.size(); ++d) at += (begin[d] + i[d] * step[d]) * strides[d];
    return at;
  })};
}

Result<HostTensors> tileEval(const OpCall& call, const HostTensors& in) {
  Ints strides = stridesOf(in[0]->shape);
  return HostTensors{gatherHost(in[0], hostShape(call), [&](const Ints& i) {
    int64_t at = 0;
    for (size_t d = 0; d < i.size(); ++d) at += i[d] % in[0]->shape[d] * strides[d];
    return at;
  })};
}

Result<HostTensors> flipEval(const OpCall& call, const HostTensors& in) {
  BEVEL_TRY(int64_t axis, normalizeAxis(call, call.i("axis"), call.rank(0)));
  Ints strides = stridesOf(in[0]->shape);
  return HostTensors{gatherHost(in[0], in[0]->shape, [&](const Ints& i) {
    size_t a = size_t(axis);
    return offsetOf(i, strides) + (in[0]->shape[a] - 1 - 2 * i[a]) * strides[a];
  })};
}

Result<HostTensors> padEval(const OpCall& call, const HostTensors& in) {
  std::string mode = call.s("mode");
  Ints pads = *constValues(call, 1), shape = in[0]->shape, strides = stridesOf(shape);
  return HostTensors{gatherHost(
      in[0], hostShape(call),
      [&](const Ints& i) -> int64_t {
        int64_t at = 0;
        for (size_t d = 0; d < shape.size(); ++d) {
          int64_t k = i[d] - pads[d], n = shape[d];
          if (mode == "constant" && (k < 0 || k >= n)) return -1;
          if (mode == "edge")
            k = std::min(std::max<int64_t>(k, 0), n - 1);
          else if (mode == "wrap")
            k = floorModulo(k, n);
          else if (mode == "reflect") {
            while (n > 1 && (k < 0 || k >= n)) k = k < 0 ? -k : 2 * (n - 1) - k;
            if (n == 1) k = 0;
          }
          at += k * strides[d];
        }
        return at;
      },
      call.has(2) ? in[2] : nullptr)};
}

Result<HostTensors> whereEval(const OpCall& call, const HostTensors& in) {
  auto y = TensorObject::zeros(in[1]->dtype, hostShape(call));
  int64_t k = 0;
  forEachIndex(y->shape, [&](const Ints& i) {
    const Tensor& from = in[0]->asInt(broadcastOffset(in[0]->shape, i)) ? in[1] : in[2];
    copyElement(*y, k++, *from, broadcastOffset(from->shape, i));
  });
  return HostTensors{y};
}

Result<HostTensors> triluEval(const OpCall& call, const HostTensors& in) {
  int64_t k = (*constValues(call, 1))[0];
  bool upper = call.i("upper") != 0;
  Ints strides = stridesOf(in[0]->shape);
  return HostTensors{gatherHost(in[0], in[0]->shape, [&](const Ints& i) {
    int64_t distance = i[i.size() - 1] - i[i.size() - 2];
    return (upper ? distance >= k : distance <= k) ? offsetOf(i, strides) : int64_t(-1);
  })};
}

Result<HostTensors> arangeEval(const OpCall& call, const HostTensors& in) {
  auto y = TensorObject::zeros(in[0]->dtype, *constValues(call, 2));
  for (int64_t i = 0; i < y->size(); ++i)
    if (y->dtype.isFloat())
      y->setDouble(i, in[0]->asDouble(0) + double(i) * in[1]->asDouble(0));
    else
      y->setInt(i, in[0]->asInt(0) + i * in[1]->asInt(0));
  return HostTensors{y};
}

Result<HostTensors> eyeEval(const OpCall& call, const HostTensors&) {
  auto y = TensorObject::zeros(call.dtypeAttr("dtype"), *constValues(call, 0));
  for (int64_t i = 0; i < y->shape[0]; ++i) {
    int64_t j = i + call.i("k");
    if (j >= 0 && j < y->shape[1]) y->setDouble(i * y->shape[1] + j, 1);
  }
  return HostTensors{y};
}

} // namespace

void add_move(Oracles& oracles) {
  oracles["concat"] = concatEval;
  oracles["strided_slice"] = sliceEval;
  oracles["tile"] = tileEval;
  oracles["flip"] = flipEval;
  oracles["nn.pad"] = padEval;
  oracles["where"] = whereEval;
  oracles["trilu"] = triluEval;
  oracles["arange"] = arangeEval;
  oracles["eye"] = eyeEval;
}

} // namespace bevel::test
