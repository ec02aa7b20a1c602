// Naive host evaluation of the operators of src/ops/activation.cc.
#include "ops/oracle.h"

namespace bevel::test {
namespace {

struct ActivationOracle {
  const char* name;
  double (*real)(double x, const double* p); // p: the attributes in order
};

double softplusOf(double x) {
  return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x)));
}
double logistic(double x) {
  return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
}
double within(double x, double lo, double hi) {
  return std::isnan(x) ? x : std::min(std::max(x, lo), hi);
}

const ActivationOracle kActivations[] = {
    {"nn.leaky_relu", [](double x, const double* p) { return x < 0 ? p[0] * x : x; }},
    {"nn.elu", [](double x, const double* p) { return x > 0 ? x : p[0] * std::expm1(x); }},
    {"nn.selu", [](double x, const double* p) { return p[1] * (x > 0 ? x : p[0] * std::expm1(x)); }},
    {"nn.celu",
     [](double x, const double* p) {
       return std::isnan(x) ? x : std::max(0.0, x) + std::min(0.0, p[0] * std::expm1(x / p[0]));
     }},
    {"nn.softplus", [](double x, const double*) { return std::isnan(x) ? x : softplusOf(x); }},
    {"nn.softsign", [](double x, const double*) { return x / (1 + std::fabs(x)); }},
    {"nn.mish", [](double x, const double*) { return std::isnan(x) ? x : x * std::tanh(softplusOf(x)); }},
    {"nn.hardsigmoid", [](double x, const double* p) { return within(p[0] * x + p[1], 0, 1); }},
    {"nn.hardswish", [](double x, const double*) { return x * within(x / 6 + 0.5, 0, 1); }},
    {"nn.thresholded_relu", [](double x, const double* p) { return x > p[0] ? x : 0; }},
    {"nn.shrink", [](double x, const double* p) { return x < -p[1]  ? x + p[0]
                                                         : x > p[1] ? x - p[0]
                                                                    : 0; }},
    {"nn.gelu", [](double x, const double*) { return 0.5 * x * (1 + std::erf(x * M_SQRT1_2)); }},
    {"nn.gelu_tanh",
     [](double x, const double*) {
       return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
     }},
    {"nn.silu", [](double x, const double*) { return x * logistic(x); }},
    {"nn.swish", [](double x, const double* p) { return x * logistic(p[0] * x); }},
};

Result<HostTensors> activationEval(const OpCall& call, const HostTensors& in) {
  const ActivationOracle& a =
      *std::find_if(std::begin(kActivations), std::end(kActivations),
                    [&](const ActivationOracle& o) { return call.op.name == o.name; });
  std::vector<double> p;
  for (const OpAttr& attr : call.op.attrs) p.push_back(call.f(attr.name));
  return HostTensors{mapHost(
      in[0], in[0]->dtype, [&](double x) { return a.real(x, p.data()); },
      [&](int64_t x) { return int64_t(a.real(double(x), p.data())); })};
}

Result<HostTensors> reluEval(const OpCall&, const HostTensors& in) {
  return HostTensors{mapHost(
      in[0], in[0]->dtype, [](double x) { return x < 0 ? 0 : x; },
      [](int64_t x) { return std::max<int64_t>(x, 0); })};
}

Result<HostTensors> preluEval(const OpCall&, const HostTensors& in) {
  auto y = TensorObject::zeros(in[0]->dtype, in[0]->shape);
  int64_t i = 0;
  forEachIndex(in[0]->shape, [&](const Ints& index) {
    int64_t j = broadcastOffset(in[1]->shape, index);
    if (y->dtype.isFloat()) {
      double x = in[0]->asDouble(i);
      y->setDouble(i, x < 0 ? x * in[1]->asDouble(j) : x);
    } else {
      int64_t x = in[0]->asInt(i);
      y->setInt(i, x < 0 ? x * in[1]->asInt(j) : x);
    }
    ++i;
  });
  return HostTensors{y};
}

} // namespace

void add_activation(Oracles& oracles) {
  oracles["nn.relu"] = reluEval;
  oracles["nn.prelu"] = preluEval;
  for (const ActivationOracle& a : kActivations) oracles[a.name] = activationEval;
}

} // namespace bevel::test
