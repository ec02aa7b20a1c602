// What the schedule rules need to know of a block: its axes, and how its accesses move when an axis advances.
#pragma once

#include "arith/linear_form.h"
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
  std::vector<arith::LinearForm> indices; // over the axes; empty when not linear
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
  /// Every access moves by one element along axis k, or stays.
  bool isContiguous(size_t k) const;
  /// The axis of vectors: the last spatial one, but trailing axes of one element do not move anything. The number of
  /// axes when there is none.
  size_t column() const;
  /// How much index d of a linear access grows when axis k advances; and whether k alone moves it, by one.
  int64_t step(const AccessPattern& a, size_t d, size_t k) const;
  bool isOnly(const AccessPattern& a, size_t d, size_t k) const;
};

/// What the block reads along its axis of vectors.
struct Operands {
  bool moves = false, still = false; // some operand does
  bool contiguous = false;           // moves by one element
  /// One operand is used again along the axis, another is not.
  bool isContraction() const { return moves && still; }
};
Operands operandsOf(const BlockInfo& block);

/// All blocks of the program that have no blocks inside, in program order. What is `known` of blocks that are still the same is
/// taken over.
std::vector<BlockInfo> analyseBlocks(const PrimFunc& f, const std::vector<BlockInfo>& known = {});

/// Whether axes k and k + 1 can be one: advancing k equals running through all of k + 1, for every access.
bool contiguousPair(const BlockInfo& b, size_t k);

} // namespace bevel
