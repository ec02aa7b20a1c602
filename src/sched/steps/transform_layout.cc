#include "ir/structural.h"
#include "loop/regions.h"
#include "sched/inline.h"
#include "sched/layout.h"
#include "sched/steps/step_impl.h"

#include <algorithm>

namespace bevel::steps {

constexpr StepDoc kDoc = {
    R"(Stores an intermediate buffer in another layout: element `i, j` lies at the indices that the map gives.

The map must be one to one over the buffer's shape. Where its image has holes (a dimension that its tile does not divide), they are
padding: nothing reads them, and they stay undefined unless `pad_value` is given; then a block `<buffer>_pad` fills them first.
Parameters of the function keep their layout: pack them with cache_read or cache_write and transform the copy.
`assume_injective_transform` changes nothing: what cannot be proved is refused.)",
    R"(@T.prim_func
def main(A: T.Buffer((8, 12), "float32"), C: T.Buffer((8, 12), "float32")):
    B = T.sblock_alloc_buffer((8, 12))
    for i, j in T.grid(8, 12):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
    for i, j in T.grid(8, 12):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] * T.float32(2)
)",
    R"(b = sch.get_sblock(name="B")
sch.transform_layout(block=b, buffer=("write", 0), index_map=lambda i, j: (j // 4, i, j % 4))
)",
    R"(@T.prim_func
def main(A: T.Buffer((8, 12), "float32"), C: T.Buffer((8, 12), "float32")):
    B = T.sblock_alloc_buffer((3, 8, 4))
    for i, j in T.grid(8, 12):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vj // 4, vi, vj % 4] = A[vi, vj] + T.float32(1)
    for i, j in T.grid(8, 12):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vj // 4, vi, vj % 4] * T.float32(2)
)"};

struct TransformLayout {
  BlockRV block;
  BufferArg buffer = writeBuffer(0);
  IndexMap indexMap;
  AnyArg padValue;
  bool assumeInjectiveTransform = false;
  STEP_FIELDS(TransformLayout, IN(block), IN(buffer), IN(indexMap), OPTION(padValue), OPTION(assumeInjectiveTransform))
};

struct LayoutPlan {
  Buffer buffer, changed;
  IndexMap map;
  Expr padding; // over `paddingVars`, the new indices; null or false: none
  std::vector<Var> paddingVars;
  Expr padValue; // null: undefined
};

/// The whole program accesses the buffer by single elements only.
static Status checkAccesses(const PrimFunc& f, const Buffer& buffer) {
  for (const BlockRealize& r : blocksUnder(cast<BlockRealizeNode>(f->body)->block->body)) {
    BEVEL_CHECK(checkPlainReads(r, buffer));
    Status status;
    walk(r, [&](const NodeRef& n) {
      auto* s = n.as<StoreNode>();
      if (s && s->buffer->data == buffer->data && (s->predicate || s->value->dtype.isVector()))
        status = illegal("block " + r->block->name + " stores vectors into buffer " + buffer->name);
      return bool(status);
    });
    BEVEL_CHECK(std::move(status));
  }
  return {};
}

static Result<LayoutPlan> check(const Schedule& sch, const TransformLayout& s) {
  BEVEL_TRY(Path path, locate(sch, s.block));
  LayoutPlan plan;
  BEVEL_TRY(plan.buffer, bufferOf(*realizeAt(path)->block, s.buffer));
  const Buffer& buffer = plan.buffer;
  if (isParameter(sch.func(), buffer)) return illegal("buffer " + buffer->name + " is a parameter of the function: its layout is the caller's");
  if (!buffer->strides.empty() || buffer->elemOffset) return illegal("buffer " + buffer->name + " has strides or an offset");
  if (s.indexMap.initial.size() != buffer->rank())
    return fail(ErrorCode::kUsage, "the map takes " + std::to_string(s.indexMap.initial.size()) + " indices, buffer " + buffer->name + " has " +
                                       std::to_string(buffer->rank()) + " dimensions");
  BEVEL_CHECK(checkAccesses(sch.func(), buffer));
  Analyzer analyzer;
  bindShapeDims(sch.func(), analyzer);
  plan.map = retyped(s.indexMap, buffer->rank() ? buffer->shape[0]->dtype : kInt64);
  BEVEL_TRY(Array<Expr> shape, plan.map.applyShape(buffer->shape, analyzer));
  BEVEL_TRY(PaddedInverse inverse, invertPadded(plan.map, rangesOfShape(buffer->shape), analyzer));
  plan.padding = inverse.padding;
  plan.paddingVars = inverse.map.initial;
  auto changed = mutableCopy(buffer);
  changed->shape = shape;
  plan.changed = Buffer(changed);
  if (!s.padValue.isNone()) {
    if (s.padValue.rv) return fail(ErrorCode::kUsage, "the pad value must be a number");
    if (auto* i = s.padValue.node.as<IntImmNode>()) plan.padValue = constant(buffer->dtype, i->value);
    else if (auto* f = s.padValue.node.as<FloatImmNode>()) plan.padValue = constantFloat(buffer->dtype, f->value);
    else return fail(ErrorCode::kUsage, "the pad value must be a number");
  }
  return plan;
}

/// All accesses through the map, and the blocks' declared regions anew.
static Stmt rewriteAccesses(const Stmt& root, const LayoutPlan& plan, const PrimFunc& f) {
  Analyzer analyzer;
  bindShapeDims(f, analyzer);
  walk(root, [&](const NodeRef& n) {
    if (auto* iv = n.as<IterVarNode>()) analyzer.bind(iv->var, iv->domain);
    if (auto* loop = n.as<ForNode>()) bindLoop(For(loop), analyzer);
    return true;
  });
  const Var& data = plan.buffer->data;
  auto touches = [&](const Array<BufferRegion>& list) {
    return std::ranges::any_of(list.raw(), [&](const NodeRef& r) { return r.as<BufferRegionNode>()->buffer->data == data; });
  };
  return cast<StmtNode>(rewrite(root, [&](const NodeRef& n) -> NodeRef {
    if (auto* b = n.as<BufferNode>(); b && b->data == data) return plan.changed;
    if (auto* l = n.as<LoadNode>(); l && l->buffer->data == data)
      return withOrigin(load(plan.changed, plan.map.apply(l->indices, analyzer)), l->origin);
    if (auto* s = n.as<StoreNode>(); s && s->buffer->data == data)
      return withOrigin(store(plan.changed, s->value, plan.map.apply(s->indices, analyzer)), s->origin);
    if (auto* block = n.as<BlockNode>(); block && (touches(block->reads) || touches(block->writes))) return withDetectedAccess(Block(block));
    return n;
  }));
}

static void apply(Schedule& sch, TransformLayout&, LayoutPlan&& plan) {
  Stmt root = rewriteAccesses(sch.func()->body, plan, sch.func());
  bool fills = plan.padValue && plan.padding && !isConst(plan.padding, 0);
  if (fills) root = withFill(root, plan.changed, plan.padding, plan.paddingVars, plan.padValue);
  setBody(sch, root);
}

STEP_INFO(TransformLayout, "transform_layout", kDoc)

} // namespace bevel::steps

namespace bevel {
Status Schedule::transformLayout(BlockRV block, BufferArg buffer, IndexMap indexMap, AnyArg padValue, bool assumeInjectiveTransform) {
  return runStep(*this, steps::TransformLayout{block, std::move(buffer), std::move(indexMap), std::move(padValue), assumeInjectiveTransform});
}
} // namespace bevel
