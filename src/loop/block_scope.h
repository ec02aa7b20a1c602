// The blocks of a scope, what they access, and the kinds of block that legality rests on.
#pragma once

#include "loop/access_model.h"

#include <string_view>

namespace bevel {

/// Realizations of the blocks directly under a statement (not those nested in other blocks), in program
/// order.
std::vector<BlockRealize> blocksUnder(const Stmt& s);

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
  AccessModel model; // of the scope's body
  /// `around`: the statements around it and itself, the root of the program first.
  explicit ScopeInfo(const BlockRealize& scope, std::vector<Stmt> around = {});
  int indexOf(std::string_view block) const; // -1 when it is not directly in the scope
  std::vector<int> writers(const Var& data) const;
  std::vector<int> readers(const Var& data) const;
  /// Blocks whose results this one reads / that read its results, in program order, without itself.
  std::vector<int> producers(int block) const;
  std::vector<int> consumers(int block) const;
  /// What the scope accesses outside of its blocks: in statements, conditions, ranges of loops, values of
  /// axes.
  std::vector<BufferAccess> looseAccesses() const;
};

/// Copies of the loops, outermost first, around a body.
Stmt nestOf(const std::vector<For>& loops, Stmt body);
/// The loops that two blocks share, outermost first.
size_t sharedLoops(const std::vector<For>& a, const std::vector<For>& b);
bool isUnder(const ScopeBlock& block, const Var& loop);

bool touches(const Array<BufferRegion>& regions, const Var& data);
bool reads(const BlockNode& block, const Var& data); // a block with init reads what it updates
bool writes(const BlockNode& block, const Var& data);

/// Which axes of the block the loop moves.
struct Driven {
  bool spatial = false, reduce = false;
};
Driven drivenBy(const BlockRealizeNode& block, const Var& loop);

/// What a step may rely on when it moves or repeats a block: run again it gives the same results.
/// Complete: all axes spatial, writes what it does not read. Reduction: also reduce axes, with an init.
/// Either is the only writer of its outputs in the scope, and what stands outside of blocks leaves its
/// buffers alone.
Status checkCompleteBlock(const ScopeInfo& scope, int block);
Status checkReductionBlock(const ScopeInfo& scope, int block);
Status checkCompleteOrReduction(const ScopeInfo& scope, int block);
/// Nothing outside of the scope's blocks has effects that must happen in order, uses what the block writes
/// or writes what it reads: where such a statement stands is not looked at.
Status checkNoLooseUse(const ScopeInfo& scope, int block);

} // namespace bevel
