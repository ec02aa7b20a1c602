// Reductions over the lanes of a vectorised loop.
//
// before:  for k in T.vectorized(8): S[0] = S[0] + A[k]      after:  S[0] = S[0] + vector_reduce_add(A[0:8])
//
// Lanes outside a mask take the neutral element. The order of a float sum changes, as the design allows.
#include "loop/passes/vector_util.h"
#include "loop/passes/vectorizer.h"
#include "loop/reduction.h"
#include "loop/te.h"

namespace bevel {

/// Combining it with any value of the type gives that value.
static Expr neutralElement(BinaryOp op, DType t) {
  if (op == BinaryOp::kAdd || op == BinaryOp::kMul) return constant(t, op == BinaryOp::kMul);
  return op == BinaryOp::kMax ? te::lowest(t) : te::highest(t);
}

Stmt Vectorizer::reduction(const Store& s, const Expr& at) {
  auto update = accumulationOf(*s);
  if (!update || s->indices.size() != 1) return nullptr;
  Expr neutral = neutralElement(update->op, s->buffer->dtype.withLanes(lanes_));
  Expr value = expr(update->value);
  if (!value) return nullptr;
  value = broadcastTo(value, lanes_);
  if (Expr m = mask()) value = select(m, value, neutral);
  Expr lanes = callAs(value->dtype.scalar(), *laneReduction(update->op), {value});
  return with(s, &StoreNode::value, binary(update->op, bevel::load(s->buffer, {at}), lanes),
              &StoreNode::indices, Array<Expr>{at});
}

} // namespace bevel
