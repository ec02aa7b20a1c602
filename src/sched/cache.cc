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
  auto block = make<BlockNode>(name);
  std::vector<AxisRange> axes;
  Array<Expr> indices;
  Array<Range> element;
  for (size_t d = 0; d < region.size(); ++d) {
    DType dtype = from->shape[d]->dtype;
    Expr zero = constant(dtype, 0), min = castTo(dtype, region[d]->min),
         extent = castTo(dtype, region[d]->extent);
    bool fixed = isFixed(f, region[d]);
    IterVar iv = make<const IterVarNode>(range(zero, fixed ? extent : from->shape[d]),
                                         var("v" + std::to_string(d), dtype), IterType::kSpatial);
    block->iters.push_back(iv);
    indices.push_back(fixed && !isConst(min, 0) ? iv->var + min : Expr(iv->var));
    element.push_back(range(indices.back(), constant(dtype, 1)));
    axes.push_back({fixed ? zero : min, extent});
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
    Stmt changed = cast<StmtNode>(replaceBuffers(NodeRef(leaf), BufferMap{{from->data, to}}));
    return usesVar(changed, from->data) ? substitute(changed, VarMap{{from->data, to->data}})
                                        : changed; // pointers
  });
}

} // namespace

Result<Caching> beginCache(const BlockSite& site, const BufferArg& buffer, const std::string& storageScope) {
  BEVEL_CHECK(checkScope(storageScope));
  Caching plan;
  plan.scope = site.scopePath();
  BEVEL_TRY(plan.buffer, bufferOf(*site.block(), buffer));
  plan.cache = cacheBuffer(plan.buffer, storageScope);
  return plan;
}

Status checkNoEffects(const Caching& plan, const std::vector<Stmt>& statements) {
  for (const Stmt& s : statements)
    for (const BlockRealize& r : blocksUnder(s))
      if (hasOrderedEffect(*r->block))
        return illegal(quoted(*r->block) + " has effects beyond what it declares: it may access buffer " +
                       plan.buffer->name + " while a copy is used");
  return {};
}

Result<Plan> finishCache(const Schedule& sch, const Caching& plan, bool toCache, const Array<Range>& region) {
  std::string name = freshBlockName(sch.func()->body, plan.cache->name);
  Stmt copy = toCache ? copyNest(sch.func(), plan.buffer, plan.cache, region, name)
                      : copyNest(sch.func(), plan.cache, plan.buffer, region, name);
  BlockRealize scope = withAlloc(realizeAt(plan.scope), plan.cache);
  Stmt body = useBuffer(scope->block->body, plan.users, plan.buffer, plan.cache);
  Stmt root = replaceAt(plan.scope, withChild(scope, 0, body));
  Path around = plan.around ? findLoop(root, plan.around) : findBlock(root, scope->block->name);
  root = insertUnder(around, plan.position, copy);
  if (plan.around) BEVEL_CHECK(checkThreads(root, around));
  return Plan{root, {str(name)}};
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
