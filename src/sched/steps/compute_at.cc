#include "sched/steps/place.h"

#include "sched/move.h"
#include "sched/steps/step_impl.h"

namespace bevel::steps {

constexpr const char* kDoc =
    R"(Moves a producer under a loop of its consumers: each iteration computes what that iteration reads, no more and no less.

The new loops run through exactly the region that the consumers under `loop` read; where that may leave the block's domain (tails), a
condition on initialisation and update keeps it inside. What several iterations read is computed in each of them.

Refused unless the block is a whole block or reduction, its outputs are not parameters of the function, all their consumers are
under `loop`, and what it reads still has the same values there. `index` is the place among the statements of the loop's body: -1
the last possible (before the first consumer), -2 the first possible.)";

static Result<Plan> check(const Schedule& sch, const ComputeAt& s) {
  Analyzer analyzer;
  BEVEL_TRY(Move move, moveOf(sch, s.block, s.loop, analyzer));
  const ScopeInfo& info = move.site.info;
  const Block& block = move.site.block();
  int self = move.site.self;
  BEVEL_CHECK(checkStableInputs(info, self));
  std::vector<int> consumers = info.consumers(self);
  if (consumers.empty()) return illegal(quoted(*block) + " has no consumer under " + quoted(move.loop));
  for (int c : consumers) {
    const ScopeBlock& consumer = info.blocks[size_t(c)];
    if (!isUnder(consumer, move.loop->var))
      return illegal("block " + consumer.name() + ", which reads its result, is not under " +
                     quoted(move.loop));
    if (c < self) return illegal("block " + consumer.name() + " reads its result before it is written");
  }
  std::vector<BufferRegion> regions;
  for (const BufferRegion& w : block->writes) {
    if (isParameter(sch.func(), w->buffer))
      return illegal("buffer " + w->buffer->name +
                     " is a parameter of the function: all of it must be computed");
    BEVEL_CHECK(checkUsedOnlyIn(info.scope, sch.func(), w->buffer));
    if (BufferRegion r = touchedRegion(move.loop->body, w->buffer->data, false, analyzer))
      regions.push_back(r);
  }
  Stmt nest = makeNest(block, solveAxes(block, regions, analyzer), s.preserveUnitLoops);
  return planMove(move, std::move(nest), s.index);
}

STEP_INFO(ComputeAt, "compute_at", kDoc)

} // namespace bevel::steps
