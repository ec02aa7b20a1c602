#include "sched/steps/blocks.h"

#include "ir/structural.h"
#include "loop/dependence.h"
#include "sched/dataflow.h"
#include "sched/layout.h"
#include "sched/steps/step_impl.h"

namespace bevel::steps {

constexpr const char* kDoc =
    R"(Gives a block other axes: the map takes the old axes to the new ones. The loops around the block become one loop a new axis.

The loops must be around this block alone, and the map one to one. A new axis is spatial or a reduction as the old axes in it are;
mixing both is refused. Where the map's image has holes, a condition leaves them out.)";

/// Spatial or reduction, as the old axes of an expression are; fails on a mixture.
static Result<IterType> axisType(const BlockNode& block, const IndexMap& map, const Expr& e) {
  bool spatial = false, reduce = false;
  for (size_t i = 0; i < map.initial.size(); ++i)
    if (usesVar(e, map.initial[i])) (block.iters[i]->type == IterType::kSpatial ? spatial : reduce) = true;
  if (spatial && reduce) return illegal("a new axis mixes spatial and reduction axes of " + quoted(block));
  return reduce ? IterType::kReduce : IterType::kSpatial;
}

static Result<Plan> check(const Schedule& sch, const TransformBlockLayout& s) {
  BEVEL_TRY(BlockSite site, siteOf(sch, s.block));
  const Block& block = site.block();
  BEVEL_CHECK(checkCompleteOrReduction(site.info, site.self));
  BEVEL_CHECK(checkOwnsElements(*block));
  if (s.indexMap->params.size() != block->iters.size())
    return fail(ErrorCode::kUsage, "the map takes " + std::to_string(s.indexMap->params.size()) + " axes, " +
                                       quoted(*block) + " has " + std::to_string(block->iters.size()));
  BEVEL_TRY(Path path, soleNest(site.path));
  Analyzer analyzer;
  bindDims(sch.func(), analyzer);
  BEVEL_CHECK(checkCoversDomain(site.inScope(), analyzer));
  Array<Expr> extents;
  for (const IterVar& iv : block->iters) {
    if (!isConst(iv->domain->min, 0)) return illegal("axis " + iv->var->name + " does not start at zero");
    extents.push_back(iv->domain->extent);
  }
  BEVEL_TRY(Layout layout, layoutOf(s.indexMap, extents, analyzer));
  const auto& [dtype, map, shape, inverse] = layout;

  auto changed = mutableCopy(block);
  changed->iters = {};
  VarMap oldAxes, paddingMap, firstMap;
  std::vector<AxisRange> axes;
  for (size_t k = 0; k < map.final.size(); ++k) {
    BEVEL_TRY(IterType type, axisType(*block, map, map.final[k]));
    Var v = var("v" + std::to_string(k), dtype);
    changed->iters.push_back(make<const IterVarNode>(range(constant(dtype, 0), shape[k]), v, type));
    axes.push_back(wholeAxis(changed->iters.back()));
    paddingMap[inverse.map.initial[k]] = v;
    firstMap[inverse.map.initial[k]] = type == IterType::kReduce ? constant(dtype, 0) : Expr(v);
  }
  for (size_t i = 0; i < block->iters.size(); ++i) {
    const Var& old = block->iters[i]->var;
    oldAxes[old] = castTo(old->dtype, substitute(inverse.map.final[i], paddingMap));
  }
  if (block->init &&
      !isConst(inverse.padding, 0)) { // the first update of every sum must be executed, or init is lost
    for (const Expr& c : conjuncts(logicalNot(substitute(inverse.padding, firstMap))))
      for (const IterVar& iv : changed->iters)
        if (iv->type == IterType::kReduce && usesVar(substitute(inverse.padding, paddingMap), iv->var) &&
            !analyzer.prove(c))
          return illegal("a reduction axis would have padding at its start");
  }
  for (const IterVar& iv : changed->iters) analyzer.bind(iv->var, iv->domain);
  for (auto& [v, e] : oldAxes) e = analyzer.simplify(e);
  changed->body = substitute(block->body, oldAxes);
  if (block->init) changed->init = substitute(block->init, oldAxes);
  Array<BufferRegion> reads, writes;
  for (const BufferRegion& r : block->reads) reads.push_back(substitute(r, oldAxes));
  for (const BufferRegion& r : block->writes) writes.push_back(substitute(r, oldAxes));
  changed->reads = reads;
  changed->writes = writes;
  Stmt nest = makeNest(Block(changed), axes, true);
  nest = mapLeaves(nest, [&](const Stmt& leaf) -> Stmt {
    BlockRealize realize = cast<BlockRealizeNode>(leaf);
    VarMap values;
    for (size_t k = 0; k < realize->values.size(); ++k) values[inverse.map.initial[k]] = realize->values[k];
    return with(realize, &BlockRealizeNode::predicate, logicalNot(substitute(inverse.padding, values)));
  });
  return Plan{replaceAt(path, nest)};
}

STEP_INFO(TransformBlockLayout, "transform_block_layout", kDoc)

} // namespace bevel::steps
