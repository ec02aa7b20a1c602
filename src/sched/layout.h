// What the layout steps share: index maps over buffers and axes.
#pragma once

#include "sched/scope.h"

namespace bevel {

/// What an index map makes of extents: the map with variables and constants of `dtype`, the widest of their types, the new
/// extents, and the inverse, whose `padding` is constant false where the image has no holes.
struct Layout {
  DType dtype;
  IndexMap map;
  Array<Expr> shape;
  PaddedInverse inverse;
};
/// Fails (kIllegal) unless the map is one to one on them and the new extents fit that type.
Result<Layout> layoutOf(const IndexMap& map, const Array<Expr>& extents, Analyzer& analyzer);
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
