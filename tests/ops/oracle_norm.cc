// Naive host evaluation of the operators of src/ops/norm.cc.
#include "ops/oracle.h"

namespace bevel::test {
namespace {

Result<HostTensors> softmaxEval(const OpCall& call, const HostTensors& in) {
  BEVEL_TRY(int64_t axis, normalizeAxis(call, call.i("axis"), call.rank(0)));
  bool logarithm = call.op.name == "nn.log_softmax";
  auto y = TensorObject::zeros(in[0]->dtype, in[0]->shape);
  Ints outer = y->shape, strides = stridesOf(y->shape);
  int64_t n = outer[size_t(axis)], step = strides[size_t(axis)];
  outer[size_t(axis)] = std::min<int64_t>(n, 1);
  forEachIndex(outer, [&](const Ints& i) {
    int64_t start = offsetOf(i, strides);
    double top = -INFINITY, total = 0;
    for (int64_t k = 0; k < n; ++k) top = std::max(top, in[0]->asDouble(start + k * step));
    for (int64_t k = 0; k < n; ++k) total += std::exp(in[0]->asDouble(start + k * step) - top);
    for (int64_t k = 0; k < n; ++k) {
      double d = in[0]->asDouble(start + k * step) - top;
      y->setDouble(start + k * step, logarithm ? d - std::log(total) : std::exp(d) / total);
    }
  });
  return HostTensors{y};
}

Result<HostTensors> layerNormEval(const OpCall& call, const HostTensors& in) {
  BEVEL_TRY(int64_t axis, normalizeAxis(call, call.i("axis"), call.rank(0)));
  bool centred = call.op.name == "nn.layer_norm";
  auto y = TensorObject::zeros(in[0]->dtype, in[0]->shape);
  const Ints& shape = in[0]->shape;
  int64_t n = count(Ints(shape.begin() + axis, shape.end())), rows = n ? y->size() / n : 0;
  std::vector<double> mean(size_t(rows), 0), inverse(size_t(rows), 0);
  for (int64_t r = 0; r < rows; ++r) {
    double m = 0, v = 0;
    for (int64_t k = 0; k < n && centred; ++k) m += in[0]->asDouble(r * n + k) / double(n);
    for (int64_t k = 0; k < n; ++k)
      v += (in[0]->asDouble(r * n + k) - m) * (in[0]->asDouble(r * n + k) - m) / double(n);
    mean[size_t(r)] = m;
    inverse[size_t(r)] = 1 / std::sqrt(v + call.f("epsilon"));
  }
  int64_t at = 0;
  forEachIndex(shape, [&](const Ints& i) {
    double e = (in[0]->asDouble(at) - mean[size_t(at / n)]) * inverse[size_t(at / n)];
    if (call.has(1)) e *= in[1]->asDouble(broadcastOffset(in[1]->shape, i));
    if (call.has(2)) e += in[2]->asDouble(broadcastOffset(in[2]->shape, i));
    y->setDouble(at++, e);
  });
  return HostTensors{y};
}

Result<HostTensors> batchNormEval(const OpCall& call, const HostTensors& in) {
  auto y = TensorObject::zeros(in[0]->dtype, in[0]->shape);
  int64_t at = 0;
  forEachIndex(y->shape, [&](const Ints& i) {
    int64_t c = i[1];
    double s = in[1]->asDouble(c) / std::sqrt(in[4]->asDouble(c) + call.f("epsilon"));
    y->setDouble(at, (in[0]->asDouble(at) - in[3]->asDouble(c)) * s + in[2]->asDouble(c));
    ++at;
  });
  return HostTensors{y};
}

Result<HostTensors> groupNormEval(const OpCall& call, const HostTensors& in) {
  auto y = TensorObject::zeros(in[0]->dtype, in[0]->shape);
  int64_t channels = y->shape[1], per = channels / call.i("num_groups");
  int64_t area = count(Ints(y->shape.begin() + 2, y->shape.end())), n = per * area;
  for (int64_t g = 0; n && g < y->size() / n; ++g) {
    double m = 0, v = 0;
    for (int64_t k = 0; k < n; ++k) m += in[0]->asDouble(g * n + k) / double(n);
    for (int64_t k = 0; k < n; ++k) v += std::pow(in[0]->asDouble(g * n + k) - m, 2) / double(n);
    for (int64_t k = 0; k < n; ++k) {
      int64_t c = (g * per + k / area) % channels;
      y->setDouble(g * n + k,
                   (in[0]->asDouble(g * n + k) - m) / std::sqrt(v + call.f("epsilon")) * in[1]->asDouble(c) +
                       in[2]->asDouble(c));
    }
  }
  return HostTensors{y};
}

Result<HostTensors> lrnEval(const OpCall& call, const HostTensors& in) {
  auto y = TensorObject::zeros(in[0]->dtype, in[0]->shape);
  int64_t size = call.i("size"), at = 0;
  Ints strides = stridesOf(y->shape);
  forEachIndex(y->shape, [&](const Ints& i) {
    double s = 0;
    for (int64_t c = std::max<int64_t>(0, i[1] - (size - 1) / 2);
         c <= std::min(y->shape[1] - 1, i[1] + size / 2); ++c)
      s += std::pow(in[0]->asDouble(at + (c - i[1]) * strides[1]), 2);
    y->setDouble(at, in[0]->asDouble(at) /
                         std::pow(call.f("bias") + call.f("alpha") / double(size) * s, call.f("beta")));
    ++at;
  });
  return HostTensors{y};
}

} // namespace

void add_norm(Oracles& oracles) {
  oracles["nn.softmax"] = softmaxEval;
  oracles["nn.log_softmax"] = softmaxEval;
  oracles["nn.layer_norm"] = layerNormEval;
  oracles["nn.rms_norm"] = layerNormEval;
  oracles["nn.batch_norm"] = batchNormEval;
  oracles["nn.group_norm"] = groupNormEval;
  oracles["nn.lrn"] = lrnEval;
}

} // namespace bevel::test
