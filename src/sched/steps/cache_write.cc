#include "ir/structural.h"
#include "sched/cache.h"
#include "sched/steps/step_impl.h"

#include <algorithm>

namespace bevel::steps {

constexpr StepDoc kDoc = {
    R"(Lets a block write into a buffer of another storage scope, from which a new block copies to the original; gives the copying block.

The block must be the only writer of the buffer and write all values of its axes. The copy stands after the outermost loop around the block.
`consumer_blocks` names blocks that read the cache instead of the original; readers under the block's own loops must be among them.)",
    R"(@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] + T.float32(1)
)",
    R"(b = sch.get_sblock(name="B")
w = sch.cache_write(block=b, write_buffer_index=0, storage_scope="local")
)",
    R"(@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    B_local = T.sblock_alloc_buffer((8,), scope="local")
    for i in range(8):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            B_local[vi] = A[vi] + T.float32(1)
    for ax0 in range(8):
        with T.sblock("B_local"):
            v0 = T.axis.spatial(8, ax0)
            B[v0] = B_local[v0]
)"};

struct CacheWrite {
  BlockRV block;
  int64_t writeBufferIndex = 0;
  std::string storageScope;
  std::vector<BlockRV> consumerBlocks;
  BlockRV result;
  STEP_FIELDS(CacheWrite, IN(block), IN(writeBufferIndex), IN(storageScope), OPTION(consumerBlocks),
              OUT(result))
};

struct CacheWritePlan {
  Path scope; // to the scope's realization
  Buffer buffer, cache;
  std::vector<std::string> users; // the block and the chosen consumers
  size_t position;                // in the scope's body
  Stmt copy;
  std::string name;
};

/// Exactly the region that the block writes: its axes' domains, where each dimension is one axis or a
/// constant.
static Result<Array<Range>> writtenRegion(const ScopeBlock& block, const Buffer& buffer, Analyzer& analyzer) {
  if (!coversDomain(block, analyzer))
    return illegal("not all values of the axes of " + quoted(block.block()) + " are provably executed");
  Array<Range> out;
  int seen = 0;
  for (const BufferRegion& w : block.block().writes) {
    if (w->buffer->data != buffer->data) continue;
    if (++seen > 1)
      return illegal(quoted(block.block()) + " writes buffer " + buffer->name + " in several regions");
    std::vector<int> used;
    for (const Range& dim : w->region) {
      auto index = axisIndex(dim->min, block.realize->block, analyzer);
      auto width = asConst(analyzer.simplify(dim->extent));
      bool plain = index && width && (index->axis < 0 || index->scale == *width) &&
                   std::ranges::find(used, index->axis) == used.end();
      if (!plain)
        return illegal(quoted(block.block()) + " does not write buffer " + buffer->name +
                       " in contiguous tiles, one axis a dimension");
      if (index->axis < 0) {
        out.push_back(range(index->offset, dim->extent));
        continue;
      }
      used.push_back(index->axis);
      const Range& dom = block.block().iters[size_t(index->axis)]->domain;
      out.push_back(range(analyzer.simplify(dom->min * *width + index->offset),
                          analyzer.simplify(dom->extent * *width)));
    }
  }
  return out;
}

static Result<CacheWritePlan> check(const Schedule& sch, const CacheWrite& s) {
  BEVEL_TRY(Path path, locate(sch, s.block));
  BEVEL_TRY(BlockRealize scope, scopeOf(path));
  if (s.storageScope.empty()) return fail(ErrorCode::kUsage, "the storage scope is empty");
  CacheWritePlan plan;
  plan.scope = path.upTo(size_t(path.scope()));
  const BlockRealize realize = realizeAt(path);
  BEVEL_TRY(plan.buffer, bufferOf(*realize->block, writeBuffer(s.writeBufferIndex)));
  ScopeInfo info(scope);
  int self = info.indexOf(realize->block->name);
  BEVEL_CHECK(checkCompleteOrReduction(info, self));
  if (!s.consumerBlocks.empty()) {
    BEVEL_TRY(plan.users, consumerNames(sch, info, s.consumerBlocks, plan.buffer));
  }
  plan.users.push_back(realize->block->name);
  const ScopeBlock& block = info.blocks[size_t(self)];
  for (int r : info.readers(plan.buffer->data)) {
    const ScopeBlock& reader = info.blocks[size_t(r)];
    if (std::ranges::find(plan.users, reader.name()) != plan.users.end()) continue;
    if (r < self || sharedLoops(reader.loops, block.loops) > 0)
      return illegal("block " + reader.name() + " reads buffer " + plan.buffer->name +
                     " before the copy would be made");
  }
  std::vector<Stmt> items = itemsOf(info.scope->block->body);
  for (size_t i = 0; i < items.size(); ++i)
    if (findBlock(items[i], block.name()).target) plan.position = i + 1;
  Analyzer analyzer;
  bindShapeDims(sch.func(), analyzer);
  BEVEL_TRY(Array<Range> region, writtenRegion(block, plan.buffer, analyzer));
  plan.cache = cacheBuffer(plan.buffer, s.storageScope);
  plan.name = freshBlockName(sch.func()->body, plan.cache->name);
  plan.copy = copyNest(plan.cache, plan.buffer, region, plan.name);
  return plan;
}

static void apply(Schedule& sch, CacheWrite& s, CacheWritePlan&& plan) {
  auto realize = mutableCopy(withAlloc(realizeAt(plan.scope), plan.cache));
  auto block = mutableCopy(realize->block);
  block->body =
      insertInto(useBuffer(block->body, plan.users, plan.buffer, plan.cache), plan.position, plan.copy);
  realize->block = Block(block);
  setBody(sch, replaceAt(plan.scope, Stmt(realize)));
  s.result = sch.addBlock(plan.name);
}

STEP_INFO(CacheWrite, "cache_write", kDoc)

} // namespace bevel::steps

namespace bevel {
Result<BlockRV> Schedule::cacheWrite(BlockRV block, int64_t writeBufferIndex, std::string storageScope,
                                     std::vector<BlockRV> consumerBlocks) {
  return runStep(
      *this,
      steps::CacheWrite{block, writeBufferIndex, std::move(storageScope), std::move(consumerBlocks), {}},
      &steps::CacheWrite::result);
}
} // namespace bevel
