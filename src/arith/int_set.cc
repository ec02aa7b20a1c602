// Symbolic intervals by structural recursion over the simplified expression.
//
//     i*8 + j over i in [0, 3], j in [0, 7]     →  [0, 31]
//     (i + k) // 4 over i in [0, n - 1]         →  [k // 4, (n + k - 1) // 4]
#include "arith/int_set.h"

#include "arith/analyzer.h"
#include "ir/structural.h"

namespace bevel {

using namespace arith;

namespace {

class SetEvaluator {
public:
  SetEvaluator(const IntSetMap& vars, Analyzer& an) : vars_(vars), an_(an) {}

  IntSet eval(const Expr& e) {
    if (e->kind == Kind::kVar) {
      auto it = vars_.find(cast<VarNode>(e));
      return it == vars_.end() ? IntSet::point(e) : it->second;
    }
    if (e->kind == Kind::kIntImm || !usesMapped(e)) return IntSet::point(e);
    switch (e->kind) {
    case Kind::kBinary:
      return evalBinary(e.as<BinaryNode>(), e);
    case Kind::kUnary:
      return e.as<UnaryNode>()->op == UnaryOp::kNeg ? evalSum(e) : unknown(e);
    case Kind::kSelect: {
      auto s = e.as<SelectNode>();
      return unionSet(eval(s->a), eval(s->b), an_);
    }
    case Kind::kCall: {
      auto c = e.as<CallNode>();
      if (c->op == Intrin::kIfThenElse) return unionSet(eval(c->arg(1)), eval(c->arg(2)), an_);
      return c->op == Intrin::kLikely ? eval(c->arg(0)) : unknown(e);
    }
    case Kind::kCast:
      return evalCast(e.as<CastNode>(), e);
    case Kind::kBroadcast:
      return eval(e.as<BroadcastNode>()->value);
    case Kind::kRamp: {
      auto r = e.as<RampNode>();
      DType t = r->base->dtype;
      IntSet last = times(eval(r->stride), constant(t, e->dtype.lanes - 1));
      return add(eval(r->base), unionSet(IntSet::point(constant(t, 0)), last, an_));
    }
    default:
      return unknown(e);
    }
  }

private:
  bool usesMapped(const Expr& e) {
    return usesAnyVar(e, [this](const VarNode* v) { return vars_.count(Var(v)) > 0; });
  }
  IntSet unknown(const Expr& e) {
    if (e->dtype.isBool() && e->dtype.lanes == 1) return IntSet::interval(boolImm(false), boolImm(true));
    return IntSet::everything();
  }
  static IntSet add(const IntSet& a, const IntSet& b) {
    if (a.empty || b.empty) return IntSet::nothing();
    return {a.min && b.min ? a.min + b.min : Expr(), a.max && b.max ? a.max + b.max : Expr(), false};
  }
  IntSet times(const IntSet& x, const Expr& factor) {
    Expr zero = constant(factor->dtype, 0);
    if (x.empty) return x;
    if (an_.proveLessEqual(zero, factor))
      return {x.min ? x.min * factor : Expr(), x.max ? x.max * factor : Expr(), false};
    if (an_.proveLessEqual(factor, zero))
      return {x.max ? x.max * factor : Expr(), x.min ? x.min * factor : Expr(), false};
    return IntSet::everything();
  }

  IntSet evalAtom(const Expr& atom) {
    auto m = atom.as<BinaryNode>();
    if (!m || m->op != BinaryOp::kMul) return eval(atom);
    std::vector<Expr> factors;
    collectFactors(atom, factors);
    Expr fixed;
    IntSet moving;
    int count = 0;
    for (const Expr& f : factors)
      if (usesMapped(f)) {
        moving = ++count == 1 ? eval(f) : multiply(moving, eval(f));
      } else {
        fixed = fixed ? fixed * f : f;
      }
    return fixed ? times(moving, fixed) : moving;
  }
  /// Products of two sets that are not negative.
  IntSet multiply(const IntSet& a, const IntSet& b) {
    if (!a.min || !b.min || a.empty || b.empty) return IntSet::everything();
    Expr zero = constant(a.min->dtype, 0);
    if (!an_.proveLessEqual(zero, a.min) || !an_.proveLessEqual(zero, b.min)) return IntSet::everything();
    return {a.min * b.min, a.max && b.max ? a.max * b.max : Expr(), false};
  }

  /// One end of a sum: what does not move, constants included, and what moves to no constant.
  struct End {
    LinearForm fixed;
    Expr moved;
    bool infinite = false;
    void add(const Expr& x, int64_t coef) {
      auto c = x ? asConst(x) : std::nullopt;
      if (!x)
        infinite = true;
      else if (!c)
        moved = moved ? moved + x * constant(x->dtype, coef) : x * constant(x->dtype, coef);
      else if (auto product = checkedMul(*c, coef))
        fixed.addConst(*product);
      else
        fixed.valid = false;
    }
    Expr plus(const Expr& rest) const { return infinite ? nullptr : moved ? moved + rest : rest; }
  };

  IntSet evalSum(const Expr& e) {
    if (!an_.isExact(e)) return unknown(e);
    auto form = an_.formOf(e);
    if (!form.valid) return unknown(e);
    End low{LinearForm::of(form.constant), nullptr, false}, high = low;
    for (const Term& t : form.terms) {
      if (!usesMapped(t.atom)) {
        low.fixed.add(t.atom, t.coef);
        high.fixed.add(t.atom, t.coef);
        continue;
      }
      if (!fitsDType(t.coef, e->dtype)) return unknown(e);
      IntSet s = evalAtom(t.atom);
      if (s.empty) return s;
      low.add(t.coef >= 0 ? s.min : s.max, t.coef);
      high.add(t.coef >= 0 ? s.max : s.min, t.coef);
    }
    Expr first = an_.toExpr(low.fixed, e->dtype), last = an_.toExpr(high.fixed, e->dtype);
    if (!first || !last) return unknown(e);
    return {low.plus(first), high.plus(last), false};
  }

  IntSet evalDivision(const BinaryNode* n, const Expr& e) {
    if (usesMapped(n->b)) return unknown(e);
    IntSet a = eval(n->a);
    const Expr& b = n->b;
    Expr zero = constant(b->dtype, 0), one = constant(b->dtype, 1);
    bool positive = an_.proveLess(zero, b);
    if (a.empty) return a;
    if (n->op == BinaryOp::kFloorDiv || n->op == BinaryOp::kDiv) { // both are monotonous in the dividend
      auto at = [&](const Expr& x) { return x ? binary(n->op, x, b) : x; };
      if (positive) return {at(a.min), at(a.max), false};
      if (an_.proveLess(b, zero)) return {at(a.max), at(a.min), false};
      return IntSet::everything();
    }
    if (!positive) return IntSet::everything();
    bool notNegative = a.min && an_.proveLessEqual(zero, a.min);
    if (n->op == BinaryOp::kFloorMod) {
      if (notNegative && a.max && an_.proveLess(a.max, b)) return a;
      if (a.bounded() && an_.proveEqual(floordiv(a.min, b), floordiv(a.max, b)))
        return IntSet::interval(floormod(a.min, b), floormod(a.max, b));
      return IntSet::interval(zero, notNegative && a.max ? min(a.max, b - one) : b - one);
    }
    if (notNegative && a.max && an_.proveLess(a.max, b)) return a;
    return IntSet::interval(notNegative ? zero : one - b, b - one);
  }

  IntSet evalBinary(const BinaryNode* n, const Expr& e) {
    if (!n->dtype.isInteger()) return unknown(e);
    switch (n->op) {
    case BinaryOp::kAdd:
    case BinaryOp::kSub:
    case BinaryOp::kMul:
      return n->dtype.lanes == 1 ? evalSum(e) : evalVector(n, e);
    case BinaryOp::kDiv:
    case BinaryOp::kMod:
    case BinaryOp::kFloorDiv:
    case BinaryOp::kFloorMod:
      return n->dtype.lanes == 1 ? evalDivision(n, e) : unknown(e);
    case BinaryOp::kMin:
    case BinaryOp::kMax: {
      IntSet a = eval(n->a), b = eval(n->b);
      if (a.empty || b.empty) return IntSet::nothing();
      // One end needs both sides, the other is bounded by either.
      auto both = [&](const Expr& x, const Expr& y) { return x && y ? binary(n->op, x, y) : Expr(); };
      auto either = [&](const Expr& x, const Expr& y) { return x && y ? binary(n->op, x, y) : x ? x : y; };
      if (n->op == BinaryOp::kMin) return {both(a.min, b.min), either(a.max, b.max), false};
      return {either(a.min, b.min), both(a.max, b.max), false};
    }
    default:
      return unknown(e);
    }
  }
  IntSet evalVector(const BinaryNode* n, const Expr& e) {
    if (n->op == BinaryOp::kMul) return unknown(e);
    IntSet a = eval(n->a), b = eval(n->b);
    if (n->op == BinaryOp::kAdd) return add(a, b);
    return add(a, {b.max ? negate(b.max) : b.max, b.min ? negate(b.min) : b.min, b.empty});
  }
  IntSet evalCast(const CastNode* n, const Expr& e) {
    bool widens = isIndexType(n->dtype) && n->value->dtype.isInteger() && n->dtype.lanes == 1 &&
                  (n->dtype.bits > n->value->dtype.bits ||
                   (n->dtype.bits == n->value->dtype.bits && n->value->dtype.isInt()));
    if (!widens) return unknown(e);
    IntSet s = eval(n->value);
    return {s.min ? castTo(n->dtype, s.min) : s.min, s.max ? castTo(n->dtype, s.max) : s.max, s.empty};
  }

  const IntSetMap& vars_;
  Analyzer& an_;
};

IntSet simplified(IntSet s, Analyzer& an) {
  bool point = s.isPoint();
  if (s.min) s.min = an.simplify(s.min);
  if (point)
    s.max = s.min;
  else if (s.max)
    s.max = an.simplify(s.max);
  if (s.min && s.max && sameExpr(s.min, s.max)) s.max = s.min;
  return s;
}

} // namespace

IntSet IntSet::range(const Range& r) {
  if (isConst(r->extent, 1)) return point(r->min);
  return interval(r->min, r->min + r->extent - 1);
}

IntSet evalSet(const Expr& e, const IntSetMap& vars, Analyzer& analyzer) {
  return simplified(SetEvaluator(vars, analyzer).eval(analyzer.simplify(e)), analyzer);
}

IntSet evalSet(const Range& r, const IntSetMap& vars, Analyzer& analyzer) {
  IntSet lo = evalSet(r->min, vars, analyzer);
  IntSet hi = isConst(r->extent, 1) ? lo : evalSet(r->min + r->extent - 1, vars, analyzer);
  if (lo.empty || hi.empty) return IntSet::nothing();
  return simplified({lo.min, hi.max, false}, analyzer);
}

IntSetMap asSets(const std::vector<std::pair<Var, Range>>& ranges) {
  IntSetMap out;
  for (const auto& [v, r] : ranges) out[v] = IntSet::range(r);
  return out;
}

/// The smaller or the larger of two ends.
static Expr extreme(const Expr& x, const Expr& y, bool smaller, Analyzer& an) {
  if (sameExpr(x, y)) return x;
  if (an.proveLessEqual(x, y)) return smaller ? x : y;
  if (an.proveLessEqual(y, x)) return smaller ? y : x;
  return an.simplify(smaller ? min(x, y) : max(x, y));
}

IntSet unionSet(const IntSet& a, const IntSet& b, Analyzer& an) {
  if (a.empty) return b;
  if (b.empty) return a;
  auto join = [&](const Expr& x, const Expr& y, bool low) {
    return x && y ? extreme(x, y, low, an) : Expr();
  };
  IntSet r{join(a.min, b.min, true), join(a.max, b.max, false), false};
  if (r.min && r.max && sameExpr(r.min, r.max)) r.max = r.min;
  return r;
}

IntSet intersectSet(const IntSet& a, const IntSet& b, Analyzer& an) {
  if (a.empty || b.empty) return IntSet::nothing();
  auto meet = [&](const Expr& x, const Expr& y, bool low) {
    return x && y ? extreme(x, y, !low, an) : x ? x : y;
  };
  IntSet r{meet(a.min, b.min, true), meet(a.max, b.max, false), false};
  if (r.min && r.max && an.proveLess(r.max, r.min)) return IntSet::nothing();
  return r;
}

Range toRange(const IntSet& set, const Range& otherwise, Analyzer& an) {
  if (set.empty) return otherwise ? range(otherwise->min, constant(otherwise->extent->dtype, 0)) : Range();
  if ((!set.min || !set.max) && !otherwise) return nullptr;
  if (set.isPoint()) return range(set.min, constant(set.min->dtype, 1));
  Expr lo = set.min ? set.min : otherwise->min;
  Expr hi = set.max ? set.max : otherwise->min + otherwise->extent - 1;
  return range(an.simplify(lo), an.simplify(hi - lo + 1));
}

} // namespace bevel
