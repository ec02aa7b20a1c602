#include "sched/steps/blocks.h"

#include "arith/analyzer.h"
#include "ir/structural.h"
#include "loop/reduction.h"
#include "loop/regions.h"
#include "sched/dataflow.h"
#include "sched/inline.h"
#include "sched/steps/step_impl.h"

#include <algorithm>

namespace bevel::steps {

constexpr const char* kDoc =
    R"(Makes one loop of a reduction independent: each of its iterations reduces into a place of its own, and a second block combines the places.

The block must be a sum, product, minimum, maximum, `and` or `or` of one element, or have several such results, or results that are kept or
replaced by a comparison (the argument of a maximum). The loop must drive reduction axes only, and the loops must hold this block alone. Where
of equal values the first one is kept, the loop must be the outermost of the reduction. The first block, named `<block>_rf`, reduces into new
buffers with the loop as dimension `factor_axis` (counted from the end when negative); its handle is given. The original block combines the
places, over the original spatial loops and the loop.)";

struct Factoring {
  std::vector<For> loops;
  std::vector<Driven> driven; // what each of them moves
  size_t factored;            // which of them
  BlockRealize realize;
  Reducer reducer;
  std::vector<Store> init;     // of each result
  std::vector<Buffer> partial; // of each result
  size_t axis;
  size_t rank() const { return reducer.updates[0]->indices.size() + 1; }
};

/// Each place of the partial results is initialised: the condition holds for the first iteration of the other
/// reduction loops.
static Status checkFirstRuns(const Factoring& plan, const PrimFunc& f) {
  Analyzer analyzer;
  bindDims(f, analyzer);
  VarMap first;
  for (size_t i = 0; i < plan.loops.size(); ++i) {
    if (plan.driven[i].reduce && i != plan.factored)
      first[plan.loops[i]->var] = plan.loops[i]->min;
    else
      bindLoop(plan.loops[i], analyzer);
  }
  for (const Expr& c : conjuncts(plan.realize->predicate))
    if (usesVar(c, plan.loops[plan.factored]->var) && !analyzer.prove(substitute(c, first)))
      return illegal("some places of the partial results would never be initialised: " +
                     quoted(plan.loops[plan.factored]) + " has a tail");
  for (const For& l : plan.loops)
    if (first.contains(l->var) && !analyzer.prove(l->extent > constant(l->extent->dtype, 0)))
      return illegal(quoted(l) + " may have no iteration");
  return {};
}

static Status checkLoops(Factoring& plan, const Var& factored) {
  plan.factored = plan.loops.size();
  for (size_t i = 0; i < plan.loops.size(); ++i) {
    const For& l = plan.loops[i];
    plan.driven.push_back(drivenBy(*plan.realize, l->var));
    auto [spatial, reduce] = plan.driven[i];
    if (spatial && reduce) return illegal(quoted(l) + " drives both spatial and reduction axes");
    if (l->var == factored) {
      if (!reduce) return illegal(quoted(l) + " drives no reduction axis");
      plan.factored = i;
    }
    if (!l->min.is<IntImmNode>() || !isConst(l->min, 0))
      return illegal(quoted(l) + " does not start at zero");
    for (const For& o : plan.loops)
      if (usesVar(l->extent, o->var))
        return illegal("the range of " + quoted(l) + " depends on " + quoted(o));
  }
  return {};
}

static Array<Expr> withIndex(const Array<Expr>& indices, size_t axis, const Expr& index) {
  Array<Expr> out;
  for (size_t d = 0, from = 0; d <= indices.size(); ++d) out.push_back(d == axis ? index : indices[from++]);
  return out;
}

/// The block's results combine in parts, and each has an init that may count several times.
static Status checkReducer(Factoring& plan, const BlockNode& block) {
  auto reducer = reducerOf(block.body);
  auto inits = block.init ? plainStores(block.init) : std::nullopt;
  if (!reducer || !inits || inits->size() != reducer->updates.size() || !block.allocs.empty() ||
      !block.matches.empty())
    return illegal(quoted(block) +
                   " is not plain sums, products, minima, maxima or choices by a comparison that keeps "
                   "the first of equal values");
  for (const Store& u : reducer->updates) {
    auto init =
        std::ranges::find_if(*inits, [&](const Store& i) { return i->buffer->data == u->buffer->data; });
    const auto* b = u->value.as<BinaryNode>();
    if (init == inits->end() || !sameElement((*init)->indices, u->indices))
      return illegal(quoted(block) + " initialises another element than it updates");
    if (b && !isIdempotent((*init)->value, b->op))
      return illegal("the initial value of " + quoted(block) +
                     " is not neutral: it would be counted several times");
    plan.init.push_back(*init);
  }
  for (size_t i = 0; i < plan.factored && reducer->firstWins; ++i)
    if (plan.driven[i].reduce && !isConst(plan.loops[i]->extent, 1))
      return illegal(quoted(block) +
                     " keeps the first of equal values: " + quoted(plan.loops[plan.factored]) +
                     " must be the outermost of its reduction loops, not under " + quoted(plan.loops[i]));
  plan.reducer = std::move(*reducer);
  return {};
}

/// The results' values from what they are and what comes to them, then their stores: a result is not overwritten before
/// it is read.
static Stmt updates(const Factoring& plan, const std::vector<Buffer>& results, const Array<Expr>& at,
                    const Array<Expr>& come) {
  const Reducer& r = plan.reducer;
  VarMap values;
  for (size_t i = 0; i < results.size(); ++i) {
    values[r.left[i]] = load(results[i], at);
    values[r.right[i]] = come[i];
  }
  std::vector<Stmt> stores;
  std::vector<std::pair<Var, Expr>> lets;
  for (size_t i = 0; i < results.size(); ++i) {
    Expr value = substitute(r.combined[i], values);
    if (results.size() > 1) {
      lets.emplace_back(var("v_" + results[i]->name, value->dtype), value);
      value = lets.back().first;
    }
    stores.push_back(store(results[i], value, at));
  }
  Stmt body = seq(stores);
  for (size_t i = lets.size(); i-- > 0;) body = make<const LetStmtNode>(lets[i].first, lets[i].second, body);
  return body;
}

/// The block that reduces into the partial results: one axis for each loop over a reduction axis.
static Stmt partialNest(const Factoring& plan, const std::string& name) {
  const Block& block = plan.realize->block;
  auto rf = make<BlockNode>(name);
  VarMap axes, byLoop;
  Array<Expr> values;
  for (size_t v = 0; v < block->iters.size(); ++v) {
    const IterVar& iv = block->iters[v];
    if (iv->type != IterType::kSpatial) continue;
    Var fresh = var(iv->var->name, iv->var->dtype);
    axes[iv->var] = fresh;
    rf->iters.push_back(make<const IterVarNode>(iv->domain, fresh, IterType::kSpatial));
    values.push_back(plan.realize->values[v]);
  }
  Expr place;
  for (size_t i = 0; i < plan.loops.size(); ++i) {
    const For& l = plan.loops[i];
    if (!plan.driven[i].reduce) continue;
    Var fresh = var("v" + l->var->name, l->var->dtype);
    byLoop[l->var] = fresh;
    bool factored = i == plan.factored;
    if (factored) place = fresh;
    rf->iters.push_back(make<const IterVarNode>(range(l->min, l->extent), fresh,
                                                factored ? IterType::kSpatial : IterType::kReduce));
    values.push_back(l->var);
  }
  for (size_t v = 0; v < block->iters.size(); ++v)
    if (block->iters[v]->type != IterType::kSpatial)
      axes[block->iters[v]->var] = substitute(plan.realize->values[v], byLoop);
  Array<Expr> at, come;
  for (const Expr& e : withIndex(plan.reducer.updates[0]->indices, plan.axis, place))
    at.push_back(substitute(e, axes));
  for (const Expr& e : plan.reducer.values) come.push_back(freshen(substitute(e, axes)));
  std::vector<Stmt> inits;
  for (size_t i = 0; i < plan.partial.size(); ++i)
    inits.push_back(store(plan.partial[i], substitute(plan.init[i]->value, axes), at));
  rf->init = seq(inits);
  rf->body = updates(plan, plan.partial, at, come);
  rf->origin = block->origin;
  return nestOf(plan.loops,
                make<const BlockRealizeNode>(values, plan.realize->predicate, withDetectedAccess(Block(rf))));
}

/// The original block over its spatial axes and the factored loop, with loops of its own.
static Stmt combiningNest(const Factoring& plan) {
  const Block& block = plan.realize->block;
  auto out = make<BlockNode>(block->name);
  out->annotations = block->annotations;
  out->origin = block->origin;
  VarMap loopMap;
  Array<Expr> values;
  std::vector<For> kept;
  for (size_t i = 0; i < plan.loops.size(); ++i) {
    if (!plan.driven[i].spatial && i != plan.factored) continue;
    const Var& old = plan.loops[i]->var;
    kept.push_back(with(plan.loops[i], &ForNode::var, var(old->name, old->dtype)));
    loopMap[old] = kept.back()->var;
  }
  for (size_t v = 0; v < block->iters.size(); ++v) {
    if (block->iters[v]->type != IterType::kSpatial) continue;
    out->iters.push_back(block->iters[v]);
    values.push_back(substitute(plan.realize->values[v], loopMap));
  }
  const For& factored = plan.loops[plan.factored];
  Var place = var("v" + factored->var->name, factored->var->dtype);
  out->iters.push_back(
      make<const IterVarNode>(range(factored->min, factored->extent), place, IterType::kReduce));
  values.push_back(loopMap[factored->var]);
  out->init = block->init;
  const Array<Expr>& at = plan.reducer.updates[0]->indices;
  std::vector<Buffer> results;
  Array<Expr> parts;
  for (const Store& u : plan.reducer.updates) {
    results.push_back(u->buffer);
    parts.push_back(load(plan.partial[parts.size()], withIndex(at, plan.axis, place)));
  }
  out->body = updates(plan, results, at, parts);
  std::vector<Expr> conditions;
  for (const Expr& c : conjuncts(plan.realize->predicate)) {
    bool onReduction = false;
    for (const For& l : plan.loops) onReduction |= !loopMap.contains(l->var) && usesVar(c, l->var);
    if (!onReduction && !usesVar(c, factored->var)) conditions.push_back(substitute(c, loopMap));
  }
  return nestOf(
      kept, make<const BlockRealizeNode>(values, conjunction(conditions), withDetectedAccess(Block(out))));
}

static Result<Plan> check(const Schedule& sch, const Rfactor& s) {
  BEVEL_TRY(Path path, sch.locate(s.loop));
  BEVEL_TRY(BlockRealize scope, scopeOf(path));
  Factoring plan;
  Path nest = path; // to the outermost loop
  for (size_t i = size_t(path.scope() + 1); i < path.ancestors.size(); ++i)
    if (path.ancestors[i].node->kind == Kind::kFor) {
      nest = path.upTo(i);
      break;
    }
  plan.loops = loopChain(nest.target);
  auto* realize = plan.loops.back()->body.as<BlockRealizeNode>();
  if (!realize) return illegal("the loops hold more than one block");
  plan.realize = BlockRealize(realize);
  const Block& block = plan.realize->block;
  ScopeInfo info(scope);
  BEVEL_CHECK(checkReductionBlock(info, info.indexOf(block->name)));
  Analyzer analyzer;
  bindDims(sch.func(), analyzer);
  BEVEL_CHECK(checkCoversDomain(info.blocks[size_t(info.indexOf(block->name))], analyzer));
  BEVEL_CHECK(checkLoops(plan, loopAt(path)->var));
  for (const For& l : plan.loops) BEVEL_CHECK(checkPlainLoop(l));
  BEVEL_CHECK(checkReducer(plan, *block));
  BEVEL_CHECK(checkFirstRuns(plan, sch.func()));
  int64_t rank = int64_t(plan.rank());
  int64_t axis = s.factorAxis < 0 ? s.factorAxis + rank : s.factorAxis;
  if (axis < 0 || axis >= rank)
    return fail(ErrorCode::kUsage,
                "factor_axis is not from " + std::to_string(-rank) + " to " + std::to_string(rank - 1));
  plan.axis = size_t(axis);
  for (const Store& u : plan.reducer.updates)
    plan.partial.push_back(buffer(u->buffer->name + "_rf", u->buffer->dtype,
                                  withIndex(u->buffer->shape, plan.axis, plan.loops[plan.factored]->extent)));
  std::string name = freshBlockName(sch.func()->body, block->name + "_rf");
  Stmt root = replaceAt(nest, seq({partialNest(plan, name), combiningNest(plan)}));
  Path at = findBlock(root, scope->block->name);
  BlockRealize around = realizeAt(at);
  for (const Buffer& b : plan.partial) around = withAlloc(around, b);
  return Plan{replaceAt(at, around), {str(name)}};
}

STEP_INFO(Rfactor, "rfactor", kDoc)

} // namespace bevel::steps
