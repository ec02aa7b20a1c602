// What a step needs to know of the program around it: where its handles stand, what the blocks of a scope
// access, what is known of the loops, and the properties of blocks that legality rests on.
#pragma once

#include "arith/analyzer.h"
#include "loop/passes/context.h"
#include "loop/regions.h"
#include "sched/schedule.h"
#include "sched/tree.h"

namespace bevel {

/// An illegal step, in the user's terms.
inline tl::unexpected<Error> illegal(std::string message) {
  return fail(ErrorCode::kIllegal, std::move(message));
}

/// Where the loop or block of a handle stands in the program worked on.
Result<Path> locate(const Schedule& sch, LoopRV loop);
Result<Path> locate(const Schedule& sch, BlockRV block);
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

/// Puts a new body into the function worked on.
void setBody(Schedule& sch, Stmt body);

/// Knows the ranges of all loops on the path (outer scopes included).
void bindLoops(const Path& path, Analyzer& analyzer);
void bindLoop(const For& loop, Analyzer& analyzer);
/// Both: all that is known where the path's target stands.
void bindContext(const Schedule& sch, const Path& path, Analyzer& analyzer);

/// A block directly under a scope.
struct ScopeBlock {
  BlockRealize realize;
  std::vector<For> loops; // around it in the scope, outermost first
  const BlockNode& block() const { return *realize->block; }
  const std::string& name() const { return realize->block->name; }
};

/// The blocks of a scope in program order and what they access, by buffer.
class ScopeInfo {
public:
  BlockRealize scope;
  std::vector<ScopeBlock> blocks;
  explicit ScopeInfo(const BlockRealize& scope);
  int indexOf(std::string_view block) const; // -1 when it is not directly in the scope
  std::vector<int> writers(const Var& data) const;
  std::vector<int> readers(const Var& data) const;
  /// Blocks whose results this one reads / that read its results, in program order, without itself.
  std::vector<int> producers(int block) const;
  std::vector<int> consumers(int block) const;
  std::vector<std::string> names(const std::vector<int>& blocks) const;
};

/// A block and the scope it stands in: what a step about a block looks up first. Fails for the root block.
struct BlockSite {
  Path path; // to the block
  ScopeInfo info;
  int self; // the block's index there
  const ScopeBlock& inScope() const { return info.blocks[size_t(self)]; }
  const Block& block() const { return inScope().realize->block; }
  Path scopePath() const { return path.upTo(size_t(path.scope())); }
};
Result<BlockSite> siteOf(const Schedule& sch, BlockRV block);

bool reads(const BlockNode& block, const Var& data); // a block with init reads what it updates
bool writes(const BlockNode& block, const Var& data);

/// What a step may rely on when it moves or repeats a block: run again it gives the same results.
/// Complete: all axes spatial, writes what it does not read. Reduction: also reduce axes, with an init.
/// Either is the only writer of its outputs in the scope.
Status checkCompleteBlock(const ScopeInfo& scope, int block);
Status checkReductionBlock(const ScopeInfo& scope, int block);
Status checkCompleteOrReduction(const ScopeInfo& scope, int block);
bool hasReduceAxes(const BlockNode& block);

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
