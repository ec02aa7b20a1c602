// What a step needs to know of the program around it: where its handles stand, the blocks of its scope, and
// what is known of the loops.
#pragma once

#include "arith/analyzer.h"
#include "loop/block_scope.h"
#include "loop/passes/context.h"
#include "loop/regions.h"
#include "sched/schedule.h"
#include "sched/tree.h"

namespace bevel {

/// An illegal step, in the user's terms.
inline tl::unexpected<Error> illegal(std::string message) {
  return fail(ErrorCode::kIllegal, std::move(message));
}

/// The target of a located path.
inline For loopAt(const Path& path) {
  return cast<ForNode>(path.target);
}
inline BlockRealize realizeAt(const Path& path) {
  return cast<BlockRealizeNode>(path.target);
}
/// The realization of the scope that the path's target stands in; fails for the root block.
Result<BlockRealize> scopeOf(const Path& path);

/// Serial and without annotations: a loop that steps may take apart.
Status checkPlainLoop(const For& loop);

/// The loop may be taken apart or moved: nothing inside it changes the memory that its range is read from, for then
/// the range, computed again or elsewhere, would be another one.
Status checkFixedRange(const For& loop);

/// Knows the ranges of all loops on the path (outer scopes included).
void bindLoops(const Path& path, Analyzer& analyzer);
void bindLoop(const For& loop, Analyzer& analyzer);
/// Both: all that is known where the path's target stands.
void bindContext(const Schedule& sch, const Path& path, Analyzer& analyzer);

/// A block and the scope it stands in: what a step about a block looks up first. Fails for the root block.
struct BlockSite {
  Path path; // to the block
  ScopeInfo info;
  int self; // the block's index there
  const ScopeBlock& inScope() const { return info.blocks[size_t(self)]; }
  const Block& block() const { return inScope().realize->block; }
  Path scopePath() const { return path.upTo(size_t(path.scope())); }
  /// Gives handles of blocks of the scope.
  Plan give(const std::vector<int>& blocks) const;
};
Result<BlockSite> siteOf(const Schedule& sch, BlockRV block);

/// The candidate that a decision names by its position among so many.
Result<size_t> positionOf(const IntArg& decision, size_t candidates);

/// The buffer that an argument names. Fails (kUsage) when the block has no such buffer.
Result<Buffer> bufferOf(const BlockNode& block, const BufferArg& arg);
/// True for buffers that the caller of the function sees.
bool isParameter(const PrimFunc& f, const Buffer& buffer);
/// An intermediate buffer that a block around allocates: neither a parameter nor a view of another buffer.
Status checkIntermediate(const PrimFunc& f, const Buffer& buffer);

/// The block's name for messages.
std::string quoted(const BlockNode& block);
std::string quoted(const For& loop);

/// The path of a block that a step takes out of the program, with what stays after it is gone.
Stmt withoutBlock(const Path& path);
/// Removes the buffer from the allocations of whichever block makes it.
Stmt withoutAlloc(const Stmt& root, const Var& data);
/// Adds an allocation to a scope's block.
BlockRealize withAlloc(const BlockRealize& scope, const Buffer& buffer);

} // namespace bevel
