// Per-channel scales and shifts behind convolutions and matmuls go into the weights and one bias.
//
//   lv = R.nn.conv2d(x, W)                                    lv = R.nn.conv2d(x, W * s)
//   lv1 = R.nn.batch_norm(lv, scale, bias, mean, var)   →     lv1 = R.add(lv, b)
//   lv2 = R.nn.relu(lv1)                                      lv2 = R.nn.relu(lv1)
//   with s = scale / sqrt(var + epsilon), b = bias - mean * s, in fp64 and rounded once
//
// A scalar factor in front of them that nothing else uses goes into the weights as well (padding is zero, so
// it stays).
#include "arith/analyzer.h"
#include "graph/mutator.h"
#include "graph/passes/passes.h"
#include "graph/shape_util.h"
#include "select/passes.h"
#include "select/patterns.h"

#include <cmath>

namespace bevel {
namespace {

using Doubles = std::vector<double>;

// A call with constant weights, and what is applied to its outputs: y * scale + shift.
struct Chain {
  GraphCall call; // arguments rewritten
  Type type;
  Tensor weight;
  size_t channelAxis = 1; // of the result
  Doubles scale, shift;   // one an output; empty: ones, zeros
};

bool isConv(std::string_view op) {
  return op.starts_with("nn.conv");
}
bool isTransposed(std::string_view op) {
  return op.starts_with("nn.conv_transpose");
}

const TensorTypeNode* knownTensor(const Type& type) {
  const auto* t = type.as<TensorTypeNode>();
  return t && t->known ? t : nullptr;
}

bool foldableFloat(DType t) {
  return t.isIeee(32) || t.isIeee(64);
}

std::optional<int64_t> outputsOf(const Chain& c) {
  const auto* t = knownTensor(c.type);
  return t && c.channelAxis < t->shape.size() ? asConst(t->shape[c.channelAxis]) : std::nullopt;
}

// The output that element i of the weight contributes to.
int64_t outputOf(const Chain& c, int64_t i) {
  const auto& shape = c.weight->shape;
  if (!isConv(c.call->opName())) return i % shape[1];
  int64_t inner = 1;
  for (size_t d = 2; d < shape.size(); ++d) inner *= shape[d];
  int64_t second = i / inner % shape[1], first = i / inner / shape[1];
  if (!isTransposed(c.call->opName())) return first;
  int64_t perGroup = shape[0] / attrInt(c.call->attrs, "groups", 1);
  return first / perGroup * shape[1] + second;
}

// A constant that broadcasts to `type` and varies along `axis` only, as one value an element of that axis.
std::optional<Doubles> perChannel(const GraphExpr& e, const TensorTypeNode& type, size_t axis, int64_t n) {
  Tensor t = tensorOfConstant(e);
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

// The constant of shape [n, 1, …] with `behind` dimensions of one.
GraphExpr channelConstant(const Doubles& values, DType dtype, size_t behind) {
  std::vector<int64_t> shape = {int64_t(values.size())};
  shape.insert(shape.end(), behind, 1);
  return make<const ConstantNode>(TensorObject::of(dtype, shape, values));
}

bool allFinite(const Doubles& v) {
  for (double x : v)
    if (!std::isfinite(x) || std::abs(x) > 1e30) return false;
  return true;
}

// y * scale + shift of a binding; scale or shift may be empty.
struct Affine {
  size_t operand = 0; // argument that is y
  Doubles scale, shift;
};

class Folder : public ExprMutator {
public:
  Folder(Module module, const Function& f) : ExprMutator(std::move(module)), bindings_(f) {}

protected:
  Status visitBlock(const BindingBlock& block) override {
    forget(); // what a chain reads may not be visible in another block
    Status status = ExprMutator::visitBlock(block);
    forget();
    return status;
  }

  Status visitBinding(const VarBinding& b) override {
    const auto* original = b->value.as<GraphCallNode>();
    if (!original) return ExprMutator::visitBinding(b);
    GraphExpr rewritten = visitExpr(b->value);
    const auto* call = rewritten.as<GraphCallNode>();
    GraphExpr value = call ? absorb(*original, *call, b->var) : nullptr;
    if (!value && call) {
      GraphCall scaled = withoutFactor(*original, *call, b->var);
      startChain(scaled ? scaled : GraphCall(call), b->var);
      if (scaled)
        value = scaled;
      else
        noteFactor(*call, b->var);
    }
    if (!value) return ExprMutator::visitBinding(b);
    Origin outer = builder.origin();
    if (b->value->origin) builder.setOrigin(b->value->origin);
    Status status = builder.emitBinding(b->var, value);
    builder.setOrigin(std::move(outer));
    return status;
  }

private:
  // value = of * factor
  struct Scaled { // a value with a scalar factor
    GraphExpr of;
    double factor;
  };

  void forget() {
    chains_.clear();
    scaled_.clear();
  }

  void noteFactor(const GraphCallNode& c, const GraphVar& v) {
    bool divides = c.isOp("divide");
    if ((!divides && !c.isOp("multiply")) || c.args.size() != 2) return;
    for (size_t k = 0; k < (divides ? 1u : 2u); ++k) {
      auto s = scalarOf(c.args[1 - k]);
      if (!s || *s == 0 || !std::isfinite(*s) || !sameType(c.args[k]->type, v->type, builder.analyzer()))
        continue;
      scaled_[v] = {c.args[k], divides ? 1 / *s : *s};
      return;
    }
  }

  // The call with the scalar factor of its input moved into constant weights, or null.
  GraphCall withoutFactor(const GraphCallNode& original, const GraphCallNode& call, const GraphVar& result) {
    if ((!isConv(call.opName()) && !call.isOp("matmul")) || call.args.size() != 2) return nullptr;
    const auto* x = original.args[0].as<GraphVarNode>();
    auto it = x ? scaled_.find(GraphVar(x)) : scaled_.end();
    Tensor w = tensorOfConstant(call.args[1]);
    if (it == scaled_.end() || bindings_.uses(GraphVar(x)) != 1 || !w || !foldableFloat(w->dtype))
      return nullptr;
    const auto* t = knownTensor(result->type);
    if (!t || t->dtype != w->dtype) return nullptr;
    auto scaled = TensorObject::zeros(w->dtype, w->shape);
    for (int64_t i = 0; i < w->size(); ++i) scaled->setDouble(i, w->asDouble(i) * it->second.factor);
    auto out = make<GraphCallNode>(call);
    out->type = nullptr;
    out->args.set(0, it->second.of);
    out->args.set(1, make<const ConstantNode>(scaled, call.args[1].as<ConstantNode>()->name));
    return GraphCall(out);
  }

  void startChain(const GraphCall& call, const GraphVar& v) {
    bool conv = isConv(call->opName());
    if ((!conv && !call->isOp("matmul")) || call->args.size() != 2) return;
    if (attrStr(call->attrs, "data_layout", "NCHW") != "NCHW" ||
        attrStr(call->attrs, "kernel_layout", "OIHW") != "OIHW")
      return;
    const auto* t = knownTensor(v->type);
    Tensor w = tensorOfConstant(call->args[1]);
    if (!t || !w || !foldableFloat(t->dtype) || w->dtype != t->dtype || w->size() == 0) return;
    if (conv ? w->shape.size() < 3 : w->shape.size() != 2 || t->shape.size() < 2) return;
    chains_[v] = Chain{call, v->type, w, conv ? 1 : t->shape.size() - 1, {}, {}};
  }

  // scale and shift of an inference batch norm with constant parameters.
  static std::optional<Affine> batchNorm(const GraphCallNode& c, int64_t channels) {
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

  // The affine function that a call applies to its tensor of `type`, channels on `axis`.
  static std::optional<Affine> affineOf(const GraphCallNode& c, size_t operand, const TensorTypeNode& type,
                                        size_t axis, int64_t n) {
    const std::string& op = c.opName();
    if (op == "nn.batch_norm")
      return operand == 0 && axis == 1 && c.args.size() == 5 ? batchNorm(c, n) : std::nullopt;
    bool multiplies = op == "multiply" || op == "divide";
    if ((!multiplies && op != "add" && op != "subtract") || c.args.size() != 2 ||
        (op == "divide" && operand == 1))
      return std::nullopt;
    auto values = perChannel(c.args[1 - operand], type, axis, n);
    if (!values) return std::nullopt;
    Affine a;
    a.operand = operand;
    if (op == "divide")
      for (double& x : *values) x = 1 / x;
    if (op == "subtract" && operand == 1)
      a.scale.assign(size_t(n), -1);
    else if (op == "subtract")
      for (double& x : *values) x = -x;
    (multiplies ? a.scale : a.shift) = std::move(*values);
    return a;
  }

  // The folded value of a binding, or null. `original` has the variables of the function before the pass.
  GraphExpr absorb(const GraphCallNode& original, const GraphCallNode& call, const GraphVar& result) {
    for (size_t k = 0; k < original.args.size() && k < 2; ++k) {
      const auto* v = original.args[k].as<GraphVarNode>();
      auto it = v ? chains_.find(GraphVar(v)) : chains_.end();
      if (it == chains_.end() || bindings_.uses(GraphVar(v)) != 1) continue;
      const Chain& from = it->second;
      auto n = outputsOf(from);
      if (!n || !sameType(from.type, result->type, builder.analyzer())) continue;
      auto affine = affineOf(call, k, *knownTensor(from.type), from.channelAxis, *n);
      if (!affine || !allFinite(affine->scale) || !allFinite(affine->shift)) continue;
      return extend(from, *affine, result);
    }
    return loneBatchNorm(call);
  }

  GraphExpr extend(const Chain& from, const Affine& a, const GraphVar& result) {
    Chain c = from;
    size_t n = std::max(a.scale.size(), a.shift.size());
    auto ensure = [&](Doubles& v, double value) {
      if (v.empty()) v.assign(n, value);
    };
    if (!a.scale.empty()) {
      ensure(c.scale, 1);
      for (size_t i = 0; i < n; ++i) c.scale[i] *= a.scale[i];
      for (size_t i = 0; i < c.shift.size(); ++i) c.shift[i] *= a.scale[i];
    }
    if (!a.shift.empty()) {
      ensure(c.shift, 0);
      for (size_t i = 0; i < n; ++i) c.shift[i] += a.shift[i];
    }
    chains_[result] = c;
    return valueOf(c);
  }

  static GraphExpr valueOf(const Chain& c) {
    auto call = mutableCopy(c.call);
    call->type = nullptr;
    if (!c.scale.empty()) {
      auto w = TensorObject::zeros(c.weight->dtype, c.weight->shape);
      for (int64_t i = 0; i < w->size(); ++i)
        w->setDouble(i, c.weight->asDouble(i) * c.scale[size_t(outputOf(c, i))]);
      call->args.set(1, make<const ConstantNode>(w, c.call->args[1].as<ConstantNode>()->name));
    }
    if (c.shift.empty()) return GraphExpr(call);
    const auto* t = knownTensor(c.type);
    return opCall("add",
                  {GraphExpr(call), channelConstant(c.shift, t->dtype, t->shape.size() - 1 - c.channelAxis)});
  }

  // A batch norm of anything else: one multiplication and one addition.
  GraphExpr loneBatchNorm(const GraphCallNode& c) {
    if (c.opName() != "nn.batch_norm" || c.args.size() != 5) return nullptr;
    const auto* t = knownTensor(c.args[0]->type);
    Tensor first = tensorOfConstant(c.args[1]);
    if (!t || t->shape.size() < 2 || !foldableFloat(t->dtype) || !first) return nullptr;
    auto a = batchNorm(c, first->size());
    if (!a || !allFinite(a->scale) || !allFinite(a->shift)) return nullptr;
    size_t behind = t->shape.size() - 2;
    return opCall("add", {opCall("multiply", {c.args[0], channelConstant(a->scale, t->dtype, behind)}),
                          channelConstant(a->shift, t->dtype, behind)});
  }

  Bindings bindings_;
  std::unordered_map<GraphVar, Chain, RefHash> chains_;
  std::unordered_map<GraphVar, Scaled, RefHash> scaled_;
};

} // namespace

Result<Module> foldAffine(const Module& module) {
  Module out = module;
  for (size_t i = 0; i < module->names.size(); ++i) {
    if (!module->functions[i].is<FunctionNode>()) continue;
    Function before = cast<FunctionNode>(module->functions[i]);
    BEVEL_TRY(Function f, Folder(out, before).mutateFunction(before));
    out = withFunction(out, module->names[i]->name, f);
  }
  return removeDead(out);
}

} // namespace bevel
