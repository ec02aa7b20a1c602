#include "sched/steps/buffers.h"

#include "ir/structural.h"
#include "sched/cache.h"
#include "sched/steps/step_impl.h"

#include <algorithm>

namespace bevel::steps {

constexpr const char* kDoc =
    R"(Lets a block write into a buffer of another storage scope, from which a new block copies to the original; gives the copying block.

The block must be the only writer of the buffer and write all values of its axes; no dimension may be written with holes. The copy
stands after the outermost loop around the block, which must hold no effects that no declared region tells.
`consumer_blocks` names blocks that read the cache instead of the original: they may read only what the block writes. Readers
under the block's own loops must be among them.)";

/// Whether the statement stores to the buffer whatever the data: the copy takes everything in the region.
static bool surelyWrites(const Stmt& s, const Buffer& buffer) {
  if (const auto* store = s.as<StoreNode>()) return store->buffer->data == buffer->data && !store->predicate;
  if (const auto* all = s.as<SeqNode>())
    return std::ranges::any_of(all->stmts, [&](const Stmt& x) { return surelyWrites(x, buffer); });
  if (const auto* f = s.as<ForNode>()) return surelyWrites(f->body, buffer);
  if (const auto* let = s.as<LetStmtNode>()) return surelyWrites(let->body, buffer);
  if (const auto* a = s.as<AttrStmtNode>()) return surelyWrites(a->body, buffer);
  if (const auto* c = s.as<IfNode>())
    return c->elseBody && surelyWrites(c->thenBody, buffer) && surelyWrites(c->elseBody, buffer);
  if (const auto* r = s.as<BlockRealizeNode>())
    return isConst(r->predicate, 1) &&
           ((r->block->init && surelyWrites(r->block->init, buffer)) || surelyWrites(r->block->body, buffer));
  return s.is<EvaluateNode>() && usesVar(s, buffer->data); // a call is taken at its word
}

/// Exactly the region that the block writes: its axes' domains, where each dimension is one axis or a
/// constant.
static Result<Array<Range>> writtenRegion(const ScopeBlock& block, const Buffer& buffer, Analyzer& analyzer) {
  BEVEL_CHECK(checkCoversDomain(block, analyzer));
  const BlockNode& b = block.block();
  if (!surelyWrites(b.body, buffer) && !(b.init && surelyWrites(b.init, buffer)))
    return illegal(quoted(b) + " writes buffer " + buffer->name +
                   " only under a condition: the copy would overwrite what it leaves alone");
  BufferRegion written;
  for (const BufferRegion& w : b.writes) {
    if (w->buffer->data != buffer->data) continue;
    if (written) return illegal(quoted(b) + " writes buffer " + buffer->name + " in several regions");
    written = w;
  }
  auto out = sweptRegion(block.realize->block, written->region, analyzer);
  if (!out)
    return illegal(quoted(b) + " does not write buffer " + buffer->name +
                   " in contiguous tiles, one axis a dimension");
  return *out;
}

/// All elements that a reader of the cache may read are in the region that the block writes: the cache holds nothing
/// else.
static Status checkReadsOnly(const ScopeBlock& reader, const Buffer& buffer, const Array<Range>& region,
                             Analyzer& analyzer) {
  for (const IterVar& iv : reader.block().iters) analyzer.bind(iv->var, iv->domain);
  for (const BufferRegion& r : reader.block().reads) {
    if (r->buffer->data != buffer->data) continue;
    for (size_t d = 0; d < region.size(); ++d) {
      const Range &has = region[d], &needs = r->region[d];
      if (!analyzer.prove(needs->min >= has->min) ||
          !analyzer.prove(needs->min + needs->extent <= has->min + has->extent))
        return illegal(quoted(reader.block()) + " may read elements of buffer " + buffer->name +
                       " that are not written to the cache (dimension " + std::to_string(d) + ")");
    }
  }
  return {};
}

static Result<Plan> check(const Schedule& sch, const CacheWrite& s) {
  BEVEL_TRY(BlockSite site, siteOf(sch, s.block));
  BEVEL_TRY(Caching plan, beginCache(site, writeBuffer(s.writeBufferIndex), s.storageScope));
  const ScopeInfo& info = site.info;
  int self = site.self;
  BEVEL_CHECK(checkCompleteOrReduction(info, self));
  if (!s.consumerBlocks.empty()) {
    BEVEL_TRY(plan.users, consumerNames(sch, info, s.consumerBlocks, plan.buffer));
  }
  const ScopeBlock& block = site.inScope();
  plan.users.push_back(block.name());
  for (int r : info.readers(plan.buffer->data)) {
    const ScopeBlock& reader = info.blocks[size_t(r)];
    if (r == self) continue;
    bool readsCache = std::ranges::find(plan.users, reader.name()) != plan.users.end();
    if (r < self && readsCache)
      return illegal("block " + reader.name() + " comes before " + quoted(block.block()) +
                     ": the cache holds nothing yet");
    if (r < self || (!readsCache && sharedLoops(reader.loops, block.loops) > 0))
      return illegal("block " + reader.name() + " reads buffer " + plan.buffer->name +
                     " before the copy would be made");
  }
  std::vector<Stmt> items = itemsOf(info.scope->block->body);
  plan.position = size_t(itemWith(items, block)) + 1;
  BEVEL_CHECK(checkNoEffects(plan, {items[plan.position - 1]}));
  Analyzer analyzer;
  bindDims(sch.func(), analyzer);
  BEVEL_TRY(Array<Range> region, writtenRegion(block, plan.buffer, analyzer));
  for (int r : info.readers(plan.buffer->data))
    if (r != self && std::ranges::find(plan.users, info.blocks[size_t(r)].name()) != plan.users.end())
      BEVEL_CHECK(checkReadsOnly(info.blocks[size_t(r)], plan.buffer, region, analyzer));
  return finishCache(sch, plan, false, region);
}

STEP_INFO(CacheWrite, "cache_write", kDoc)

} // namespace bevel::steps
