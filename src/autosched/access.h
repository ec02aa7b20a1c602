// What the schedule rules need to know of a block: its axes, and how its accesses move when an axis advances.
#pragma once

#include "ir/graph.h"

#include <string>
#include <vector>

namespace bevel {

/// One access of a block: the step of its address, in elements of the dense buffer, when axis k of the block
/// advances by one.
struct AccessPattern {
  Buffer buffer;
  bool write = false;
  bool linear = false;          // false: the address is no linear function of the axes (strides is empty)
  std::vector<int64_t> strides; // a block axis each; kSymbolicStride where it depends on symbolic dimensions
  std::vector<std::vector<int64_t>> dims; // coefficient of each axis in each index: dims[d][k]
};
inline constexpr int64_t kSymbolicStride = int64_t(1) << 40;

/// A block of a program and its surroundings.
struct BlockInfo {
  Block block;
  std::string scope;                   // the block around, inside which it is scheduled
  std::string outermost;               // of the blocks around it, itself included, the one in the root
  std::vector<AccessPattern> accesses; // loads of the update (not of its own result), then stores
  std::vector<Expr> extents;           // of the axes
  bool simpleLoops = false;            // one loop an axis, in order, serial, from zero, without predicate
  bool reduces() const;
  size_t numSpatial() const;
  /// Constant extent of axis k, or -1.
  int64_t extent(size_t k) const;
  bool isReduce(size_t k) const;
};

/// All blocks of the program that have no blocks inside, in program order. What is `known` of blocks that are still the same is
/// taken over.
std::vector<BlockInfo> analyseBlocks(const PrimFunc& f, const std::vector<BlockInfo>& known = {});

/// Whether axes k and k + 1 can be one: advancing k equals running through all of k + 1, for every access.
bool contiguousPair(const BlockInfo& b, size_t k);

/// Float operations of one execution of the block's body: additions, multiplications and so on count one,
/// calls ten.
int64_t bodyWork(const Block& block);

} // namespace bevel
