#include "sched/layout.h"

#include "ir/structural.h"
#include "loop/regions.h"
#include "sched/dataflow.h"
#include "sched/inline.h"

#include <algorithm>
#include <unordered_map>

namespace bevel {

namespace {

/// Rebuilds bottom-up, since constants must meet their operands in the new type.
Expr retypedExpr(const Expr& e, DType dtype, const std::unordered_map<Var, Var, RefHash>& vars) {
  if (auto* v = e.as<VarNode>()) {
    auto it = vars.find(Var(v));
    return it == vars.end() ? e : Expr(it->second);
  }
  if (auto* i = e.as<IntImmNode>()) return i->dtype.isInteger() ? constant(dtype, i->value) : e;
  if (auto* b = e.as<BinaryNode>())
    return binary(b->op, retypedExpr(b->a, dtype, vars), retypedExpr(b->b, dtype, vars));
  return cast<ExprNode>(mapChildren(e, [&](const NodeRef& c) {
    return c.is<ExprNode>() ? NodeRef(retypedExpr(cast<ExprNode>(c), dtype, vars)) : c;
  }));
}

IndexMap retyped(const IndexMap& map, DType dtype) {
  IndexMap out;
  std::unordered_map<Var, Var, RefHash> vars;
  for (const Var& v : map.initial) out.initial.push_back(vars[v] = var(v->name, dtype));
  for (const Expr& e : map.final) out.final.push_back(retypedExpr(e, dtype, vars));
  return out;
}

Array<Expr> castAll(const Array<Expr>& all, DType dtype) {
  Array<Expr> out;
  for (const Expr& e : all) out.push_back(castTo(dtype, e));
  return out;
}

/// In narrow types extents could wrap: they are computed in int64 as well.
Status checkFits(const IndexMap& map, const Array<Expr>& extents, DType dtype, Analyzer& analyzer) {
  if (dtype.bits >= 64) return {};
  BEVEL_TRY(Array<Expr> wide, retyped(map, kInt64).applyShape(castAll(extents, kInt64), analyzer));
  for (size_t k = 0; k < wide.size(); ++k)
    if (asConst(wide[k]).value_or(0) > maxValue(dtype))
      return illegal("dimension " + std::to_string(k) + " of the new layout has " +
                     std::to_string(*asConst(wide[k])) + " elements, which does not fit " + dtype.str());
  return {};
}

} // namespace

Result<Layout> layoutOf(const IndexMap& map, const Array<Expr>& extents, Analyzer& analyzer) {
  DType widest = extents.empty() ? kInt64 : extents[0]->dtype;
  for (const Expr& e : extents)
    if (e->dtype.bits > widest.bits) widest = e->dtype;
  BEVEL_CHECK(checkFits(map, extents, widest, analyzer));
  Array<Expr> from = castAll(extents, widest);
  Array<Range> box;
  for (const Expr& e : from) box.push_back(range(constant(widest, 0), e));
  Layout out{widest, retyped(map, widest), {}, {}};
  BEVEL_TRY(out.shape, out.map.applyShape(from, analyzer));
  if (auto exact = out.map.inverse(box, analyzer))
    out.inverse = {std::move(*exact), boolImm(false)};
  else {
    BEVEL_TRY(out.inverse, out.map.nonSurjectiveInverse(box, analyzer));
  }
  return out;
}

Result<Path> soleNest(const Path& path) {
  size_t top = path.ancestors.size();
  for (size_t i = size_t(path.scope() + 1); i < path.ancestors.size(); ++i) {
    if (path.ancestors[i].node->kind == Kind::kFor) {
      top = std::min(top, i);
      BEVEL_CHECK(checkPlainLoop(cast<ForNode>(path.ancestors[i].node)));
    } else if (i > top) {
      return illegal("the loops around " + quoted(*realizeAt(path)->block) + " hold something else");
    }
  }
  return top == path.ancestors.size() ? path : path.upTo(top);
}

Result<Stmt> paddedWriter(const PrimFunc& f, const ScopeInfo& info, int writer, const Buffer& changed,
                          const PaddedInverse& inverse, const Expr& padValue) {
  const ScopeBlock& source = info.blocks[size_t(writer)];
  const Block& block = source.realize->block;
  BEVEL_CHECK(checkCompleteBlock(info, writer));
  BEVEL_TRY(Store store, singleStore(*block));
  BEVEL_TRY(std::vector<int> axisOf, indexAxes(store->indices, *block));
  Analyzer analyzer;
  bindDims(f, analyzer);
  BEVEL_CHECK(checkCoversDomain(source, analyzer));
  auto out = mutableCopy(block);
  ShapedBlock shaped = blockOver(changed->shape, block->name);
  out->iters = shaped.block->iters;
  VarMap newAxes, oldAxes;
  for (size_t k = 0; k < changed->rank(); ++k) {
    newAxes[inverse.map.initial[k]] = shaped.at[k];
    analyzer.bind(out->iters[k]->var, out->iters[k]->domain);
  }
  for (const IterVar& iv : block->iters) oldAxes[iv->var] = iv->domain->min;
  for (size_t d = 0; d < axisOf.size(); ++d) {
    const Expr& size = store->buffer->shape[d];
    if (axisOf[d] < 0) {
      if (!isConst(size, 1)) return illegal(quoted(*block) + " writes only part of the buffer");
      continue;
    }
    const IterVar& iv = block->iters[size_t(axisOf[d])];
    if (!isConst(iv->domain->min, 0) || !analyzer.proveEqual(iv->domain->extent, size))
      return illegal(quoted(*block) + " writes only part of the buffer");
    oldAxes[iv->var] = castTo(iv->var->dtype, analyzer.simplify(substitute(inverse.map.final[d], newAxes)));
  }
  Expr outside = analyzer.simplify(substitute(inverse.padding, newAxes));
  Expr value = ifThenElse(outside, padValue, substitute(store->value, oldAxes));
  out->body = bevel::store(changed, value, shaped.at);
  return makeNest(withDetectedAccess(Block(out)), shaped.axes, true);
}

Stmt withFill(const Stmt& root, const Buffer& buffer, const Expr& condition, const std::vector<Var>& indices,
              const Expr& value) {
  auto [block, axes, at, element] = blockOver(buffer->shape, freshBlockName(root, buffer->name + "_pad"));
  VarMap map;
  block->writes = {make<const BufferRegionNode>(buffer, element)};
  block->body = store(buffer, value, at);
  Stmt nest = mapLeaves(makeNest(Block(block), axes, true), [&](const Stmt& leaf) -> Stmt {
    BlockRealize realize = cast<BlockRealizeNode>(leaf);
    for (size_t d = 0; d < indices.size(); ++d) map[indices[d]] = realize->values[d];
    return with(realize, &BlockRealizeNode::predicate, substitute(condition, map));
  });
  return insertUnder(findAllocator(root, buffer->data), 0, nest);
}

} // namespace bevel
