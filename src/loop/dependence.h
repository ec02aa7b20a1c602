// Dependences between the blocks of a scope and across the iterations of a loop, and what kind of block a
// block is.
#pragma once

#include "loop/regions.h"

namespace bevel {

enum class DependenceKind : uint8_t { kReadAfterWrite, kWriteAfterRead, kWriteAfterWrite, kOpaque };

/// `to` comes after `from` in program order and must stay there.
struct Dependence {
  BlockRealize from, to;
  DependenceKind kind;
  Buffer buffer; // null for kOpaque
};

/// The child blocks of a scope (blocks directly under it: not those nested in other blocks) in program order,
/// and the dependences between them. Two accesses of one buffer depend unless their regions are provably
/// disjoint over the whole scope. Barriers, extern calls and other effects order against everything.
struct ScopeDependences {
  std::vector<BlockRealize> blocks;
  std::vector<Dependence> edges; // sorted by (to, from)
  std::vector<BlockRealize>
  producersOf(const BlockRealize& block) const; // kReadAfterWrite sources, in program order
  std::vector<BlockRealize> consumersOf(const BlockRealize& block) const;
  std::vector<BlockRealize> writersOf(const Buffer& buffer) const;
};
ScopeDependences scopeDependences(const Block& scope);
/// Blocks directly under a statement, in program order.
std::vector<BlockRealize> childBlocks(const NodeRef& root);

/// Why the iterations of a loop may not run in any order, or at once (an Error of code kIllegal that names
/// the buffer and the block), or success. Blocks count by their axes: a loop that binds only spatial axes of
/// blocks carries no dependence; reduction, scan and opaque axes do, unless `allowReduction`. Statements
/// outside blocks count by their accesses. Different iterations writing the same element (even the same
/// value) is a dependence. `enclosing`: loops around this one with their domains, for bounds.
/// `accessedOnlyHere`: buffers allocated outside of the loop that nothing outside of it touches: one that is
/// private to each iteration (loop/privacy.h) carries no dependence, for plan_allocations gives every
/// iteration its own.
Status checkParallel(const For& loop, const std::vector<VarRange>& enclosing = {},
                     bool allowReduction = false, const std::vector<Buffer>& accessedOnlyHere = {});
/// True when executing the loop's iterations in another order, or interleaved with inner loops, keeps the
/// results (over the reals: reductions count as reorderable).
Status checkReorderable(const For& loop, const std::vector<VarRange>& enclosing = {},
                        const std::vector<Buffer>& accessedOnlyHere = {});

/// True when the values of the axes are a one to one image of the loops that they use, under the predicate.
bool isAffineBinding(const BlockRealize& realize, const std::vector<VarRange>& loops);

/// Complete block: the only writer of its outputs in the scope, all axes spatial, reads and writes do not
/// share a buffer.
Status checkCompleteBlock(const ScopeDependences& scope, const BlockRealize& realize);
/// Reduction block: has an init, axes spatial or reduce, the only writer of its outputs in the scope, and no
/// reduce axis indexes an output.
Status checkReductionBlock(const ScopeDependences& scope, const BlockRealize& realize);
/// Has an axis of type reduce.
bool hasReduceAxis(const Block& block);
/// Every effect under the node that is not described by loads and stores: kPure when none.
Effect effectOf(const NodeRef& node);

} // namespace bevel
