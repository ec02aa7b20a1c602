// Calls that do nothing, or that a cheaper call says as well.
//
//   lv = R.power(x, 2)                              lv = R.multiply(x, x)
//   lv1 = R.reshape(lv, (2, 12))              →     gv = R.reshape(lv, (4, 6))
//   lv2 = R.multiply(lv1, 1)
//   gv = R.reshape(lv2, (4, 6))
#include "graph/op.h"
#include "graph/rewrite.h"
#include "select/layout_impl.h"
#include "select/passes.h"

#include <cmath>

namespace bevel {
namespace {

bool isFloat(const GraphExpr& e, const MatchContext&) {
  const auto* t = knownTensor(e);
  return t && t->dtype.isFloat();
}

bool isKnown(const GraphExpr& e, const MatchContext&) {
  return knownTensor(e) != nullptr;
}

// x + 0 is 0 where x is -0: what adds nothing to a float is -0, and what takes nothing away is 0.
bool addsNothing(const GraphExpr& e, const MatchContext&) {
  return scalarOf(e) == 0 && (std::signbit(*scalarOf(e)) || !knownTensor(e)->dtype.isFloat());
}
bool takesNothing(const GraphExpr& e, const MatchContext&) {
  return scalarOf(e) == 0 && !std::signbit(*scalarOf(e));
}

// NaN, or not below +0, for certain: squares, their sums and means.
bool isSquare(const GraphExpr& e, const MatchContext& values, int depth) {
  GraphExpr v = values.valueOf(e);
  if (auto s = scalarOf(v)) return !std::signbit(*s);
  const auto* c = v.as<GraphCallNode>();
  if (!c || depth == 0 || c->args.empty()) return false;
  const std::string& op = c->opName();
  if (op == "abs" || op == "exp") return true;
  if (op == "multiply" && c->args[0] == c->args[1]) return true;
  if (op == "power") return scalarOf(values.valueOf(c->args[1])) == 2;
  bool passes = op == "mean" || op == "sum" || op == "astype" || op == "reshape",
       joins = op == "add" || op == "multiply";
  return (passes || joins) && isSquare(c->args[0], values, depth - 1) &&
         (passes || isSquare(c->args[1], values, depth - 1));
}
bool isNotNegative(const GraphExpr& e, const MatchContext& values) {
  return isSquare(e, values, 8);
}

// Every value of `from` is one of `to`, so a cast there loses nothing.
bool lossless(DType from, DType to) {
  if (from == to) return true;
  if (from.isBool()) return to.isInteger() || to.isFloat();
  if (from.isIeee(16) || (from.code == TypeCode::kBFloat)) return to.isIeee(32) || to.isIeee(64);
  if (from.isIeee(32)) return to.isIeee(64);
  if (from.isUInt()) return to.isInteger() && to.bits > from.bits;
  if (from.isInt()) return to.isInt() && to.bits > from.bits;
  return false;
}
bool isLosslessCast(const GraphExpr& e, const MatchContext&) {
  const auto *from = knownTensor(e.as<GraphCallNode>()->args[0]), *to = knownTensor(e);
  return from && to && lossless(from->dtype, to->dtype);
}

// Whether a move leaves the axes of more than one element in their order.
bool keepsOrder(const GraphExpr& e, const MatchContext&) {
  const auto& call = *e.as<GraphCallNode>();
  auto axes = layout::permutationOf(call);
  return axes && layout::movesOnlyOnes(knownTensor(call.args[0])->shape, *axes);
}
bool movesNothing(const GraphExpr& e, const MatchContext&) {
  auto axes = layout::permutationOf(*e.as<GraphCallNode>());
  return axes && layout::isIdentity(*axes);
}

GraphExpr reshapeToRoot(const GraphExpr& x, const Match& m) {
  const auto* t = m.root().type.as<TensorTypeNode>();
  return opCall("reshape", {x, make<const ShapeExprNode>(t->shape)});
}

Pattern reshapeOf(const Pattern& x) {
  return oneOf({call("reshape", {x, anything()}), callAny({"expand_dims", "squeeze"}, {x})});
}

Rules powerRules() {
  Pattern x = anything().where(isFloat), square = x.where(isNotNegative), any = anything();
  // Unlike a square root, x ^ 0.5 is 0 at -0 and infinite at -inf.
  Pattern root =
      call("where", {call("equal", {x, -INFINITY}), INFINITY, call("sqrt", {call("add", {x, 0})})});
  return {
      {"first power", call("power", {any, 1}), any},
      {"square", call("power", {any, 2}), call("multiply", {any, any})},
      {"cube", call("power", {x, 3}), call("multiply", {call("multiply", {x, x}), x})},
      {"square root of squares", call("power", {square, 0.5}), call("sqrt", {square})},
      {"square root", call("power", {x, 0.5}), root},
      {"inverse", call("power", {x, -1}), call("reciprocal", {x})},
      {"inverse square root", call("power", {x, -0.5}), call("reciprocal", {call("power", {x, 0.5})})},
  };
}

Rules neutralRules() {
  Pattern x = anything();
  return {
      {"add nothing", call("add", {x, scalar().where(addsNothing)}), x},
      {"take nothing away", call("subtract", {x, scalar().where(takesNothing)}), x},
      {"times one", call("multiply", {x, 1}), x},
      {"divided by one", call("divide", {x, 1}), x},
      {"cast to the same type", call("astype", {x}), x},
      {"move nothing", call("permute_dims", {x}).where(movesNothing), x},
      {"reshape to the same shape", reshapeOf(x), x},
  };
}

Rules mergingRules() {
  Pattern x = anything().where(isKnown);
  Pattern wide = call("astype", {x}).where(isLosslessCast).shared(),
          inner = call("permute_dims", {x}).shared();
  auto moveOnce = [=](const Match& m) -> GraphExpr {
    auto axes = layout::permutationOf(m.root()), first = layout::permutationOf(m.call(inner));
    if (!axes || !first) return nullptr;
    for (int64_t& a : *axes) a = (*first)[size_t(a)];
    return opCall("permute_dims", {m[x]}, dict({{"axes", intList(*axes)}}));
  };
  auto reshaped = [=](const Match& m) { return reshapeToRoot(m[x], m); };
  return {
      {"cast of a lossless cast", call("astype", {wide}),
       [=](const Match& m) { return opCall("astype", {m[x]}, m.root().attrs); }},
      {"moves in a row", call("permute_dims", {inner}), moveOnce},
      {"move of axes of one element", call("permute_dims", {x}).where(keepsOrder), reshaped},
      {"reshapes in a row",
       reshapeOf(oneOf(
           {call("reshape", {x, anything()}).shared(), callAny({"expand_dims", "squeeze"}, {x}).shared()})),
       reshaped},
  };
}

} // namespace

Result<Module> simplifyGraph(const Module& module) {
  Rules rules = neutralRules();
  for (const Rules& more : {powerRules(), mergingRules()})
    rules.insert(rules.end(), more.begin(), more.end());
  return rewriteGraph(module, withAddedRules("simplify", std::move(rules)));
}

} // namespace bevel
