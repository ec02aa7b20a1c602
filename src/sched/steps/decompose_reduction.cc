#include "ir/structural.h"
#include "loop/regions.h"
#include "sched/loop_kind.h"
#include "sched/steps/step_impl.h"

#include <algorithm>

namespace bevel::steps {

constexpr StepDoc kDoc = {
    R"(Splits a reduction into a block that initialises and one that updates; gives the handle of the former.

The initialisation, named `<block>_init`, is put before `loop`, which must be around the block and outside (or the outermost) of the loops
over its reduction axes. It runs through the spatial axes' loops inside of `loop`, under the conditions that do not concern the
reduction. The block itself is renamed `<block>_update`.)",
    R"(@T.prim_func
def main(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8,), "float32")):
    for i, k in T.grid(8, 16):
        with T.sblock("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]
)",
    R"(b = sch.get_sblock(name="B")
i, k = sch.get_loops(block=b)
init = sch.decompose_reduction(block=b, loop=k)
)",
    R"(@T.prim_func
def main(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.sblock("B_init"):
            vi = T.axis.spatial(8, i)
            B[vi] = T.float32(0)
        for k in range(16):
            with T.sblock("B_update"):
                vi, vk = T.axis.remap("SR", [i, k])
                B[vi] = B[vi] + A[vi, vk]
)"};

struct DecomposeReduction {
  BlockRV block;
  LoopRV loop;
  BlockRV result;
  STEP_FIELDS(DecomposeReduction, IN(block), IN(loop), OUT(result))
};

struct DecomposePlan {
  Path path;                  // to the block
  size_t at;                  // index of `loop` among the path's ancestors
  std::vector<For> initLoops; // those inside `loop` (itself included) that the spatial axes use
  Expr predicate;             // of the initialisation
};

static bool usesLoops(const Expr& e, const std::vector<For>& loops) {
  return std::ranges::any_of(loops, [&](const For& l) { return usesVar(e, l->var); });
}

/// Loops over reduction axes and loops over spatial axes must be different ones, and the former inside
/// `loop`.
static Status divideLoops(const BlockRealize& realize, const std::vector<For>& outer,
                          const std::vector<For>& inner, DecomposePlan& plan) {
  for (const For& l : inner) {
    bool spatial = false, reduce = false;
    for (size_t i = 0; i < realize->values.size(); ++i)
      if (usesVar(realize->values[i], l->var))
        (realize->block->iters[i]->type == IterType::kSpatial ? spatial : reduce) = true;
    if (spatial && reduce)
      return illegal(quoted(l) + " drives both spatial and reduction axes of " + quoted(*realize->block));
    if (spatial) plan.initLoops.push_back(l);
    if (!spatial && !reduce && !isConst(l->extent, 1))
      return illegal(quoted(l) + " repeats the reduction: each repetition needs its own initialisation");
  }
  for (size_t i = 0; i < realize->values.size(); ++i)
    if (realize->block->iters[i]->type != IterType::kSpatial)
      for (const For& l : outer)
        if (usesVar(realize->values[i], l->var))
          return illegal(quoted(l) + " is over a reduction axis and outside of the chosen loop: the "
                                     "initialisation would be repeated");
  return {};
}

static Result<DecomposePlan> check(const Schedule& sch, const DecomposeReduction& s) {
  BEVEL_TRY(Path path, locate(sch, s.block));
  BEVEL_TRY(Var var, sch.varOf(s.loop));
  const BlockRealize realize = realizeAt(path);
  if (!realize->block->init) return illegal(quoted(*realize->block) + " has no init: it is not a reduction");
  DecomposePlan plan{path, 0, {}, nullptr};
  std::vector<For> outer, inner;
  for (size_t i = size_t(path.scope() + 1); i < path.ancestors.size(); ++i) {
    auto* loop = path.ancestors[i].node.as<ForNode>();
    if (!loop) continue;
    if (loop->var == var) plan.at = i;
    (plan.at ? inner : outer).push_back(For(loop));
  }
  if (inner.empty()) return illegal("loop " + var->name + " is not around " + quoted(*realize->block));
  for (size_t i = plan.at; i < path.ancestors.size(); ++i)
    if (Kind k = path.ancestors[i].node->kind; k != Kind::kFor && k != Kind::kSeq)
      return illegal("there is more than loops between loop " + var->name + " and " +
                     quoted(*realize->block));
  BEVEL_CHECK(divideLoops(realize, outer, inner, plan));
  std::vector<For> updateLoops; // those the initialisation does without
  for (const For& l : inner)
    if (std::ranges::find(plan.initLoops, l) == plan.initLoops.end()) updateLoops.push_back(l);
  std::vector<Expr> kept;
  for (const Expr& c : conjuncts(realize->predicate)) {
    bool onUpdate = usesLoops(c, updateLoops);
    if (onUpdate && usesLoops(c, plan.initLoops))
      return illegal("a condition of " + quoted(*realize->block) +
                     " concerns both spatial and reduction loops");
    if (!onUpdate) kept.push_back(c);
  }
  for (const For& l : plan.initLoops)
    if (usesLoops(l->extent, updateLoops) || usesLoops(l->min, updateLoops))
      return illegal("the range of " + quoted(l) + " depends on a reduction loop");
  // Whatever else is under `loop` must not touch the output: it would see it initialised too early.
  BEVEL_TRY(BlockRealize scope, scopeOf(path));
  ScopeInfo info(scope);
  for (const ScopeBlock& b : info.blocks) {
    bool under = std::ranges::any_of(b.loops, [&](const For& l) { return l->var == var; });
    if (!under || b.name() == realize->block->name) continue;
    for (const BufferRegion& w : realize->block->writes)
      if (reads(b.block(), w->buffer->data) || writes(b.block(), w->buffer->data))
        if (info.indexOf(b.name()) < info.indexOf(realize->block->name))
          return illegal("block " + b.name() + " under loop " + var->name +
                         " uses the output before the reduction");
  }
  plan.predicate = conjunction(kept);
  return plan;
}

/// The block of the initialisation, with axes of its own.
static Block initBlock(const Block& block, const std::string& name, VarMap& axes) {
  auto init = make<BlockNode>(name);
  for (const IterVar& iv : block->iters) {
    if (iv->type != IterType::kSpatial) continue;
    Var v = var(iv->var->name, iv->var->dtype);
    axes[iv->var] = v;
    init->iters.push_back(make<const IterVarNode>(iv->domain, v, IterType::kSpatial));
  }
  init->body = freshen(substitute(block->init, axes));
  init->annotations = block->annotations;
  for (const BufferRegion& w : block->writes) init->writes.push_back(substitute(w, axes));
  init->origin = block->origin;
  bool reads = false;
  walk(init->body, [&](const NodeRef& n) { return reads |= n.is<LoadNode>() || n.is<CallNode>(), !reads; });
  return reads ? withDetectedAccess(Block(init)) : Block(init);
}

/// What a block with init writes, it reads as soon as the init is elsewhere.
static Array<BufferRegion> readsOfUpdate(const BlockNode& block) {
  Array<BufferRegion> out = block.writes;
  for (const BufferRegion& r : block.reads) {
    bool own = std::ranges::any_of(block.writes.raw(), [&](const NodeRef& w) {
      return w.as<BufferRegionNode>()->buffer->data == r->buffer->data;
    });
    if (!own) out.push_back(r);
  }
  return out;
}

static void apply(Schedule& sch, DecomposeReduction& s, DecomposePlan&& plan) {
  const BlockRealize realize = realizeAt(plan.path);
  const Block block = realize->block;
  const Stmt& root = sch.func()->body;
  std::string initName = freshBlockName(root, block->name + "_init"),
              updateName = freshBlockName(root, block->name + "_update");
  VarMap axes, loopMap;
  Block init = initBlock(block, initName, axes);
  Array<Expr> values;
  for (size_t i = 0; i < block->iters.size(); ++i)
    if (block->iters[i]->type == IterType::kSpatial) values.push_back(realize->values[i]);
  Stmt nest = make<const BlockRealizeNode>(values, plan.predicate, init);
  for (size_t i = plan.initLoops.size(); i-- > 0;) {
    const For& l = plan.initLoops[i];
    auto copy = mutableCopy(l);
    copy->var = var(l->var->name + "_init", l->var->dtype);
    loopMap[l->var] = copy->var;
    copy->body = nest;
    nest = Stmt(copy);
  }
  nest = substitute(nest, loopMap);

  auto update = mutableCopy(block);
  update->name = updateName;
  update->init = nullptr;
  auto newRealize = mutableCopy(realize);
  update->reads = readsOfUpdate(*block);
  newRealize->block = Block(update);
  Stmt loop = Stmt(newRealize);
  for (size_t i = plan.path.ancestors.size(); i-- > plan.at;)
    loop = withChild(plan.path.ancestors[i].node, plan.path.ancestors[i].slot, loop);
  setBody(sch, replaceFrom(plan.path, plan.at, seq({nest, loop})));
  sch.renameBlock(block->name, updateName);
  s.result = sch.addBlock(initName);
}

STEP_INFO(DecomposeReduction, "decompose_reduction", kDoc)

} // namespace bevel::steps

namespace bevel {
Result<BlockRV> Schedule::decomposeReduction(BlockRV block, LoopRV loop) {
  return runStep(*this, steps::DecomposeReduction{block, loop, {}}, &steps::DecomposeReduction::result);
}
} // namespace bevel
