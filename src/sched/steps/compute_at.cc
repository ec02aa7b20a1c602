#include "sched/move.h"
#include "sched/steps/step_impl.h"

namespace bevel::steps {

constexpr StepDoc kDoc = {
    R"(Moves a producer under a loop of its consumers: each iteration computes what that iteration reads, no more and no less.

The new loops run through exactly the region that the consumers under `loop` read; where that may leave the block's domain (tails), a
condition on initialisation and update keeps it inside. What several iterations read is computed in each of them.

Refused unless the block is a whole block or reduction, its outputs are not parameters of the function, all their consumers are
under `loop`, and what it reads still has the same values there. `index` is the place among the statements of the loop's body: -1
the last possible (before the first consumer), -2 the first possible.)",
    R"(@T.prim_func
def main(A: T.Buffer((100,), "float32"), C: T.Buffer((100,), "float32")):
    B = T.sblock_alloc_buffer((100,))
    for i in range(100):
        with T.sblock("B"):
            vi = T.axis.spatial(100, i)
            B[vi] = A[vi] * T.float32(2)
    for i in range(100):
        with T.sblock("C"):
            vi = T.axis.spatial(100, i)
            C[vi] = B[vi] + T.float32(1)
)",
    R"(b = sch.get_sblock(name="B")
c = sch.get_sblock(name="C")
i, = sch.get_loops(block=c)
i0, i1 = sch.split(loop=i, factors=[None, 32])
sch.compute_at(block=b, loop=i0)
)",
    R"(@T.prim_func
def main(A: T.Buffer((100,), "float32"), C: T.Buffer((100,), "float32")):
    B = T.sblock_alloc_buffer((100,))
    for i_0 in range(4):
        for ax0 in range(32):
            with T.sblock("B"):
                vi = T.axis.spatial(100, i_0 * 32 + ax0)
                T.where(i_0 * 32 + ax0 < 100)
                B[vi] = A[vi] * T.float32(2)
        for i_1 in range(32):
            with T.sblock("C"):
                vi = T.axis.spatial(100, i_0 * 32 + i_1)
                T.where(i_0 * 32 + i_1 < 100)
                C[vi] = B[vi] + T.float32(1)
)"};

struct ComputeAt {
  BlockRV block;
  LoopRV loop;
  bool preserveUnitLoops = false;
  int64_t index = -1;
  STEP_FIELDS(ComputeAt, IN(block), IN(loop), OPTION(preserveUnitLoops), OPTION(index))
};

static Result<MovePlan> check(const Schedule& sch, const ComputeAt& s) {
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
  Stmt nest = makeNest(block, solveAxes(block, regions, true, analyzer), s.preserveUnitLoops);
  return planMove(move, std::move(nest), s.index);
}

static void apply(Schedule& sch, ComputeAt&, MovePlan&& plan) {
  applyMove(sch, std::move(plan));
}

STEP_INFO(ComputeAt, "compute_at", kDoc)

} // namespace bevel::steps

namespace bevel {
Status Schedule::computeAt(BlockRV block, LoopRV loop, bool preserveUnitLoops, int64_t index) {
  return runStep(*this, steps::ComputeAt{block, loop, preserveUnitLoops, index});
}
} // namespace bevel
