#include "sched/steps/sample.h"

#include "sched/steps/step_impl.h"

#include <algorithm>

namespace bevel::steps {

constexpr const char* kDoc =
    R"(Takes one of several candidates of a question that a schedule rule asks; gives the integers of the candidate.

A candidate is an integer, a list of integers, or a name. `costs` are the estimates of a model, the least being the best; they may be left out.
`why` may tell the reason. The decision is the position of the chosen candidate; without one, it is the cheapest (the first, without costs). The default schedules
record with this step what their rules decided, so that other answers can be tried.)";

static Result<Plan> check(const Schedule&, Decide& s) {
  if (s.candidates.empty()) return fail(ErrorCode::kUsage, "there is no candidate");
  if (!s.costs.empty() && s.costs.size() != s.candidates.size())
    return fail(ErrorCode::kUsage, "candidates and costs must be equally many");
  if (!s.decision) s.decision = s.costs.empty() ? 0 : std::ranges::min_element(s.costs) - s.costs.begin();
  BEVEL_TRY(size_t position, positionOf(s.decision, s.candidates.size()));
  NodeRef chosen = s.candidates[position];
  const auto* several = chosen.as<ListNode>();
  Plan plan;
  for (const NodeRef& item : several ? several->items : Array<NodeRef>{chosen})
    if (item.is<IntImmNode>()) plan.results.push_back(item);
  return plan;
}

STEP_INFO(Decide, "decide", kDoc)

} // namespace bevel::steps
