// Naive host evaluation of the operators of src/ops/unary.cc.
#include "ops/oracle.h"

namespace bevel::test {
namespace {

struct UnaryOracle {
  const char* name;
  double (*real)(double);
  int64_t (*integer)(int64_t);
};

double sign(double x) {
  return std::isnan(x) ? x : double((x > 0) - (x < 0));
}
double sigmoidOf(double x) {
  return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
}
double roundEven(double x) {
  return std::nearbyint(x);
}
int64_t wrapNegate(int64_t x) {
  return int64_t(0 - uint64_t(x));
}
int64_t same(int64_t x) {
  return x;
}

const UnaryOracle kUnary[] = {
    {"negative", [](double x) { return -x; }, wrapNegate},
    {"abs", [](double x) { return std::fabs(x); }, [](int64_t x) { return x < 0 ? wrapNegate(x) : x; }},
    {"sign", sign, [](int64_t x) { return int64_t((x > 0) - (x < 0)); }},
    {"exp", [](double x) { return std::exp(x); }, nullptr},
    {"exp2", [](double x) { return std::exp2(x); }, nullptr},
    {"expm1", [](double x) { return std::expm1(x); }, nullptr},
    {"log", [](double x) { return std::log(x); }, nullptr},
    {"log2", [](double x) { return std::log2(x); }, nullptr},
    {"log10", [](double x) { return std::log10(x); }, nullptr},
    {"log1p", [](double x) { return std::log1p(x); }, nullptr},
    {"sqrt", [](double x) { return std::sqrt(x); }, nullptr},
    {"rsqrt", [](double x) { return 1 / std::sqrt(x); }, nullptr},
    {"reciprocal", [](double x) { return 1 / x; }, nullptr},
    {"square", [](double x) { return x * x; }, [](int64_t x) { return int64_t(uint64_t(x) * uint64_t(x)); }},
    {"sin", [](double x) { return std::sin(x); }, nullptr},
    {"cos", [](double x) { return std::cos(x); }, nullptr},
    {"tan", [](double x) { return std::tan(x); }, nullptr},
    {"asin", [](double x) { return std::asin(x); }, nullptr},
    {"acos", [](double x) { return std::acos(x); }, nullptr},
    {"atan", [](double x) { return std::atan(x); }, nullptr},
    {"sinh", [](double x) { return std::sinh(x); }, nullptr},
    {"cosh", [](double x) { return std::cosh(x); }, nullptr},
    {"tanh", [](double x) { return std::tanh(x); }, nullptr},
    {"asinh", [](double x) { return std::asinh(x); }, nullptr},
    {"acosh", [](double x) { return std::acosh(x); }, nullptr},
    {"atanh", [](double x) { return std::atanh(x); }, nullptr},
    {"erf", [](double x) { return std::erf(x); }, nullptr},
    {"sigmoid", sigmoidOf, nullptr},
    {"floor", [](double x) { return std::floor(x); }, same},
    {"ceil", [](double x) { return std::ceil(x); }, same},
    {"round", roundEven, same},
    {"trunc", [](double x) { return std::trunc(x); }, same},
    {"logical_not", nullptr, [](int64_t x) { return int64_t(!x); }},
    {"bitwise_not", nullptr, [](int64_t x) { return ~x; }},
};

Result<HostTensors> unaryEval(const OpCall& call, const HostTensors& in) {
  const UnaryOracle& e = *std::find_if(std::begin(kUnary), std::end(kUnary),
                                       [&](const UnaryOracle& u) { return call.op.name == u.name; });
  auto f = [&](double x) { return e.real(x); };
  auto g = [&](int64_t x) { return e.integer(x); };
  return HostTensors{mapHost(in[0], in[0]->dtype, f, g)};
}

Result<HostTensors> isinfEval(const OpCall& call, const HostTensors& in) {
  bool negative = call.i("detect_negative") != 0, positive = call.i("detect_positive") != 0;
  auto y = TensorObject::zeros(kBool, in[0]->shape);
  for (int64_t i = 0; i < y->size(); ++i) {
    double x = in[0]->asDouble(i);
    y->setInt(i, std::isinf(x) && (x > 0 ? positive : negative));
  }
  return HostTensors{y};
}

template <bool finite> Result<HostTensors> classifyEval(const OpCall&, const HostTensors& in) {
  auto y = TensorObject::zeros(kBool, in[0]->shape);
  for (int64_t i = 0; i < y->size(); ++i) {
    double x = in[0]->asDouble(i);
    y->setInt(i, finite ? std::isfinite(x) : std::isnan(x));
  }
  return HostTensors{y};
}

} // namespace

void add_unary(Oracles& oracles) {
  oracles["isnan"] = classifyEval<false>;
  oracles["isfinite"] = classifyEval<true>;
  oracles["isinf"] = isinfEval;
  for (const UnaryOracle& u : kUnary) oracles[u.name] = unaryEval;
}

} // namespace bevel::test
