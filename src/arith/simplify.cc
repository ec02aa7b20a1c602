// Simplification: dispatch over kinds, caching by identity, and the simple kinds. Sums, quotients and logic
// have files of their own; what is left to patterns is in rules.def.
//
//     for i in [0, 32), j in [0, 8):   (i*8 + j) // 8 + max(j, -1)   →   i + j
#include "arith/analyzer.h"
#include "arith/rules.h"
#include "base/hash.h"
#include "ir/structural.h"

#include <cmath>

namespace bevel {

using namespace arith;

Analyzer::CacheEntry& Analyzer::Cache::slot(const Expr& e) {
  if (entries.empty()) entries.resize(32);
  return entries[hashMix(reinterpret_cast<uintptr_t>(e.get())) % entries.size()];
}

Analyzer::CacheEntry& Analyzer::Cache::store(const Expr& e) {
  if (++stores == 2 * entries.size() && entries.size() < 512) {
    entries.clear();
    entries.resize(512);
  }
  CacheEntry& entry = slot(e);
  entry.key = e;
  return entry;
}

Expr Analyzer::simplify(const Expr& e) {
  if (e->kind == Kind::kIntImm) return e;
  if (CacheEntry& s = simplified_.slot(e); s.key == e && s.epoch == epoch_) return s.value;
  bool outer = effects_;
  effects_ = hasEffects(e);
  Expr result = visit(e);
  effects_ = outer;
  return identicalExpr(result, e) ? e : result;
}

Expr Analyzer::visit(const Expr& e) {
  switch (e->kind) {
  case Kind::kIntImm:
  case Kind::kFloatImm:
  case Kind::kStringImm:
    return e;
  case Kind::kVar:
    return visitVar(e);
  default:
    break;
  }
  CacheEntry& s = simplified_.slot(e);
  if (s.key == e && s.epoch == epoch_) return s.value;
  uint64_t start = epoch_;
  Expr result = effects_ && hasEffects(e) ? visitChildren(e) : dispatch(e);
  if (result != e && identicalExpr(result, e)) result = e;
  if (start != epoch_) return result; // knowledge was scoped meanwhile: do not mix
  CacheEntry& again = simplified_.store(e);
  again.value = result;
  again.epoch = epoch_;
  return result;
}

Expr Analyzer::dispatch(const Expr& e) {
  switch (e->kind) {
  case Kind::kUnary:
    return visitUnary(e.as<UnaryNode>(), e);
  case Kind::kBinary:
    return visitBinary(e.as<BinaryNode>(), e);
  case Kind::kSelect: {
    auto s = e.as<SelectNode>();
    return visitChoice(s->condition, s->a, s->b, false, e);
  }
  case Kind::kCast:
    return visitCast(e.as<CastNode>(), e);
  case Kind::kLet:
    return visitLet(e.as<LetNode>(), e);
  case Kind::kReduce:
    return visitReduce(e.as<ReduceNode>(), e);
  case Kind::kCall:
    return visitCall(e.as<CallNode>(), e);
  case Kind::kRamp: {
    auto r = e.as<RampNode>();
    Expr base = visit(r->base), stride = visit(r->stride);
    if (isConst(stride, 0)) return make<const BroadcastNode>(base, e->dtype.lanes);
    if (base == r->base && stride == r->stride) return e;
    return make<const RampNode>(base, stride, e->dtype.lanes);
  }
  default:
    return visitChildren(e);
  }
}

Expr Analyzer::visitVar(const Expr& e) {
  if (vars_.empty() && assumed_.empty()) return e;
  auto it = vars_.find(cast<VarNode>(e));
  if (it != vars_.end() && it->second.value) return it->second.value;
  if (!e->dtype.isIndex() && !e->dtype.isBool()) return e;
  ConstBound b = bound(e);
  return b.isPoint() && fitsDType(b.min, e->dtype) ? constant(e->dtype, b.min) : e;
}

Expr Analyzer::visitChildren(const Expr& e) {
  return cast<ExprNode>(mapChildren(e, [this](const NodeRef& child) -> NodeRef {
    if (ExprNode::classof(child.get()) && child->kind != Kind::kVar) return visit(cast<ExprNode>(child));
    if (child->kind == Kind::kVar && !cast<ExprNode>(child)->dtype.isHandle())
      return visit(cast<ExprNode>(child));
    if (auto r = child.as<RangeNode>()) {
      Expr min = visit(r->min), extent = visit(r->extent);
      return min == r->min && extent == r->extent ? child : NodeRef(range(min, extent));
    }
    return child;
  }));
}

Expr Analyzer::visitUnary(const UnaryNode* n, const Expr& e) {
  DType t = n->dtype;
  if (n->op == UnaryOp::kNeg && t.isInteger() && t.lanes == 1) return visitSum(e);
  Expr a = visit(n->a);
  if (n->op == UnaryOp::kNot) return visitNot(a);
  if (n->op == UnaryOp::kNeg) {
    if (asConst(a)) return negate(a);
    if (auto inner = a.as<UnaryNode>(); inner && inner->op == UnaryOp::kNeg)
      return inner->a; // exact for floats too
  }
  return a == n->a ? e : Expr(make<const UnaryNode>(n->op, a));
}

Expr Analyzer::rebuild(const BinaryNode* n, const Expr& a, const Expr& b, const Expr& e) {
  return a == n->a && b == n->b ? e : Expr(make<const BinaryNode>(n->op, a, b));
}

Expr Analyzer::visitBinary(const BinaryNode* n, const Expr& e) {
  DType t = n->a->dtype;
  bool scalarInt = t.isInteger() && t.lanes == 1;
  if (n->op == BinaryOp::kAnd || n->op == BinaryOp::kOr) return visitAndOr(n, e);
  if (scalarInt && (n->op == BinaryOp::kAdd || n->op == BinaryOp::kSub || n->op == BinaryOp::kMul))
    return visitSum(e);
  Expr a = visit(n->a), b = visit(n->b);
  if (t.lanes > 1 && a->kind == Kind::kBroadcast && b->kind == Kind::kBroadcast) {
    const Expr &x = a.as<BroadcastNode>()->value, &y = b.as<BroadcastNode>()->value;
    if (asConst(x) && isConst(y, 0)) return rebuild(n, a, b, e);
    return make<const BroadcastNode>(visit(make<const BinaryNode>(n->op, x, y)), t.lanes);
  }
  if (t.isFloat()) return visitFloat(n, a, b, e);
  if (!scalarInt && !t.isBool()) return finish(rebuild(n, a, b, e));
  bool divides = n->op >= BinaryOp::kDiv && n->op <= BinaryOp::kFloorMod;
  if (divides && isConst(b, 0)) return rebuild(n, a, b, e); // undefined: left for whoever reports it
  if (asConst(a) && asConst(b)) return binary(n->op, a, b);
  if (scalarInt) {
    if (divides) return visitDivision(n->op, a, b, rebuild(n, a, b, e));
    if (n->op == BinaryOp::kMin || n->op == BinaryOp::kMax)
      return visitMinMax(n->op, a, b, rebuild(n, a, b, e));
    if (isComparison(n->op)) return visitComparison(n->op, a, b, rebuild(n, a, b, e));
    auto shift = asConst(b);
    if (n->op == BinaryOp::kShl && shift && *shift >= 0 && *shift < t.bits - 1 && isIndexType(t))
      return visit(a * constant(t, int64_t(1) << *shift));
  }
  return finish(rebuild(n, a, b, e));
}

/// Only exact rewrites: IEEE arithmetic with NaN, infinities and signed zeros. Constants are folded by the
/// builder, which rounds as the dtype does.
Expr Analyzer::visitFloat(const BinaryNode* n, const Expr& a, const Expr& b, const Expr& e) {
  auto value = [](const Expr& x) -> const double* {
    const Expr& scalar = x->kind == Kind::kBroadcast ? x.as<BroadcastNode>()->value : x;
    auto f = scalar.as<FloatImmNode>();
    return f ? &f->value : nullptr;
  };
  auto isOne = [&](const Expr& x) { return value(x) && *value(x) == 1.0; };
  auto isZero = [&](const Expr& x, bool negative) {
    return value(x) && *value(x) == 0.0 && std::signbit(*value(x)) == negative;
  };
  switch (n->op) {
  case BinaryOp::kMul:
    if (isOne(a)) return b;
    if (isOne(b)) return a;
    break;
  case BinaryOp::kDiv:
    if (isOne(b)) return a;
    break;
  case BinaryOp::kAdd: // x + -0.0 is x for every x; x + 0.0 turns -0.0 into 0.0
    if (isZero(b, true)) return a;
    if (isZero(a, true)) return b;
    break;
  case BinaryOp::kSub:
    if (isZero(b, false)) return a;
    break;
  case BinaryOp::kMin:
  case BinaryOp::kMax:
    if (sameExpr(a, b)) return a;
    break;
  default:
    break;
  }
  return finish(rebuild(n, a, b, e));
}

Expr Analyzer::visitCast(const CastNode* n, const Expr& e) {
  Expr v = visit(n->value);
  DType t = n->dtype, from = v->dtype;
  if (from == t) return v;
  Expr same = v == n->value ? e : Expr(make<const CastNode>(t, v));
  bool ints = from.isInteger() && t.isInteger();
  if (auto c = asConst(v)) {
    if ((ints || t.isFloat() || from.isBool()) && (!t.isInteger() || fitsDType(*c, t))) return castTo(t, v);
    return same;
  }
  if (auto inner = v.as<CastNode>(); inner && ints) {
    DType first = inner->value->dtype;
    ConstBound b = first.isInteger() ? bound(inner->value) : ConstBound{};
    ConstBound all = dtypeBound(from.scalar()), first64 = dtypeBound(first.scalar());
    bool kept = first.isInteger() &&
                b.within(std::max(all.min, first64.min), std::min(all.max, first64.max)) &&
                !(first.isUInt() && first.bits >= 64) && !(from.isUInt() && from.bits >= 64 && b.min < 0);
    if (kept) return first == t ? inner->value : visit(make<const CastNode>(t, inner->value));
  }
  if (auto bc = v.as<BroadcastNode>())
    return make<const BroadcastNode>(visit(make<const CastNode>(t.scalar(), bc->value)), t.lanes);
  if (auto r = v.as<RampNode>(); r && ints && isIndexType(t.scalar())) {
    ConstBound lanes = bound(r->base) + bound(r->stride) * ConstBound{0, t.lanes - 1};
    if (lanes.bounded() && lanes.within(dtypeBound(t.scalar()).min, dtypeBound(t.scalar()).max) &&
        lanes.within(dtypeBound(from.scalar()).min, dtypeBound(from.scalar()).max))
      return make<const RampNode>(visit(make<const CastNode>(t.scalar(), r->base)),
                                  visit(make<const CastNode>(t.scalar(), r->stride)), t.lanes);
  }
  // A widened exact sum is the sum of the widened terms.
  bool widens = ints && t.lanes == 1 && isIndexType(t) && isIndexType(from) && t.bits > from.bits;
  if (widens && isRing(v) && isExact(v)) return visitSum(same);
  return same;
}

Expr Analyzer::visitLet(const LetNode* n, const Expr& e) {
  Expr value = visit(n->value);
  bool cheap = value->kind == Kind::kIntImm || value->kind == Kind::kVar || value->kind == Kind::kFloatImm;
  if (cheap) return visit(substitute(n->body, {{n->var, value}}));
  bool integer = value->dtype.isInteger() && value->dtype.lanes == 1;
  if (integer) {
    bind(n->var, bound(value));
    if (isData(value)) {
      vars_[n->var].data = true;
      ++dataVars_;
    }
  }
  Expr body = visit(n->body);
  if (integer) unbind(n->var);
  if (!usesVar(body, n->var)) return body;
  return value == n->value && body == n->body ? e : Expr(make<const LetNode>(n->var, value, body));
}

Expr Analyzer::visitReduce(const ReduceNode* n, const Expr& e) {
  for (const IterVar& axis : n->axes) bind(axis->var, axis->domain);
  Expr result = visitChildren(e);
  for (const IterVar& axis : n->axes) unbind(axis->var);
  return result;
}

Expr Analyzer::visitCall(const CallNode* n, const Expr& e) {
  if (n->op == Intrin::kIfThenElse) return visitChoice(n->arg(0), n->arg(1), n->arg(2), true, e);
  if (n->op == Intrin::kLikely) {
    Expr c = visit(n->arg(0));
    if (asConst(c)) return c;
    return c == n->arg(0) ? e : callAs(n->dtype, Intrin::kLikely, {c});
  }
  if (n->op == Intrin::kAbs && n->dtype.isInteger()) {
    Expr a = visit(n->arg(0));
    if (bound(a).min >= 0) return a;
    return a == n->arg(0) ? e : callAs(n->dtype, n->op, {a}, n->attrs);
  }
  return visitChildren(e);
}

Expr Analyzer::finish(const Expr& e) {
  ConstBound b = bound(e);
  if (b.isPoint() && fitsDType(b.min, e->dtype) && (e->dtype.isBool() || isIndexType(e->dtype)))
    return constant(e->dtype, b.min);
  if (ruleDepth_ > 32) return e; // the table shrinks expressions; this only guards against a bad rule
  Expr next = RuleEngine::apply(e, *this);
  if (!next) return e;
  ++ruleDepth_;
  Expr result = visit(next);
  --ruleDepth_;
  return result;
}

} // namespace bevel
