#include "sched/loop_kind.h"

#include "ir/structural.h"
#include "loop/dependence.h"
#include "loop/instance_order.h"
#include "loop/radix.h"

#include <algorithm>
#include <unordered_map>

namespace bevel {

std::vector<std::pair<Var, Range>> enclosingRanges(const Path& path) {
  std::vector<std::pair<Var, Range>> out;
  for (const PathItem& item : path.ancestors)
    if (auto* loop = item.node.as<ForNode>()) out.emplace_back(loop->var, range(loop->min, loop->extent));
  return out;
}

namespace {

/// Buffers that the blocks around the loop allocate and that nothing outside of the loop touches.
std::vector<Buffer> accessedOnlyIn(const For& loop, const Path& path) {
  std::unordered_map<Var, Buffer, RefHash> allocated;
  for (const PathItem& item : path.ancestors)
    if (auto* realize = item.node.as<BlockRealizeNode>())
      for (const Buffer& b : realize->block->allocs) allocated.emplace(b->data, b);
  if (allocated.empty()) return {};
  walk(path.ancestors.front().node, [&](const NodeRef& n) {
    if (n == NodeRef(loop)) return false;
    if (auto* load = n.as<LoadNode>()) allocated.erase(load->buffer->data);
    if (auto* store = n.as<StoreNode>()) allocated.erase(store->buffer->data);
    if (auto* call = n.as<CallNode>())
      for (const NodeRef& arg : call->args)
        if (auto* b = arg.as<BufferNode>()) allocated.erase(b->data);
    return true;
  });
  std::vector<Buffer> out;
  for (auto& [data, b] : allocated) out.push_back(b);
  return out;
}

/// The part of a dimension that one iteration of a loop touches: factor * loop + [0, factor), beside terms of
/// outer loops.
struct Slab {
  int64_t factor = 0;
  std::vector<PlainTerm> outer;
  bool operator==(const Slab& o) const {
    return factor == o.factor &&
           std::ranges::equal(outer, o.outer, [](const PlainTerm& a, const PlainTerm& b) {
             return a.var == b.var && a.factor == b.factor;
           });
  }
};

std::optional<Slab> slabOf(const Expr& value, const For& loop, const std::vector<For>& loops) {
  std::vector<PlainTerm> terms;
  int64_t offset = 0, reach = 1;
  if (!plainTerms(value, 1, terms, offset) || offset != 0) return std::nullopt;
  std::ranges::sort(terms, {}, &PlainTerm::factor);
  Slab out;
  for (const PlainTerm& t : terms) {
    auto at = std::ranges::find_if(loops, [&](const For& l) { return l->var.get() == t.var; });
    if (at == loops.end() || !isConst((*at)->min, 0)) return std::nullopt;
    if (out.factor > 0) { // beyond the loop's own factor only loops around it
      auto self = std::ranges::find_if(loops, [&](const For& l) { return l->var == loop->var; });
      if (at > self) return std::nullopt;
      out.outer.push_back(t);
    } else if (t.var == loop->var.get()) {
      if (reach > t.factor) return std::nullopt;
      out.factor = t.factor;
    } else {
      auto extent = asConst((*at)->extent);
      int64_t span = 0;
      if (!extent || *extent < 1 || __builtin_mul_overflow(*extent - 1, t.factor, &span) ||
          __builtin_add_overflow(reach, span, &reach))
        return std::nullopt;
    }
  }
  return out.factor > 0 ? std::optional<Slab>(out) : std::nullopt;
}

/// For each dimension of one access: its slab, where it has one.
std::vector<std::optional<Slab>> slabsOf(const BufferRegion& region, const ScopeBlock& block,
                                         const For& loop) {
  std::vector<std::optional<Slab>> out;
  for (const Range& dim : region->region) {
    out.emplace_back();
    if (!isConst(dim->extent, 1)) continue;
    for (size_t i = 0; i < block.block().iters.size(); ++i)
      if (dim->min == block.block().iters[i]->var)
        out.back() = slabOf(block.realize->values[i], loop, block.loops);
  }
  return out;
}

} // namespace

bool staysApart(const std::vector<ScopeBlock>& blocks, const Var& data, const For& loop) {
  std::optional<std::vector<std::optional<Slab>>> common;
  for (const ScopeBlock& b : blocks)
    for (const auto* list : {&b.block().reads, &b.block().writes})
      for (const BufferRegion& r : *list) {
        if (r->buffer->data != data) continue;
        auto slabs = slabsOf(r, b, loop);
        if (!common) common = slabs;
        for (size_t d = 0; d < slabs.size(); ++d)
          if (!slabs[d] || !(*common)[d] || !(*slabs[d] == *(*common)[d])) (*common)[d].reset();
      }
  return common && std::ranges::any_of(*common, [](const auto& s) { return s.has_value(); });
}

namespace {
/// Loops, sequences and blocks, nothing else.
bool isOnlyBlocks(const Stmt& s) {
  if (s->kind == Kind::kBlockRealize) return true;
  if (s->kind != Kind::kFor && s->kind != Kind::kSeq) return false;
  for (int i = 0; i < numChildren(s); ++i)
    if (!isOnlyBlocks(childAt(s, i))) return false;
  return true;
}

/// Conditions, ranges of loops and values of axes that read memory are accesses, which declared regions do not
/// hold.
bool readsMemory(const Expr& e) {
  if (e->kind == Kind::kIntImm || e->kind == Kind::kVar) return false;
  bool found = false;
  walk(e, [&](const NodeRef& n) { return !(found |= n.is<LoadNode>() || n.is<CallNode>()); });
  return found;
}
bool readsOutsideOfBlock(const BlockRealizeNode& realize, const std::vector<For>& loops) {
  auto reads = [](const NodeRef& e) { return readsMemory(cast<ExprNode>(e)); };
  return reads(realize.predicate) || std::ranges::any_of(realize.values.raw(), reads) ||
         std::ranges::any_of(loops, [&](const For& l) { return reads(l->min) || reads(l->extent); });
}
} // namespace

bool isPlainlyIndependent(const For& loop, const Path& path) {
  int scope = path.scope();
  if (scope < 0) return false;
  ScopeInfo info(cast<BlockRealizeNode>(path.ancestors[size_t(scope)].node));
  std::erase_if(info.blocks, [&](const ScopeBlock& b) {
    return std::ranges::none_of(b.loops, [&](const For& l) { return l->var == loop->var; });
  });
  for (const ScopeBlock& b : info.blocks) {
    for (size_t i = 0; i < b.block().iters.size(); ++i)
      if (b.block().iters[i]->type != IterType::kSpatial && usesVar(b.realize->values[i], loop->var))
        return false;
    if (readsOutsideOfBlock(*b.realize, b.loops)) return false;
    if (b.block().writes.empty() || hasOrderedEffect(b.block()) || usesVar(b.block().body, loop->var))
      return false;
    for (const BufferRegion& w : b.block().writes)
      if (!staysApart(info.blocks, w->buffer->data, loop)) return false;
  }
  return !info.blocks.empty() && isOnlyBlocks(loop->body);
}

Result<Path> checkIndependentLoop(const Schedule& sch, LoopRV handle, bool allowReduction) {
  BEVEL_TRY(Path path, locate(sch, handle));
  const For loop = loopAt(path);
  if (loop->forKind != ForKind::kSerial)
    return illegal(quoted(loop) + " is already " + kForKindNames[int(loop->forKind)]);
  if (!isPlainlyIndependent(loop, path))
    BEVEL_CHECK(checkParallel(loop, enclosingRanges(path), allowReduction, accessedOnlyIn(loop, path)));
  return path;
}

Result<Path> checkNoneInside(const Path& path, FunctionRef<bool(const ForNode&)> clashes) {
  Status status;
  walk(loopAt(path)->body, [&](const NodeRef& n) {
    auto* inner = n.as<ForNode>();
    if (inner && clashes(*inner) && status)
      status =
          illegal(quoted(loopAt(path)) + " holds " + quoted(For(inner)) + ", which is " +
                  (inner->thread.empty() ? kForKindNames[int(inner->forKind)] : "bound to " + inner->thread) +
                  " already");
    return n.is<StmtNode>();
  });
  BEVEL_CHECK(std::move(status));
  return path;
}

Status checkThreads(const Stmt& root, const Path& changed) {
  std::vector<For> around = changed.loops();
  around.push_back(loopAt(changed));
  for (const For& l : around) {
    if (l->forKind != ForKind::kParallel && l->forKind != ForKind::kThreadBinding) continue;
    Path path = findLoop(root, l->var);
    if (isPlainlyIndependent(loopAt(path), path)) continue;
    Status free =
        checkParallel(loopAt(path), enclosingRanges(path), false, accessedOnlyIn(loopAt(path), path));
    if (!free)
      return illegal(quoted(l) +
                     " runs at once, and would no longer be independent: " + free.error().message);
  }
  return {};
}

void setLoopKind(Schedule& sch, const Path& path, ForKind kind, const std::string& thread) {
  auto loop = mutableCopy(loopAt(path));
  loop->forKind = kind;
  loop->thread = thread;
  setBody(sch, replaceAt(path, Stmt(loop)));
}

/// The sum of the loops' variables, all else being constant, is one to one.
static bool isOneToOne(const Expr& value, const std::vector<For>& loops) {
  std::vector<PlainTerm> terms;
  int64_t offset = 0, reach = 1; // reach: one more than the largest value so far; 0 when unknown
  if (!plainTerms(value, 1, terms, offset)) return false;
  std::ranges::sort(terms, {}, &PlainTerm::factor);
  for (const PlainTerm& t : terms) {
    auto loop = std::ranges::find_if(loops, [&](const For& l) { return l->var.get() == t.var; });
    if (loop == loops.end()) continue;
    if (reach == 0 || t.factor < reach) return false;
    auto extent = asConst((*loop)->extent);
    int64_t span = 0;
    if (!extent || __builtin_mul_overflow(std::max<int64_t>(*extent - 1, 0), t.factor, &span) ||
        __builtin_add_overflow(reach, span, &reach))
      reach = 0;
  }
  return true;
}

bool keepsResultsInAnyOrder(const BlockRealize& realize, const std::vector<For>& loops) {
  const BlockNode& block = *realize->block;
  std::vector<PlainTerm> terms; // of all axes: a loop drives one axis at most
  int64_t offset = 0;
  for (const Expr& v : realize->values)
    if (!plainTerms(v, 1, terms, offset)) return false;
  if (readsOutsideOfBlock(*realize, loops) || !checkAnyOrder(block)) return false;
  if (!block.init) return true;
  // The step with all reduction loops at their start is the only one that initialises, and stays the first.
  for (size_t i = 0; i < block.iters.size(); ++i)
    if (block.iters[i]->type == IterType::kSpatial && !isOneToOne(realize->values[i], loops)) return false;
  return std::ranges::all_of(loops, [&](const For& l) {
    return isConst(l->extent, 1) || std::ranges::find(terms, l->var.get(), &PlainTerm::var) != terms.end();
  });
}

Stmt simplifyBindings(const Stmt& s, Analyzer& analyzer) {
  if (auto* loop = s.as<ForNode>()) {
    bindLoop(For(loop), analyzer);
    auto copy = mutableCopy(For(loop));
    copy->body = simplifyBindings(loop->body, analyzer);
    analyzer.unbind(loop->var); // that it runs is known inside only
    return Stmt(copy);
  }
  if (auto* realize = s.as<BlockRealizeNode>()) {
    auto copy = mutableCopy(BlockRealize(realize));
    for (size_t i = 0; i < copy->values.size(); ++i) copy->values.set(i, analyzer.simplify(copy->values[i]));
    copy->predicate = analyzer.simplify(copy->predicate);
    return Stmt(copy);
  }
  Stmt out = s;
  for (int i = 0; i < numChildren(s); ++i)
    if (Stmt child = childAt(s, i)) out = withChild(out, i, simplifyBindings(child, analyzer));
  return out;
}

} // namespace bevel
