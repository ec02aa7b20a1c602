// Linear coefficients, and conditions solved for a variable.
#include "arith/linear.h"

#include "arith/analyzer.h"
#include "ir/structural.h"

#include <algorithm>

namespace bevel {

using namespace arith;

namespace {

bool usesAny(const Expr& e, const std::vector<Var>& vars) {
  return usesAnyVar(e, [&](const VarNode* v) {
    return std::any_of(vars.begin(), vars.end(), [v](const Var& x) { return x.get() == v; });
  });
}

/// The variable that an atom is or widens; otherwise the atom.
Expr unwidened(const Expr& atom) {
  const auto* c = atom.as<CastNode>();
  bool widens = c && isIndexType(c->dtype) && isIndexType(c->value->dtype) &&
                c->dtype.bits >= c->value->dtype.bits && c->value.is<VarNode>();
  return widens ? c->value : atom;
}

bool isOneOf(const Expr& e, const std::vector<Var>& vars) {
  return std::ranges::any_of(vars, [&](const Var& v) { return e == Expr(v); });
}

Error notLinear(const Expr& e) {
  return Error(ErrorCode::kUnsupported, "the index is not linear in the variables").at(e);
}

} // namespace

std::optional<LinearForm> affineIn(const Expr& e, const std::vector<Var>& vars, Analyzer& analyzer) {
  if (!e->dtype.isInteger() || e->dtype.lanes != 1) return std::nullopt;
  LinearForm form = analyzer.exactForm(analyzer.simplify(e)), out = LinearForm::of(form.constant);
  for (const Term& term : form.terms) {
    Expr atom = usesAny(term.atom, vars) ? unwidened(term.atom) : term.atom;
    if (atom != term.atom ? !isOneOf(atom, vars) : !isOneOf(atom, vars) && usesAny(atom, vars))
      return std::nullopt;
    out.add(atom, term.coef);
  }
  return out.valid ? std::optional(out) : std::nullopt;
}

Expr restOf(const LinearForm& form, const std::vector<Var>& vars, DType dtype, Analyzer& analyzer) {
  LinearForm rest = form;
  std::erase_if(rest.terms, [&](const Term& t) { return isOneOf(t.atom, vars); });
  return analyzer.toExpr(rest, dtype);
}

Result<LinearIn> linearIn(const Expr& e, const Var& var, Analyzer& analyzer) {
  if (!e->dtype.isInteger() || e->dtype.lanes != 1) return fail(notLinear(e));
  auto form = analyzer.exactForm(analyzer.simplify(e));
  LinearForm factor, rest = LinearForm::of(form.constant);
  for (const Term& term : form.terms) {
    if (!usesVar(term.atom, var)) {
      rest.add(term.atom, term.coef);
      continue;
    }
    if (!analyzer.isExact(term.atom)) return fail(notLinear(e));
    std::vector<Expr> factors;
    collectFactors(term.atom, factors);
    bool found = false;
    Expr others;
    for (const Expr& f : factors) {
      if (!found && unwidened(f) == Expr(var))
        found = true;
      else if (usesVar(f, var))
        return fail(notLinear(e));
      else
        others = others ? others * f : f;
    }
    if (!found) return fail(notLinear(e));
    if (others)
      factor.add(others, term.coef);
    else
      factor.addConst(term.coef);
  }
  LinearIn out{analyzer.toExpr(factor, e->dtype), analyzer.toExpr(rest, e->dtype)};
  if (!out.factor || !out.rest) return fail(notLinear(e));
  return out;
}

namespace {

Result<SolvedInterval> cannotSolve(const Expr& condition, const char* why) {
  return fail(Error(ErrorCode::kUnsupported, why).at(condition));
}

/// The condition does not depend on the variable: for all values, or for none.
Result<SolvedInterval> constantCondition(const Expr& condition, Analyzer& an) {
  if (an.prove(condition)) return SolvedInterval{IntSet::everything(), true};
  if (an.prove(logicalNot(condition))) return SolvedInterval{IntSet::nothing(), true};
  return cannotSolve(condition, "the condition does not depend on the variable and is not decided");
}

/// worst < 0 for v. A sum that is no linear function of v is not solved.
Result<SolvedInterval> solveNegative(const Expr& worst, bool exact, const Var& v, Analyzer& an,
                                     const Expr& condition) {
  auto linear = linearIn(worst, v, an);
  if (!linear) return cannotSolve(condition, "the condition is not linear in the variable");
  const auto& [k, rest] = *linear;
  Expr zero = constant(rest->dtype, 0);
  IntSet set;
  if (an.proveLess(zero, k))
    set.max = an.simplify(floordiv(negate(rest) - 1, k));
  else if (an.proveLess(k, zero))
    set.min = an.simplify(floordiv(rest, negate(k)) + 1);
  else
    return cannotSolve(condition, "the sign of the variable's coefficient is unknown");
  return SolvedInterval{set, exact};
}

/// The difference of the two sides takes its largest value over the relaxed variables first: their ranges may
/// depend on v, and so may what is left.
Result<SolvedInterval> solveComparison(const BinaryNode* c, const Var& v, const IntSetMap& relax,
                                       Analyzer& an, const Expr& condition) {
  Expr a = c->a, b = c->b;
  BinaryOp op = c->op;
  if (op == BinaryOp::kGt || op == BinaryOp::kGe) {
    std::swap(a, b);
    op = op == BinaryOp::kGt ? BinaryOp::kLt : BinaryOp::kLe;
  }
  if (op == BinaryOp::kNe) return cannotSolve(condition, "an inequality does not give an interval");
  auto d = an.exactDifference(an.simplify(a), an.simplify(b));
  Expr difference = d.valid ? an.toExpr(d, a->dtype) : nullptr;
  if (!difference) return cannotSolve(condition, "the condition's arithmetic may overflow");
  IntSet reached = evalSet(difference, relax, an);
  if (reached.empty) return SolvedInterval{IntSet::everything(), true};
  if (op != BinaryOp::kEq) {
    if (!reached.max) return SolvedInterval{IntSet::nothing(), false};
    Expr worst = op == BinaryOp::kLt ? reached.max : reached.max - 1;
    return solveNegative(worst, reached.isPoint(), v, an, condition);
  }
  auto linear = linearIn(reached.isPoint() ? reached.min : difference, v, an);
  auto unit = linear ? asConst(linear->factor) : std::nullopt;
  if (!unit || (*unit != 1 && *unit != -1) || !reached.isPoint())
    return cannotSolve(
        condition,
        "the equality is not solved: its coefficient is not one, or it depends on inner variables");
  const Expr& rest = linear->rest;
  return SolvedInterval{IntSet::point(an.simplify(*unit == 1 ? negate(rest) : rest)), true};
}

} // namespace

Result<SolvedInterval> solveFor(const Expr& condition, const Var& var, const IntSetMap& relax,
                                Analyzer& analyzer) {
  if (auto c = condition.as<CallNode>(); c && c->op == Intrin::kLikely)
    return solveFor(c->arg(0), var, relax, analyzer);
  if (!usesVar(condition, var)) return constantCondition(condition, analyzer);
  auto b = condition.as<BinaryNode>();
  if (b && b->op == BinaryOp::kAnd) {
    BEVEL_TRY(SolvedInterval left, solveFor(b->a, var, relax, analyzer));
    BEVEL_TRY(SolvedInterval right, solveFor(b->b, var, relax, analyzer));
    return SolvedInterval{intersectSet(left.set, right.set, analyzer), left.exact && right.exact};
  }
  if (b && isComparison(b->op) && b->a->dtype.isInteger() && b->a->dtype.lanes == 1)
    return solveComparison(b, var, relax, analyzer, condition);
  return cannotSolve(condition, "only comparisons joined by `and` are solved for a variable");
}

} // namespace bevel
