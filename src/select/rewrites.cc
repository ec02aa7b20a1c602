// Calls that do nothing, or that a cheaper call says as well.
//
//   lv = R.power(x, 2)                              lv = R.multiply(x, x)
//   lv1 = R.reshape(lv, (2, 12))              →     gv = R.reshape(lv, (4, 6))
//   lv2 = R.multiply(lv1, 1)
//   gv = R.reshape(lv2, (4, 6))
#include "graph/mutator.h"
#include "graph/passes/passes.h"
#include "graph/shape_util.h"
#include "select/passes.h"
#include "select/patterns.h"

#include <cmath>

namespace bevel {
namespace {

using Ints = std::vector<int64_t>;

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

GraphExpr scalarConstant(DType dtype, double value) {
  auto t = TensorObject::zeros(dtype, {});
  t->setDouble(0, value);
  return make<const ConstantNode>(Tensor(t));
}

// The axes of a permute_dims call, non-negative; empty when they are malformed.
Ints axesOf(const GraphCallNode& call, size_t rank) {
  Ints axes = attrInts(call.attrs, "axes");
  if (!attr(call.attrs, "axes"))
    for (size_t i = rank; i-- > 0;) axes.push_back(int64_t(i));
  for (int64_t& a : axes) {
    if (a < 0) a += int64_t(rank);
    if (a < 0 || a >= int64_t(rank)) return {};
  }
  return axes.size() == rank ? axes : Ints{};
}

class Simplifier : public ExprMutator {
public:
  using ExprMutator::ExprMutator;

protected:
  Status visitBinding(const VarBinding& b) override {
    if (!b->value.is<GraphCallNode>()) return ExprMutator::visitBinding(b);
    GraphExpr value = visitExpr(b->value);
    if (!value) return ExprMutator::visitBinding(b); // reports the failure
    Origin outer = builder.origin();
    if (b->value->origin) builder.setOrigin(b->value->origin);
    GraphExpr better = simplify(*value.as<GraphCallNode>(), b->var->type);
    Status status;
    if (!better)
      status = ExprMutator::visitBinding(b);
    else if (better.is<GraphCallNode>())
      status = builder.emitBinding(b->var, better);
    else {
      // What leaves the block must not become a variable that does not.
      const auto* v = better.as<GraphVarNode>();
      if (b->var->dataflow || !v || !v->dataflow) replace(b->var, better);
      if (!b->var->dataflow)
        status = builder.emitBinding(b->var, better); // outputs stay visible by their name
    }
    builder.setOrigin(std::move(outer));
    return status;
  }

private:
  const TensorTypeNode* tensor(const GraphExpr& e) const {
    const auto* t = e->type.as<TensorTypeNode>();
    return t && t->known && !t->dtype.isVoid() ? t : nullptr;
  }
  bool isType(const GraphExpr& e, const Type& type) {
    return tensor(e) && sameType(e->type, type, builder.analyzer());
  }
  const GraphCallNode* callOf(const GraphExpr& e, std::string_view op) const {
    GraphExpr v = lookup(e);
    const auto* c = v.as<GraphCallNode>();
    return c && c->opName() == op ? c : nullptr; // the builder keeps it alive
  }

  // The replacement, or null to keep the call.
  GraphExpr simplify(const GraphCallNode& c, const Type& type) {
    const auto* t = type.as<TensorTypeNode>();
    if (!t || !t->known || c.args.empty() || !tensor(c.args[0])) return nullptr;
    const std::string& op = c.opName();
    if (op == "add" || op == "multiply" || op == "subtract" || op == "divide") return neutral(c, op, type);
    if (op == "power") return power(c, type);
    if (op == "astype") return cast(c, type);
    if (op == "permute_dims") return permute(c, *t);
    if (op == "reshape" || op == "expand_dims" || op == "squeeze") return reshape(c, *t, type);
    return nullptr;
  }

  // x + 0 is 0 where x is -0: what adds nothing to a float is -0, and what takes nothing away is 0.
  GraphExpr neutral(const GraphCallNode& c, const std::string& op, const Type& type) {
    bool scales = op == "multiply" || op == "divide", real = tensor(c.args[0])->dtype.isFloat();
    auto isUnit = [&](const std::optional<double>& s) {
      return s && *s == (scales ? 1 : 0) && (scales || !real || std::signbit(*s) == (op == "add"));
    };
    if (isUnit(scalarOf(c.args[1])) && isType(c.args[0], type)) return c.args[0];
    bool swaps = op == "add" || op == "multiply";
    if (swaps && isUnit(scalarOf(c.args[0])) && isType(c.args[1], type)) return c.args[1];
    return nullptr;
  }

  // NaN, or not below +0, for certain: squares, their sums and means.
  bool notNegative(const GraphExpr& e, int depth = 8) const {
    if (auto s = scalarOf(e)) return !std::signbit(*s);
    GraphExpr v = lookup(e);
    const auto* c = v.as<GraphCallNode>();
    if (!c || depth == 0 || c->args.empty()) return false;
    const std::string& op = c->opName();
    if (op == "abs" || op == "exp") return true;
    if (op == "multiply" && c->args[0] == c->args[1]) return true;
    if (op == "power") return scalarOf(c->args[1]) == 2;
    bool passes = op == "mean" || op == "sum" || op == "astype" || op == "reshape",
         joins = op == "add" || op == "multiply";
    return (passes || joins) && notNegative(c->args[0], depth - 1) &&
           (passes || notNegative(c->args[1], depth - 1));
  }

  // x ^ 0.5; unlike sqrt it is 0 at -0 and infinite at -inf.
  GraphExpr squareRoot(const GraphExpr& x) {
    if (notNegative(x)) return opCall("sqrt", {x});
    DType t = tensor(x)->dtype;
    GraphExpr root = opCall("sqrt", {opCall("add", {x, scalarConstant(t, 0)})});
    return opCall("where",
                  {opCall("equal", {x, scalarConstant(t, -INFINITY)}), scalarConstant(t, INFINITY), root});
  }

  GraphExpr power(const GraphCallNode& c, const Type& type) {
    auto exponent = scalarOf(c.args[1]);
    const GraphExpr& x = c.args[0];
    if (!exponent || !isType(x, type)) return nullptr;
    if (*exponent == 1) return x;
    if (*exponent == 2) return opCall("multiply", {x, x});
    if (!tensor(x)->dtype.isFloat()) return nullptr;
    if (*exponent == 3) return opCall("multiply", {opCall("multiply", {x, x}), x});
    if (*exponent == 0.5) return squareRoot(x);
    if (*exponent == -1) return opCall("reciprocal", {x});
    if (*exponent == -0.5) return opCall("reciprocal", {squareRoot(x)});
    return nullptr;
  }

  GraphExpr cast(const GraphCallNode& c, const Type& type) {
    if (isType(c.args[0], type)) return c.args[0];
    const GraphCallNode* inner = callOf(c.args[0], "astype");
    if (!inner || !tensor(inner->args[0]) ||
        !lossless(tensor(inner->args[0])->dtype, tensor(c.args[0])->dtype))
      return nullptr;
    if (isType(inner->args[0], type)) return inner->args[0];
    return opCall("astype", {inner->args[0]}, c.attrs);
  }

  GraphExpr permute(const GraphCallNode& c, const TensorTypeNode& t) {
    GraphExpr x = c.args[0];
    Ints axes = axesOf(c, t.shape.size());
    if (axes.empty()) return nullptr;
    const GraphCallNode* inner = callOf(x, "permute_dims");
    Ints first = inner ? axesOf(*inner, axes.size()) : Ints{};
    if (!first.empty()) {
      for (int64_t& a : axes) a = first[size_t(a)];
      x = inner->args[0];
    }
    bool identity = true, moves = false;
    int64_t last = -1;
    for (size_t i = 0; i < axes.size(); ++i) {
      identity &= axes[i] == int64_t(i);
      if (isConst(t.shape[i], 1)) continue;
      moves |= axes[i] < last;
      last = axes[i];
    }
    if (identity) return x;
    if (!moves)
      return opCall("reshape", {x, make<const ShapeExprNode>(t.shape)}); // only axes of one element move
    return first.empty() ? nullptr : GraphExpr(opCall("permute_dims", {x}, dict({{"axes", intList(axes)}})));
  }

  GraphExpr reshape(const GraphCallNode& c, const TensorTypeNode& t, const Type& type) {
    if (isType(c.args[0], type)) return c.args[0];
    for (const char* op : {"reshape", "expand_dims", "squeeze"}) {
      const GraphCallNode* inner = callOf(c.args[0], op);
      if (!inner || !tensor(inner->args[0])) continue;
      if (isType(inner->args[0], type)) return inner->args[0];
      return opCall("reshape", {inner->args[0], make<const ShapeExprNode>(t.shape)});
    }
    return nullptr;
  }
};

} // namespace

Result<Module> simplifyGraph(const Module& module) {
  Module out = module;
  for (size_t i = 0; i < module->names.size(); ++i) {
    if (!module->functions[i].is<FunctionNode>()) continue;
    BEVEL_TRY(Function f, Simplifier(out).mutateFunction(cast<FunctionNode>(module->functions[i])));
    out = withFunction(out, module->names[i]->name, f);
  }
  return removeDead(out);
}

} // namespace bevel
