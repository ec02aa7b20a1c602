#include "sched/cache.h"

#include "ir/structural.h"

#include <algorithm>

namespace bevel {

namespace {

/// A buffer like `source`, named `<name>_<scope>`, in another storage scope.
Buffer cacheBuffer(const Buffer& source, const std::string& scope) {
  std::string suffix = scope;
  std::ranges::replace(suffix, '.', '_');
  Buffer fresh = buffer(source->name + "_" + suffix, source->dtype, source->shape, scope);
  return withOrigin(fresh, source->origin);
}

/// Loops that copy a region (over variables visible there) from one buffer to the other of the same shape, in
/// a block of that name.
Stmt copyNest(const Buffer& from, const Buffer& to, const Array<Range>& region, const std::string& name) {
  auto block = make<BlockNode>(name);
  std::vector<AxisRange> axes;
  Array<Expr> indices;
  Array<Range> element;
  for (size_t d = 0; d < region.size(); ++d) {
    DType dtype = from->shape[d]->dtype;
    IterVar iv = make<const IterVarNode>(range(constant(dtype, 0), from->shape[d]),
                                         var("v" + std::to_string(d), dtype), IterType::kSpatial);
    block->iters.push_back(iv);
    indices.push_back(iv->var);
    element.push_back(range(iv->var, constant(dtype, 1)));
    axes.push_back({castTo(dtype, region[d]->min), castTo(dtype, region[d]->extent)});
  }
  block->reads = {make<const BufferRegionNode>(from, element)};
  block->writes = {make<const BufferRegionNode>(to, element)};
  block->body = store(to, load(from, indices), indices);
  return makeNest(Block(block), axes, true);
}

/// The statement with all uses of a buffer inside the named blocks replaced.
Stmt useBuffer(const Stmt& root, const std::vector<std::string>& blocks, const Buffer& from,
               const Buffer& to) {
  return mapLeaves(root, [&](const Stmt& leaf) -> Stmt {
    auto* realize = leaf.as<BlockRealizeNode>();
    if (!realize) return leaf;
    if (std::ranges::find(blocks, realize->block->name) == blocks.end()) return leaf;
    return cast<StmtNode>(replaceBuffers(NodeRef(leaf), BufferMap{{from->data, to}}));
  });
}

} // namespace

Result<CachePlan> beginCache(const BlockSite& site, const BufferArg& buffer,
                             const std::string& storageScope) {
  if (storageScope.empty()) return fail(ErrorCode::kUsage, "the storage scope is empty");
  CachePlan plan;
  plan.scope = site.scopePath();
  BEVEL_TRY(plan.buffer, bufferOf(*site.block(), buffer));
  plan.cache = cacheBuffer(plan.buffer, storageScope);
  return plan;
}

void planCopy(const Schedule& sch, CachePlan& plan, bool toCache, const Array<Range>& region) {
  plan.name = freshBlockName(sch.func()->body, plan.cache->name);
  plan.copy = toCache ? copyNest(plan.buffer, plan.cache, region, plan.name)
                      : copyNest(plan.cache, plan.buffer, region, plan.name);
}

BlockRV applyCache(Schedule& sch, CachePlan&& plan) {
  auto realize = mutableCopy(withAlloc(realizeAt(plan.scope), plan.cache));
  auto block = mutableCopy(realize->block);
  Stmt body = useBuffer(block->body, plan.users, plan.buffer, plan.cache);
  block->body = plan.around ? insertUnder(body, plan.around, plan.position, plan.copy)
                            : insertInto(body, plan.position, plan.copy);
  realize->block = Block(block);
  setBody(sch, replaceAt(plan.scope, Stmt(realize)));
  return sch.addBlock(plan.name);
}

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

} // namespace bevel
