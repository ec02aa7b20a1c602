// Naive host evaluation of the operators of src/ops/recurrent.cc.
#include "ops/oracle.h"

namespace bevel::test {
namespace {

int64_t gatesOf(const OpCall& call) {
  return call.op.name == "nn.lstm" ? 4 : call.op.name == "nn.gru" ? 3 : 1;
}

size_t lengthsInput(const OpCall& call) {
  return call.op.name == "nn.lstm" ? 5 : call.op.name == "nn.gru" ? 4 : 3;
}

// ---- host: step by step; Sigmoid and Tanh only

double sigmoidOf(double x) {
  return 1 / (1 + std::exp(-x));
}

Result<HostTensors> recurrentEval(const OpCall& call, const HostTensors& in) {
  int64_t gates = gatesOf(call), T = in[0]->shape[0], B = in[0]->shape[1], H = in[1]->shape[1];
  bool lstm = gates == 4, plain = call.s("activations") == (lstm         ? "Sigmoid,Tanh,Tanh"
                                                            : gates == 3 ? "Sigmoid,Tanh"
                                                                         : "Tanh");
  if (!plain || call.f("clip") > 0 || (lstm && (call.i("input_forget") != 0 || call.has(4))))
    return call.unsupported("only the usual activations are evaluated on the host");
  bool linear = gates == 3 && call.i("linear_before_reset") != 0, reverse = call.i("reverse") != 0;
  auto y = TensorObject::zeros(in[0]->dtype, {T, B, H}), lastH = TensorObject::zeros(in[0]->dtype, {B, H}),
       lastC = TensorObject::zeros(in[0]->dtype, {B, H});
  for (int64_t b = 0; b < B; ++b) {
    int64_t length = call.has(lengthsInput(call)) ? in[lengthsInput(call)]->asInt(b) : T;
    std::vector<double> h, c;
    for (int64_t j = 0; j < H; ++j)
      h.push_back(in[2]->asDouble(b * H + j)), c.push_back(lstm ? in[3]->asDouble(b * H + j) : 0);
    for (int64_t s = 0; s < length; ++s) {
      int64_t t = reverse ? length - 1 - s : s;
      std::vector<double> next = h, reset = h;
      auto x = [&](int64_t g, int64_t j) { return in[0]->asDouble((t * B + b) * gates * H + g * H + j); };
      auto dot = [&](int64_t g, int64_t j, const std::vector<double>& v) {
        double total = 0;
        for (int64_t k = 0; k < H; ++k) total += v[size_t(k)] * in[1]->asDouble((g * H + j) * H + k);
        return total;
      };
      for (int64_t j = 0; j < H && gates == 3; ++j)
        reset[size_t(j)] = sigmoidOf(x(1, j) + dot(1, j, h)) * h[size_t(j)];
      for (int64_t j = 0; j < H; ++j) {
        double bias = gates == 3 && call.has(3) ? in[3]->asDouble(j) : 0;
        if (lstm) {
          double cell = sigmoidOf(x(2, j) + dot(2, j, h)) * c[size_t(j)] +
                        sigmoidOf(x(0, j) + dot(0, j, h)) * std::tanh(x(3, j) + dot(3, j, h));
          c[size_t(j)] = cell;
          next[size_t(j)] = sigmoidOf(x(1, j) + dot(1, j, h)) * std::tanh(cell);
        } else if (gates == 3) {
          double z = sigmoidOf(x(0, j) + dot(0, j, h));
          double inner =
              linear ? sigmoidOf(x(1, j) + dot(1, j, h)) * (dot(2, j, h) + bias) : dot(2, j, reset) + bias;
          next[size_t(j)] = (1 - z) * std::tanh(x(2, j) + inner) + z * h[size_t(j)];
        } else
          next[size_t(j)] = std::tanh(x(0, j) + dot(0, j, h));
      }
      h = next;
      for (int64_t j = 0; j < H; ++j) y->setDouble((t * B + b) * H + j, h[size_t(j)]);
    }
    for (int64_t j = 0; j < H; ++j)
      lastH->setDouble(b * H + j, h[size_t(j)]), lastC->setDouble(b * H + j, c[size_t(j)]);
  }
  return lstm ? HostTensors{y, lastH, lastC} : HostTensors{y, lastH};
}

} // namespace

void add_recurrent(Oracles& oracles) {
  oracles["nn.lstm"] = recurrentEval;
  oracles["nn.gru"] = recurrentEval;
  oracles["nn.rnn"] = recurrentEval;
}

} // namespace bevel::test
