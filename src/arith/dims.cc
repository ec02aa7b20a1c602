// What is known of dimensions.
#include "arith/dims.h"

namespace bevel {

void bindDims(const Array<Expr>& shape, Analyzer& analyzer) {
  for (const Expr& dim : shape) {
    Expr e = dim;
    for (const auto* b = e.as<BinaryNode>(); b && b->op == BinaryOp::kMul; b = e.as<BinaryNode>()) {
      auto left = asConst(b->a), right = asConst(b->b);
      if (left.value_or(0) > 0)
        e = b->b;
      else if (right.value_or(0) > 0)
        e = b->a;
      else
        break;
    }
    if (const auto* v = e.as<VarNode>(); v && v->dtype.isInteger())
      analyzer.bind(Var(v), ConstBound{0, kPosInf});
  }
}

} // namespace bevel
