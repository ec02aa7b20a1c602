// Moving blocks: which part of a buffer a piece of program touches, which values of a block's axes make that
// part, and the loops around a block that run through exactly those values. Serves compute_at,
// reverse_compute_at, inlining and caches.
#pragma once

#include "sched/scope.h"

namespace bevel {

/// The region of a buffer that a statement reads or writes (blocks by their declared regions, and what their
/// conditions and axes' values read), over the variables defined outside of it: a box that contains it. Null
/// when it does not. Conditions do not narrow it: a tail counts as a whole tile, so that extents stay constant.
BufferRegion touchedRegion(const Stmt& root, const Var& data, bool write, Analyzer& analyzer);

/// The values an axis takes in new loops: min + [0, extent), of which those outside the axis' domain are left
/// out by a condition where `checkLow` or `checkHigh` is set.
struct AxisRange {
  Expr min, extent;
  bool checkLow = false, checkHigh = false;
};
/// The whole domain.
AxisRange wholeAxis(const IterVar& iv);
/// An interval, clipped to the domain: provably wider ranges become the domain.
AxisRange clippedAxis(const IterVar& iv, Expr min, Expr max, Analyzer& analyzer);

/// For each axis, the values whose writes of the buffers meet the regions; the whole domain where that is not solved
/// for. Axes are solved from dimensions indexed by `axis * constant +
/// offset`, or by that divided by a constant.
std::vector<AxisRange> solveAxes(const Block& block, const std::vector<BufferRegion>& regions,
                                 Analyzer& analyzer);

/// A block to be that has an axis v0, v1, … for each dimension of a shape.
struct ShapedBlock {
  Ref<BlockNode> block;
  std::vector<AxisRange> axes; // their whole domains
  Array<Expr> at;              // the axes
  Array<Range> element;        // [v, v + 1)
};
ShapedBlock blockOver(const Array<Expr>& shape, std::string name);

/// Loops through the axes' values around a realization of the block. Loops are named ax0, ax1, …; axes of
/// extent one get no loop unless `preserveUnit`.
Stmt makeNest(const Block& block, const std::vector<AxisRange>& axes, bool preserveUnit);

/// The executed instances of the block provably are all values of its axes, whose ranges do not move with the
/// loops around: loops elsewhere can run through them.
Status checkCoversDomain(const ScopeBlock& block, Analyzer& analyzer);

/// `axis * scale + offset` in one axis.
struct AxisIndex {
  int axis = -1; // -1: no axis at all (offset alone)
  int64_t scale = 0;
  Expr offset;
};
/// Nothing when the index has another form.
std::optional<AxisIndex> axisIndex(const Expr& index, const Block& block, Analyzer& analyzer);
/// What a region over the block's axes covers when they take all their values, if nothing is left out: each dimension
/// is an axis of its own times the width, or none.
std::optional<Array<Range>> sweptRegion(const Block& block, const Array<Range>& region, Analyzer& analyzer);

/// The block and the loop stand in one scope, the loop is not around the block yet, and no vector's lanes
/// would run it.
Status checkMovable(const Path& block, const Path& loop);

/// Refuses when a buffer that the block reads may hold other values where a consumer stands.
Status checkStableInputs(const ScopeInfo& info, int block);

/// Nothing outside of the scope uses the buffer: the step looks at what is inside alone.
Status checkUsedOnlyIn(const BlockRealize& scope, const PrimFunc& f, const Buffer& buffer);

/// Neither the block, nor another to whose place it moves, nor what runs between both has effects that loads and stores
/// do not tell.
Status checkNoEffectsUntil(const ScopeInfo& info, int block, int last);

/// The root with a statement inserted into the body of a loop or block, before item `position` of its sequence.
Stmt insertUnder(const Path& loopOrBlock, size_t position, const Stmt& s);
/// The items of a body, and the first of them that holds a block; -1 when none does.
std::vector<Stmt> itemsOf(const Stmt& body);
int64_t itemWith(const std::vector<Stmt>& items, const ScopeBlock& block);

} // namespace bevel
