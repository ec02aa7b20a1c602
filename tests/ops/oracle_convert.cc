// Naive host evaluation of the operators of src/ops/convert.cc.
#include "ops/oracle.h"

namespace bevel::test {
namespace {

bool smallFloat(DType t) {
  return t.isFloat() && t.bits <= 8;
}

Result<HostTensors> astypeEval(const OpCall& call, const HostTensors& in) {
  DType t = call.dtypeAttr("dtype"), from = in[0]->dtype;
  bool saturate = call.i("saturate") != 0 || !smallFloat(t);
  auto y = TensorObject::zeros(t, in[0]->shape);
  for (int64_t i = 0; i < y->size(); ++i) {
    if (!from.isFloat()) {
      int64_t v = in[0]->asInt(i);
      if (t.isFloat() && from.isUInt() && from.bits == 64)
        y->setDouble(i, double(uint64_t(v)));
      else
        y->setInt(i, v);
      continue;
    }
    double v = in[0]->asDouble(i);
    if (t.isInteger() && t.bits < 8)
      y->setInt(i, in[0]->asInt(i)); // wraps
    else if (t.code == TypeCode::kFloat4E2M1FN)
      y->setDouble(i, std::isnan(v) ? -0.0 : v); // has no NaN
    else if (t.isBool())
      y->setInt(i, v != 0 || std::isnan(v));
    else if (!t.isFloat())
      y->setDouble(i, std::isnan(v) ? 0 : std::trunc(v));
    else if (saturate)
      y->setDouble(i, v);
    else { // one byte formats
      auto* bytes = reinterpret_cast<uint8_t*>(y->mutableBytes());
      if (t.bits == 8)
        bytes[i] = uint8_t(encodeFloat(t, v, false));
      else
        y->setDouble(i, v);
    }
  }
  return HostTensors{y};
}

Result<HostTensors> clipEval(const OpCall& call, const HostTensors& in) {
  auto y = TensorObject::zeros(in[0]->dtype, in[0]->shape);
  bool isUnsigned = y->dtype.isUInt();
  auto below = [&](int64_t a, int64_t b) { return isUnsigned ? uint64_t(a) < uint64_t(b) : a < b; };
  for (int64_t i = 0; i < y->size(); ++i) {
    if (y->dtype.isFloat()) {
      double x = in[0]->asDouble(i);
      if (call.has(1) && x < in[1]->asDouble(0)) x = in[1]->asDouble(0);
      if (call.has(2) && x > in[2]->asDouble(0)) x = in[2]->asDouble(0);
      y->setDouble(i, x);
      continue;
    }
    int64_t x = in[0]->asInt(i);
    if (call.has(1) && below(x, in[1]->asInt(0))) x = in[1]->asInt(0);
    if (call.has(2) && below(in[2]->asInt(0), x)) x = in[2]->asInt(0);
    y->setInt(i, x);
  }
  return HostTensors{y};
}

int64_t integerPowerHost(int64_t base, int64_t exponent) {
  if (base == 1) return 1;
  if (base == -1) return exponent % 2 == 0 ? 1 : -1;
  if (exponent < 0 || exponent > 63) return 0;
  uint64_t result = 1, power = uint64_t(base);
  for (uint64_t e = uint64_t(exponent); e; e >>= 1, power *= power)
    if (e & 1) result *= power;
  return int64_t(result);
}

Result<HostTensors> powerEval(const OpCall& call, const HostTensors& in) {
  auto y = TensorObject::zeros(in[0]->dtype, hostShape(call));
  bool exact = in[0]->dtype.isInteger() && in[1]->dtype.isInteger();
  int64_t k = 0;
  forEachIndex(y->shape, [&](const Ints& index) {
    int64_t i = broadcastOffset(in[0]->shape, index), j = broadcastOffset(in[1]->shape, index);
    if (exact)
      y->setInt(k++, integerPowerHost(in[0]->asInt(i), in[1]->asInt(j)));
    else {
      double p = std::pow(in[0]->asDouble(i), in[1]->asDouble(j));
      y->setDouble(k++, y->dtype.isFloat() ? p : std::isnan(p) ? 0 : std::trunc(p));
    }
  });
  return HostTensors{y};
}

} // namespace

void add_convert(Oracles& oracles) {
  oracles["astype"] = astypeEval;
  oracles["clip"] = clipEval;
  oracles["power"] = powerEval;
}

} // namespace bevel::test
