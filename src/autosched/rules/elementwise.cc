// Blocks without reduction.
//
//   for i, j in T.grid(64, 100): B[i, j] = A[i, j] + 1
//   →   for o in T.parallel(200): for l in T.vectorized(32): B[…] = A[…] + 1
//
// 1. The longest suffix of loops over which every access either runs through memory without gaps or does not
//    move is fused.
// 2. It is split by a few vectors and vectorised; the tail is masked.
// 3. The loops outside are fused for threads.
#include "autosched/rules/rules.h"
#include "loop/reduction.h"
#include "sched/steps/get.h"
#include "sched/steps/loops.h"

#include <algorithm>

namespace bevel {

using namespace steps;
namespace {

// Widest element that the block touches, in bits.
int elementBits(const BlockInfo& b) {
  int bits = 8;
  for (const AccessPattern& a : b.accesses) bits = std::max<int>(bits, a.buffer->dtype.bits);
  return bits;
}

bool vectorFriendly(const BlockInfo& b, size_t axis) {
  return b.isContiguous(axis) &&
         std::ranges::none_of(b.accesses, [](const AccessPattern& a) { return a.buffer->dtype.bits < 8; });
}

constexpr int64_t kBlockVectors = 64;     // vectors of a block of a thread
constexpr int64_t kEnoughIterations = 16; // outer iterations that keep all threads busy

// Elements of the loops [from, to); -1 when only the run knows.
int64_t product(const BlockInfo& b, size_t from, size_t to) {
  int64_t n = 1;
  for (size_t k = from; k < to; ++k) n = b.extent(k) < 0 || n < 0 ? -1 : n * b.extent(k);
  return n;
}

int64_t lanesFor(const BlockInfo& b, int64_t length, const Target& target) {
  int64_t lanes =
      std::max(1, target.limits.vectorBits / elementBits(b)) * (workOf(b.block->body).cost > 8 ? 2 : 4);
  while (lanes > 1 && length > 0 && lanes > length) lanes /= 2;
  return lanes;
}

} // namespace

Result<RuleResult> elementwiseRule(Schedule& sch, const std::string& name, const RuleContext& context) {
  std::optional<BlockInfo> found = spatialBlock(sch, name);
  if (!found) return RuleResult{};
  const BlockInfo& b = *found;
  BEVEL_TRY(BlockRV rv, sch.run(GetSblock{name}));
  BEVEL_TRY(std::vector<LoopRV> loops, sch.run(GetLoops{rv}));
  size_t n = loops.size(), first = n - 1;
  while (first > 0 && contiguousPair(b, first - 1)) --first;
  bool vectors = vectorFriendly(b, n - 1);
  std::vector<LoopRV> outer(loops.begin(), loops.begin() + ptrdiff_t(first));
  BEVEL_TRY(LoopRV inner, asOneLoop(sch, {loops.begin() + ptrdiff_t(first), loops.end()}));
  int64_t length = product(b, first, n);
  int64_t lanes = vectors ? lanesFor(b, length, context.target) : 1;
  if (lanes > 1) {
    std::vector<int64_t> widths = laneCandidates(lanes, length);
    BEVEL_TRY(Decision width, decide(sch, context, oneOf("vector lanes of " + name, widths, lanes)));
    // Lengths that only the run knows: blocks with a vector loop of their own, which has one tail.
    Factors factors{IntArg(), width.values[0]};
    if (length < 0 && outer.empty()) factors = {IntArg(), kBlockVectors, width.values[0]};
    BEVEL_TRY(std::vector<LoopRV> parts, sch.run(Split{inner, factors}));
    BEVEL_CHECK(sch.run(Vectorize{parts.back()}));
    inner = parts[0];
  }
  int64_t total = product(b, 0, n), shared = product(b, 0, first);
  // An inner loop of its own needs no division to find its indices; few outer iterations need it for all threads.
  if (outer.empty() || (shared >= 0 && shared < kEnoughIterations)) outer.push_back(inner);
  bool worthThreads = total < 0 || total * std::max<int64_t>(1, workOf(b.block->body).cost) >= kParallelWork;
  BEVEL_TRY(Decision threads, decide(sch, context, yesNo("threads share " + name, worthThreads)));
  if (threads.index == 0) BEVEL_CHECK(shareAmongThreads(sch, outer));
  return RuleResult{true, name + (vectors ? ": vectors along contiguous elements"
                                          : ": scalar loop (accesses are not contiguous)")};
}

} // namespace bevel
