#include "sched/steps/place.h"

#include "arith/int_set.h"
#include "arith/iter_map.h"
#include "ir/structural.h"
#include "loop/dependence.h"
#include "sched/move.h"
#include "sched/steps/step_impl.h"

#include <algorithm>

namespace bevel::steps {

constexpr const char* kDoc =
    R"(Moves a consumer under a loop of its producers: each iteration consumes what that iteration has produced.

The new loops run through exactly the instances whose inputs the iteration writes; tails get a condition. Below a loop over a reduction
axis the consumer runs again whenever its input has been updated, so that its last run sees the final value.

Refused unless the block is a whole block or reduction whose inputs are all written under `loop` or before it; unless each dimension of
such an input is either written whole in every iteration, or written in contiguous tiles and indexed by `axis + constant` or `constant - axis`; and unless
nothing between the two places uses what it writes. `index` is the place in the loop's body: -1 the last possible, -2 the first.)";

/// What the checks share.
struct Context {
  const ScopeInfo& info;
  int self;
  const For& loop;
  Analyzer& analyzer;
  const ScopeBlock& block() const { return info.blocks[size_t(self)]; }
};

static bool sameIndex(const AxisIndex& a, const AxisIndex& b, Analyzer& analyzer) {
  return a.axis == b.axis && a.scale == b.scale && analyzer.proveEqual(a.offset, b.offset);
}

/// The axis that indexes a dimension of a buffer in all reads of the block, as `axis + constant` or `constant - axis`;
/// nothing otherwise.
static std::optional<AxisIndex> readIndex(const Context& c, const Var& data, size_t dim) {
  std::optional<AxisIndex> out;
  for (const BufferRegion& r : c.block().block().reads) {
    if (r->buffer->data != data) continue;
    if (!isConst(r->region[dim]->extent, 1)) return std::nullopt;
    auto index = axisIndex(r->region[dim]->min, c.block().realize->block, c.analyzer);
    if (!index || index->axis < 0 || std::abs(index->scale) != 1 || !asConst(index->offset))
      return std::nullopt;
    if (out && !sameIndex(*out, *index, c.analyzer)) return std::nullopt;
    out = index;
  }
  return out;
}

/// The writers under the loop write each tile of this dimension without holes.
static bool isDense(const Context& c, const Var& data, size_t dim) {
  for (const ScopeBlock& writer : c.info.blocks) {
    for (const BufferRegion& w : writer.block().writes) {
      if (w->buffer->data != data) continue;
      auto index = axisIndex(w->region[dim]->min, writer.realize->block, c.analyzer);
      auto width = asConst(w->region[dim]->extent);
      if (!index || !width || (index->axis >= 0 && std::abs(index->scale) > *width)) return false;
      if (index->axis < 0) continue;
      const Expr& value = writer.realize->values[size_t(index->axis)];
      auto loop = std::ranges::find_if(writer.loops, [&](const For& l) { return l->var == c.loop->var; });
      if (loop == writer.loops.end()) continue;
      std::vector<For> inside(loop + 1, writer.loops.end());
      IterRanges inner;
      for (const For& l : inside)
        if (usesVar(value, l->var)) inner.emplace_back(l->var, range(l->min, l->extent));
      if (inner.empty()) continue;
      if (!detectIterMap({value}, inner, nullptr, c.analyzer, IterMapLevel::kSurjective)) return false;
    }
  }
  return true;
}

/// Where the condition of the block is false, one of its axes is outside of its domain: it cuts tails, no more.
static bool cutsTailsOnly(const ScopeBlock& block, Analyzer& analyzer) {
  if (isConst(block.realize->predicate, 1)) return true;
  Expr inside = boolImm(true);
  for (size_t i = 0; i < block.realize->values.size(); ++i) {
    const Expr& value = block.realize->values[i];
    const Range& domain = block.block().iters[i]->domain;
    inside = logicalAnd(inside, logicalAnd(value >= domain->min, value < domain->min + domain->extent));
  }
  auto scope = analyzer.assume(inside);
  return analyzer.prove(block.realize->predicate);
}

/// All writers of an input are under the loop, and together they write everything that the block may read.
static Status checkWriters(const Context& c, const BufferRegion& read) {
  const Buffer& x = read->buffer;
  for (int w : c.info.writers(x->data)) {
    const ScopeBlock& writer = c.info.blocks[size_t(w)];
    if (!isUnder(writer, c.loop->var))
      return illegal("buffer " + x->name + " is also written by block " + writer.name() + " outside of " +
                     quoted(c.loop));
    if (w > c.self)
      return illegal("block " + writer.name() + " writes buffer " + x->name + " after it is read");
    BEVEL_CHECK(checkCoversDomain(writer, c.analyzer));
    if (!cutsTailsOnly(writer, c.analyzer))
      return illegal("the condition of block " + writer.name() +
                     " leaves out more than tails: not every iteration of " + quoted(c.loop) +
                     " writes its tile of buffer " + x->name);
    for (const BufferRegion& region : writer.block().writes) {
      if (region->buffer->data != x->data) continue;
      auto all = sweptRegion(writer.realize->block, region->region, c.analyzer);
      for (size_t d = 0; d < x->rank(); ++d)
        if (!all || !c.analyzer.proveEqual((*all)[d]->min, constant((*all)[d]->min->dtype, 0)) ||
            !c.analyzer.proveEqual((*all)[d]->extent, x->shape[d]))
          return illegal("block " + writer.name() + " does not provably write all of buffer " + x->name);
    }
  }
  return {};
}

/// The axes' values for one input, from the tile that an iteration writes; merged into `sets` (null min: no
/// constraint yet).
static Status constrain(const Context& c, const BufferRegion& read, std::vector<IntSet>& sets,
                        std::vector<bool>& constrained) {
  const Var& data = read->buffer->data;
  BEVEL_CHECK(checkWriters(c, read));
  BufferRegion tile = touchedRegion(c.loop->body, data, true, c.analyzer);
  for (size_t d = 0; d < tile->region.size(); ++d) {
    const Expr& lo = tile->region[d]->min;
    Expr hi = lo + tile->region[d]->extent - 1;
    const Expr& size = read->buffer->shape[d];
    bool whole = c.analyzer.prove(lo <= constant(lo->dtype, 0)) && c.analyzer.prove(hi >= size - 1);
    if (whole) continue;
    auto index = readIndex(c, data, d);
    if (!index)
      return illegal("an iteration of " + quoted(c.loop) + " writes only part of dimension " +
                     std::to_string(d) + " of buffer " + read->buffer->name + ", and block " +
                     c.block().name() + " does not read it at `axis + constant` or `constant - axis`");
    if (!isDense(c, data, d))
      return illegal("an iteration of " + quoted(c.loop) + " writes dimension " + std::to_string(d) +
                     " of buffer " + read->buffer->name + " not in one contiguous tile");
    if (c.block().block().iters[size_t(index->axis)]->type != IterType::kSpatial)
      return illegal("an iteration of " + quoted(c.loop) + " writes only part of what a reduction of block " +
                     c.block().name() + " reads");
    size_t axis = size_t(index->axis);
    Expr first = index->scale > 0 ? lo - index->offset : index->offset - hi,
         last = index->scale > 0 ? hi - index->offset : index->offset - lo;
    IntSet set = IntSet::interval(c.analyzer.simplify(first), c.analyzer.simplify(last));
    bool other = constrained[axis] && !(c.analyzer.proveEqual(sets[axis].min, set.min) &&
                                        c.analyzer.proveEqual(sets[axis].max, set.max));
    if (other)
      return illegal("axis " + c.block().block().iters[axis]->var->name + " of block " + c.block().name() +
                     " reads several tiles that an iteration of " + quoted(c.loop) + " writes");
    sets[axis] = set;
    constrained[axis] = true;
  }
  return {};
}

/// Iterations of the loop leave partial sums in an input. With several inputs, the iterations that complete
/// them may be different ones.
static Status checkPartialInputs(const Context& c, const std::vector<Var>& inputs,
                                 const std::vector<For>& loopsOfLoop) {
  if (inputs.size() < 2) return {};
  size_t common = sharedLoops(c.block().loops, loopsOfLoop);
  std::vector<For> repeating(loopsOfLoop.begin() + ptrdiff_t(common), loopsOfLoop.end());
  repeating.push_back(c.loop);
  for (const Var& data : inputs) {
    for (int w : c.info.writers(data)) {
      const ScopeBlock& writer = c.info.blocks[size_t(w)];
      for (size_t i = 0; i < writer.block().iters.size(); ++i) {
        if (writer.block().iters[i]->type == IterType::kSpatial) continue;
        for (const For& l : repeating)
          if (usesVar(writer.realize->values[i], l->var))
            return illegal(quoted(l) + " leaves partial sums of block " + writer.name() + ", and block " +
                           c.block().name() + " has other inputs there too");
      }
    }
  }
  return {};
}

/// The other inputs are complete before the loop; nothing in between uses the outputs.
static Status checkMove(const Context& c, const std::vector<For>& loopsOfLoop) {
  auto first =
      std::ranges::find_if(c.info.blocks, [&](const ScopeBlock& b) { return isUnder(b, c.loop->var); });
  Place place{loopsOfLoop, int(first - c.info.blocks.begin())};
  const std::string& self = c.block().name();
  for (const BufferRegion& w : c.block().block().writes)
    for (int i : between(c.info, c.self, place, w->buffer->data, false))
      return illegal("block " + c.info.blocks[size_t(i)].name() + " uses buffer " + w->buffer->name +
                     " where block " + self + " would write it");
  for (const BufferRegion& r : c.block().block().reads)
    for (int i : between(c.info, c.self, place, r->buffer->data, true))
      if (!isUnder(c.info.blocks[size_t(i)], c.loop->var))
        return illegal("block " + c.info.blocks[size_t(i)].name() + " writes buffer " + r->buffer->name +
                       ", which block " + self + " reads, after " + quoted(c.loop) + " has begun");
  return {};
}

static Result<Plan> check(const Schedule& sch, const ReverseComputeAt& s) {
  Analyzer analyzer;
  BEVEL_TRY(Move move, moveOf(sch, s.block, s.loop, analyzer));
  const Block& block = move.site.block();
  Context c{move.site.info, move.site.self, move.loop, analyzer};
  std::vector<IntSet> sets(block->iters.size());
  std::vector<bool> constrained(block->iters.size(), false);
  std::vector<Var> inputs;
  for (const BufferRegion& r : block->reads) {
    auto writers = c.info.writers(r->buffer->data);
    bool under = std::ranges::any_of(
        writers, [&](int w) { return w != c.self && isUnder(c.info.blocks[size_t(w)], c.loop->var); });
    if (!under) continue;
    if (std::ranges::find(inputs, r->buffer->data) == inputs.end()) inputs.push_back(r->buffer->data);
    BEVEL_CHECK(constrain(c, r, sets, constrained));
  }
  if (inputs.empty())
    return illegal(quoted(*block) + " reads nothing that is written under " + quoted(c.loop));
  BEVEL_CHECK(checkPartialInputs(c, inputs, move.loopPath.loops()));
  BEVEL_CHECK(checkMove(c, move.loopPath.loops()));
  std::vector<AxisRange> axes;
  for (size_t i = 0; i < sets.size(); ++i) {
    const IterVar& iv = block->iters[i];
    axes.push_back(constrained[i] && sets[i].bounded() ? clippedAxis(iv, sets[i].min, sets[i].max, analyzer)
                                                       : wholeAxis(iv));
  }
  return planMove(move, makeNest(block, axes, s.preserveUnitLoops), s.index);
}

STEP_INFO(ReverseComputeAt, "reverse_compute_at", kDoc)

} // namespace bevel::steps
