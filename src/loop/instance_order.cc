// Orders of the instances of one block: the any-order check, the init that runs ahead of them all, and whether all of
// them run.
#include "loop/dependence.h"

#include "arith/iter_map.h"
#include "arith/linear_form.h"
#include "ir/effects.h"
#include "loop/passes/context.h"
#include "loop/reduction.h"

#include <algorithm>

namespace bevel {
namespace {

tl::unexpected<Error> illegal(const BlockNode& block, const std::string& why) {
  return fail(ErrorCode::kIllegal, "block " + block.name + " " + why);
}

IterRanges rangesOf(const std::vector<For>& loops) {
  IterRanges out;
  for (const For& l : loops) out.emplace_back(l->var, range(l->min, l->extent));
  return out;
}

/// The elements that the block writes: of its store, or as declared. A tile is an index in a range of its own, which
/// is added to `axes`.
Array<Expr> elementIndices(const BlockNode& block, const BufferRegion& written, IterRanges& axes) {
  if (auto* s = block.body.as<StoreNode>()) return s->indices;
  Array<Expr> out;
  for (const Range& r : written->region) {
    if (isConst(r->extent, 1)) out.push_back(r->min);
    if (asConst(r->extent).value_or(0) < 2) continue;
    axes.emplace_back(var("t", r->min->dtype), range(constant(r->min->dtype, 0), r->extent));
    out.push_back(r->min + axes.back().first);
  }
  return out;
}

/// Every spatial axis of several values indexes the region alone, or all of them together one to one.
bool ownsElements(const BlockNode& block, const BufferRegion& written) {
  IterRanges axes;
  Array<Expr> indices = elementIndices(block, written, axes);
  bool plain = true;
  for (const IterVar& iv : block.iters) {
    if (iv->type != IterType::kSpatial || isConst(iv->domain->extent, 1)) continue;
    axes.emplace_back(iv->var, iv->domain);
    plain &= std::ranges::any_of(indices.raw(), [&](const NodeRef& i) { return i == NodeRef(iv->var); });
  }
  if (plain) return true;
  Analyzer analyzer;
  return detectIterMap(indices, axes, nullptr, analyzer, IterMapLevel::kInjective).has_value();
}

/// The values, as functions of the loops, are one to one.
bool oneToOne(const Array<Expr>& values, const std::vector<For>& loops, Analyzer& analyzer) {
  return detectIterMap(values, rangesOf(loops), nullptr, analyzer, IterMapLevel::kInjective).has_value();
}

bool usesLoops(const NodeRef& e, const std::vector<For>& loops) {
  return std::ranges::any_of(loops, [&](const For& l) { return usesVar(e, l->var); });
}

/// The block reads of what it writes only the element that it writes then, and its init nothing of it.
Status checkReadsOwnElement(const BlockNode& block) {
  if (accumulates(block) && block.init.is<StoreNode>() &&
      !usesVar(block.init.as<StoreNode>()->value, block.init.as<StoreNode>()->buffer->data))
    return {};
  auto isOutput = [&](const LoadNode& l) { return touches(block.writes, l.buffer->data); };
  auto isOther = [&](const LoadNode& l) {
    return isOutput(l) && !anyNode<StoreNode>(block.body, [&](const StoreNode& s) {
             return s.buffer->data == l.buffer->data && sameElement(s.indices, l.indices);
           });
  };
  if (anyNode<LoadNode>(block.body, isOther) || anyNode<LoadNode>(block.init, isOutput))
    return illegal(block, "reads elements of its output that it does not update at that step");
  return {};
}

} // namespace

bool hasOrderedEffect(const BlockNode& block) {
  return undescribedEffectOf(block.body) > Effect::kReads ||
         (block.init && undescribedEffectOf(block.init) > Effect::kReads);
}

Status checkOwnsElements(const BlockNode& block) {
  for (const BufferRegion& w : block.writes)
    if (!ownsElements(block, w))
      return illegal(block, "may write an element of buffer " + w->buffer->name +
                                " for several values of its spatial axes");
  return {};
}

Status checkAnyOrder(const BlockNode& block) {
  if (hasOrderedEffect(block)) return illegal(block, "has effects that must happen in order");
  if (block.writes.empty()) return illegal(block, "writes no buffer that is known");
  bool updates = block.init != nullptr;
  for (const IterVar& iv : block.iters) {
    if (iv->type != IterType::kSpatial && iv->type != IterType::kReduce)
      return illegal(block, "has the axis " + iv->var->name + ", which must run in order");
    updates |= iv->type == IterType::kReduce;
  }
  for (const BufferRegion& w : block.writes) updates |= touches(block.reads, w->buffer->data);
  if (updates && !accumulates(block))
    return illegal(block, "does not accumulate by a sum, product, minimum or maximum of one element: its "
                          "updates must run in order");
  if (updates && !block.init) return {}; // every contribution counts once, whatever the element
  return checkOwnsElements(block);
}

namespace {

/// What decides how often the block runs, and where, reads nothing that the block writes.
Status checkConditions(const BlockRealize& realize, const std::vector<For>& nest) {
  for (const BufferRegion& w : realize->block->writes) {
    auto reads = [&](const NodeRef& e) { return usesVar(e, w->buffer->data); };
    if (reads(realize->predicate) || std::ranges::any_of(realize->values.raw(), reads) ||
        std::ranges::any_of(nest, [&](const For& l) { return reads(l->min) || reads(l->extent); }))
      return illegal(*realize->block, "reads its output in its condition, or to know how often it runs");
  }
  return {};
}

/// No step of the loops gives less than the first one.
bool growsFromFirst(const Expr& value, const std::vector<For>& steps) {
  auto form = arith::plainForm(value);
  return form && std::ranges::all_of(form->terms, [&](const arith::Term& t) {
           return t.coef > 0 || !usesLoops(t.atom, steps);
         });
}

/// The loops of the nest that move spatial axes, and the first step of the others. No other step of the nest
/// initialises; that one does when the nest is all of the reduction.
Result<InitHoist> firstStep(const BlockRealize& realize, const std::vector<For>& nest, bool isWhole,
                            Analyzer& analyzer) {
  const BlockNode& block = *realize->block;
  InitHoist out;
  std::vector<For> steps; // loops that the init does without
  Array<Expr> spatialValues, reduceValues;
  for (size_t i = 0; i < realize->values.size(); ++i)
    (block.iters[i]->type == IterType::kReduce ? reduceValues : spatialValues).push_back(realize->values[i]);
  for (const For& l : nest) {
    auto [spatial, reduce] = drivenBy(*realize, l->var);
    std::string loop = "loop " + l->var->name;
    if (spatial && reduce)
      return fail(ErrorCode::kIllegal,
                  loop + " drives both spatial and reduction axes of block " + block.name);
    if (spatial && (usesLoops(l->min, steps) || usesLoops(l->extent, steps)))
      return fail(ErrorCode::kIllegal, "the range of " + loop + " depends on a reduction loop");
    if (!spatial && !reduce && !isConst(l->extent, 1))
      return fail(ErrorCode::kIllegal,
                  loop + " repeats the reduction: each repetition needs its own initialisation");
    if (!spatial) out.firstStep[l->var] = substitute(l->min, out.firstStep);
    (spatial ? out.loops : steps).push_back(l);
  }
  for (const IterVar& iv : block.iters)
    if (usesLoops(iv->domain->min, steps) || usesLoops(iv->domain->extent, steps))
      return fail(ErrorCode::kIllegal, "the range of axis " + iv->var->name + " of block " + block.name +
                                           " depends on a reduction loop");
  for (size_t i = 0; i < realize->values.size(); ++i) {
    const IterVar& iv = block.iters[i];
    if (iv->type != IterType::kReduce || (!isWhole && growsFromFirst(realize->values[i], steps))) continue;
    if (!analyzer.proveEqual(substitute(realize->values[i], out.firstStep), iv->domain->min))
      return illegal(block, "does not provably begin with reduction axis " + iv->var->name +
                                " at its start: its initialisation may run at another step, or not at all");
  }
  if (!oneToOne(reduceValues, steps, analyzer) || !oneToOne(spatialValues, out.loops, analyzer))
    return illegal(block, "may run its initialisation several times for one element");
  return out;
}

} // namespace

Status checkAnyOrder(const PrimFunc& f, const BlockRealize& realize, const std::vector<For>& nest) {
  if (std::ranges::any_of(nest, [](const For& l) { return isConst(l->extent, 0); }))
    return {}; // nothing runs
  BEVEL_CHECK(checkAnyOrder(*realize->block));
  BEVEL_CHECK(checkConditions(realize, nest));
  if (!realize->block->init) return {};
  Analyzer analyzer;
  bindDims(f, analyzer);
  auto first = firstStep(realize, nest, false, analyzer);
  if (!first) return fail(std::move(first.error()));
  return {};
}

Result<InitHoist> hoistInit(const PrimFunc& f, const BlockRealize& realize, const std::vector<For>& nest) {
  const BlockNode& block = *realize->block;
  BEVEL_CHECK(checkConditions(realize, nest));
  Analyzer analyzer;
  bindDims(f, analyzer);
  BEVEL_TRY(InitHoist out, firstStep(realize, nest, true, analyzer));
  for (const BufferRegion& w : block.writes)
    if (!ownsElements(block, w))
      return illegal(block, "may initialise an element of buffer " + w->buffer->name + " several times");
  BEVEL_CHECK(checkReadsOwnElement(block));
  Expr runs = boolImm(true); // no reduction is empty
  for (const IterVar& iv : block.iters)
    if (iv->type == IterType::kReduce && !asConst(iv->domain->extent))
      runs = logicalAnd(runs, iv->domain->extent >= constant(iv->domain->extent->dtype, 1));
  std::vector<Expr> conditions;
  auto assumed = analyzer.assume(runs);
  for (const Expr& c : conjuncts(realize->predicate)) {
    Expr first = substitute(c, out.firstStep);
    bool moves = usesAnyVar(c, [&](const VarNode* v) { return out.firstStep.contains(Var(v)); });
    if (moves && analyzer.prove(first)) continue;
    conditions.push_back(first);
  }
  out.predicate = conjunction(conditions);
  return out;
}

Stmt initNest(const BlockRealize& realize, const InitHoist& hoist, const std::string& name,
              const std::string& loopSuffix) {
  const BlockNode& block = *realize->block;
  auto made = make<BlockNode>(name);
  VarMap axes, loops;
  Array<Expr> values;
  for (size_t i = 0; i < block.iters.size(); ++i) {
    const IterVar& iv = block.iters[i];
    if (iv->type == IterType::kReduce) {
      axes[iv->var] = iv->domain->min;
      continue;
    }
    Var v = var(iv->var->name, iv->var->dtype);
    axes[iv->var] = v;
    made->iters.push_back(make<const IterVarNode>(iv->domain, v, iv->type));
    values.push_back(realize->values[i]);
  }
  made->body = freshen(substitute(block.init, axes));
  made->annotations = block.annotations;
  for (const BufferRegion& w : block.writes) made->writes.push_back(substitute(w, axes));
  made->origin = block.origin;
  auto inner = make<BlockRealizeNode>(
      values, hoist.predicate, readsMemory(made->body) ? withDetectedAccess(Block(made)) : Block(made));
  inner->origin = realize->origin;
  Stmt nest = BlockRealize(inner);
  for (size_t i = hoist.loops.size(); i-- > 0;) {
    const Var& old = hoist.loops[i]->var;
    Var renamed = var(old->name + loopSuffix, old->dtype);
    loops[old] = renamed;
    nest = with(hoist.loops[i], &ForNode::var, renamed, &ForNode::body, nest);
  }
  return substitute(nest, loops);
}

Block withoutInit(const Block& block) {
  Array<BufferRegion> reads = block->writes;
  for (const BufferRegion& r : block->reads)
    if (!touches(block->writes, r->buffer->data)) reads.push_back(r);
  return with(block, &BlockNode::init, nullptr, &BlockNode::reads, reads);
}

namespace {

/// value >= bound, through minima and rounding up to a multiple (`(n + 31) // 32 * 32 >= n`).
bool reaches(const Expr& value, const Expr& bound, Analyzer& analyzer) {
  if (analyzer.proveLessEqual(bound, value)) return true;
  auto* b = value.as<BinaryNode>();
  if (!b) return false;
  if (b->op == BinaryOp::kMin) return reaches(b->a, bound, analyzer) && reaches(b->b, bound, analyzer);
  if (b->op == BinaryOp::kMax) return reaches(b->a, bound, analyzer) || reaches(b->b, bound, analyzer);
  auto* quotient = b->op == BinaryOp::kMul ? b->a.as<BinaryNode>() : nullptr;
  auto factor = b->op == BinaryOp::kMul ? asConst(b->b) : std::nullopt;
  if (!quotient || quotient->op != BinaryOp::kFloorDiv || !factor || *factor <= 0 ||
      asConst(quotient->b) != factor)
    return false;
  return analyzer.proveLessEqual(bound + (*factor - 1), quotient->a);
}

} // namespace

bool covers(const BlockRealize& realize, const std::vector<For>& loops, Analyzer& analyzer) {
  const Block& block = realize->block;
  auto map = detectIterMap(realize->values, rangesOf(loops), realize->predicate, analyzer,
                           IterMapLevel::kSurjective);
  if (!map) return false;
  for (size_t i = 0; i < block->iters.size(); ++i) {
    const Range& dom = block->iters[i]->domain;
    if (!analyzer.proveEqual(map->indices[i].base, dom->min) ||
        !reaches(map->extents[i], dom->extent, analyzer))
      return false;
  }
  return true;
}

} // namespace bevel
