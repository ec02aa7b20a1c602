#include "loop/reduction.h"

#include "ir/structural.h"

#include <algorithm>
#include <cmath>

namespace bevel {

std::optional<Intrin> laneReduction(BinaryOp op) {
  switch (op) {
  case BinaryOp::kAdd:
    return Intrin::kVectorReduceAdd;
  case BinaryOp::kMul:
    return Intrin::kVectorReduceMul;
  case BinaryOp::kMin:
    return Intrin::kVectorReduceMin;
  case BinaryOp::kMax:
    return Intrin::kVectorReduceMax;
  default:
    return std::nullopt;
  }
}

namespace {

/// Whatever the operator: `B[i] = op(B[i], value)` or `B[i] = op(value, B[i])`.
std::optional<Accumulation> selfUpdate(const StoreNode& update) {
  const auto* b = update.value.as<BinaryNode>();
  if (!b) return std::nullopt;
  auto own = [&](const Expr& e) {
    const auto* l = e.as<LoadNode>();
    return l && !l->predicate && l->buffer->data == update.buffer->data &&
           std::ranges::equal(l->indices.raw(), update.indices.raw(),
                              [](const NodeRef& x, const NodeRef& y) { return same(x, y); });
  };
  bool first = own(b->a);
  if (!first && !own(b->b)) return std::nullopt;
  const Expr& value = first ? b->b : b->a;
  if (usesVar(value, update.buffer->data)) return std::nullopt;
  return Accumulation{b->op, value};
}

} // namespace

std::optional<Accumulation> accumulationOf(const StoreNode& update) {
  auto found = selfUpdate(update);
  return found && laneReduction(found->op) ? found : std::nullopt;
}

bool accumulates(const BlockNode& block) {
  const auto* update = block.body.as<StoreNode>();
  if (!update || update->predicate) return false;
  auto found = selfUpdate(*update);
  return found && (laneReduction(found->op) || found->op == BinaryOp::kAnd || found->op == BinaryOp::kOr);
}

bool sumsProducts(const BlockNode& block) {
  const auto* update = block.body.as<StoreNode>();
  auto sum = update ? accumulationOf(*update) : std::nullopt;
  bool found = false;
  auto loadOf = [](Expr e) {
    while (const auto* c = e.as<CastNode>()) e = c->value;
    return e.as<LoadNode>();
  };
  if (sum && sum->op == BinaryOp::kAdd)
    walk(sum->value, [&](const NodeRef& n) {
      const auto* m = n.as<BinaryNode>();
      const auto *x = m && m->op == BinaryOp::kMul ? loadOf(m->a) : nullptr, *y = x ? loadOf(m->b) : nullptr;
      found |= y && x->buffer->data != y->buffer->data;
      return true;
    });
  return found;
}

Work workOf(const Stmt& body) {
  Work work;
  walk(body, [&](const NodeRef& n) {
    const auto* c = n.as<CallNode>();
    if (c && c->op != Intrin::kIfThenElse && c->op != Intrin::kLikely) {
      work.operations += c->dtype.isFloat();
      work.cost += 10;
    }
    if (const auto* b = n.as<BinaryNode>(); b && b->a->dtype.isFloat()) {
      ++work.operations;
      if (b->dtype.isFloat()) work.cost += b->op == BinaryOp::kDiv ? 5 : 1;
    }
    return true;
  });
  return work;
}

Expr neutralElement(BinaryOp op, DType t) {
  bool least = op == BinaryOp::kMax;
  if (op == BinaryOp::kAdd || op == BinaryOp::kMul) return constant(t, op == BinaryOp::kMul);
  if (t.isFloat()) return constantFloat(t, least ? -INFINITY : INFINITY);
  if (!least && t.isUInt() && t.bits == 64) return nullptr;
  return constant(t, least ? minValue(t.scalar()) : maxValue(t.scalar()));
}

bool isIdempotent(const Expr& value, BinaryOp op) {
  if (op == BinaryOp::kMin || op == BinaryOp::kMax) return true;
  double neutral = op == BinaryOp::kMul ? 1 : 0;
  if (const auto* f = value.as<FloatImmNode>()) return f->value == neutral;
  const auto* i = value.as<IntImmNode>();
  return i && double(i->value) == neutral;
}

} // namespace bevel
