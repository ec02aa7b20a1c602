// What compute_inline and reverse_compute_inline share: blocks that are one store, and reads replaced by
// expressions.
#pragma once

#include "sched/dataflow.h"

namespace bevel {

/// The store that is all of the block's body. Fails when the block does more.
Result<Store> singleStore(const BlockNode& block);
/// A whole block that is one store, has no effects that must happen once, and provably runs for all values of
/// its axes. The analyzer knows all around it afterwards.
struct Inlinable {
  BlockSite site;
  Store store;
};
Result<Inlinable> inlinableOf(const Schedule& sch, BlockRV block, Analyzer& analyzer);
/// For each index, the spatial axis that it is, or -1 for the minimum of an axis-free dimension; fails unless
/// all axes of more than one value occur exactly once.
Result<std::vector<int>> indexAxes(const Array<Expr>& indices, const BlockNode& block);
/// Indices as a function of the block's axes, and these axes' domains.
struct AxisMap {
  IndexMap map;
  Array<Range> box;
};
AxisMap axisMap(const Array<Expr>& indices, const BlockNode& block);
/// The block's axes as a function of the indices, which are its axes or any one-to-one affine map of them onto a box.
Result<IndexMap> axesAt(const Array<Expr>& indices, const BlockNode& block, Analyzer& analyzer);
/// The realization reads the buffer by scalar loads only (no pointers, views or predicates).
Status checkPlainReads(const BlockRealize& realize, const Buffer& buffer);
/// Replaces the loads of a buffer by a value, as it is at the indices of the load. An expression that reads one element several
/// times computes it once: `B[i] * B[i]` becomes `T.Let(v * v, where={v: value})`. Blocks that change get their accesses detected
/// anew (those allocating the buffer's scope excepted).
Stmt replaceReads(const Stmt& root, const Buffer& buffer, const Expr& value,
                  FunctionRef<Expr(const Array<Expr>& indices)> valueAt);

} // namespace bevel
