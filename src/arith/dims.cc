// What is known of dimensions.
#include "arith/dims.h"

namespace bevel {

void bindDims(const Array<Expr>& shape, Analyzer& analyzer) {
  for (const Expr& dim : shape)
    if (const auto* v = dim.as<VarNode>(); v && v->dtype.isInteger())
      analyzer.bind(Var(v), ConstBound{0, kPosInf});
  for (const Expr& dim : shape) {
    Expr known = constant(dim->dtype, 0) <= dim;
    if (!asConst(dim) && !dim.is<VarNode>() && !analyzer.prove(known)) analyzer.know(known);
  }
}

} // namespace bevel
