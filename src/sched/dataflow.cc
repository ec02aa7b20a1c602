#include "sched/dataflow.h"

#include "arith/linear.h"
#include "ir/structural.h"
#include "loop/dependence.h"
#include "loop/regions.h"

#include <algorithm>

namespace bevel {

BufferRegion touchedRegion(const Stmt& root, const Var& data, bool write, Analyzer& analyzer) {
  BufferRegion result;
  std::vector<BufferAccess> accesses = collectAccesses(root);
  auto changing = buffersWritten(accesses);
  for (const BufferAccess& a : accesses) {
    if (!a.buffer || a.buffer->data != data || a.write != write) continue;
    for (const VarRange& l : a.loops) analyzer.bind(l.first, l.second);
    BufferRegion relaxed = withoutChanging(relaxRegion(a.buffer, a.region, a.loops, {}, analyzer), changing);
    result = result ? regionUnion(result, relaxed, analyzer) : relaxed;
    for (const VarRange& l : a.loops) analyzer.unbind(l.first); // that they run is known inside only
  }
  return result;
}

AxisRange wholeAxis(const IterVar& iv) {
  return {iv->domain->min, iv->domain->extent};
}

AxisRange clippedAxis(const IterVar& iv, Expr min, Expr max, Analyzer& analyzer) {
  DType dtype = iv->var->dtype;
  min = analyzer.simplify(castTo(dtype, min));
  Expr extent = analyzer.simplify(castTo(dtype, max) - min + 1);
  const Expr& low = iv->domain->min;
  Expr high = analyzer.simplify(low + iv->domain->extent); // exclusive
  bool lowInside = analyzer.prove(min >= low), highInside = analyzer.prove(min + extent <= high);
  if (!lowInside && !highInside && analyzer.prove(extent >= iv->domain->extent)) return wholeAxis(iv);
  if (analyzer.prove(min <= low) && analyzer.prove(min + extent >= high)) return wholeAxis(iv);
  return {min, extent, !lowInside, !highInside};
}

std::optional<AxisIndex> axisIndex(const Expr& index, const Block& block, Analyzer& analyzer) {
  std::vector<Var> vars;
  for (size_t i = 0; i < block->iters.size(); ++i) {
    const Var& v = block->iters[i]->var;
    if (index == v) return AxisIndex{int(i), 1, constant(v->dtype, 0)};
    vars.push_back(v);
  }
  auto form = affineIn(index, vars, analyzer);
  AxisIndex out{-1, 0, form ? restOf(*form, vars, index->dtype, analyzer) : nullptr};
  if (!out.offset) return std::nullopt;
  for (size_t i = 0; i < vars.size(); ++i) {
    int64_t c = form->coefOf(vars[i]);
    if (c == 0) continue;
    if (out.axis >= 0) return std::nullopt;
    out.axis = int(i);
    out.scale = c;
  }
  return out;
}

std::optional<Array<Range>> sweptRegion(const Block& block, const Array<Range>& region, Analyzer& analyzer) {
  Array<Range> out;
  std::vector<bool> used(block->iters.size(), false);
  for (const Range& dim : region) {
    auto index = axisIndex(dim->min, block, analyzer);
    auto width = asConst(analyzer.simplify(dim->extent));
    if (!index || !width) return std::nullopt;
    if (index->axis < 0) {
      out.push_back(range(index->offset, dim->extent));
      continue;
    }
    if (std::abs(index->scale) != *width || used[size_t(index->axis)]) return std::nullopt;
    used[size_t(index->axis)] = true;
    const Range& domain = block->iters[size_t(index->axis)]->domain;
    Expr first = index->scale > 0 ? domain->min : domain->min + domain->extent - 1;
    out.push_back(range(analyzer.simplify(first * index->scale + index->offset),
                        analyzer.simplify(domain->extent * *width)));
  }
  return out;
}

namespace {

/// `index // divisor` within the range means `index` within a range that is as many times larger.
Range undivided(const Expr& index, const Range& wanted, Expr& numerator) {
  numerator = index;
  auto* b = index.as<BinaryNode>();
  auto divisor = b && b->op == BinaryOp::kFloorDiv ? asConst(b->b) : std::nullopt;
  if (!divisor || *divisor <= 0) return wanted;
  numerator = b->a;
  return range(wanted->min * *divisor, wanted->extent * *divisor);
}

/// The interval of an axis in which `axis*scale + offset + [0, extent)` meets [lo, hi].
bool solveOne(const AxisIndex& index, const Expr& extent, const Range& wanted, Analyzer& analyzer,
              IntSet& out) {
  if (index.axis < 0 || index.scale <= 0) return false;
  auto width = asConst(analyzer.simplify(extent));
  if (!width) return false;
  Expr lo = wanted->min - index.offset - (*width - 1);
  Expr hi = wanted->min + wanted->extent - 1 - index.offset;
  if (index.scale > 1) {
    lo = floordiv(lo + (index.scale - 1), index.scale);
    hi = floordiv(hi, index.scale);
  }
  out = IntSet::interval(lo, hi);
  return true;
}

} // namespace

std::vector<AxisRange> solveAxes(const Block& block, const std::vector<BufferRegion>& regions,
                                 Analyzer& analyzer) {
  size_t n = block->iters.size();
  std::vector<IntSet> sets(n);
  std::vector<bool> solved(n, false), whole(n, false);
  for (const BufferRegion& wanted : regions) {
    for (const BufferRegion& access : block->writes) {
      if (access->buffer->data != wanted->buffer->data) continue;
      std::vector<bool> here(n, false);
      for (size_t d = 0; d < access->region.size(); ++d) {
        Expr numerator;
        Range inside = undivided(access->region[d]->min, wanted->region[d], numerator);
        auto index = axisIndex(numerator, block, analyzer);
        IntSet set;
        if (!index || index->axis < 0 || here[size_t(index->axis)]) continue;
        if (!solveOne(*index, access->region[d]->extent, inside, analyzer, set)) continue;
        size_t axis = size_t(index->axis);
        here[axis] = true;
        sets[axis] = solved[axis] ? unionSet(sets[axis], set, analyzer) : set;
        solved[axis] = true;
      }
      for (size_t i = 0; i < n; ++i) whole[i] = whole[i] || !here[i];
    }
  }
  std::vector<AxisRange> out;
  for (size_t i = 0; i < n; ++i) {
    const IterVar& iv = block->iters[i];
    bool bounded = solved[i] && !whole[i] && sets[i].bounded();
    out.push_back(bounded ? clippedAxis(iv, sets[i].min, sets[i].max, analyzer) : wholeAxis(iv));
  }
  return out;
}

ShapedBlock blockOver(const Array<Expr>& shape, std::string name) {
  ShapedBlock out{make<BlockNode>(std::move(name)), {}, {}, {}};
  for (size_t d = 0; d < shape.size(); ++d) {
    DType dtype = shape[d]->dtype;
    IterVar iv = make<const IterVarNode>(range(constant(dtype, 0), shape[d]),
                                         var("v" + std::to_string(d), dtype), IterType::kSpatial);
    out.block->iters.push_back(iv);
    out.axes.push_back(wholeAxis(iv));
    out.at.push_back(iv->var);
    out.element.push_back(range(iv->var, constant(dtype, 1)));
  }
  return out;
}

Stmt makeNest(const Block& block, const std::vector<AxisRange>& axes, bool preserveUnit) {
  Array<Expr> values;
  Expr predicate = boolImm(true);
  std::vector<std::pair<Var, Expr>> loops;
  for (size_t i = 0; i < axes.size(); ++i) {
    const IterVar& iv = block->iters[i];
    const AxisRange& a = axes[i];
    Expr value = a.min;
    if (preserveUnit || !isConst(a.extent, 1)) {
      Var v = var("ax" + std::to_string(i), iv->var->dtype);
      loops.emplace_back(v, a.extent);
      value = isConst(a.min, 0) ? Expr(v) : a.min + v;
    }
    values.push_back(value);
    if (a.checkLow) predicate = logicalAnd(predicate, value >= iv->domain->min);
    if (a.checkHigh) predicate = logicalAnd(predicate, value < iv->domain->min + iv->domain->extent);
  }
  Stmt body = make<const BlockRealizeNode>(values, predicate, block);
  for (size_t i = loops.size(); i-- > 0;) body = forLoop(loops[i].first, loops[i].second, body);
  return body;
}

Status checkCoversDomain(const ScopeBlock& block, Analyzer& analyzer) {
  for (const IterVar& iv : block.block().iters)
    for (const For& l : block.loops)
      if (usesVar(iv->domain->min, l->var) || usesVar(iv->domain->extent, l->var))
        return illegal("the range of axis " + iv->var->name + " of " + quoted(block.block()) +
                       " depends on " + quoted(l) + ": other loops cannot run through it");
  if (covers(block.realize, block.loops, analyzer)) return {};
  return illegal("not all values of the axes of " + quoted(block.block()) + " are provably executed");
}

Status checkMovable(const Path& block, const Path& loop) {
  BEVEL_TRY(BlockRealize blockScope, scopeOf(block));
  BEVEL_TRY(BlockRealize loopScope, scopeOf(loop));
  if (blockScope->block->name != loopScope->block->name)
    return illegal(quoted(*realizeAt(block)->block) + " and " + quoted(loopAt(loop)) +
                   " are not in the same block");
  std::vector<For> around = loop.loops();
  around.push_back(loopAt(loop));
  for (const For& l : block.loops())
    if (l->var == loopAt(loop)->var)
      return illegal(quoted(*realizeAt(block)->block) + " is under " + quoted(l) + " already");
  for (const For& l : around)
    if (l->forKind == ForKind::kVectorized) return illegal(quoted(l) + " is vectorized");
  return {};
}

Status checkStableInputs(const ScopeInfo& info, int block) {
  const std::string& name = info.blocks[size_t(block)].name();
  for (const BufferRegion& r : info.blocks[size_t(block)].block().reads)
    for (int c : info.consumers(block))
      for (int w : between(info, block, {info.blocks[size_t(c)].loops, c}, r->buffer->data, true))
        return illegal("buffer " + r->buffer->name + ", which block " + name + " reads, is written " +
                       (w > block ? "later" : "again in other iterations") + " by block " +
                       info.blocks[size_t(w)].name());
  return {};
}

Status checkUsedOnlyIn(const BlockRealize& scope, const PrimFunc& f, const Buffer& buffer) {
  if (NodeRef(f->body) == NodeRef(scope) || holdsData(scope->block->allocs, buffer->data)) return {};
  if (usesBuffer(f->body, buffer->data, scope))
    return illegal("buffer " + buffer->name + " is also used outside of " + quoted(*scope->block));
  return {};
}

Status checkNoEffectsUntil(const ScopeInfo& info, int block, int last) {
  std::vector<int> crossed = between(info, block, {info.blocks[size_t(last)].loops, last}, nullptr, false);
  for (int i : {block, last})
    if (hasOrderedEffect(info.blocks[size_t(i)].block())) crossed.push_back(i);
  if (crossed.empty()) return {};
  const std::string& first = info.blocks[size_t(*std::ranges::min_element(crossed))].name();
  return illegal("block " + first + " has effects that must happen once and in order: block " +
                 info.blocks[size_t(block)].name() + " cannot be moved across it");
}

std::vector<Stmt> itemsOf(const Stmt& body) {
  std::vector<Stmt> out;
  if (auto* s = body.as<SeqNode>())
    out.assign(s->stmts.begin(), s->stmts.end());
  else
    out.push_back(body);
  return out;
}

int64_t itemWith(const std::vector<Stmt>& items, const ScopeBlock& block) {
  auto item =
      std::ranges::find_if(items, [&](const Stmt& s) { return bool(findBlock(s, block.name()).target); });
  return item == items.end() ? -1 : item - items.begin();
}

Stmt insertUnder(const Path& at, size_t position, const Stmt& s) {
  std::vector<Stmt> items = itemsOf(childAt(at.target, 0));
  items.insert(items.begin() + ptrdiff_t(std::min(position, items.size())), s);
  return replaceAt(at, withChild(at.target, 0, seq(items)));
}

} // namespace bevel
