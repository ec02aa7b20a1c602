#include "sched/steps/blocks.h"

#include "ir/structural.h"
#include "loop/dependence.h"
#include "sched/dataflow.h"
#include "sched/steps/step_impl.h"

namespace bevel::steps {

constexpr const char* kDoc =
    R"(Splits a reduction into a block that initialises and one that updates; gives the handle of the former.

The initialisation, named `<block>_init`, is put before `loop`, which must be around the block and outside (or the outermost) of the loops
over its reduction axes. It runs through the spatial axes' loops inside of `loop`, under the block's conditions at the first
step of the reduction. The block itself is renamed `<block>_update`.)";

/// What the initialisation reads, its condition and the ranges of its loops included, has its value before `loop`.
static Status checkInputs(const ScopeInfo& info, int self, const Var& loop, const InitHoist& init) {
  const Block& block = info.blocks[size_t(self)].realize->block;
  std::vector<NodeRef> parts{block->init, init.predicate};
  for (const For& l : init.loops) parts.insert(parts.end(), {l->min, l->extent});
  for (const NodeRef& part : parts)
    for (const BufferAccess& a : collectAccesses(part))
      for (int w : a.buffer && !a.write ? info.writers(a.buffer->data) : std::vector<int>())
        if (isUnder(info.blocks[size_t(w)], loop))
          return illegal("the initialisation reads buffer " + a.buffer->name + ", which block " +
                         info.blocks[size_t(w)].name() + " writes under loop " + loop->name);
  return {};
}

/// Whatever else is under `loop` and uses the output would see elements initialised too early: only what
/// stands after the reduction may, and then not elements that other iterations of a loop of the init write.
static Status checkOtherUsers(const ScopeInfo& info, int self, const Var& loop, const InitHoist& init) {
  const ScopeBlock& block = info.blocks[size_t(self)];
  for (int i = 0; i < int(info.blocks.size()); ++i) {
    const ScopeBlock& b = info.blocks[size_t(i)];
    if (i == self || !isUnder(b, loop)) continue;
    for (const BufferRegion& w : block.block().writes) {
      const Var& data = w->buffer->data;
      if (!reads(b.block(), data) && !writes(b.block(), data)) continue;
      if (i < self)
        return illegal("block " + b.name() + " under loop " + loop->name +
                       " uses the output before the reduction");
      for (const For& l : init.loops)
        if (isUnder(b, l->var) && !touchesApart(info.model, l, data))
          return illegal("block " + b.name() + " may use elements of buffer " + w->buffer->name +
                         " that later iterations of " + quoted(l) + " initialise");
    }
  }
  return {};
}

static Result<Plan> check(const Schedule& sch, const DecomposeReduction& s) {
  BEVEL_TRY(BlockSite site, siteOf(sch, s.block));
  BEVEL_TRY(Var var, sch.varOf(s.loop));
  const BlockRealize& realize = site.inScope().realize;
  if (!realize->block->init) return illegal(quoted(*realize->block) + " has no init: it is not a reduction");
  const std::vector<PathItem>& around = site.path.ancestors;
  size_t at = 0; // the index of `loop` in it
  std::vector<For> outer, inner;
  for (size_t i = size_t(site.path.scope() + 1); i < around.size(); ++i) {
    auto* loop = around[i].node.as<ForNode>();
    if (!loop) continue;
    if (loop->var == var) at = i;
    (at ? inner : outer).push_back(For(loop));
  }
  if (inner.empty()) return illegal("loop " + var->name + " is not around " + quoted(*realize->block));
  for (size_t i = at; i < around.size(); ++i)
    if (Kind k = around[i].node->kind; k != Kind::kFor && k != Kind::kSeq)
      return illegal("there is more than loops between loop " + var->name + " and " +
                     quoted(*realize->block));
  for (size_t i = 0; i < realize->values.size(); ++i)
    if (realize->block->iters[i]->type != IterType::kSpatial)
      for (const For& l : outer)
        if (usesVar(realize->values[i], l->var))
          return illegal(quoted(l) + " is over a reduction axis and outside of the chosen loop: the "
                                     "initialisation would be repeated");
  BEVEL_TRY(InitHoist init, hoistInit(sch.func(), realize, inner));
  BEVEL_CHECK(checkNoLooseUse(site.info, site.self));
  BEVEL_CHECK(checkInputs(site.info, site.self, var, init));
  BEVEL_CHECK(checkOtherUsers(site.info, site.self, var, init));

  const Block& block = realize->block;
  const Stmt& root = sch.func()->body;
  std::string initName = freshBlockName(root, block->name + "_init"),
              updateName = freshBlockName(root, block->name + "_update");
  Stmt nest = initNest(realize, init, initName, "_init");

  Block update = with(withoutInit(block), &BlockNode::name, updateName);
  Stmt loop = with(realize, &BlockRealizeNode::block, update);
  for (size_t i = around.size(); i-- > at;) loop = withChild(around[i].node, around[i].slot, loop);
  return Plan{replaceFrom(site.path, at, seq({nest, loop})), {str(initName)}, block->name, updateName};
}

STEP_INFO(DecomposeReduction, "decompose_reduction", kDoc)

} // namespace bevel::steps
