// Per-channel scales and shifts behind convolutions and matmuls go into the weights and one bias.
//
//   lv = R.nn.conv2d(x, W)                                    lv = R.nn.conv2d(x, W * s)
//   lv1 = R.nn.batch_norm(lv, scale, bias, mean, var)   →     lv1 = R.add(lv, b)
//   lv2 = R.nn.relu(lv1)                                      lv2 = R.nn.relu(lv1)
//   with s = scale / sqrt(var + epsilon), b = bias - mean * s, in fp64 and rounded once
//
// A scalar factor in front of them that nothing else uses goes into the weights as well (padding is zero, so
// it stays).
#include "graph/op.h"
#include "graph/rewrite.h"
#include "select/passes.h"

#include <algorithm>
#include <cmath>

namespace bevel {
namespace {

using Doubles = std::vector<double>;

// y * scale + shift, one value a channel; an empty list stands for ones, or zeros.
struct Affine {
  Doubles scale, shift;
};

bool isFoldable(DType t) {
  return t.isIeee(32) || t.isIeee(64);
}
bool isConv(const GraphCallNode& c) {
  return c.opName() != "matmul";
}

// The channels of the result of a convolution or matmul.
size_t channelAxis(const GraphCallNode& c) {
  return isConv(c) ? 1 : c.type.as<TensorTypeNode>()->shape.size() - 1;
}

// A convolution or matmul whose weights can be scaled.
bool hasOwnWeights(const GraphExpr& e, const MatchContext&) {
  const auto& c = *e.as<GraphCallNode>();
  const auto* t = knownTensor(e);
  Tensor w = tensorOfConstant(c.args[1]);
  return t && w && isFoldable(t->dtype) && w->dtype == t->dtype && w->size() > 0;
}

// Each output of it belongs to one channel.
bool hasChannels(const GraphExpr& e, const MatchContext&) {
  const auto& c = *e.as<GraphCallNode>();
  size_t rank = knownTensor(e)->shape.size(), weights = tensorOfConstant(c.args[1])->shape.size();
  if (!isConv(c)) return weights == 2 && rank >= 2;
  return weights >= 3 && attrStr(c.attrs, "data_layout", "NCHW") == "NCHW" &&
         attrStr(c.attrs, "kernel_layout", "OIHW") == "OIHW";
}

// The output that element i of the weight contributes to.
int64_t outputOf(const GraphCallNode& c, const TensorObject& w, int64_t i) {
  if (!isConv(c)) return i % w.shape.back();
  int64_t inner = 1;
  for (size_t d = 2; d < w.shape.size(); ++d) inner *= w.shape[d];
  int64_t second = i / inner % w.shape[1], first = i / inner / w.shape[1];
  if (!c.opName().starts_with("nn.conv_transpose")) return first;
  int64_t perGroup = w.shape[0] / attrInt(c.attrs, "groups", 1);
  return first / perGroup * w.shape[1] + second;
}

int64_t outputs(const GraphCallNode& c) {
  const TensorObject& w = *tensorOfConstant(c.args[1]);
  return w.size() == 0 ? 0 : outputOf(c, w, w.size() - 1) + 1;
}

// A constant that broadcasts to `type` and varies along `axis` only, as one value an element of that axis.
std::optional<Doubles> perChannel(const Tensor& t, const TensorTypeNode& type, size_t axis, int64_t n) {
  size_t rank = type.shape.size();
  if (!t || !t->dtype.isFloat() || t->shape.size() > rank) return std::nullopt;
  bool varies = false;
  for (size_t d = 0, o = rank - t->shape.size(); d < t->shape.size(); ++d) {
    if (t->shape[d] == 1) continue;
    if (o + d != axis || t->shape[d] != n) return std::nullopt;
    varies = true;
  }
  Doubles out(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) out[size_t(i)] = t->asDouble(varies ? i : 0);
  return out;
}

bool allFinite(const Doubles& v) {
  return std::all_of(v.begin(), v.end(), [](double x) { return std::isfinite(x) && std::abs(x) <= 1e30; });
}

// Scale and shift of an inference batch norm with constant parameters.
std::optional<Affine> batchNorm(const GraphCallNode& c, int64_t channels) {
  Doubles p[4];
  for (size_t k = 0; k < 4; ++k) {
    Tensor t = tensorOfConstant(c.args[k + 1]);
    if (!t || !t->dtype.isFloat() || t->size() != channels) return std::nullopt;
    for (int64_t i = 0; i < channels; ++i) p[k].push_back(t->asDouble(i));
  }
  double epsilon = attrFloat(c.attrs, "epsilon", 1e-5);
  Affine a;
  for (size_t i = 0; i < size_t(channels); ++i) {
    a.scale.push_back(p[0][i] / std::sqrt(p[3][i] + epsilon));
    a.shift.push_back(p[1][i] - p[2][i] * a.scale[i]);
  }
  return a;
}

// Constants that the rules have made, before they were rounded: several rules that act on one weight round once.
class Exact {
public:
  // w * by(i), by an element's output.
  GraphExpr scaled(const GraphCallNode& c, const Doubles& by) {
    const auto* old = c.args[1].as<ConstantNode>();
    auto it = weights_.find(old->value);
    Weight w = it == weights_.end() ? Weight{old->value, {}} : it->second;
    if (w.scale.empty()) w.scale.assign(by.size(), 1);
    for (size_t i = 0; i < by.size(); ++i) w.scale[i] *= by[i];
    auto out = TensorObject::zeros(w.of->dtype, w.of->shape);
    for (int64_t i = 0; i < w.of->size(); ++i)
      out->setDouble(i, w.of->asDouble(i) * w.scale[size_t(outputOf(c, *w.of, i))]);
    weights_[out] = w;
    return make<const ConstantNode>(out, old->name);
  }

  std::optional<Doubles> channels(const Tensor& t, const TensorTypeNode& type, size_t axis, int64_t n) const {
    auto it = shifts_.find(t);
    return it == shifts_.end() ? perChannel(t, type, axis, n) : it->second;
  }

  // The constant of shape [n, 1, …] with `behind` dimensions of one.
  GraphExpr constant(const Doubles& values, DType dtype, size_t behind) {
    std::vector<int64_t> shape = {int64_t(values.size())};
    shape.insert(shape.end(), behind, 1);
    Tensor t = TensorObject::of(dtype, shape, values);
    shifts_[t] = values;
    return make<const ConstantNode>(t);
  }

private:
  struct Weight {
    Tensor of;
    Doubles scale; // one an output
  };

  std::unordered_map<Tensor, Weight, RefHash> weights_;
  std::unordered_map<Tensor, Doubles, RefHash> shifts_;
};

const std::vector<std::string> kLinear = {
    "nn.conv1d",           "nn.conv2d",           "nn.conv3d", "nn.conv_transpose1d",
    "nn.conv_transpose2d", "nn.conv_transpose3d", "matmul"};

class Folding {
public:
  Rules rules() const {
    auto negated = [](Doubles c) {
      for (double& x : c) x = -x;
      return c;
    };
    auto inverse = [](Doubles c) {
      for (double& x : c) x = 1 / x;
      return c;
    };
    return {
        behind("factor", call("multiply", {y, c}), [](Doubles v) { return Affine{v, {}}; }),
        behind("divisor", call("divide", {y, c}), [=](Doubles v) { return Affine{inverse(v), {}}; }),
        behind("bias", call("add", {y, c}), [](Doubles v) { return Affine{{}, v}; }),
        behind("negative bias", call("subtract", {y, c}), [=](Doubles v) { return Affine{{}, negated(v)}; }),
        behind("difference", call("subtract", {c, y}),
               [](Doubles v) { return Affine{Doubles(v.size(), -1), v}; }),
        {"batch norm behind weights", norm(y),
         [*this](const Match& m) -> GraphExpr {
           auto a =
               channelAxis(m.call(linear)) == 1 ? batchNorm(m.root(), outputs(m.call(linear))) : std::nullopt;
           return a ? folded(m, *a) : nullptr;
         }},
        {"batch norm", norm(x), [*this](const Match& m) { return multiplyAdd(m); }},
        {"factor in front", callAny(kLinear, {oneOf({times, over}), constantTensor()}).where(hasOwnWeights),
         [*this](const Match& m) { return withoutFactor(m); }},
    };
  }

private:
  static Pattern norm(const Pattern& input) {
    return call("nn.batch_norm",
                {input, constantTensor(), constantTensor(), constantTensor(), constantTensor()});
  }

  // The rule of a call that applies f(c) to what the weights make.
  Rule behind(std::string name, Pattern root, std::function<Affine(Doubles)> f) const {
    return {std::move(name), std::move(root), [*this, f = std::move(f)](const Match& m) -> GraphExpr {
              auto values = channels(m, c);
              return values ? folded(m, f(*values)) : nullptr;
            }};
  }

  std::optional<Doubles> channels(const Match& m, const Pattern& constant) const {
    const GraphCallNode& call = m.call(linear);
    return exact->channels(m.tensor(constant), m.type(linear), channelAxis(call), outputs(call));
  }

  GraphExpr folded(const Match& m, Affine a) const {
    if (!allFinite(a.scale) || !allFinite(a.shift)) return nullptr;
    const TensorTypeNode& t = m.type(linear);
    size_t behind = t.shape.size() - 1 - channelAxis(m.call(linear));
    if (m[bias]) {
      auto before = channels(m, bias);
      if (!before) return nullptr;
      for (size_t i = 0; i < a.scale.size(); ++i) (*before)[i] *= a.scale[i];
      for (size_t i = 0; i < a.shift.size(); ++i) (*before)[i] += a.shift[i];
      a.shift = std::move(*before);
    } else if (a.scale.empty() && isBias(m.root(), a.shift.size(), behind))
      return nullptr; // nothing to do
    auto call = make<GraphCallNode>(m.call(linear));
    if (!a.scale.empty()) {
      call->type = nullptr;
      call->args.set(1, exact->scaled(m.call(linear), a.scale));
    }
    if (a.shift.empty()) return GraphExpr(call);
    return opCall("add", {GraphExpr(call), exact->constant(a.shift, t.dtype, behind)});
  }

  // Whether an addition has its constant in the form that `constant` makes.
  static bool isBias(const GraphCallNode& c, size_t n, size_t behind) {
    Tensor t = c.isOp("add") ? tensorOfConstant(c.args[1]) : nullptr;
    return t && t->shape.size() == behind + 1 && t->shape[0] == int64_t(n) && t->size() == int64_t(n);
  }

  // A batch norm of anything else: one multiplication and one addition.
  GraphExpr multiplyAdd(const Match& m) const {
    const auto* t = knownTensor(m[x]);
    if (!t || t->shape.size() < 2 || !isFoldable(t->dtype)) return nullptr;
    Tensor first = tensorOfConstant(m.root().args[1]);
    auto a = first ? batchNorm(m.root(), first->size()) : std::nullopt;
    if (!a || !allFinite(a->scale) || !allFinite(a->shift)) return nullptr;
    size_t behind = t->shape.size() - 2;
    return opCall("add", {opCall("multiply", {m[x], exact->constant(a->scale, t->dtype, behind)}),
                          exact->constant(a->shift, t->dtype, behind)});
  }

  GraphExpr withoutFactor(const Match& m) const {
    double s = m[over] ? 1 / m.scalar(factor) : m.scalar(factor);
    if (s == 0 || !std::isfinite(s)) return nullptr;
    auto call = make<GraphCallNode>(m.root());
    call->type = nullptr;
    call->args.set(0, m[x]);
    call->args.set(1, exact->scaled(m.root(), Doubles(size_t(outputs(m.root())), s)));
    return GraphExpr(call);
  }

  std::shared_ptr<Exact> exact = std::make_shared<Exact>();
  Pattern x = anything(), c = constantTensor(), bias = constantTensor(), factor = scalar();
  Pattern linear = callAny(kLinear, {x, constantTensor()}).where(hasOwnWeights).where(hasChannels);
  Pattern y = oneOf({call("add", {linear, bias}), linear});
  Pattern times = call("multiply", {x, factor}), over = call("divide", {x, factor});
};

} // namespace

Result<Module> foldAffine(const Module& module) {
  return rewriteGraph(module, withAddedRules("fold_affine", Folding().rules()));
}

} // namespace bevel
