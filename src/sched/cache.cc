#include "sched/cache.h"

#include "ir/storage_scope.h"
#include "ir/structural.h"
#include "loop/dependence.h"
#include "sched/loop_kind.h"

#include <algorithm>
#include <unordered_set>

namespace bevel {

namespace {

/// A buffer like `source`, named `<name>_<scope>`, in another storage scope.
Buffer cacheBuffer(const Buffer& source, const std::string& scope) {
  std::string suffix = scope;
  std::ranges::replace(suffix, '.', '_');
  Buffer fresh = buffer(source->name + "_" + suffix, source->dtype, source->shape, scope);
  return withOrigin(fresh, source->origin);
}

/// The range depends on the sizes of the function's parameters alone: no loop or axis inside.
bool isFixed(const PrimFunc& f, const Range& r) {
  std::unordered_set<const VarNode*> sizes;
  for (const Buffer& b : f->buffers)
    if (b)
      for (const Expr& d : b->shape) usesAnyVar(d, [&](const VarNode* v) { return sizes.insert(v), false; });
  return !usesAnyVar(r, [&](const VarNode* v) { return !sizes.contains(v); });
}

/// Loops that copy a region (over variables visible there) from one buffer to the other of the same shape, in
/// a block of that name. Its axes count from the region's start; where that moves with a loop, they are the
/// indices of the buffer.
Stmt copyNest(const PrimFunc& f, const Buffer& from, const Buffer& to, const Array<Range>& region,
              const std::string& name) {
  Array<Expr> sizes, indices;
  for (size_t d = 0; d < region.size(); ++d) {
    const Expr& size = from->shape[d];
    sizes.push_back(isFixed(f, region[d]) ? castTo(size->dtype, region[d]->extent) : size);
  }
  auto [block, axes, at, element] = blockOver(sizes, name);
  for (size_t d = 0; d < region.size(); ++d) {
    DType dtype = from->shape[d]->dtype;
    Expr min = castTo(dtype, region[d]->min);
    bool fixed = isFixed(f, region[d]);
    indices.push_back(fixed && !isConst(min, 0) ? at[d] + min : at[d]);
    if (!fixed) axes[d] = {min, castTo(dtype, region[d]->extent)};
  }
  block->body = store(to, load(from, indices), indices);
  return makeNest(withDetectedAccess(Block(block)), axes, true);
}

/// The statement with all uses of a buffer inside the named blocks replaced.
Stmt useBuffer(const Stmt& root, const std::vector<std::string>& blocks, const Buffer& from,
               const Buffer& to) {
  return mapLeaves(root, [&](const Stmt& leaf) -> Stmt {
    auto* realize = leaf.as<BlockRealizeNode>();
    if (!realize) return leaf;
    if (std::ranges::find(blocks, realize->block->name) == blocks.end()) return leaf;
    Stmt changed = cast<StmtNode>(replaceBuffers(NodeRef(leaf), BufferMap{{from->data, to}}));
    return usesVar(changed, from->data) ? substitute(changed, VarMap{{from->data, to->data}})
                                        : changed; // pointers
  });
}

/// What is found of a step, as it is found.
struct Caching {
  Buffer buffer;
  std::vector<std::string> users; // blocks that use the cache instead
  Var around;                     // the loop whose body gets the copy; null: the scope's body
  size_t position = 0;            // in that body
};

/// Nothing that stands between the copy and the accesses of the cache changes the buffer unseen: no block
/// under the statements has effects that regions do not tell.
Status checkNoEffects(const Caching& plan, const std::vector<Stmt>& statements) {
  for (const Stmt& s : statements)
    for (const BlockRealize& r : blocksUnder(s))
      if (hasOrderedEffect(*r->block))
        return illegal(quoted(*r->block) + " has effects beyond what it declares: it may access buffer " +
                       plan.buffer->name + " while a copy is used");
  return {};
}

/// The names of the given blocks; all must be readers of the buffer in the scope. All readers when none are
/// given.
Result<std::vector<std::string>> consumerNames(const Schedule& sch, const ScopeInfo& info,
                                               const std::vector<BlockRV>& given, const Buffer& buffer) {
  std::vector<std::string> out;
  for (BlockRV b : given) {
    BEVEL_TRY(std::string name, sch.nameOf(b));
    int i = info.indexOf(name);
    if (i < 0 || !reads(info.blocks[size_t(i)].block(), buffer->data))
      return illegal("block " + name + " does not read buffer " + buffer->name);
    out.push_back(name);
  }
  if (given.empty())
    for (int i : info.readers(buffer->data)) out.push_back(info.blocks[size_t(i)].name());
  return out;
}

/// The statement list in which the copy goes, and where: before the first consumer, in the innermost loop
/// that also holds a writer.
Status findPlace(const ScopeInfo& info, const std::vector<int>& writers, const std::vector<int>& consumers,
                 Caching& plan, Stmt& body) {
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
Result<Array<Range>> consumedRegion(const Stmt& body, const Caching& plan, Analyzer& analyzer) {
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
Status checkUnchanged(const ScopeInfo& info, const Caching& plan, const Stmt& body, const ScopeBlock& last) {
  for (const BufferAccess& a : info.looseAccesses())
    if (!a.buffer || (a.write && a.buffer->data == plan.buffer->data))
      return illegal("a statement outside of blocks may change buffer " + plan.buffer->name);
  std::vector<Stmt> items = itemsOf(body);
  return checkNoEffects(
      plan, {items.begin() + ptrdiff_t(plan.position), items.begin() + itemWith(items, last) + 1});
}

/// The region that consumers read, and where its copy goes.
Result<Array<Range>> planRead(const Schedule& sch, const ScopeInfo& info, const std::vector<BlockRV>& given,
                              Caching& plan) {
  BEVEL_TRY(plan.users, consumerNames(sch, info, given, plan.buffer));
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
  return consumedRegion(body, plan, analyzer);
}

/// Whether the statement stores to the buffer whatever the data: the copy takes everything in the region.
bool surelyWrites(const Stmt& s, const Buffer& buffer) {
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
Result<Array<Range>> writtenRegion(const ScopeBlock& block, const Buffer& buffer, Analyzer& analyzer) {
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
Status checkReadsOnly(const ScopeBlock& reader, const Buffer& buffer, const Array<Range>& region,
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

/// The region that the block writes, and where its copy goes.
Result<Array<Range>> planWrite(const Schedule& sch, const BlockSite& site, const std::vector<BlockRV>& given,
                               Caching& plan) {
  const ScopeInfo& info = site.info;
  int self = site.self;
  BEVEL_CHECK(checkCompleteOrReduction(info, self));
  if (!given.empty()) {
    BEVEL_TRY(plan.users, consumerNames(sch, info, given, plan.buffer));
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
  return region;
}

} // namespace

Result<Plan> planCache(const Schedule& sch, BlockRV block, const BufferArg& buffer, bool toCache,
                       const std::string& storageScope, const std::vector<BlockRV>& consumers) {
  BEVEL_TRY(BlockSite site, siteOf(sch, block));
  BEVEL_CHECK(checkScope(storageScope));
  Caching plan;
  BEVEL_TRY(plan.buffer, bufferOf(*site.block(), buffer));
  BEVEL_TRY(Array<Range> region,
            toCache ? planRead(sch, site.info, consumers, plan) : planWrite(sch, site, consumers, plan));
  Buffer cache = cacheBuffer(plan.buffer, storageScope);
  std::string name = freshBlockName(sch.func()->body, cache->name);
  Stmt copy =
      copyNest(sch.func(), toCache ? plan.buffer : cache, toCache ? cache : plan.buffer, region, name);
  Path at = site.scopePath();
  BlockRealize scope = withAlloc(realizeAt(at), cache);
  Stmt body = useBuffer(scope->block->body, plan.users, plan.buffer, cache);
  Stmt root = replaceAt(at, withChild(scope, 0, body));
  Path around = plan.around ? findLoop(root, plan.around) : findBlock(root, scope->block->name);
  root = insertUnder(around, plan.position, copy);
  if (plan.around) BEVEL_CHECK(checkThreads(root, around));
  return Plan{root, {str(name)}};
}
} // namespace bevel
