// Constant bounds by interval arithmetic. An operation on index types that would leave its dtype is
// undefined, so its result is clipped; on element types it wraps, so its bounds become the whole dtype.
#include "arith/analyzer.h"

namespace bevel {

using namespace arith;

namespace {

ConstBound clip(ConstBound b, DType t) {
  ConstBound all = dtypeBound(t.scalar());
  if (b.min >= all.min && b.max <= all.max) {
    // 64-bit results that saturated may have wrapped when the type is not an index type.
    if (isIndexType(t) || b.bounded() || t.bits < 64) return b;
    return all;
  }
  return isIndexType(t) ? meet(b, all) : all;
}

/// Bounds of floor or truncating division by corners; the divisor's zero is skipped.
ConstBound divide(ConstBound a, ConstBound b, bool floor) {
  if (b.min == 0) b.min = 1;
  if (b.max == 0) b.max = -1;
  if (b.min > b.max) return {};
  if (b.min < 0 && b.max > 0) return hull(divide(a, {b.min, -1}, floor), divide(a, {1, b.max}, floor));
  auto one = [floor](int64_t x, int64_t y) -> int64_t {
    bool yInf = y == kNegInf || y == kPosInf;
    if (x == kNegInf || x == kPosInf) {
      if (yInf) return (x > 0) == (y > 0) ? 0 : (floor ? -1 : 0);
      return (x > 0) == (y > 0) ? kPosInf : kNegInf;
    }
    if (yInf) return x == 0 || (x > 0) == (y > 0) ? 0 : (floor ? -1 : 0);
    if (y == -1) return satNeg(x);
    return floor ? floorDivide(x, y) : x / y;
  };
  ConstBound r{kPosInf, kNegInf};
  for (int64_t x : {a.min, a.max})
    for (int64_t y : {b.min, b.max}) {
      int64_t q = one(x, y);
      r = {std::min(r.min, q), std::max(r.max, q)};
    }
  // A huge dividend over a huge divisor may still be anything in between: widen towards the small divisor's
  // corner.
  if (a.min < 0 && a.max > 0) r = hull(r, {0, 0});
  return r;
}

ConstBound floorModBound(ConstBound a, ConstBound b) {
  if (b.min > 0 || (b.min == 0 && b.max > 0)) {
    if (a.min >= 0 && (a.max < b.min)) return a;
    if (b.isPoint() && a.bounded() && floorDivide(a.min, b.min) == floorDivide(a.max, b.min))
      return {floorModulo(a.min, b.min), floorModulo(a.max, b.min)};
    int64_t top = b.max == kPosInf ? kPosInf : b.max - 1;
    if (a.min >= 0) top = std::min(top, a.max);
    return {0, top};
  }
  if (b.max < 0) return {b.min == kNegInf ? kNegInf : b.min + 1, 0};
  return {b.min == kNegInf ? kNegInf : std::min<int64_t>(b.min + 1, 0),
          b.max == kPosInf ? kPosInf : std::max<int64_t>(b.max - 1, 0)};
}

ConstBound truncModBound(ConstBound a, ConstBound b) {
  int64_t m = std::max(satNeg(b.min), b.max); // largest magnitude of the divisor
  int64_t top = m == kPosInf || m == kNegInf ? kPosInf : std::max<int64_t>(m - 1, 0);
  ConstBound r{satNeg(top), top};
  if (b.isPoint() && a.min >= 0 && a.max < std::max(satNeg(b.min), b.min)) return a;
  if (a.min >= 0) r.min = 0;
  if (a.max <= 0) r.max = 0;
  if (a.min >= 0) r.max = std::min(r.max, a.max);
  if (a.max <= 0) r.min = std::max(r.min, a.min);
  return r;
}

ConstBound shiftRight(ConstBound a, ConstBound s) {
  if (!s.bounded() || s.min < 0 || s.max > 62) return a.min >= 0 ? ConstBound{0, a.max} : ConstBound{};
  auto at = [](int64_t x, int64_t k) { return x == kNegInf || x == kPosInf ? x : x >> k; };
  return {std::min(at(a.min, s.min), at(a.min, s.max)), std::max(at(a.max, s.min), at(a.max, s.max))};
}

ConstBound bitBound(BinaryOp op, ConstBound a, ConstBound b, DType t) {
  if (op == BinaryOp::kBitAnd) {
    if (a.min >= 0 && b.min >= 0) return {0, std::min(a.max, b.max)};
    if (a.min >= 0) return {0, a.max};
    if (b.min >= 0) return {0, b.max};
  } else if (a.min >= 0 && b.min >= 0 && a.max != kPosInf && b.max != kPosInf) {
    int64_t m = std::max(a.max, b.max);
    int64_t mask = m <= 0 ? 0 : int64_t((uint64_t(1) << (64 - __builtin_clzll(uint64_t(m)))) - 1);
    return {0, mask};
  }
  return dtypeBound(t.scalar());
}

ConstBound compareBound(BinaryOp op, ConstBound a, ConstBound b) {
  auto decided = [](bool yes, bool no) {
    return yes ? ConstBound{1, 1} : no ? ConstBound{0, 0} : ConstBound{0, 1};
  };
  // An infinite bound never decides: kPosInf < kPosInf is false below, as it must be for "unknown".
  switch (op) {
  case BinaryOp::kLt:
    return decided(a.max < b.min, a.min >= b.max && b.max != kPosInf && a.min != kNegInf);
  case BinaryOp::kLe:
    return decided(a.max <= b.min && b.min != kNegInf && a.max != kPosInf, a.min > b.max);
  case BinaryOp::kGt:
    return compareBound(BinaryOp::kLt, b, a);
  case BinaryOp::kGe:
    return compareBound(BinaryOp::kLe, b, a);
  case BinaryOp::kEq:
    return decided(a.isPoint() && a == b, a.max < b.min || a.min > b.max);
  case BinaryOp::kNe:
    return decided(a.max < b.min || a.min > b.max, a.isPoint() && a == b);
  default:
    return {0, 1};
  }
}

} // namespace

ConstBound Analyzer::binaryBound(const BinaryNode* n) {
  ConstBound a = bound(n->a), b = bound(n->b);
  DType t = n->dtype;
  if (isComparison(n->op)) return n->a->dtype.isFloat() ? ConstBound{0, 1} : compareBound(n->op, a, b);
  switch (n->op) {
  case BinaryOp::kAdd:
    return clip(a + b, t);
  case BinaryOp::kSub:
    return clip(a - b, t);
  case BinaryOp::kMul:
    // Products are made by multiplying out, so "it does not overflow" need not hold of them: no clipping.
    return isIndexType(t) && t.lanes == 1 ? a * b : clip(a * b, t);
  case BinaryOp::kDiv:
    return clip(divide(a, b, false), t);
  case BinaryOp::kFloorDiv:
    return clip(divide(a, b, true), t);
  case BinaryOp::kMod:
    return clip(truncModBound(a, b), t);
  case BinaryOp::kFloorMod:
    return clip(floorModBound(a, b), t);
  case BinaryOp::kMin:
    return {std::min(a.min, b.min), std::min(a.max, b.max)};
  case BinaryOp::kMax:
    return {std::max(a.min, b.min), std::max(a.max, b.max)};
  case BinaryOp::kAnd:
    return {a.min == 1 && b.min == 1 ? 1 : 0, a.max == 0 || b.max == 0 ? 0 : 1};
  case BinaryOp::kOr:
    return {a.min == 1 || b.min == 1 ? 1 : 0, a.max == 0 && b.max == 0 ? 0 : 1};
  case BinaryOp::kShr:
    return t.isUInt() && t.bits >= 64 && a.max == kPosInf ? ConstBound{0, kPosInf} : shiftRight(a, b);
  case BinaryOp::kShl:
    if (b.within(0, 62)) return clip(a * ConstBound{int64_t(1) << b.min, int64_t(1) << b.max}, t);
    return dtypeBound(t.scalar());
  case BinaryOp::kBitAnd:
  case BinaryOp::kBitOr:
  case BinaryOp::kBitXor:
    return bitBound(n->op, a, b, t);
  default:
    return dtypeBound(t.scalar());
  }
}

/// Bounds of a sum or product of index types without clipping: a partial sum need not have been computed by
/// anyone before the terms were put in this order, so that it does not overflow is known of the whole alone.
ConstBound Analyzer::ringBound(const Expr& e) {
  if (!isRing(e) || e->dtype.lanes > 1) return bound(e);
  if (auto u = e.as<UnaryNode>()) return ConstBound{0, 0} - ringBound(u->a);
  auto b = e.as<BinaryNode>();
  ConstBound x = ringBound(b->a), y = ringBound(b->b);
  return b->op == BinaryOp::kAdd ? x + y : b->op == BinaryOp::kSub ? x - y : x * y;
}

ConstBound Analyzer::computeBound(const Expr& e) {
  DType t = e->dtype;
  ConstBound all = dtypeBound(t.scalar());
  if (isIndexType(t) && t.lanes == 1 && isRing(e)) {
    // Products are made by multiplying out: of them alone it is not known that they fit.
    bool product = e.as<BinaryNode>() && e.as<BinaryNode>()->op == BinaryOp::kMul;
    ConstBound b = ringBound(e);
    return product && !isData(e)                                       ? b
           : isData(e) && !(b.bounded() && b.within(all.min, all.max)) ? all
                                                                       : meet(b, all);
  }
  switch (e->kind) {
  case Kind::kIntImm: {
    int64_t v = e.as<IntImmNode>()->value;
    if (t.isUInt() && t.bits >= 64 && v < 0) return {0, kPosInf};
    return sane({v, v});
  }
  case Kind::kVar: {
    auto it = vars_.find(cast<VarNode>(e));
    return it == vars_.end() ? all : meet(it->second.bound, all);
  }
  case Kind::kBinary:
    return binaryBound(e.as<BinaryNode>());
  case Kind::kUnary: {
    ConstBound a = bound(e.as<UnaryNode>()->a);
    if (e.as<UnaryNode>()->op == UnaryOp::kNeg) return clip(ConstBound{0, 0} - a, t);
    if (e.as<UnaryNode>()->op == UnaryOp::kNot) return {a.max == 1 ? 0 : 1, a.min == 0 ? 1 : 0};
    return t.isInt() ? ConstBound{-1, -1} - a : all;
  }
  case Kind::kSelect:
    return hull(bound(e.as<SelectNode>()->a), bound(e.as<SelectNode>()->b));
  case Kind::kBroadcast:
    return bound(e.as<BroadcastNode>()->value);
  case Kind::kRamp: {
    auto r = e.as<RampNode>();
    return clip(bound(r->base) + bound(r->stride) * ConstBound{0, t.lanes - 1}, t);
  }
  case Kind::kCast: {
    DType from = e.as<CastNode>()->value->dtype;
    if (from.isFloat() || !(from.isInteger() || from.isBool())) return all;
    if (t.isBool()) return {0, 1};
    ConstBound v = bound(e.as<CastNode>()->value);
    bool unsigned64 = from.isUInt() && from.bits >= 64 && v.max == kPosInf;
    return v.within(all.min, all.max) && !unsigned64 ? v : all;
  }
  case Kind::kLet:
    return all;
  case Kind::kCall: {
    auto c = e.as<CallNode>();
    if (c->op == Intrin::kIfThenElse) return hull(bound(c->arg(1)), bound(c->arg(2)));
    if (c->op == Intrin::kLikely) return bound(c->arg(0));
    if (c->op == Intrin::kPopcount) return {0, 64};
    if (c->op == Intrin::kClz) return {0, 64};
    if (c->op == Intrin::kAbs) {
      ConstBound a = bound(c->arg(0));
      if (a.min >= 0) return a;
      if (a.min > dtypeBound(t.scalar()).min && a.min != kNegInf)
        return {a.max < 0 ? satNeg(a.max) : 0, std::max(satNeg(a.min), a.max)};
    }
    return all;
  }
  default:
    return all;
  }
}

ConstBound Analyzer::bound(const Expr& e) {
  if (e->kind == Kind::kIntImm) return computeBound(e);
  if (!e->dtype.isInteger() && !e->dtype.isBool()) return {};
  CacheEntry& s = bounds_.slot(e);
  if (s.key == e && s.epoch == epoch_) return s.bound;
  ConstBound b = computeBound(e);
  for (const std::vector<Fact>* facts : {&facts_, &assumed_})
    for (const Fact& f : *facts)
      if (f.atom && sameExpr(f.atom, e)) b = meet(b, f.bound);
  b = sane(b);
  if (b.min > b.max) b = {b.min, b.min}; // contradictory knowledge: nothing runs here
  CacheEntry& again = bounds_.store(e);  // computing may have reused the entry
  again.epoch = epoch_;
  again.bound = b;
  return b;
}

ConstBound Analyzer::formBound(const LinearForm& f) {
  ConstBound b{f.constant, f.constant};
  for (const Term& t : f.terms) b = b + scaled(bound(t.atom), t.coef);
  return b;
}

} // namespace bevel
