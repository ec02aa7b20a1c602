// Operators that exporters took apart are put together again.
//
//   lv = R.mean(x, axis=[-1], keepdims=1)
//   lv1 = R.subtract(x, lv)
//   lv2 = R.multiply(lv1, lv1)
//   lv3 = R.mean(lv2, axis=[-1], keepdims=1)
//   lv4 = R.sqrt(R.add(lv3, 1e-5))
//   gv = R.add(R.multiply(R.divide(lv1, lv4), gamma), beta)
//   →   gv = R.nn.layer_norm(x, gamma, beta, axis=1, epsilon=1e-5)
#include "graph/op.h"
#include "graph/rewrite.h"
#include "select/passes.h"

#include <algorithm>

namespace bevel {
namespace {

using Ints = std::vector<int64_t>;

bool isFloat(const GraphExpr& e, const MatchContext&) {
  const auto* t = knownTensor(e);
  return t && t->dtype.isFloat();
}

// The axes that a reduction which keeps its dimensions folds, in order; nothing for others.
std::optional<Ints> keptAxes(const GraphCallNode& c) {
  const auto* t = knownTensor(c.args[0]);
  if (!t || attrInt(c.attrs, "keepdims") == 0 || !attr(c.attrs, "axis")) return std::nullopt;
  Ints axes = attrInts(c.attrs, "axis");
  for (int64_t& a : axes)
    if (a < 0) a += int64_t(t->shape.size());
  std::sort(axes.begin(), axes.end());
  return axes;
}

// The first axis, where a reduction folds this one and all behind it.
std::optional<int64_t> trailingAxis(const GraphCallNode& c) {
  auto axes = keptAxes(c);
  size_t rank = axes ? knownTensor(c.args[0])->shape.size() : 0;
  if (!axes || axes->empty() || axes->size() > rank) return std::nullopt;
  for (size_t i = 0; i < axes->size(); ++i)
    if ((*axes)[i] != int64_t(rank - axes->size() + i)) return std::nullopt;
  return (*axes)[0];
}

// x / sqrt(mean(x^2) + epsilon), in the forms that exporters write. `centred` is x, or x - mean(x).
Rule normRule(const char* op, const Pattern& x, const Pattern& mean, const Pattern& centred) {
  Pattern epsilon = scalar();
  Pattern squares = oneOf({call("multiply", {centred, centred}), call("square", {centred})});
  Pattern variance = call("mean", {squares}), shifted = call("add", {variance, epsilon});
  Pattern root = call("sqrt", {shifted});
  Pattern inverse = oneOf({call("reciprocal", {root}), call("divide", {1, root}), call("rsqrt", {shifted})});
  Pattern norm = oneOf({call("divide", {centred, root}), call("multiply", {centred, inverse})});
  return {op, norm, [=](const Match& m) -> GraphExpr {
            auto axis = trailingAxis(m.call(variance));
            if (!axis || m.scalar(epsilon) < 0 || (m[mean] && trailingAxis(m.call(mean)) != axis))
              return nullptr;
            Dict attrs = dict(
                {{"axis", intImm(*axis)}, {"epsilon", constantFloat(DType::Float(64), m.scalar(epsilon))}});
            return opCall(op, {m[x]}, attrs);
          }};
}

// A norm takes over what scales and shifts its result.
Rule normWith(std::string name, const char* op, std::vector<Pattern> norm) {
  Pattern inner = callAny({"nn.layer_norm", "nn.rms_norm"}, norm), value = anything();
  return {std::move(name), call(op, {inner, value}), [=](const Match& m) -> GraphExpr {
            const auto *x = knownTensor(m[norm[0]]), *t = knownTensor(m[value]);
            if (!x || !t || t->dtype != x->dtype) return nullptr;
            Array<GraphExpr> args = m.call(inner).args;
            args.push_back(m[value]);
            return opCall(m.call(inner).opName(), args, m.call(inner).attrs);
          }};
}

Rule softmaxRule() {
  Pattern x = anything().where(isFloat), top = call("max", {x});
  Pattern e = call("exp", {call("subtract", {x, top})}), sum = call("sum", {e});
  return {"nn.softmax", call("divide", {e, sum}), [=](const Match& m) -> GraphExpr {
            auto axes = keptAxes(m.call(sum));
            if (!axes || axes->size() != 1 || keptAxes(m.call(top)) != axes) return nullptr;
            return opCall("nn.softmax", {m[x]}, dict({{"axis", intImm((*axes)[0])}}));
          }};
}

} // namespace

Result<Module> recognizePatterns(const Module& module) {
  Pattern x = anything().where(isFloat), mean = call("mean", {x}), scale = anything();
  Rules rules = {
      softmaxRule(),
      normRule("nn.layer_norm", x, mean, call("subtract", {x, mean})),
      normRule("nn.rms_norm", x, mean, x),
      normWith("scale of a norm", "multiply", {x}),
      normWith("shift of a norm", "add", {x, scale}),
  };
  return rewriteGraph(module, withAddedRules("recognize", std::move(rules)));
}

} // namespace bevel
