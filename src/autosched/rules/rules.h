// The schedule rules, one file each. A rule looks at the program, and if it fits takes steps on the schedule:
// every default schedule is a trace that can be printed, edited and replayed. What a rule chooses it asks for
// (autosched/decisions.h): a rule decides nothing by trying and taking back without a question or a precondition.
#pragma once

#include "autosched/access.h"
#include "autosched/decisions.h"
#include "autosched/tile_model.h"
#include "sched/schedule.h"

namespace bevel {

/// What a rule did: whether it applied, and a line for `bevel explain`.
struct RuleResult {
  bool applied = false;
  std::string why;
};

/// The blocks directly in a scope.
std::vector<BlockInfo> blocksOf(const Schedule& sch, const std::string& scope);
/// A block without reduction and with plain loops, at least one; nothing where the one of that name is another.
std::optional<BlockInfo> spatialBlock(const Schedule& sch, const std::string& name);

/// Nested loops as one, outermost first.
Result<LoopRV> asOneLoop(Schedule& sch, const std::vector<LoopRV>& loops);

/// Threads share the iterations of these nested loops, outermost first.
Status shareAmongThreads(Schedule& sch, const std::vector<LoopRV>& loops);

/// Powers of two around a number of lanes, none longer than the loop where its length is known: candidates.
std::vector<int64_t> laneCandidates(int64_t lanes, int64_t length);
/// The question which of these integers, the model's being `choice`.
Question oneOf(std::string name, const std::vector<int64_t>& candidates, int64_t choice);

/// Inlines blocks that compute each element from others at no or little cost into their consumers.
Result<RuleResult> inlineRule(Schedule& sch, const RuleContext& context);

/// Contractions, convolutions and window reductions: a tile of accumulators in registers, packed panels,
/// blocked loops, fused epilogue. `scope`: the block in which to look.
Result<RuleResult> tileRule(Schedule& sch, const std::string& scope, const RuleContext& context);

/// Reductions along contiguous rows with what belongs to them (softmax, norms): one pass over the rows, each
/// row's intermediate results in cache, vectors along the row.
Result<RuleResult> rowsRule(Schedule& sch, const std::string& scope, const RuleContext& context);

/// A block without reduction: contiguous loops fused, vectors, threads.
Result<RuleResult> elementwiseRule(Schedule& sch, const std::string& block, const RuleContext& context);

/// A block without reduction that reads along one axis and writes along another: squares that stay in cache.
Result<RuleResult> transposeRule(Schedule& sch, const std::string& block, const RuleContext& context);

/// Elements below which a loop is not worth a thread.
inline constexpr int64_t kParallelWork = 1 << 15;

} // namespace bevel
