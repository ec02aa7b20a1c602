// What the layout steps share: index maps over buffers and axes.
#pragma once

#include "sched/scope.h"

namespace bevel {

/// The map with index variables and constants of that integer type.
IndexMap retyped(const IndexMap& map, DType dtype);
/// [0, d) for each dimension.
Array<Range> rangesOfShape(const Array<Expr>& shape);
/// The inverse of a map that is one to one on the box; `padding` is constant false where its image has no holes.
Result<PaddedInverse> invertPadded(const IndexMap& map, const Array<Range>& box, Analyzer& analyzer);
/// A block `<buffer>_pad` first in the block that allocates the buffer, which stores the value where the condition over the indices holds.
Stmt withFill(const Stmt& root, const Buffer& buffer, const Expr& condition, const std::vector<Var>& indices, const Expr& value);

} // namespace bevel
