// Naive host evaluation of the operators of src/ops/binary.cc.
#include "ops/oracle.h"

namespace bevel::test {
namespace {

struct BinaryOracle {
  const char* name;
  bool compare;
  double (*real)(double, double);              // null: not on floats
  int64_t (*integer)(int64_t, int64_t, DType); // null: not on integers
  bool (*ordered)(double, double);             // comparisons on floats
};

uint64_t maskOf(DType t) {
  return t.bits >= 64 ? ~uint64_t(0) : (uint64_t(1) << t.bits) - 1;
}
uint64_t asUnsigned(int64_t x, DType t) {
  return uint64_t(x) & maskOf(t);
}
int64_t truncDiv(int64_t a, int64_t b, DType t) {
  if (b == 0) return 0;
  if (t.isUInt()) return int64_t(asUnsigned(a, t) / asUnsigned(b, t));
  return b == -1 ? int64_t(0 - uint64_t(a)) : a / b;
}
int64_t floorDiv(int64_t a, int64_t b, DType t) {
  if (b == 0) return 0;
  return t.isUInt() ? truncDiv(a, b, t) : floorDivide(a, b);
}
int64_t truncMod(int64_t a, int64_t b, DType t) {
  if (b == 0 || (b == -1 && !t.isUInt())) return 0;
  return t.isUInt() ? int64_t(asUnsigned(a, t) % asUnsigned(b, t)) : a % b;
}
int64_t floorMod(int64_t a, int64_t b, DType t) {
  if (b == 0) return 0;
  return t.isUInt() ? truncMod(a, b, t) : floorModulo(a, b);
}
double floorModReal(double a, double b) {
  double r = std::fmod(a, b);
  return r == 0 ? std::copysign(r, b) : (r < 0) != (b < 0) ? r + b : r;
}
bool lessInt(int64_t a, int64_t b, DType t) {
  return t.isUInt() ? asUnsigned(a, t) < asUnsigned(b, t) : a < b;
}
double maxReal(double a, double b) {
  return std::isnan(a) ? a : std::isnan(b) ? b : a > b ? a : b;
}
double minReal(double a, double b) {
  return std::isnan(a) ? a : std::isnan(b) ? b : a < b ? a : b;
}
template <bool left> int64_t shiftInt(int64_t a, int64_t b, DType t) {
  if (!left && t.isInt()) return a >> (b < 0 || b >= t.bits ? t.bits - 1 : b);
  if (b < 0 || b >= t.bits) return 0;
  if (left) return int64_t(uint64_t(a) << b);
  return t.isUInt() ? int64_t(asUnsigned(a, t) >> b) : a >> b;
}

const BinaryOracle kBinary[] = {
    {"add", false, [](double a, double b) { return a + b; },
     [](int64_t a, int64_t b, DType) { return int64_t(uint64_t(a) + uint64_t(b)); }, nullptr},
    {"subtract", false, [](double a, double b) { return a - b; },
     [](int64_t a, int64_t b, DType) { return int64_t(uint64_t(a) - uint64_t(b)); }, nullptr},
    {"multiply", false, [](double a, double b) { return a * b; },
     [](int64_t a, int64_t b, DType) { return int64_t(uint64_t(a) * uint64_t(b)); }, nullptr},
    {"divide", false, [](double a, double b) { return a / b; }, truncDiv, nullptr},
    {"floor_divide", false, [](double a, double b) { return std::floor(a / b); }, floorDiv, nullptr},
    {"floor_mod", false, floorModReal, floorMod, nullptr},
    {"mod", false, [](double a, double b) { return std::fmod(a, b); }, truncMod, nullptr},
    {"maximum", false, maxReal, [](int64_t a, int64_t b, DType t) { return lessInt(a, b, t) ? b : a; },
     nullptr},
    {"minimum", false, minReal, [](int64_t a, int64_t b, DType t) { return lessInt(a, b, t) ? a : b; },
     nullptr},
    {"atan2", false, [](double a, double b) { return std::atan2(a, b); }, nullptr, nullptr},
    {"equal", true, nullptr, [](int64_t a, int64_t b, DType) { return int64_t(a == b); },
     [](double a, double b) { return a == b; }},
    {"not_equal", true, nullptr, [](int64_t a, int64_t b, DType) { return int64_t(a != b); },
     [](double a, double b) { return a != b; }},
    {"less", true, nullptr, [](int64_t a, int64_t b, DType t) { return int64_t(lessInt(a, b, t)); },
     [](double a, double b) { return a < b; }},
    {"less_equal", true, nullptr, [](int64_t a, int64_t b, DType t) { return int64_t(!lessInt(b, a, t)); },
     [](double a, double b) { return a <= b; }},
    {"greater", true, nullptr, [](int64_t a, int64_t b, DType t) { return int64_t(lessInt(b, a, t)); },
     [](double a, double b) { return a > b; }},
    {"greater_equal", true, nullptr, [](int64_t a, int64_t b, DType t) { return int64_t(!lessInt(a, b, t)); },
     [](double a, double b) { return a >= b; }},
    {"bitwise_and", false, nullptr, [](int64_t a, int64_t b, DType) { return a & b; }, nullptr},
    {"bitwise_or", false, nullptr, [](int64_t a, int64_t b, DType) { return a | b; }, nullptr},
    {"bitwise_xor", false, nullptr, [](int64_t a, int64_t b, DType) { return a ^ b; }, nullptr},
    {"left_shift", false, nullptr, shiftInt<true>, nullptr},
    {"right_shift", false, nullptr, shiftInt<false>, nullptr},
};

Result<HostTensors> binaryEval(const OpCall& call, const HostTensors& in) {
  const BinaryOracle& e = *std::find_if(std::begin(kBinary), std::end(kBinary),
                                        [&](const BinaryOracle& o) { return call.op.name == o.name; });
  const TensorObject &a = *in[0], &b = *in[1];
  auto y = TensorObject::zeros(e.compare ? kBool : a.dtype, broadcastDims(a.shape, b.shape));
  int64_t k = 0;
  forEachIndex(y->shape, [&](const Ints& index) {
    int64_t i = broadcastOffset(a.shape, index), j = broadcastOffset(b.shape, index);
    if (!a.dtype.isFloat())
      y->setInt(k, e.integer(a.asInt(i), b.asInt(j), a.dtype));
    else if (e.compare)
      y->setInt(k, e.ordered(a.asDouble(i), b.asDouble(j)));
    else
      y->setDouble(k, e.real(a.asDouble(i), b.asDouble(j)));
    ++k;
  });
  return HostTensors{y};
}

template <int which> Result<HostTensors> logicEval(const OpCall&, const HostTensors& in) {
  auto y = TensorObject::zeros(kBool, broadcastDims(in[0]->shape, in[1]->shape));
  int64_t k = 0;
  forEachIndex(y->shape, [&](const Ints& index) {
    bool a = in[0]->asInt(broadcastOffset(in[0]->shape, index)),
         b = in[1]->asInt(broadcastOffset(in[1]->shape, index));
    y->setInt(k++, which == 0 ? a && b : which == 1 ? a || b : a != b);
  });
  return HostTensors{y};
}

} // namespace

void add_binary(Oracles& oracles) {
  oracles["logical_and"] = logicEval<0>;
  oracles["logical_or"] = logicEval<1>;
  oracles["logical_xor"] = logicEval<2>;
  for (const BinaryOracle& b : kBinary) oracles[b.name] = binaryEval;
}

} // namespace bevel::test
