#include "sched/steps/buffers.h"

#include "sched/cache.h"
#include "sched/steps/step_impl.h"

#include <algorithm>

namespace bevel::steps {

constexpr const char* kDoc =
    R"(Copies what consumers read of a buffer into a buffer of another storage scope, and lets them read the copy; gives the copying block.

`read_buffer_index` chooses among the block's reads. `consumer_blocks` names the blocks that read the copy; without it, all readers
in the scope. The copy is made right before the outermost loop that holds the first of them, but inside of every loop that also holds
a writer of the buffer: there it copies what they read, which must lie inside of the buffer. Refused when the buffer is written after
the copy, or by a consumer itself, or may be by effects that no declared region tells; and when a parallel loop around the copy would
no longer be independent.)";

/// The statement list in which the copy goes, and where: before the first consumer, in the innermost loop
/// that also holds a writer.
static Status findPlace(const ScopeInfo& info, const std::vector<int>& writers,
                        const std::vector<int>& consumers, Caching& plan, Stmt& body) {
  const ScopeBlock& first = info.blocks[size_t(consumers.front())];
  size_t depth = 0;
  for (int w : writers)
    for (int c : consumers)
      depth = std::max(depth, sharedLoops(info.blocks[size_t(w)].loops, info.blocks[size_t(c)].loops));
  for (int c : consumers)
    if (sharedLoops(first.loops, info.blocks[size_t(c)].loops) < depth)
      return illegal("the consumers stand in different loops, one of which holds a writer of the buffer");
  body = info.scope->block->body;
  if (depth > 0) {
    plan.around = first.loops[depth - 1]->var;
    body = first.loops[depth - 1]->body;
  }
  std::vector<Stmt> items = itemsOf(body);
  plan.position = size_t(itemWith(items, first));
  for (int w : writers)
    if (findBlock(items[plan.position], info.blocks[size_t(w)].name()).target)
      return illegal("a writer of the buffer and its first reader stand in one statement that is not a loop");
  return {};
}

/// What the consumers under the body read of the buffer, kept inside of it. In a loop that also writes the buffer, what
/// they read must lie inside as it is: the rest may be written later.
static Result<Array<Range>> consumedRegion(const Stmt& body, const Caching& plan, Analyzer& analyzer) {
  BufferRegion region;
  std::vector<Stmt> items = itemsOf(body);
  Stmt rest = seq(std::vector<Stmt>(items.begin() + ptrdiff_t(plan.position), items.end()));
  // Blocks that keep reading the buffer itself do not count.
  Stmt only = mapLeaves(rest, [&](const Stmt& leaf) -> Stmt {
    auto* r = leaf.as<BlockRealizeNode>();
    bool counts = r && std::ranges::find(plan.users, r->block->name) != plan.users.end();
    return counts ? leaf : seq({});
  });
  region = touchedRegion(only, plan.buffer->data, false, analyzer);
  Array<Range> out;
  for (size_t d = 0; d < region->region.size(); ++d) {
    const Range& r = region->region[d];
    const Expr& size = plan.buffer->shape[d];
    bool inside =
        analyzer.prove(r->min >= constant(r->min->dtype, 0)) && analyzer.prove(r->min + r->extent <= size);
    if (!inside && plan.around)
      return illegal("the copy would read elements of buffer " + plan.buffer->name + " that loop " +
                     plan.around->name + " has not written yet");
    out.push_back(inside ? r : range(constant(size->dtype, 0), size));
  }
  return out;
}

/// Nothing from the copy to the last consumer changes the buffer in a way that no block's regions tell.
static Status checkUnchanged(const ScopeInfo& info, const Caching& plan, const Stmt& body,
                             const ScopeBlock& last) {
  for (const BufferAccess& a : info.looseAccesses())
    if (!a.buffer || (a.write && a.buffer->data == plan.buffer->data))
      return illegal("a statement outside of blocks may change buffer " + plan.buffer->name);
  std::vector<Stmt> items = itemsOf(body);
  return checkNoEffects(
      plan, {items.begin() + ptrdiff_t(plan.position), items.begin() + itemWith(items, last) + 1});
}

static Result<Plan> check(const Schedule& sch, const CacheRead& s) {
  BEVEL_TRY(BlockSite site, siteOf(sch, s.block));
  BEVEL_TRY(Caching plan, beginCache(site, readBuffer(s.readBufferIndex), s.storageScope));
  const ScopeInfo& info = site.info;
  BEVEL_TRY(plan.users, consumerNames(sch, info, s.consumerBlocks, plan.buffer));
  std::vector<int> consumers, writers = info.writers(plan.buffer->data);
  for (const std::string& name : plan.users) consumers.push_back(info.indexOf(name));
  std::ranges::sort(consumers);
  for (int w : writers)
    if (w >= consumers.front())
      return illegal("block " + info.blocks[size_t(w)].name() + " writes buffer " + plan.buffer->name +
                     " after the copy would be made");
  Stmt body;
  BEVEL_CHECK(findPlace(info, writers, consumers, plan, body));
  BEVEL_CHECK(checkUnchanged(info, plan, body, info.blocks[size_t(consumers.back())]));
  Analyzer analyzer;
  bindContext(sch, findBlock(sch.func()->body, info.blocks[size_t(consumers.front())].name()), analyzer);
  BEVEL_TRY(Array<Range> region, consumedRegion(body, plan, analyzer));
  return finishCache(sch, plan, true, region);
}

STEP_INFO(CacheRead, "cache_read", kDoc)

} // namespace bevel::steps
