// Reductions over the lanes of a vectorised loop.
//
// before:  for k in T.vectorized(8): S[0] = S[0] + A[k]      after:  S[0] = S[0] + vector_reduce_add(A[0:8])
//
// Lanes outside a mask take the neutral element. The order of a float sum changes, as the design allows.
#include "loop/passes/vector_util.h"
#include "loop/passes/vectorizer.h"

#include "ir/build.h"

#include <cmath>

namespace bevel {
namespace {

Expr neutral(BinaryOp op, DType t) {
  switch (op) {
  case BinaryOp::kAdd:
    return constant(t, 0);
  case BinaryOp::kMul:
    return constant(t, 1);
  case BinaryOp::kMin:
    return t.isFloat() ? constantFloat(t, INFINITY) : constant(t, maxValue(t.scalar()));
  default:
    return t.isFloat() ? constantFloat(t, -INFINITY) : constant(t, minValue(t.scalar()));
  }
}

std::optional<Intrin> reductionOf(BinaryOp op) {
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

bool isOwnElement(const Expr& e, const StoreNode& s) {
  const auto* l = e.as<LoadNode>();
  return l && l->buffer->data == s.buffer->data && !l->predicate && l->indices.size() == 1 &&
         same(l->indices[0], s.indices[0]);
}

} // namespace

Stmt Vectorizer::reduction(const Store& s, const Expr& at) {
  const auto* b = s->value.as<BinaryNode>();
  auto intrin = b ? reductionOf(b->op) : std::nullopt;
  bool unsigned64 =
      s->buffer->dtype.isUInt() && s->buffer->dtype.bits == 64; // its largest value is no int64 constant
  if (!intrin || unsigned64) return nullptr;
  bool first = isOwnElement(b->a, *s);
  if (!first && !isOwnElement(b->b, *s)) return nullptr;
  Expr part = first ? b->b : b->a;
  if (usesVar(part, s->buffer->data)) return nullptr;
  Expr value = expr(part);
  if (!value) return nullptr;
  value = broadcastTo(value, lanes_);
  if (Expr m = mask()) value = select(m, value, neutral(b->op, value->dtype));
  Expr lanes = callAs(value->dtype.scalar(), *intrin, {value});
  auto copy = mutableCopy(s);
  copy->value = binary(b->op, make<const LoadNode>(s->buffer, Array<Expr>{at}), lanes);
  copy->indices = {at};
  return Store(copy);
}

} // namespace bevel
