// Naive host evaluation of the operators of src/ops/reduce.cc.
#include "ops/oracle.h"

namespace bevel::test {
namespace {

enum class Kind { kSum, kProd, kMax, kMin, kMean, kAll, kAny };

Kind kindOf(const OpCall& call) {
  std::string_view n = call.op.name;
  if (n.ends_with("_at")) n.remove_suffix(3);
  return n == "sum"    ? Kind::kSum
         : n == "prod" ? Kind::kProd
         : n == "max"  ? Kind::kMax
         : n == "min"  ? Kind::kMin
         : n == "mean" ? Kind::kMean
         : n == "all"  ? Kind::kAll
                       : Kind::kAny;
}

Result<Ints> reducedAxes(const OpCall& call) {
  if (call.hasAttr("axis")) return normalizeAxes(call, call.ints("axis"), call.rank(0));
  Ints axes;
  for (size_t i = 0; i < call.rank(0); ++i) axes.push_back(int64_t(i));
  return axes;
}

struct Accumulator {
  double real;
  int64_t integer;
};

Accumulator identityOf(Kind k, DType t) {
  switch (k) {
  case Kind::kProd:
  case Kind::kAll:
    return {1, 1};
  case Kind::kMax:
    return {-INFINITY, minValue(t)};
  case Kind::kMin:
    return {INFINITY, t.isUInt() && t.bits == 64 ? -1 : maxValue(t)};
  default:
    return {0, 0};
  }
}

void accumulate(Kind k, Accumulator& a, double x, int64_t i, bool isUnsigned) {
  auto less = [&](int64_t p, int64_t q) { return isUnsigned ? uint64_t(p) < uint64_t(q) : p < q; };
  switch (k) {
  case Kind::kSum:
  case Kind::kMean:
    a.real += x;
    a.integer = int64_t(uint64_t(a.integer) + uint64_t(i));
    break;
  case Kind::kProd:
    a.real *= x;
    a.integer = int64_t(uint64_t(a.integer) * uint64_t(i));
    break;
  case Kind::kMax:
    if (std::isnan(x) || x > a.real) a.real = std::isnan(a.real) ? a.real : x;
    if (less(a.integer, i)) a.integer = i;
    break;
  case Kind::kMin:
    if (std::isnan(x) || x < a.real) a.real = std::isnan(a.real) ? a.real : x;
    if (less(i, a.integer)) a.integer = i;
    break;
  case Kind::kAll:
    a.integer = a.integer && i;
    break;
  case Kind::kAny:
    a.integer = a.integer || i;
    break;
  }
}

Result<HostTensors> reduceOver(const OpCall& call, const HostTensors& in, const Ints& axes, Kind k) {
  bool isUnsigned = in[0]->dtype.isUInt(), real = in[0]->dtype.isFloat();
  Ints kept = in[0]->shape;
  int64_t n = 1;
  for (int64_t a : axes) {
    n *= kept[size_t(a)];
    kept[size_t(a)] = 1;
  }
  std::vector<Accumulator> totals(size_t(count(kept)), identityOf(k, in[0]->dtype));
  int64_t at = 0;
  forEachIndex(in[0]->shape, [&](const Ints& i) {
    Accumulator& a = totals[size_t(broadcastOffset(kept, i))];
    accumulate(k, a, real ? in[0]->asDouble(at) : 0, real ? 0 : in[0]->asInt(at), isUnsigned);
    ++at;
  });
  auto y = TensorObject::zeros(in[0]->dtype, hostShape(call));
  for (int64_t i = 0; i < y->size(); ++i) {
    const Accumulator& a = totals[size_t(i)];
    if (real)
      y->setDouble(i, k == Kind::kMean ? a.real / double(n) : a.real);
    else
      y->setInt(i, k == Kind::kMean && n ? a.integer / n : a.integer);
  }
  return HostTensors{y};
}

Result<HostTensors> reduceEval(const OpCall& call, const HostTensors& in) {
  BEVEL_TRY(Ints axes, reducedAxes(call));
  return reduceOver(call, in, axes, kindOf(call));
}

Result<HostTensors> reduceAtEval(const OpCall& call, const HostTensors& in) {
  Ints axes, reduced = *constValues(call, 2);
  for (size_t d = 0; d < reduced.size(); ++d)
    if (reduced[d] != 1) axes.push_back(int64_t(d));
  return reduceOver(call, in, axes, kindOf(call));
}

Result<HostTensors> argEval(const OpCall& call, const HostTensors& in) {
  BEVEL_TRY(int64_t axis, normalizeAxis(call, call.i("axis"), call.rank(0)));
  bool last = call.i("select_last_index") != 0, largest = call.op.name == "argmax",
       real = in[0]->dtype.isFloat();
  Ints kept = in[0]->shape, strides = stridesOf(kept);
  int64_t n = kept[size_t(axis)];
  kept[size_t(axis)] = 1;
  auto y = TensorObject::zeros(kInt64, hostShape(call));
  if (n == 0) return call.invalid("the axis is empty");
  int64_t at = 0;
  forEachIndex(kept, [&](const Ints& i) {
    int64_t start = offsetOf(i, strides), best = 0;
    auto better = [&](int64_t a, int64_t b) { // element a over element b
      int64_t oa = start + a * strides[size_t(axis)], ob = start + b * strides[size_t(axis)];
      if (!real) return largest ? in[0]->asInt(oa) > in[0]->asInt(ob) : in[0]->asInt(oa) < in[0]->asInt(ob);
      double x = in[0]->asDouble(oa), z = in[0]->asDouble(ob);
      if (std::isnan(z)) return false;
      return std::isnan(x) || (largest ? x > z : x < z);
    };
    for (int64_t k = 1; k < n; ++k)
      if (better(k, best) || (last && !better(best, k))) best = k;
    y->setInt(at++, best);
  });
  return HostTensors{y};
}

Result<HostTensors> cumEval(const OpCall& call, const HostTensors& in) {
  BEVEL_TRY(int64_t axis, normalizeAxis(call, call.i("axis"), call.rank(0)));
  bool exclusive = call.i("exclusive") != 0, reverse = call.i("reverse") != 0,
       product = call.op.name == "cumprod";
  auto y = TensorObject::zeros(in[0]->dtype, in[0]->shape);
  Ints outer = in[0]->shape, strides = stridesOf(outer);
  int64_t n = outer[size_t(axis)], step = strides[size_t(axis)];
  outer[size_t(axis)] = std::min<int64_t>(n, 1);
  forEachIndex(outer, [&](const Ints& i) {
    double real = product ? 1 : 0;
    int64_t integer = product ? 1 : 0, start = offsetOf(i, strides);
    for (int64_t k = 0; k < n; ++k) {
      int64_t at = start + (reverse ? n - 1 - k : k) * step;
      auto put = [&] { y->dtype.isFloat() ? y->setDouble(at, real) : y->setInt(at, integer); };
      if (exclusive) put();
      if (y->dtype.isFloat())
        real = product ? real * in[0]->asDouble(at) : real + in[0]->asDouble(at);
      else
        integer = int64_t(product ? uint64_t(integer) * uint64_t(in[0]->asInt(at))
                                  : uint64_t(integer) + uint64_t(in[0]->asInt(at)));
      if (!exclusive) put();
    }
  });
  return HostTensors{y};
}

} // namespace

void add_reduce(Oracles& oracles) {
  oracles["sum"] = reduceEval;
  oracles["prod"] = reduceEval;
  oracles["max"] = reduceEval;
  oracles["min"] = reduceEval;
  oracles["mean"] = reduceEval;
  oracles["all"] = reduceEval;
  oracles["any"] = reduceEval;
  oracles["sum_at"] = reduceAtEval;
  oracles["prod_at"] = reduceAtEval;
  oracles["max_at"] = reduceAtEval;
  oracles["min_at"] = reduceAtEval;
  oracles["mean_at"] = reduceAtEval;
  oracles["argmax"] = argEval;
  oracles["argmin"] = argEval;
  oracles["cumsum"] = cumEval;
  oracles["cumprod"] = cumEval;
}

} // namespace bevel::test
