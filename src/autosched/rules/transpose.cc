// Transposes: blocks that read along one axis and write along another.
//
//   for c, x in T.grid(3136, 256): B[c, x] = A[x, c]
//   →   for c0 in T.parallel(196): for x0 in 16: for c1 in 16: for x1 in T.vectorized(16): B[…] = A[…]
//
// 1. Neighbouring axes that every access runs through together become one.
// 2. The axis along which memory is written is split by vectors, the axis along which most is read by as many
//    elements: the square of both stays in L1, where every line that is touched is used whole.
// 3. What is outside is shared by threads.
#include "autosched/rules/rules.h"
#include "sched/steps/get.h"
#include "sched/steps/loops.h"

namespace bevel {

using namespace steps;
namespace {

constexpr int64_t kSide = 16; // elements of a square: a line of 32 bit elements

// The axis along which a read that does not follow the written one runs.
std::optional<size_t> readAxis(const BlockInfo& b, size_t written) {
  std::optional<size_t> found;
  for (const AccessPattern& a : b.accesses) {
    if (!a.linear || a.buffer->dtype.bits < 8) return std::nullopt;
    if (a.write && a.strides[written] != 1) return std::nullopt;
    if (a.write || a.strides[written] == 0 || a.strides[written] == 1) continue;
    for (size_t k = 0; k < written; ++k)
      if (a.strides[k] == 1 && b.extent(k) != 1) found = k;
  }
  return found;
}

} // namespace

Result<RuleResult> transposeRule(Schedule& sch, const std::string& name, const RuleContext& context) {
  std::optional<BlockInfo> found = spatialBlock(sch, name);
  if (!found) return RuleResult{};
  const BlockInfo& b = *found;
  size_t n = b.extents.size();
  auto read = readAxis(b, n - 1);
  if (!read || (b.extent(n - 1) >= 0 && b.extent(n - 1) < kSide / 2)) return RuleResult{};
  BEVEL_TRY(BlockRV rv, sch.run(GetSblock{name}));
  BEVEL_TRY(std::vector<LoopRV> loops, sch.run(GetLoops{rv}));
  std::vector<LoopRV> outer;
  LoopRV reading;
  LoopRV writing;
  for (size_t k = 0; k < n;) {
    size_t end = k + 1;
    while (end < n && contiguousPair(b, end - 1)) ++end;
    BEVEL_TRY(LoopRV group, asOneLoop(sch, {loops.begin() + ptrdiff_t(k), loops.begin() + ptrdiff_t(end)}));
    if (end == n)
      writing = group;
    else if (*read >= k && *read < end)
      reading = group;
    else
      outer.push_back(group);
    k = end;
  }
  BEVEL_TRY(Decision side,
            decide(sch, context, oneOf("square side of " + name, {kSide / 2, kSide, 2 * kSide}, kSide)));
  BEVEL_TRY(std::vector<LoopRV> r, sch.run(Split{reading, {IntArg(), side.values[0]}}));
  BEVEL_TRY(std::vector<LoopRV> w, sch.run(Split{writing, {IntArg(), side.values[0]}}));
  std::vector<LoopRV> order = outer;
  order.insert(order.end(), {r[0], w[0], r[1], w[1]});
  BEVEL_CHECK(sch.run(Reorder{order}));
  BEVEL_CHECK(sch.run(Vectorize{w[1]}));
  outer.push_back(r[0]);
  BEVEL_CHECK(shareAmongThreads(sch, outer));
  BEVEL_TRY(int64_t elements, sch.get(side.values[0]));
  return RuleResult{true, name + ": transposed by squares of " + std::to_string(elements)};
}

} // namespace bevel
