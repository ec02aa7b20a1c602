// Index arithmetic becomes int64, so that no address, bound or condition can overflow.
//
// before:  for i in range(100): A[i*8 + 3] = T.float32(i)        (i: int32)
// after:   for i in range(T.int64(100)): A[i*8 + 3] = T.float32(T.int32(i))      (i: int64)
//
// Loop variables are re-made as int64; in element values they are cast back, so element arithmetic keeps its
// type. Scalar int32 parameters and dimensions stay, and are widened where they are used. Arithmetic on loaded
// values wraps in its own type, so only its result is widened.
#include "loop/passes/context.h"
#include "loop/passes/passes.h"

#include <algorithm>

namespace bevel {
namespace {

class IndexPromotion : public Rewriter {
public:
  explicit IndexPromotion(const PrimFunc& f) {
    memoise = false;
    for (const Buffer& b : f->buffers)
      if (b) buffers_[b] = b; // parameters bind dimensions in the types that callers know
  }

private:
  NodeRef visit(const NodeRef& node) override {
    switch (node->kind) {
    case Kind::kFor:
      return visitFor(cast<ForNode>(node));
    case Kind::kLoad:
    case Kind::kStore: {
      NodeRef out = visitChildren(node);
      return withAccess(out, elementAccess(out)->buffer, promoteAll(elementAccess(node)->indices));
    }
    case Kind::kBinary:
      return visitBinary(cast<BinaryNode>(node));
    case Kind::kVar: {
      auto it = wide_.find(cast<VarNode>(node));
      return it == wide_.end() ? node : NodeRef(castTo(cast<VarNode>(node)->dtype, it->second));
    }
    case Kind::kLet:
      noteData(static_cast<const LetNode&>(*node));
      return visitChildren(node);
    case Kind::kLetStmt:
      noteData(static_cast<const LetStmtNode&>(*node));
      return visitChildren(node);
    case Kind::kBuffer:
      return promoteBuffer(cast<BufferNode>(node));
    case Kind::kDict:
      return node;
    default:
      return visitChildren(node);
    }
  }

  NodeRef visitFor(const For& loop) {
    Expr lo = promote(loop->min), extent = promote(loop->extent);
    Var wide = loop->var;
    if (wide->dtype != kInt64) wide_[loop->var] = wide = with(loop->var, &VarNode::dtype, kInt64);
    return with(loop, &ForNode::min, lo, &ForNode::extent, extent, &ForNode::var, wide, &ForNode::body,
                (*this)(loop->body));
  }

  /// Comparisons of index arithmetic are made in int64; of loaded values in their own type.
  NodeRef visitBinary(const Binary& b) {
    if (isComparison(b->op) && b->a->dtype.isInteger() && isIndexArithmetic(b->a) && isIndexArithmetic(b->b))
      return with(b, &BinaryNode::a, promote(b->a), &BinaryNode::b, promote(b->b));
    return visitChildren(b);
  }

  NodeRef promoteBuffer(const Buffer& b) {
    auto all64 = [](const Array<Expr>& list) {
      return std::ranges::all_of(list, [](const Expr& e) { return e->dtype == kInt64; });
    };
    if (all64(b->shape) && all64(b->strides) && (!b->elemOffset || b->elemOffset->dtype == kInt64)) return b;
    auto it = buffers_.find(b);
    if (it != buffers_.end()) return it->second;
    return buffers_[b] =
               with(b, &BufferNode::shape, promoteAll(b->shape), &BufferNode::strides, promoteAll(b->strides),
                    &BufferNode::elemOffset, b->elemOffset ? promote(b->elemOffset) : nullptr);
  }

  template <class L> void noteData(const L& let) {
    if (!isIndexArithmetic(let.value)) data_.insert(let.var);
  }

  bool isIndexArithmetic(const Expr& e) const {
    if (e.is<IntImmNode>() || e.is<RampNode>() || e.is<BroadcastNode>()) return true;
    if (!e->dtype.isInt() || e->dtype.bits < 32) return false;
    if (e.is<VarNode>()) return !data_.contains(cast<VarNode>(e));
    if (const auto* c = e.as<CastNode>()) return isIndexArithmetic(c->value);
    const auto* b = e.as<BinaryNode>();
    return b && b->op <= BinaryOp::kMax && isIndexArithmetic(b->a) && isIndexArithmetic(b->b);
  }

  Array<Expr> promoteAll(const Array<Expr>& list) {
    Array<Expr> out;
    for (const Expr& e : list) out.push_back(promote(e));
    return out;
  }

  /// e in int64. Index arithmetic does not overflow in its own type, so widening its leaves gives the same
  /// value.
  Expr promote(const Expr& e) {
    if (!e->dtype.isInteger()) return (*this)(e);
    if (const auto* i = e.as<IntImmNode>()) return intImm(i->value);
    if (e.is<VarNode>()) {
      auto it = wide_.find(cast<VarNode>(e));
      return castTo(kInt64, it == wide_.end() ? e : Expr(it->second));
    }
    if (const auto* b = e.as<BinaryNode>(); b && b->dtype.isInt() && b->dtype.bits >= 32) {
      bool chooses = b->op == BinaryOp::kMin || b->op == BinaryOp::kMax; // cannot overflow
      if (chooses || isIndexArithmetic(e)) {
        Expr x = promote(b->a), y = promote(b->b);
        return x == b->a && y == b->b ? e : Expr(make<const BinaryNode>(b->op, x, y));
      }
    }
    if (const auto* r = e.as<RampNode>())
      return make<const RampNode>(promote(r->base), promote(r->stride), r->dtype.lanes);
    if (const auto* b = e.as<BroadcastNode>())
      return make<const BroadcastNode>(promote(b->value), b->dtype.lanes);
    if (const auto* s = e.as<SelectNode>())
      return make<const SelectNode>((*this)(s->condition), promote(s->a), promote(s->b));
    if (const auto* c = e.as<CastNode>(); c && isIndexArithmetic(e)) return promote(c->value);
    return castTo(kInt64.withLanes(e->dtype.lanes), (*this)(e));
  }

  std::unordered_map<Var, Var, RefHash> wide_;
  std::unordered_map<Buffer, Buffer, RefHash> buffers_; // views of one data variable are buffers of their own
  std::unordered_set<Var, RefHash> data_;               // variables that hold loaded or computed values
};

} // namespace

Result<PrimFunc> promoteIndices(const PrimFunc& f, const Target&) {
  return withBody(f, IndexPromotion(f)(f->body));
}

} // namespace bevel
