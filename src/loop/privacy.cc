// Whether a buffer holds nothing that one iteration of a loop leaves for another: then it may be allocated inside the
// loop, and the loop may be parallel in spite of it. Every read is compared with the writes before it in program order. A write counts only for
// what it surely does before the read, in the same iteration of the loops around both:
//
//   for ii in 16: if io*16 + ii < n: S[ii] = …     [0, min(16, n - io*16)): the condition bounds the index
//   if k == 0: S[0] = …                            S[0] for every k: the first iteration of a loop around both
//   if A[i] > 0: S[0] = …                          nothing, unless A stays and the read has the condition too
//   for k in K: S[k // 2 * 2] = …                  nothing: the box around it has holes
#include "loop/dependence.h"

#include "arith/iter_map.h"
#include "ir/structural.h"
#include "loop/passes/context.h"

#include <algorithm>

namespace bevel {
namespace {

/// The loop binds (through any number of block levels) a reduction axis of a block that writes the buffer.
class ReductionLoop {
public:
  ReductionLoop(const Buffer& buffer, const Var& loop) : buffer_(buffer), loop_(loop) {}
  bool isAround(const NodeRef& n) {
    if (const auto* r = n.as<BlockRealizeNode>()) return isAroundBlock(*r);
    const auto* s = n.as<StoreNode>();
    const auto* c = n.as<CallNode>();
    bool writes = (s && s->buffer->sameAs(*buffer_)) || (c && intrinInfo(c->op).effect != Effect::kPure);
    bool found = writes && std::ranges::any_of(active_, [&](const Expr& v) { return usesVar(v, loop_); });
    if (!n.is<ExprNode>() || c)
      forEachChild(n, [&](const NodeRef& child, Role) { found = found || isAround(child); });
    return found;
  }

private:
  bool isAroundBlock(const BlockRealizeNode& r) {
    size_t depth = active_.size();
    for (size_t i = 0; i < r.values.size(); ++i) {
      Expr value = substitute(r.values[i], axes_);
      axes_[r.block->iters[i]->var] = value;
      if (r.block->iters[i]->type == IterType::kReduce) active_.push_back(value);
    }
    bool found = (r.block->init && isAround(r.block->init)) || isAround(r.block->body);
    active_.resize(depth);
    return found;
  }

  const Buffer& buffer_;
  const Var& loop_;
  VarMap axes_;
  std::vector<Expr> active_; // values of reduction axes of the blocks around
};

/// Compares the reads of a buffer in a loop's body with the writes.
class PrivacyCheck {
public:
  PrivacyCheck(const AccessModel& inside, const Buffer& buffer, Analyzer& analyzer)
      : buffer_(buffer), analyzer_(analyzer), inside_(inside) {
    for (const auto& [a, forms] : inside.entries()) {
      if (!a.buffer) effects_ = true;
      if (a.buffer && a.write) stored_.insert(a.buffer->data);
    }
  }

  bool run() {
    // A store comes after the loads of its own value in time, but before them in the list.
    const BufferAccess* pending = nullptr;
    for (const auto& [a, forms] : inside_.entries()) {
      if (!a.buffer || !a.buffer->sameAs(*buffer_)) continue;
      if (a.opaque || !same(a.buffer, buffer_)) return false;
      if (a.write) {
        if (pending) writes_.push_back(pending);
        pending = &a;
        continue;
      }
      bool ownValue = pending && pending->node.is<StoreNode>() &&
                      usesVar(static_cast<const StoreNode&>(*pending->node).value, a.node);
      if (pending && !ownValue) {
        writes_.push_back(pending);
        pending = nullptr;
      }
      if (std::ranges::none_of(writes_, [&](const auto* w) { return isWrittenBefore(*w, a); })) return false;
    }
    return true;
  }

private:
  /// The loops around the write but not the read, and the write as it is in the iterations that count.
  struct Write {
    std::vector<VarRange> loops;
    Array<Range> region;
    std::vector<Expr> bounds; // conditions, each of one index
  };

  bool isWrittenBefore(const BufferAccess& w, const BufferAccess& r) {
    size_t shared = 0;
    while (shared < std::min(w.loops.size(), r.loops.size()) &&
           w.loops[shared].first == r.loops[shared].first)
      ++shared;
    for (size_t i = 0; i < shared; ++i) analyzer_.bind(w.loops[i].first, w.loops[i].second);
    std::vector<VarRange> readLoops(r.loops.begin() + ptrdiff_t(shared), r.loops.end());
    std::vector<Expr> holds;
    for (const Expr& c : conjuncts(conjunction(r.conditions)))
      if (isStable(c) && !usesAny(c, readLoops)) holds.push_back(c);
    bool result = false;
    {
      auto scope = analyzer_.assume(conjunction(holds));
      if (std::optional<Write> write = surely(w, shared)) {
        BufferRegion done = relaxRegion(buffer_, write->region, write->loops, write->bounds, analyzer_);
        BufferRegion read = relaxRegion(buffer_, r.region, readLoops, r.conditions, analyzer_);
        result = regionCovers(done, read, analyzer_) && isDense(*write);
      }
    }
    for (size_t i = 0; i < shared; ++i) analyzer_.unbind(w.loops[i].first);
    return result;
  }

  /// Null when nothing is sure.
  std::optional<Write> surely(const BufferAccess& w, size_t shared) {
    const auto* store = w.node.as<StoreNode>();
    if (store && store->predicate) return std::nullopt;
    std::vector<Expr> conditions = conjuncts(conjunction(w.conditions));
    VarMap first;
    std::erase_if(conditions, [&](const Expr& c) { return holdsAtFirst(c, w.loops, first); });
    // The first iteration of one loop need not have that of another around the read.
    for (size_t i = 0; i < shared && !first.empty(); ++i)
      if (!same(w.loops[i].second, substitute(w.loops[i].second, first))) return std::nullopt;
    Write out;
    for (size_t i = shared; i < w.loops.size(); ++i) {
      const auto& [v, domain] = w.loops[i];
      Range at = range(substitute(domain->min, first), substitute(domain->extent, first));
      bool used = !first.contains(v) &&
                  std::ranges::any_of(w.region, [&](const Range& x) { return usesVar(x->min, v); });
      if (usesAny(at->min, out.loops) || usesAny(at->extent, out.loops)) return std::nullopt;
      if (!used && !analyzer_.prove(at->extent >= constant(at->extent->dtype, 1))) return std::nullopt;
      out.loops.emplace_back(v, at);
    }
    for (const Range& x : w.region) {
      if (!isStable(x->min) || !isConst(x->extent, 1)) return std::nullopt;
      out.region.push_back(range(substitute(x->min, first), x->extent));
    }
    for (const Expr& c : conditions) {
      if (!isStable(c)) return std::nullopt;
      Expr condition = substitute(c, first);
      if (!usesAny(condition, out.loops) && analyzer_.prove(condition)) continue;
      if (!boundsOneIndex(condition, out)) return std::nullopt;
      out.bounds.push_back(condition);
    }
    return out;
  }

  /// `i*4 + j == 0` holds in the first iteration of the loops i and j, which is not after any other.
  bool holdsAtFirst(const Expr& c, const std::vector<VarRange>& around, VarMap& first) {
    const auto* b = c.as<BinaryNode>();
    if (!b || b->op != BinaryOp::kEq || readsMemory(c)) return false;
    VarMap start = first;
    bool any = false;
    for (const auto& [v, domain] : around)
      if (usesVar(c, v)) start[v] = substitute(domain->min, start), any = true;
    if (!any || !analyzer_.prove(substitute(c, start))) return false;
    first = std::move(start);
    return true;
  }

  /// The condition is a limit of an index (up to what does not vary), so what it leaves of the box is a box.
  bool boundsOneIndex(const Expr& c, const Write& w) {
    const auto* b = c.as<BinaryNode>();
    if (!b || !isComparison(b->op) || b->op == BinaryOp::kNe || !b->a->dtype.isInteger()) return false;
    auto limits = [&](const Expr& e, const Expr& limit) {
      if (usesAny(limit, w.loops) || !usesAny(e, w.loops)) return false;
      return std::ranges::any_of(
          w.region, [&](const Range& x) { return asMultiple(x->min, e, w.loops, analyzer_).has_value(); });
    };
    return limits(b->a, b->b) || limits(b->b, b->a);
  }

  /// Without its bounds, the write reaches every element of its box.
  bool isDense(const Write& w) {
    Array<Expr> indices;
    for (const Range& x : w.region)
      if (usesAny(x->min, w.loops)) indices.push_back(x->min);
    return indices.empty() ||
           detectIterMap(indices, w.loops, nullptr, analyzer_, IterMapLevel::kSurjective).has_value();
  }

  /// The value is the same all through an iteration.
  bool isStable(const Expr& e) const {
    return !readsMemory(e) || (isPure(e) && !effects_ &&
                               !usesAnyVar(e, [&](const VarNode* v) { return stored_.contains(Var(v)); }));
  }

  const Buffer& buffer_;
  Analyzer& analyzer_;
  const AccessModel& inside_;
  std::unordered_set<Var, RefHash> stored_; // data variables
  bool effects_ = false;                    // calls that may write anything
  std::vector<const BufferAccess*> writes_; // before the current read
};

} // namespace

bool isPrivateToIteration(const AccessModel& inside, const For& loop, const Buffer& buffer,
                          Analyzer& analyzer) {
  if (ReductionLoop(buffer, loop->var).isAround(loop->body)) return false;
  analyzer.bind(loop->var, range(loop->min, loop->extent));
  bool result = PrivacyCheck(inside, buffer, analyzer).run();
  analyzer.unbind(loop->var);
  return result;
}

} // namespace bevel
