// Operators that exporters took apart are put together again.
//
//   lv = R.mean(x, axis=[-1], keepdims=1)
//   lv1 = R.subtract(x, lv)
//   lv2 = R.multiply(lv1, lv1)
//   lv3 = R.mean(lv2, axis=[-1], keepdims=1)
//   lv4 = R.sqrt(R.add(lv3, 1e-5))
//   gv = R.add(R.multiply(R.divide(lv1, lv4), gamma), beta)
//   →   gv = R.nn.layer_norm(x, gamma, beta, axis=1, epsilon=1e-5)
#include "arith/analyzer.h"
#include "graph/mutator.h"
#include "graph/passes/passes.h"
#include "graph/shape_util.h"
#include "graph/visitor.h"
#include "select/passes.h"
#include "select/patterns.h"

#include <algorithm>

namespace bevel {
namespace {

using Ints = std::vector<int64_t>;
enum Slot { kX, kMean, kVariance, kEpsilon, kGamma, kBeta, kFold, kTop };

// What replaces the value of a variable: a call with leaves of the function before the pass.
using Replacements = std::unordered_map<GraphVar, GraphCall, RefHash>;

const TensorTypeNode* knownTensor(const GraphExpr& e) {
  const auto* t = e && e->type ? e->type.as<TensorTypeNode>() : nullptr;
  return t && t->known ? t : nullptr;
}

// The axes of a reduction that keeps its dimensions; nothing for others.
std::optional<Ints> keptAxes(const GraphCallNode* c, size_t rank) {
  if (!c || attrInt(c->attrs, "keepdims") == 0 || !attr(c->attrs, "axis")) return std::nullopt;
  Ints axes = attrInts(c->attrs, "axis");
  for (int64_t& a : axes)
    if (a < 0) a += int64_t(rank);
  std::sort(axes.begin(), axes.end());
  return axes;
}

// The first of the trailing axes that a reduction folds.
std::optional<int64_t> trailingFrom(const GraphCallNode* c, size_t rank) {
  auto axes = keptAxes(c, rank);
  if (!axes || axes->empty() || axes->size() > rank) return std::nullopt;
  for (size_t i = 0; i < axes->size(); ++i)
    if ((*axes)[i] != int64_t(rank - axes->size() + i)) return std::nullopt;
  return (*axes)[0];
}

// Chains of a norm: x / sqrt(mean(x^2) + epsilon), in the forms that exporters write, with optional gamma and
// beta.
std::vector<Pattern> normPatterns(const Pattern& centred, const Pattern& squares) {
  Pattern root = call("sqrt", {call("add", {call("mean", {squares}, kVariance), scalar(kEpsilon)})});
  Pattern inverse =
      oneOf({call("reciprocal", {root}), call("divide", {scalarEqual(1), root}),
             call("rsqrt", {call("add", {call("mean", {squares}, kVariance), scalar(kEpsilon)})})});
  Pattern norm = oneOf({call("divide", {centred, root}), call("multiply", {centred, inverse})});
  Pattern scaled = call("multiply", {norm, wild(kGamma)});
  return {call("add", {scaled, wild(kBeta)}), scaled, norm};
}

class Recognizer {
public:
  Recognizer(const Function& f) : bindings_(f) {
    Pattern x = wild(kX);
    Pattern d = call("subtract", {x, call("mean", {x}, kMean)});
    layerNorm_ = normPatterns(d, oneOf({call("multiply", {d, d}), call("square", {d})}));
    rmsNorm_ = normPatterns(x, oneOf({call("multiply", {x, x}), call("square", {x})}));
    Pattern e = call("exp", {call("subtract", {x, call("max", {x}, kTop)})});
    softmax_ = call("divide", {e, call("sum", {e}, kFold)});
  }

  // Later bindings first: the longest chain wins, what it covers is then used by nothing.
  Replacements run(const Function& f) {
    std::vector<GraphVar> order;
    forEachCall(f, [&](const GraphCall&, const GraphVar& v) {
      if (v) order.push_back(v);
    });
    std::reverse(order.begin(), order.end());
    for (const GraphVar& v : order) {
      if (covered_.count(v)) continue;
      if (GraphCall c = recognize(v)) out_[v] = c;
    }
    return out_;
  }

private:
  GraphCall recognize(const GraphVar& v) {
    if (!knownTensor(v)) return nullptr;
    if (auto m = match(softmax_, v, bindings_)) return take(*m, softmaxOf(*m, v));
    for (const auto& [patterns, name] :
         {std::pair{&layerNorm_, "nn.layer_norm"}, std::pair{&rmsNorm_, "nn.rms_norm"}})
      for (const Pattern& p : *patterns)
        if (auto m = match(p, v, bindings_))
          if (GraphCall c = take(*m, normOf(*m, v, name))) return c;
    return nullptr;
  }

  GraphCall take(const Match& m, const GraphCall& c) {
    if (c)
      for (const auto& [var, use] : m.interior) covered_.insert(var);
    return c;
  }

  bool sameShape(const GraphExpr& a, const GraphExpr& b) { return sameType(a->type, b->type, analyzer_); }

  GraphCall softmaxOf(const Match& m, const GraphVar& v) {
    const auto* x = knownTensor(m.slots[kX]);
    if (!x || !x->dtype.isFloat() || !sameShape(m.slots[kX], v)) return nullptr;
    auto fold = keptAxes(m.call(kFold), x->shape.size());
    if (!fold || fold->size() != 1 || keptAxes(m.call(kTop), x->shape.size()) != fold) return nullptr;
    return opCall("nn.softmax", {m.slots[kX]}, dict({{"axis", intImm((*fold)[0])}}));
  }

  GraphCall normOf(const Match& m, const GraphVar& v, const char* name) {
    const auto* x = knownTensor(m.slots[kX]);
    if (!x || !x->dtype.isFloat() || !sameShape(m.slots[kX], v)) return nullptr;
    size_t rank = x->shape.size();
    auto axis = trailingFrom(m.call(kVariance), rank);
    auto epsilon = scalarOf(m.slots[kEpsilon]);
    if (!axis || !epsilon || *epsilon < 0) return nullptr;
    if (m.call(kMean) && trailingFrom(m.call(kMean), rank) != axis) return nullptr;
    Array<GraphExpr> args = {m.slots[kX]};
    for (Slot s : {kGamma, kBeta}) {
      if (!m.slots[s]) break;
      const auto* t = knownTensor(m.slots[s]);
      if (!t || t->shape.size() > rank || t->dtype != x->dtype) return nullptr;
      args.push_back(m.slots[s]);
    }
    return opCall(name, args,
                  dict({{"axis", intImm(*axis)}, {"epsilon", constantFloat(DType::Float(64), *epsilon)}}));
  }

  Bindings bindings_;
  Analyzer analyzer_;
  std::vector<Pattern> layerNorm_, rmsNorm_;
  Pattern softmax_;
  std::unordered_set<GraphVar, RefHash> covered_;
  Replacements out_;
};

class Replacer : public ExprMutator {
public:
  Replacer(Module module, Replacements r) : ExprMutator(std::move(module)), replacements_(std::move(r)) {}

protected:
  Status visitBinding(const VarBinding& b) override {
    auto it = replacements_.find(b->var);
    if (it == replacements_.end()) return ExprMutator::visitBinding(b);
    GraphExpr call = it->second;
    if (b->value->origin) call = withOrigin(call, b->value->origin);
    return ExprMutator::visitBinding(make<const VarBindingNode>(b->var, call));
  }

private:
  Replacements replacements_;
};

} // namespace

Result<Module> recognizePatterns(const Module& module) {
  Module out = module;
  for (size_t i = 0; i < module->names.size(); ++i) {
    if (!module->functions[i].is<FunctionNode>()) continue;
    Function before = cast<FunctionNode>(module->functions[i]);
    Replacements r = Recognizer(before).run(before);
    if (r.empty()) continue;
    BEVEL_TRY(Function f, Replacer(out, std::move(r)).mutateFunction(before));
    out = withFunction(out, module->names[i]->name, f);
  }
  return removeDead(out);
}

} // namespace bevel
