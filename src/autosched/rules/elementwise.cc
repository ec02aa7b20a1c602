// Blocks without reduction.
//
//   for i, j in T.grid(64, 100): B[i, j] = A[i, j] + 1
//   →   for o in T.parallel(200): for l in T.vectorized(32): B[…] = A[…] + 1
//
// 1. The longest suffix of loops over which every access either runs through memory without gaps or does not
// move is fused. 2. It is split by a few vectors and vectorised; the tail is masked. 3. The loops outside are
// fused for threads.
#include "autosched/rules/rules.h"

#include <algorithm>

namespace bevel {
namespace {

// Whether loops k and k+1 can be one: advancing k equals running through all of k+1, for every access.
bool contiguousPair(const BlockInfo& b, size_t k) {
  int64_t extent = b.extent(k + 1);
  if (extent < 0) return false;
  return std::all_of(b.accesses.begin(), b.accesses.end(), [&](const AccessPattern& a) {
    if (!a.linear) return false;
    bool still = a.strides[k] == 0 && a.strides[k + 1] == 0;
    return still || (a.strides[k + 1] < kSymbolicStride && a.strides[k] == a.strides[k + 1] * extent);
  });
}

// Widest element that the block touches, in bits.
int elementBits(const BlockInfo& b) {
  int bits = 8;
  for (const AccessPattern& a : b.accesses) bits = std::max<int>(bits, a.buffer->dtype.bits);
  return bits;
}

bool vectorFriendly(const BlockInfo& b, size_t axis) {
  return std::all_of(b.accesses.begin(), b.accesses.end(), [&](const AccessPattern& a) {
    return a.buffer->dtype.bits >= 8 && a.linear && (a.strides[axis] == 1 || a.strides[axis] == 0);
  });
}

} // namespace

Result<RuleResult> elementwiseRule(Schedule& sch, const std::string& name, const Target& target) {
  std::vector<BlockInfo> blocks = analyseBlocks(sch.func());
  auto it =
      std::find_if(blocks.begin(), blocks.end(), [&](const BlockInfo& b) { return b.block->name == name; });
  if (it == blocks.end() || it->reduces() || !it->simpleLoops || it->extents.empty()) return RuleResult{};
  const BlockInfo& b = *it;
  BEVEL_TRY(BlockRV rv, sch.getSblock(name));
  BEVEL_TRY(std::vector<LoopRV> loops, sch.getLoops(rv));
  size_t n = loops.size(), first = n - 1;
  while (first > 0 && contiguousPair(b, first - 1)) --first;
  bool vectors = vectorFriendly(b, n - 1);
  int64_t total = 1;
  for (size_t k = 0; k < n; ++k) total = b.extent(k) < 0 ? -1 : total < 0 ? -1 : total * b.extent(k);
  LoopRV inner = loops[n - 1];
  if (first + 1 < n) {
    BEVEL_TRY(inner, sch.fuse({loops.begin() + ptrdiff_t(first), loops.end()}));
  }
  std::vector<LoopRV> outer(loops.begin(), loops.begin() + ptrdiff_t(first));
  if (vectors) {
    int64_t length = 1;
    for (size_t k = first; k < n; ++k) length = b.extent(k) < 0 || length < 0 ? -1 : length * b.extent(k);
    int64_t lanes = std::max(1, target.vectorBits / elementBits(b)) * (bodyWork(b.block) > 8 ? 2 : 4);
    while (lanes > 1 && length > 0 && lanes > length) lanes /= 2;
    if (lanes > 1) {
      BEVEL_TRY(std::vector<LoopRV> parts, sch.split(inner, {IntArg(), IntArg(lanes)}));
      BEVEL_CHECK(sch.vectorize(parts[1]));
      outer.push_back(parts[0]);
    } else
      outer.push_back(inner);
  } else
    outer.push_back(inner);
  if (total < 0 || total * std::max<int64_t>(1, bodyWork(b.block)) >= kParallelWork) {
    LoopRV all = outer[0];
    if (outer.size() > 1) {
      BEVEL_TRY(all, sch.fuse(outer));
    }
    BEVEL_CHECK(sch.parallel(all));
  }
  return RuleResult{true, name + (vectors ? ": vectors along contiguous elements"
                                          : ": scalar loop (accesses are not contiguous)")};
}

} // namespace bevel
