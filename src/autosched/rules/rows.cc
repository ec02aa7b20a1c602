// Reductions along rows.
//
//   m[i] = max_k A[i, k]; e[i, k] = exp(A[i, k] - m[i]); s[i] = sum_k e[i, k]; B[i, j] = e[i, j] / s[i]
//   →   for i in T.parallel(n): m, e, s and B of row i, one after the other, vectors along k and j
//
// 1. The last block gives the rows: the axes that all reductions keep.
// 2. Every other block moves into the row loop, last first.
// 3. Loops along the row are split by vectors; a vectorised reduction keeps partial results in lanes.
#include "autosched/rules/rules.h"
#include "sched/steps/blocks.h"
#include "sched/steps/get.h"
#include "sched/steps/loops.h"
#include "sched/steps/place.h"

#include <algorithm>

namespace bevel {

using namespace steps;
namespace {

// Axes that every reduction keeps, counted from the outermost.
size_t rowAxes(const std::vector<BlockInfo>& blocks) {
  size_t rows = size_t(-1);
  for (const BlockInfo& b : blocks)
    if (b.reduces()) rows = std::min(rows, b.numSpatial());
  return std::min(rows, blocks.back().numSpatial());
}

// The innermost loop of a block within its row becomes vectors. A reduction whose combiner has no vector form
// stays scalar.
Status vectoriseAlongRow(Schedule& sch, const std::string& name, size_t outside, const RuleContext& context) {
  BEVEL_TRY(BlockRV rv, sch.run(GetSblock{name}));
  BEVEL_TRY(std::vector<LoopRV> loops, sch.run(GetLoops{rv}));
  if (loops.size() <= outside) return {};
  BEVEL_TRY(For last, sch.get(loops.back()));
  auto extent = asConst(last->extent);
  bool reduction = false, contiguous = true;
  for (const BlockInfo& b : analyseBlocks(sch.func())) {
    if (b.block->name != name) continue;
    size_t axis = b.block->iters.size() - 1;
    reduction = b.isReduce(axis);
    contiguous = b.isContiguous(axis);
  }
  if (!contiguous) return {};
  int64_t lanes = context.target.lanes(kFloat32) * (reduction ? 4 : 1);
  while (extent && lanes > *extent && lanes > 1) lanes /= 2;
  // The lanes of a reduction are joined once a vector: long ones where they leave no tail.
  for (int64_t wide = 4 * lanes; reduction && extent && wide > lanes; wide /= 2)
    if (*extent % wide == 0) lanes = wide;
  if (lanes <= 1) return {};
  std::vector<int64_t> widths = laneCandidates(lanes, extent.value_or(-1));
  auto vectors = [&](Schedule& s, const Decision& d) -> Status {
    if (widths[d.index] == 1) return {};
    BEVEL_TRY(std::vector<LoopRV> parts, s.run(Split{loops.back(), {IntArg(), d.values[0]}}));
    if (reduction) BEVEL_CHECK(s.run(DecomposeReduction{rv, parts[0]}));
    return s.run(Vectorize{parts[1]});
  };
  BEVEL_CHECK(decideWhereLegal(sch, context, oneOf("vector lanes of " + name, widths, lanes), vectors));
  return {};
}

} // namespace

Result<RuleResult> rowsRule(Schedule& sch, const std::string& scope, const RuleContext& context) {
  std::vector<BlockInfo> blocks = blocksOf(sch, scope);
  bool any = false, simple = true;
  for (const BlockInfo& b : blocks) any |= b.reduces(), simple &= b.simpleLoops;
  if (!any || !simple) return RuleResult{};
  size_t rows = rowAxes(blocks);
  const std::string last = blocks.back().block->name;
  BEVEL_TRY(BlockRV out, sch.run(GetSblock{last}));
  BEVEL_TRY(std::vector<LoopRV> loops, sch.run(GetLoops{out}));
  if (rows > loops.size()) return RuleResult{};
  std::string why = "one pass over rows of " + last;
  size_t outside = 0;
  if (rows > 0) {
    BEVEL_TRY(LoopRV row, asOneLoop(sch, {loops.begin(), loops.begin() + ptrdiff_t(rows)}));
    outside = 1;
    for (size_t i = blocks.size() - 1; i-- > 0;) {
      const std::string& name = blocks[i].block->name;
      auto move = [&](Schedule& s, const Decision& d) -> Status {
        if (d.index == 1) return {}; // it stays outside as a loop nest of its own
        BEVEL_TRY(BlockRV b, s.run(GetSblock{name}));
        return s.run(ComputeAt{b, row, true});
      };
      BEVEL_TRY(auto answer,
                decideWhereLegal(sch, context, yesNo("move " + name + " into rows of " + last), move));
      if (answer == 0u) why += ", " + name;
    }
    BEVEL_TRY(Decision threads, decide(sch, context, yesNo("threads share rows of " + last)));
    if (threads.index == 0) BEVEL_CHECK(sch.run(Parallel{row}));
  }
  for (const BlockInfo& b : blocks) BEVEL_CHECK(vectoriseAlongRow(sch, b.block->name, outside, context));
  return RuleResult{true, why};
}

} // namespace bevel
