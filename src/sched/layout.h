// What the layout steps share: index maps over buffers and axes.
#pragma once

#include "sched/scope.h"

namespace bevel {

/// The map with index variables and constants of that integer type.
IndexMap retyped(const IndexMap& map, DType dtype);
/// The shape that the map makes of one. Fails (kIllegal) where a dimension does not fit the type of the indices.
Result<Array<Expr>> mappedShape(const IndexMap& map, const Array<Expr>& shape, Analyzer& analyzer);
/// [0, d) for each dimension.
Array<Range> rangesOfShape(const Array<Expr>& shape);
/// The inverse of a map that is one to one on the box; `padding` is constant false where its image has no
/// holes.
Result<PaddedInverse> invertPadded(const IndexMap& map, const Array<Range>& box, Analyzer& analyzer);
/// The path to the outermost loop around a block, when its loops are plain and hold nothing else.
Result<Path> soleNest(const Path& path);
/// The nest of a buffer's writer over the indices of the buffer's new layout, storing the pad value in its
/// holes. Fails unless the writer is a whole block that stores every element of the old layout at its axes.
Result<Stmt> paddedWriter(const PrimFunc& f, const ScopeInfo& info, int writer, const Buffer& changed,
                          const PaddedInverse& inverse, const Expr& padValue);
/// A block `<buffer>_pad` first in the block that allocates the buffer, which stores the value where the
/// condition over the indices holds.
Stmt withFill(const Stmt& root, const Buffer& buffer, const Expr& condition, const std::vector<Var>& indices,
              const Expr& value);

} // namespace bevel
