#include "sched/dataflow.h"
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

struct ComputeAtPlan {
  Path path; // to the block
  Var loop;
  Stmt nest;
  size_t position; // in the loop's body
};

/// Between the producers under the loop and the first consumer.
static Result<size_t> findPosition(const ScopeInfo& info, int block, const For& loop, int64_t index) {
  std::vector<Stmt> items = itemsOf(loop->body);
  auto itemOf = [&](const std::string& name) {
    for (size_t i = 0; i < items.size(); ++i)
      if (findBlock(items[i], name).target) return int64_t(i);
    return int64_t(-1);
  };
  int64_t first = 0, last = int64_t(items.size());
  for (int p : info.producers(block)) first = std::max(first, itemOf(info.blocks[size_t(p)].name()) + 1);
  for (int c : info.consumers(block))
    if (int64_t at = itemOf(info.blocks[size_t(c)].name()); at >= 0) last = std::min(last, at);
  if (first > last) return illegal("a producer comes after a consumer under " + quoted(loop));
  if (index == -1) return size_t(last);
  if (index == -2) return size_t(first);
  if (index < first || index > last)
    return illegal("index " + std::to_string(index) + " is not between " + std::to_string(first) + " and " +
                   std::to_string(last));
  return size_t(index);
}

static Result<ComputeAtPlan> check(const Schedule& sch, const ComputeAt& s) {
  BEVEL_TRY(Path path, locate(sch, s.block));
  BEVEL_TRY(Path loopPath, locate(sch, s.loop));
  BEVEL_CHECK(checkMovable(path, loopPath));
  BEVEL_TRY(BlockRealize scope, scopeOf(path));
  const For loop = loopAt(loopPath);
  const Block block = realizeAt(path)->block;
  ScopeInfo info(scope);
  int self = info.indexOf(block->name);
  BEVEL_CHECK(checkCompleteOrReduction(info, self));
  BEVEL_CHECK(checkStableInputs(info, self));
  std::vector<int> consumers = info.consumers(self);
  if (consumers.empty()) return illegal(quoted(*block) + " has no consumer under " + quoted(loop));
  for (int c : consumers) {
    if (!isUnder(info.blocks[size_t(c)], loop->var))
      return illegal("block " + info.blocks[size_t(c)].name() + ", which reads its result, is not under " +
                     quoted(loop));
    if (c < self)
      return illegal("block " + info.blocks[size_t(c)].name() + " reads its result before it is written");
  }
  Analyzer analyzer;
  bindShapeDims(sch.func(), analyzer);
  bindLoops(path, analyzer);
  if (!coversDomain(info.blocks[size_t(self)], analyzer))
    return illegal("not all values of the axes of " + quoted(*block) + " are provably executed");
  bindLoops(loopPath, analyzer);
  bindLoop(loop, analyzer);
  std::vector<BufferRegion> regions;
  for (const BufferRegion& w : block->writes) {
    if (isParameter(sch.func(), w->buffer))
      return illegal("buffer " + w->buffer->name +
                     " is a parameter of the function: all of it must be computed");
    if (BufferRegion r = touchedRegion(loop->body, w->buffer->data, false, analyzer)) regions.push_back(r);
  }
  ComputeAtPlan plan{path, loop->var,
                     makeNest(block, solveAxes(block, regions, true, analyzer), s.preserveUnitLoops), 0};
  BEVEL_TRY(plan.position, findPosition(info, self, loop, s.index));
  return plan;
}

static void apply(Schedule& sch, ComputeAt&, ComputeAtPlan&& plan) {
  Stmt root = withoutBlock(plan.path);
  Path at = findLoop(root, plan.loop);
  auto loop = mutableCopy(loopAt(at));
  loop->body = insertInto(loop->body, plan.position, plan.nest);
  setBody(sch, replaceAt(at, Stmt(loop)));
}

STEP_INFO(ComputeAt, "compute_at", kDoc)

} // namespace bevel::steps

namespace bevel {
Status Schedule::computeAt(BlockRV block, LoopRV loop, bool preserveUnitLoops, int64_t index) {
  return runStep(*this, steps::ComputeAt{block, loop, preserveUnitLoops, index});
}
} // namespace bevel
