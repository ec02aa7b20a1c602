// See the header.
#include "loop/passes/vector_util.h"

#include "ir/structural.h"

namespace bevel {

Expr broadcastTo(const Expr& e, int lanes) {
  return e->dtype.lanes == lanes ? e : Expr(make<const BroadcastNode>(e, lanes));
}

Expr uniformValue(const Expr& e) {
  if (!e->dtype.isVector()) return e;
  if (const auto* b = e.as<BroadcastNode>()) return b->value->dtype.isVector() ? nullptr : b->value;
  return nullptr;
}

Expr vectorBinary(BinaryOp op, const Expr& a, const Expr& b) {
  if (!a->dtype.isVector() && !b->dtype.isVector()) return binary(op, a, b);
  int lanes = std::max(a->dtype.lanes, b->dtype.lanes);
  Expr ua = uniformValue(a), ub = uniformValue(b);
  if (ua && ub) return make<const BroadcastNode>(binary(op, ua, ub), lanes);
  const auto *ra = a.as<RampNode>(), *rb = b.as<RampNode>();
  bool lines = (ra || ua) && (rb || ub), sum = op == BinaryOp::kAdd || op == BinaryOp::kSub;
  if (lines && (sum || (op == BinaryOp::kMul && (ua || ub)))) {
    auto strideOf = [](const RampNode* r, const Expr& uniform) {
      return r ? r->stride : constant(uniform->dtype, 0);
    };
    Expr stride = sum  ? binary(op, strideOf(ra, ua), strideOf(rb, ub))
                  : ra ? ra->stride * ub
                       : rb->stride * ua;
    return make<const RampNode>(binary(op, ra ? ra->base : ua, rb ? rb->base : ub), stride, lanes);
  }
  return make<const BinaryNode>(op, broadcastTo(a, lanes), broadcastTo(b, lanes));
}

Expr laneOf(const Expr& e, int64_t lane) {
  if (!e->dtype.isVector()) return e;
  if (e.is<BroadcastNode>()) return uniformValue(e);
  if (const auto* r = e.as<RampNode>()) return r->base + r->stride * lane;
  if (const auto* c = e.as<CastNode>()) {
    Expr x = laneOf(c->value, lane);
    return x ? castTo(c->dtype.scalar(), x) : nullptr;
  }
  const auto* b = e.as<BinaryNode>();
  Expr x = b ? laneOf(b->a, lane) : nullptr, y = x ? laneOf(b->b, lane) : nullptr;
  return y ? binary(b->op, x, y) : nullptr;
}

} // namespace bevel
