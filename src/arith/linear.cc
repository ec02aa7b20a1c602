// Linear coefficients, and conditions solved for a variable.
#include "arith/linear.h"

#include "arith/state.h"
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

/// The variable an atom is (a widening of it included), or -1.
int indexOf(Expr atom, const std::vector<Var>& vars) {
  if (auto c = atom.as<CastNode>();
      c && isIndexType(c->dtype) && isIndexType(c->value->dtype) && c->dtype.bits >= c->value->dtype.bits)
    atom = c->value;
  for (size_t i = 0; i < vars.size(); ++i)
    if (atom == Expr(vars[i])) return int(i);
  return -1;
}

Error notLinear(const Expr& e) {
  return Error(ErrorCode::kUnsupported, "the index is not linear in the variables").at(e);
}

} // namespace

Result<LinearIndex> linearIn(const Expr& e, const std::vector<Var>& vars, Analyzer& analyzer) {
  if (!e->dtype.isInteger() || e->dtype.lanes != 1) return fail(notLinear(e));
  AnalyzerState& state = analyzer.state();
  Expr s = analyzer.simplify(e);
  auto form = state.exactForm(s);
  DType t = e->dtype;
  std::vector<LinearForm> coefs(vars.size());
  LinearForm offset = LinearForm::of(form.constant);
  for (const Term& term : form.terms) {
    if (!usesAny(term.atom, vars)) {
      offset.add(term.atom, term.coef);
      continue;
    }
    if (!state.isExact(term.atom)) return fail(notLinear(e));
    std::vector<Expr> factors;
    collectFactors(term.atom, factors);
    int at = -1;
    Expr rest;
    for (const Expr& f : factors) {
      int k = indexOf(f, vars);
      if (k >= 0 && at < 0)
        at = k;
      else if (usesAny(f, vars))
        return fail(notLinear(e));
      else
        rest = rest ? rest * f : f;
    }
    if (at < 0) return fail(notLinear(e));
    if (rest)
      coefs[size_t(at)].add(rest, term.coef);
    else
      coefs[size_t(at)].addConst(term.coef);
  }
  LinearIndex out;
  for (const LinearForm& f : coefs) {
    out.coefficients.push_back(state.toExpr(f, t));
    if (!out.coefficients.back()) return fail(notLinear(e));
  }
  out.offset = state.toExpr(offset, t);
  if (!out.offset) return fail(notLinear(e));
  return out;
}

std::optional<std::vector<int64_t>> constStrides(const Expr& e, const std::vector<Var>& vars,
                                                 Analyzer& analyzer) {
  auto linear = linearIn(e, vars, analyzer);
  if (!linear) return std::nullopt;
  std::vector<int64_t> out;
  for (const Expr& c : linear->coefficients) {
    auto v = asConst(c);
    if (!v) return std::nullopt;
    out.push_back(*v);
  }
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
  auto linear = linearIn(worst, {v}, an);
  if (!linear) return cannotSolve(condition, "the condition is not linear in the variable");
  const Expr &k = linear->coefficients[0], &rest = linear->offset;
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
  AnalyzerState& state = an.state();
  auto d = state.exactDifference(an.simplify(a), an.simplify(b));
  Expr difference = d.valid ? state.toExpr(d, a->dtype) : nullptr;
  if (!difference) return cannotSolve(condition, "the condition's arithmetic may overflow");
  IntSet reached = evalSet(difference, relax, an);
  if (reached.empty) return SolvedInterval{IntSet::everything(), true};
  if (op != BinaryOp::kEq) {
    if (!reached.max) return SolvedInterval{IntSet::nothing(), false};
    Expr worst = op == BinaryOp::kLt ? reached.max : reached.max - 1;
    return solveNegative(worst, reached.isPoint(), v, an, condition);
  }
  auto linear = linearIn(reached.isPoint() ? reached.min : difference, {v}, an);
  auto unit = linear ? asConst(linear->coefficients[0]) : std::nullopt;
  if (!unit || (*unit != 1 && *unit != -1) || !reached.isPoint())
    return cannotSolve(
        condition,
        "the equality is not solved: its coefficient is not one, or it depends on inner variables");
  const Expr& rest = linear->offset;
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
