// See vm_shapes.h.
#include "codegen/vm_shapes.h"

#include "arith/analyzer.h"
#include "ir/build.h"

#include <algorithm>
#include <fmt/format.h>

namespace bevel {

void ShapeSlots::replay() {
  replaying_ = true;
  nextReserved_ = now_ = 0;
  unbind(0);
}

uint32_t ShapeSlots::reserve(uint32_t count) {
  if (replaying_) return reserved_[nextReserved_++];
  uint32_t first = next_;
  reserved_.push_back(first);
  next_ += count;
  return first;
}

void ShapeSlots::bind(const Var& dim, uint32_t slot) {
  slots_[dim] = slot;
  boundAt_[dim] = now_;
  order_.push_back(dim);
}

void ShapeSlots::unbind(size_t count) {
  for (; order_.size() > count; order_.pop_back()) {
    slots_.erase(order_.back());
    boundAt_.erase(order_.back());
  }
}

const std::vector<ShapeSlots::Computed>& ShapeSlots::point() {
  if (!replaying_) points_.emplace_back();
  return points_[now_++];
}

Result<ImageArg> ShapeSlots::value(const Expr& e) {
  if (auto c = asConst(e)) return image::imm(*c);
  if (const auto* v = e.as<VarNode>()) {
    auto it = slots_.find(Var(v));
    if (it == slots_.end())
      return fail(ErrorCode::kInternal, fmt::format("dimension '{}' is used before it is known", v->name));
    return image::slot(it->second);
  }
  size_t at = 0;
  for (const NodeRef& v : freeVars(e)) {
    auto it = v.is<VarNode>() ? boundAt_.find(cast<VarNode>(v)) : boundAt_.end();
    if (it == boundAt_.end())
      return fail(ErrorCode::kInternal, "a shape uses a dimension before it is known");
    at = std::max(at, it->second);
  }
  std::map<size_t, uint32_t>& known = computed_[e];
  if (auto it = known.find(at); it != known.end()) return image::slot(it->second);
  Analyzer analyzer;
  Expr simple = analyzer.simplify(castTo(kInt64, e));
  if (asConst(simple) || simple.is<VarNode>()) return value(simple);
  if (replaying_) return fail(ErrorCode::kInternal, "a shape was not planned");
  uint32_t slot = next_++;
  known[at] = slot;
  points_[at].push_back({simple, slot});
  return image::slot(slot);
}

// Dimensions become loads. Divisors that could be 0 or -1 would trap the processor where the guarded code
// would not have run.
Expr ShapeSlots::fromHeap(const Expr& e, const Buffer& heap) const {
  NodeRef out = rewrite(e, [&](const NodeRef& n) -> NodeRef {
    if (const auto* v = n.as<VarNode>()) {
      auto it = slots_.find(Var(v));
      return it == slots_.end() ? n : NodeRef(castTo(v->dtype, load(heap, {intImm(it->second)})));
    }
    const auto* b = n.as<BinaryNode>();
    bool divides = b && (b->op == BinaryOp::kDiv || b->op == BinaryOp::kMod || b->op == BinaryOp::kFloorDiv ||
                         b->op == BinaryOp::kFloorMod);
    if (!divides || asConst(b->b)) return n;
    Expr safe = select(logicalOr(eq(b->b, constant(b->dtype, 0)), eq(b->b, constant(b->dtype, -1))),
                       constant(b->dtype, 1), b->b);
    Expr divided = binary(b->op, b->a, safe);
    bool modulo = b->op == BinaryOp::kMod || b->op == BinaryOp::kFloorMod;
    return select(eq(b->b, constant(b->dtype, -1)),
                  modulo ? constant(b->dtype, 0) : constant(b->dtype, 0) - b->a, divided);
  });
  return cast<ExprNode>(out);
}

PrimFunc ShapeSlots::kernel(const std::vector<Computed>& values) const {
  Buffer heap = buffer("heap", kInt64, {intImm(numSlots())});
  std::vector<Stmt> stores;
  for (const Computed& c : values)
    stores.push_back(store(heap, castTo(kInt64, fromHeap(c.value, heap)), {intImm(c.slot)}));
  auto root = make<BlockNode>("root");
  root->body = seq(stores);
  Stmt body = make<const BlockRealizeNode>(Array<Expr>{}, boolImm(true), Block(root));
  return make<const PrimFuncNode>(Array<Var>{heap->data}, Array<Buffer>{heap}, body,
                                  dict({{"num_outputs", intImm(1)}}));
}

} // namespace bevel
