// Register tiles: contractions, convolutions and window reductions.
//
//   for m, n, k: C[m, n] += A[m, k] * B[k, n];  D = relu(C)
//   →   Bp = pack(B)                        panels of `columns` (constant B: packed by the compiler)
//       for panel, row tile (parallel):
//         acc[rows, columns] = 0                            registers
//         for k: acc[r, v] += A[m + r, k] * Bp[panel, k, v]
//         D[…] = relu(acc)
//
// 1. The last spatial axis becomes vectors; the operand that moves along it is the panel operand.
// 2. An axis along which the panel operand stays still gives the rows of the tile.
// 3. The tile follows from the target model (tile_model.h).
// 4. The result's consumer (or a copy made for it) is tiled, the reduction moves into its tile with the
//    result in registers.
#include "autosched/rules/rules.h"

#include "ir/structural.h"
#include "loop/dependence.h"
#include "sched/steps/blocks.h"
#include "sched/steps/buffers.h"
#include "sched/steps/get.h"
#include "sched/steps/loops.h"
#include "sched/steps/place.h"

#include <algorithm>
#include <cmath>

namespace bevel {

using namespace steps;
namespace {

// How the axes and operands of a reduction map to a tile.
struct Roles {
  const BlockInfo* reduction = nullptr;
  std::string consumer;      // block that reads the result; empty: none inside the program
  size_t column = 0;         // axis of vectors
  std::optional<size_t> row; // axis of tile rows
  const AccessPattern* panel = nullptr;
  const AccessPattern* scalar = nullptr; // broadcast operand; null: all operands move along the column
  std::vector<size_t> reduceOrder;       // reduction axes, outermost first
};

// Position of the only index of the access that uses the axis, with coefficient one.
std::optional<size_t> soleDim(const BlockInfo& b, const AccessPattern& a, size_t axis) {
  std::optional<size_t> found;
  for (size_t d = 0; d < a.indices.size(); ++d) {
    if (b.step(a, d, axis) == 0) continue;
    if (found || !b.isOnly(a, d, axis)) return std::nullopt;
    found = d;
  }
  return found;
}

std::vector<size_t> reduceAxes(const BlockInfo& b, const AccessPattern* lead) {
  std::vector<size_t> axes;
  for (size_t k = 0; k < b.block->iters.size(); ++k)
    if (b.isReduce(k)) axes.push_back(k);
  if (lead)
    std::stable_sort(axes.begin(), axes.end(),
                     [&](size_t x, size_t y) { return lead->strides[x] > lead->strides[y]; });
  return axes;
}

// Chooses the row axis: the panel operand does not move along it (it is reused), or, where every operand is a
// vector, the innermost axis with several elements.
std::optional<size_t> rowAxis(const BlockInfo& b, size_t column, const AccessPattern* panel,
                              bool contraction) {
  std::optional<size_t> best;
  for (size_t k = 0; k < b.block->iters.size(); ++k) {
    if (b.isReduce(k) || k >= column || b.extent(k) == 1) continue;
    if (contraction && panel->strides[k] != 0) continue;
    best = k; // the innermost
  }
  return best;
}

// Whether the block reads the result of the reduction, and then only its own element.
struct Reading {
  bool any = false, own = true;
};
Reading readingOf(const BlockInfo& c, const BlockInfo& reduction, const Store& result) {
  Reading out;
  VarMap axes;
  size_t spatial = reduction.numSpatial();
  for (size_t k = 0; k < spatial && k < c.block->iters.size(); ++k)
    axes[reduction.block->iters[k]->var] = c.block->iters[k]->var;
  out.own = c.simpleLoops && c.block->iters.size() == spatial;
  walk(c.block->body, [&](const NodeRef& n) {
    const auto* l = n.as<LoadNode>();
    if (!l || l->buffer->data != result->buffer->data) return true;
    out.any = true;
    for (size_t d = 0; d < l->indices.size(); ++d)
      out.own &= same(l->indices[d], substitute(result->indices[d], axes));
    return true;
  });
  return out;
}

// The block that can be the reduction's epilogue: the only one that reads the result, element by element.
std::string epilogueOf(const std::vector<BlockInfo>& blocks, const BlockInfo& reduction) {
  std::string found;
  Store result = cast<StoreNode>(reduction.block->body);
  for (const BlockInfo& c : blocks) {
    if (&c == &reduction) continue;
    Reading reading = readingOf(c, reduction, result);
    if (!reading.any) continue;
    if (!reading.own || !found.empty()) return "";
    found = c.block->name;
  }
  return found;
}

std::optional<Roles> rolesOf(const std::vector<BlockInfo>& blocks, const std::string& name) {
  Roles r;
  auto it = std::ranges::find_if(blocks, [&](const BlockInfo& x) { return x.block->name == name; });
  if (it == blocks.end() || !it->simpleLoops) return std::nullopt;
  const BlockInfo& b = *it;
  r.reduction = &b;
  size_t spatial = b.numSpatial();
  if (spatial == 0 || !checkAnyOrder(*b.block) || !b.accesses.back().write) return std::nullopt;
  for (size_t k = 0; k < spatial; ++k) // spatial axes come first in programs from tensor expressions
    if (b.isReduce(k)) return std::nullopt;
  r.column = b.column();
  bool contraction = operandsOf(b).isContraction();
  for (const AccessPattern& a : b.accesses) {
    if (a.write) continue;
    if (!a.linear) return std::nullopt;
    if (a.strides[r.column] == 0) {
      r.scalar = &a;
      continue;
    }
    if (r.panel && contraction) return std::nullopt;
    if (!r.panel || a.strides[r.column] == 1) r.panel = &a;
    if (a.strides[r.column] != 1 && !contraction) return std::nullopt;
  }
  if (!r.panel) return std::nullopt;
  if (!contraction) r.scalar = nullptr;
  r.row = rowAxis(b, r.column, r.panel, contraction);
  r.reduceOrder = reduceAxes(b, r.scalar ? r.scalar : r.panel);
  r.consumer = epilogueOf(blocks, b);
  return r;
}

int64_t constOr(int64_t v, int64_t otherwise) {
  return v > 0 ? v : otherwise;
}

TileProblem problemOf(const Roles& r) {
  const BlockInfo& b = *r.reduction;
  TileProblem p;
  p.columns = b.extent(r.column);
  p.rows = r.row ? b.extent(*r.row) : 1;
  p.depth = 1;
  for (size_t k : r.reduceOrder) p.depth *= constOr(b.extent(k), 64);
  p.rowsAreScalars = r.scalar != nullptr;
  p.elementBits = std::max<int>(b.accesses.back().buffer->dtype.bits, 8);
  p.columnBytes = p.depth * r.panel->buffer->dtype.bits / 8;
  p.rowBytes = r.scalar ? p.depth * r.scalar->buffer->dtype.bits / 8 : 0;
  return p;
}

int64_t bufferBytes(const Buffer& b) {
  int64_t n = b->dtype.bits / 8;
  for (const Expr& d : b->shape) n *= constOr(asConst(d).value_or(-1), 64);
  return n;
}

bool isConstantParam(const PrimFunc& f, const Buffer& b) {
  std::vector<int64_t> constants = attrInts(f->attrs, "layout_free_buffers");
  for (size_t i = 0; i < f->buffers.size(); ++i)
    if (f->buffers[i] && f->buffers[i]->data == b->data)
      return std::find(constants.begin(), constants.end(), int64_t(i)) != constants.end();
  return false;
}

// (n // width, other dims in the order of the reduction, n % width). Panels are as wide as the tile; where
// the tile covers all columns they are one vector wide, so that the last one is padded to a whole vector.
IndexMap panelMap(const Roles& r, size_t columnDim, const TilePlan& plan) {
  const AccessPattern& p = *r.panel;
  int64_t extent = r.reduction->extent(r.column);
  int64_t columns = extent > 0 && extent <= plan.columns() ? plan.lanes : plan.columns();
  std::vector<size_t> others;
  for (size_t d = 0; d < p.indices.size(); ++d)
    if (d != columnDim) others.push_back(d);
  auto depthOf = [&](size_t d) { // position of the reduction axis that moves dimension d; batch axes first
    for (size_t i = 0; i < r.reduceOrder.size(); ++i)
      if (r.reduction->step(p, d, r.reduceOrder[i]) != 0) return int64_t(i);
    return int64_t(-1);
  };
  std::stable_sort(others.begin(), others.end(), [&](size_t x, size_t y) { return depthOf(x) < depthOf(y); });
  return IndexMap::of(p.indices.size(), [&](const std::vector<Var>& i) {
    Array<Expr> out;
    for (size_t d : others)
      if (depthOf(d) < 0) out.push_back(i[d]);
    out.push_back(floordiv(i[columnDim], columns));
    for (size_t d : others)
      if (depthOf(d) >= 0) out.push_back(i[d]);
    out.push_back(floormod(i[columnDim], columns));
    return out;
  });
}

// Index of the panel operand among the block's reads.
std::optional<int64_t> readIndex(const Block& b, const Buffer& buffer) {
  for (size_t i = 0; i < b->reads.size(); ++i)
    if (b->reads[i]->buffer->data == buffer->data) return int64_t(i);
  return std::nullopt;
}

// Copies the panel operand into panels. Returns the copying block, or null; constant operands are packed ahead of
// time, outside of all scopes.
Result<BlockRV> packPanel(Schedule& sch, BlockRV reduction, const Roles& r, const TilePlan& plan,
                          const RuleContext& context) {
  bool constant = isConstantParam(sch.func(), r.panel->buffer);
  BEVEL_TRY(BlockRV user, constant ? sch.run(GetSblock{r.reduction->outermost}) : Result<BlockRV>(reduction));
  BEVEL_TRY(BlockRealize realize, sch.get(user));
  auto dim = soleDim(*r.reduction, *r.panel, r.column);
  auto index = readIndex(realize->block, r.panel->buffer);
  if (!r.scalar || !dim || !index) return BlockRV();
  bool worth = constant || r.panel->strides[r.column] != 1;
  Question pack = yesNo("pack panels of " + r.reduction->block->name, worth);
  BEVEL_TRY(Decision packed, decide(sch, context, pack));
  if (packed.index == 1) return BlockRV();
  BEVEL_TRY(BlockRV copy, sch.run(CacheRead{user, *index, "global"}));
  NodeRef zero = bevel::constant(r.panel->buffer->dtype, 0);
  BEVEL_CHECK(sch.run(TransformLayout{copy, writeBuffer(0), panelMap(r, *dim, plan), AnyArg(zero)}));
  if (constant) BEVEL_CHECK(sch.run(Annotate{copy, "preproc", 1}));
  return copy;
}

// Order of the loops around the tile, by what stays in cache. Returns the loop under which the tile runs.
struct OuterNest {
  std::vector<LoopRV> order; // outermost first
  size_t parallelDepth = 1;  // how many of them may be one parallel loop
};

bool panelsFit(const Roles& r, const Target& target) {
  int64_t half = std::max<int64_t>(target.limits.l2, 256 << 10) / 2;
  return bufferBytes(r.panel->buffer) <= half || !r.scalar;
}

// `chunkLoops`: how many of the row loops run over chunks, not inside one.
OuterNest outerNest(const std::vector<LoopRV>& batch, const std::vector<LoopRV>& rowLoops, size_t chunkLoops,
                    LoopRV panels, bool panelsInside) {
  OuterNest nest;
  nest.order = batch;
  if (panelsInside) { // all panels stay in L2: rows outside, panels inside
    nest.order.insert(nest.order.end(), rowLoops.begin(), rowLoops.end());
    nest.order.push_back(panels);
    nest.parallelDepth = nest.order.size() - 1;
  } else { // rows of a chunk stay in L2 while each panel is read once
    auto inside = rowLoops.begin() + ptrdiff_t(chunkLoops);
    nest.order.insert(nest.order.end(), rowLoops.begin(), inside);
    nest.order.push_back(panels);
    nest.parallelDepth = nest.order.size();
    nest.order.insert(nest.order.end(), inside, rowLoops.end());
  }
  nest.parallelDepth = std::max<size_t>(nest.parallelDepth, 1);
  return nest;
}

// The reduction's own loops below the tile: reduction outside, rows and vectors inside, accumulators
// initialised before.
Status scheduleAccumulation(Schedule& sch, BlockRV block, const Roles& r, const TilePlan& plan,
                            size_t outside) {
  BEVEL_TRY(std::vector<LoopRV> loops, sch.run(GetLoops{block}));
  BEVEL_TRY(BlockRealize realize, sch.get(block));
  auto loopOf = [&](size_t axis) -> LoopRV { // null: none moves the axis
    for (size_t i = outside; i < loops.size(); ++i)
      if (usesVar(realize->values[axis], *sch.varOf(loops[i]))) return loops[i];
    return {};
  };
  std::vector<LoopRV> order, unrolled;
  for (size_t k : r.reduceOrder)
    if (LoopRV l = loopOf(k)) order.push_back(l);
  size_t reduceLoops = order.size();
  for (size_t k = 0; k < r.reduction->block->iters.size(); ++k) {
    if (r.reduction->isReduce(k) || k == r.column) continue;
    if (LoopRV l = loopOf(k)) order.push_back(l), unrolled.push_back(l);
  }
  LoopRV column = loopOf(r.column);
  if (!column) return fail(ErrorCode::kIllegal, "the tile has no column loop");
  BEVEL_TRY(std::vector<LoopRV> parts, sch.run(Split{column, {IntArg(), IntArg(plan.lanes)}, false}));
  order.insert(order.end(), parts.begin(), parts.end());
  unrolled.push_back(parts[0]);
  BEVEL_CHECK(sch.run(Reorder{order}));
  BlockRV init = block;
  if (reduceLoops > 0) {
    BEVEL_TRY(init, sch.run(DecomposeReduction{block, order[0]}));
    BEVEL_TRY(std::vector<LoopRV> initLoops, sch.run(GetLoops{init}));
    BEVEL_CHECK(sch.run(Vectorize{initLoops.back()}));
    for (size_t i = outside; i + 1 < initLoops.size(); ++i) BEVEL_CHECK(sch.run(Unroll{initLoops[i]}));
  }
  for (LoopRV l : unrolled) BEVEL_CHECK(sch.run(Unroll{l}));
  return sch.run(Vectorize{parts[1]});
}

// Threads share all these loops, or (where fusing them hides that iterations are independent) one of them, the first
// that may be shared. A candidate lists the loops by position; none: no threads.
Status parallelOuter(Schedule& sch, const std::vector<LoopRV>& loops, const Roles& r,
                     const RuleContext& context) {
  std::vector<std::vector<int64_t>> shares(1);
  for (size_t i = 0; i < loops.size(); ++i) shares[0].push_back(int64_t(i));
  for (size_t i = 0; i < loops.size() && loops.size() > 1; ++i) {
    BEVEL_TRY(For loop, sch.get(loops[i]));
    if (!isConst(loop->extent, 1)) shares.push_back({int64_t(i)});
  }
  shares.emplace_back();
  Question q{"threads share of " + r.reduction->block->name, {}};
  for (const auto& share : shares) q.candidates.push_back(intList(share));
  auto apply = [&](Schedule& s, const Decision& d) -> Status {
    std::vector<LoopRV> chosen;
    for (int64_t i : shares[d.index]) chosen.push_back(loops[size_t(i)]);
    return chosen.empty() ? Status() : shareAmongThreads(s, chosen);
  };
  for (; q.choice < shares.size(); ++q.choice) {
    BEVEL_TRY(auto answer, decideWhereLegal(sch, context, q, apply));
    if (answer) break;
  }
  return {};
}

// The loops of the block that takes the result, in the order of the reduction's axes. A copy has a loop a
// dimension of the buffer: the dimensions that no axis moves are left over.
Result<std::vector<LoopRV>> loopsOfAxes(Schedule& sch, BlockRV out, const Roles& r,
                                        std::vector<LoopRV>& left) {
  BEVEL_TRY(std::vector<LoopRV> loops, sch.run(GetLoops{out}));
  size_t axes = r.reduction->numSpatial();
  if (!r.consumer.empty() && loops.size() == axes) return loops;
  const Array<Expr>& indices = cast<StoreNode>(r.reduction->block->body)->indices;
  if (indices.size() != loops.size())
    return fail(ErrorCode::kIllegal, "the copy of the result has loops of its own");
  std::vector<LoopRV> of;
  std::vector<bool> taken(loops.size());
  for (size_t k = 0; k < axes; ++k) {
    size_t dim = 0;
    while (dim < indices.size() && indices[dim] != Expr(r.reduction->block->iters[k]->var)) ++dim;
    if (dim == indices.size())
      return fail(ErrorCode::kIllegal, "an axis of the reduction has no dimension of its own");
    taken[dim] = true;
    of.push_back(loops[dim]);
  }
  for (size_t d = 0; d < loops.size(); ++d)
    if (!taken[d]) left.push_back(loops[d]);
  return of;
}

// The sizes of a tile as the trace's handles.
struct TileSizes {
  ExprRV rows, vectors;
};

Status tile(Schedule& sch, const Roles& r, const TilePlan& plan, const TileSizes& sizes,
            const RuleContext& context) {
  const std::string& name = r.reduction->block->name;
  BEVEL_TRY(BlockRV reduction, sch.run(GetSblock{r.reduction->block->name}));
  BEVEL_TRY(BlockRV copy, packPanel(sch, reduction, r, plan, context));
  BlockRV out;
  if (r.consumer.empty()) {
    BEVEL_TRY(out, sch.run(CacheWrite{reduction, 0, "register"}));
  } else {
    BEVEL_TRY(out, sch.run(GetSblock{r.consumer}));
    BEVEL_CHECK(sch.run(SetScope{reduction, writeBuffer(0), "register"}));
  }
  std::vector<LoopRV> batch, rowLoops, inner; // batch: first those of one element
  BEVEL_TRY(std::vector<LoopRV> loops, loopsOfAxes(sch, out, r, batch));
  BEVEL_TRY(std::vector<LoopRV> columns,
            sch.run(Split{loops[r.column], {IntArg(), sizes.vectors, plan.lanes}, false}));
  batch.insert(batch.end(), loops.begin() + ptrdiff_t(r.column) + 1, loops.end());
  size_t chunkLoops = 0;
  for (size_t k = 0; k < r.column; ++k) {
    if (!r.row || k != *r.row) {
      (r.panel->strides[k] == 0 && r.scalar ? rowLoops : batch).push_back(loops[k]);
      continue;
    }
    Factors factors = {IntArg(), sizes.rows};
    bool chunks = false;
    if (plan.chunkRows) { // zero: all rows are one chunk
      int64_t tiles = plan.chunkRows / plan.rows;
      BEVEL_TRY(Decision chunk,
                decide(sch, context, oneOf("row tiles of a chunk of " + name, {tiles, 2 * tiles, 0}, tiles)));
      chunks = chunk.index < 2;
      if (chunks) factors = {IntArg(), chunk.values[0], sizes.rows};
    }
    BEVEL_TRY(std::vector<LoopRV> rows, sch.run(Split{loops[k], factors, false}));
    rowLoops.insert(rowLoops.end(), rows.begin(), rows.end() - 1);
    if (chunks) chunkLoops = rowLoops.size() - 1;
    inner.push_back(rows.back());
  }
  inner.push_back(columns[1]);
  inner.push_back(columns[2]);
  Question order = yesNo("panels inside of rows of " + name, panelsFit(r, context.target));
  BEVEL_TRY(Decision inside, decide(sch, context, order));
  OuterNest nest = outerNest(batch, rowLoops, chunkLoops, columns[0], inside.index == 0);
  std::vector<LoopRV> all = nest.order;
  all.insert(all.end(), inner.begin(), inner.end());
  BEVEL_CHECK(sch.run(Reorder{all}));
  LoopRV at = nest.order.back();
  if (copy && !isConstantParam(sch.func(), r.panel->buffer))
    BEVEL_CHECK(sch.run(ComputeAt{copy, columns[0]}));
  BEVEL_CHECK(sch.run(ComputeAt{reduction, at}));
  BEVEL_CHECK(scheduleAccumulation(sch, reduction, r, plan, nest.order.size()));
  for (size_t i = 0; i + 1 < inner.size(); ++i) BEVEL_CHECK(sch.run(Unroll{inner[i]}));
  BEVEL_CHECK(sch.run(Vectorize{inner.back()}));
  return parallelOuter(sch, {nest.order.begin(), nest.order.begin() + ptrdiff_t(nest.parallelDepth)}, r,
                       context);
}

std::string describe(const std::string& name, const TilePlan& plan) {
  std::string why = name + ": " + std::to_string(plan.rows) + "x" + std::to_string(plan.columns()) +
                    " register tile, " + std::to_string(int(plan.efficiency * 100)) +
                    "% of peak by the model";
  if (plan.chunkRows) why += ", chunks of " + std::to_string(plan.chunkRows) + " rows";
  return why;
}

constexpr size_t kTiles = 8; // that are worth asking for: those of least cycles

// Asks for the tile of a reduction.
Result<TilePlan> askTile(Schedule& sch, const Roles& r, const RuleContext& context, TileSizes& sizes) {
  TileProblem problem = problemOf(r);
  std::vector<TileCandidate> tiles = tileCandidates(problem, context.target);
  if (tiles.empty()) tiles.emplace_back();
  std::swap(tiles[0], tiles[bestTile(tiles)]); // the first stays the first
  std::stable_sort(tiles.begin() + 1, tiles.end(),
                   [](const TileCandidate& a, const TileCandidate& b) { return a.cycles < b.cycles; });
  tiles.resize(std::min(tiles.size(), kTiles));
  Question q{"register tile of " + r.reduction->block->name, {}};
  for (const TileCandidate& t : tiles) {
    q.candidates.push_back(intList({t.rows, t.vectors}));
    q.costs.push_back(std::round(t.cycles));
  }
  BEVEL_TRY(Decision tile, decide(sch, context, q));
  sizes = {tile.values[0], tile.values[1]};
  return planOf(problem, context.target, tiles[tile.index]);
}

} // namespace

Result<RuleResult> tileRule(Schedule& sch, const std::string& scope, const RuleContext& context) {
  RuleResult result;
  std::vector<std::string> reductions;
  bool contractions = true;
  for (const BlockInfo& b : blocksOf(sch, scope)) {
    if (!b.reduces()) continue;
    reductions.push_back(b.block->name);
    contractions &= operandsOf(b).isContraction();
  }
  if (reductions.size() > 1 && !contractions) return result; // rows
  for (const std::string& name : reductions) {
    std::vector<BlockInfo> blocks = blocksOf(sch, scope);
    std::optional<Roles> roles = rolesOf(blocks, name);
    if (!roles) return RuleResult{};
    TileSizes sizes;
    BEVEL_TRY(TilePlan plan, askTile(sch, *roles, context, sizes));
    BEVEL_CHECK(tile(sch, *roles, plan, sizes, context));
    result.applied = true;
    result.why += (result.why.empty() ? "" : "; ") + describe(name, plan);
  }
  return result;
}

} // namespace bevel
