#include "sched/steps/place.h"

#include "ir/structural.h"
#include "sched/inline.h"
#include "sched/steps/step_impl.h"

namespace bevel::steps {

constexpr const char* kDoc =
    R"(Puts the expression of a block in place of every read of its result, and removes the block and its buffer.

The block must write one element of an intermediate buffer for each value of its axes, by a single store indexed by the axes, or by a
one-to-one affine map of them (`Y[v // 6, v % 6]`). It is then computed as often as it is read, except that an expression which reads one
element several times computes it once: that is the caller's decision. Refused when what it reads may have changed where the consumers
stand.)";

static Result<Plan> check(const Schedule& sch, const ComputeInline& s) {
  Analyzer analyzer;
  BEVEL_TRY(Inlinable self, inlinableOf(sch, s.block, analyzer));
  const ScopeInfo& info = self.site.info;
  const Buffer& x = self.store->buffer;
  BEVEL_CHECK(checkIntermediate(sch.func(), x));
  BEVEL_CHECK(checkUsedOnlyIn(info.scope, sch.func(), x));
  const Block& block = self.site.block();
  BEVEL_TRY(IndexMap axes, axesAt(self.store->indices, *block, analyzer)); // of an element's indices
  BEVEL_CHECK(checkStableInputs(info, self.site.self));
  if (info.blocks.size() == 1)
    return illegal(quoted(*block) + " is the only block of its scope: nothing would be left");
  for (int c : info.consumers(self.site.self)) {
    const ScopeBlock& consumer = info.blocks[size_t(c)];
    BEVEL_CHECK(checkNoEffectsUntil(info, self.site.self, c));
    if (c < self.site.self)
      return illegal("block " + consumer.name() + " reads its result before it is written");
    BEVEL_CHECK(checkPlainReads(consumer.realize, x));
  }
  Stmt root = withoutAlloc(withoutBlock(self.site.path), x->data);
  auto value = [&](const Array<Expr>& indices) {
    VarMap at, map;
    for (size_t d = 0; d < indices.size(); ++d)
      at[axes.initial[d]] = castTo(axes.initial[d]->dtype, indices[d]);
    for (size_t i = 0; i < block->iters.size(); ++i) {
      const Var& v = block->iters[i]->var;
      map[v] = castTo(v->dtype, substitute(axes.final[i], at));
    }
    return substitute(self.store->value, map);
  };
  auto replaced = [&](const Stmt& s) { return replaceReads(s, x, self.store->value, value); };
  if (self.site.path.scope() == 0) { // no block around has to know
    root = withChild(root, 0, mapLeaves(childAt(root, 0), [&](const Stmt& leaf) {
                       auto* consumer = leaf.as<BlockRealizeNode>();
                       return consumer && reads(*consumer->block, x->data) ? replaced(leaf) : leaf;
                     }));
  } else {
    root = replaced(root);
  }
  return Plan{.body = root, .block = block->name};
}

STEP_INFO(ComputeInline, "compute_inline", kDoc)

} // namespace bevel::steps
