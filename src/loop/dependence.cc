// Whether the iterations of a loop depend on each other: by the elements that they touch.
//
//   for i in n: A[i] = B[i]            none
//   for i in n: A[i // 2] = B[i]       iterations 0 and 1 write the same element
//   for i in n: A[i] = A[i - 1]        iteration 1 reads what iteration 0 wrote
//
// For every write and every other access of the same buffer, two different iterations must provably touch
// different elements: in some dimension the index moves by more per iteration than the loops inside can make
// up for, or the indices are together a one to one image of the loop and those inside it. Indices that are plain
// sums of loops of constant extent are compared as numbers, others as expressions.
#include "loop/dependence.h"

#include "arith/dims.h"
#include "arith/iter_map.h"
#include "arith/linear.h"
#include "arith/linear_form.h"
#include "ir/structural.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>

namespace bevel {
namespace {

using arith::LinearForm;

/// One dimension of an access in one iteration: factor * loop + outer + [low, high], where `outer` is a sum of
/// what is the same in all iterations.
struct Slab {
  int64_t factor = 0;
  LinearForm outer;
  int64_t low = 0, high = 0;
};

/// Adds coefficient * [min, min + extent) of a loop inside.
bool widen(Slab& slab, int64_t coefficient, const Range& domain) {
  auto min = asConst(domain->min), extent = asConst(domain->extent);
  auto last = min && extent && *extent >= 1 ? arith::checkedAdd(*min, *extent - 1) : std::nullopt;
  auto a = last ? arith::checkedMul(*min, coefficient) : std::nullopt;
  auto b = last ? arith::checkedMul(*last, coefficient) : std::nullopt;
  if (!a || !b) return false;
  return !__builtin_add_overflow(slab.low, std::min(*a, *b), &slab.low) &&
         !__builtin_add_overflow(slab.high, std::max(*a, *b), &slab.high);
}

std::optional<Slab> slabOf(const Range& r, const Var& loop, const std::vector<VarRange>& inside) {
  auto form = arith::plainForm(r->min);
  auto width = asConst(r->extent);
  if (!form || !width || *width < 1) return std::nullopt;
  Slab out{0, {}, form->constant, 0};
  if (__builtin_add_overflow(form->constant, *width - 1, &out.high)) return std::nullopt;
  for (const arith::Term& t : form->terms) {
    auto at = std::ranges::find_if(inside, [&](const VarRange& l) { return Expr(l.first) == t.atom; });
    if (Expr(loop) == t.atom)
      out.factor = t.coef;
    else if (at == inside.end())
      out.outer.terms.push_back(t);
    else if (!widen(out, t.coef, at->second))
      return std::nullopt;
  }
  return out;
}

/// Two iterations are further apart than the slabs are wide. Nothing when numbers do not tell.
bool areApart(const Slab& a, const Slab& b) {
  if (a.factor == 0 || a.factor != b.factor || !a.outer.sameAs(b.outer)) return false;
  int64_t step = std::max(a.factor, arith::satNeg(a.factor)), ab = 0, ba = 0;
  return !__builtin_sub_overflow(a.high, b.low, &ab) && !__builtin_sub_overflow(b.high, a.low, &ba) &&
         ab < step && ba < step;
}

/// Buffers that are made under the node.
std::unordered_set<Var, RefHash> madeUnder(const NodeRef& root) {
  std::unordered_set<Var, RefHash> out;
  walk(root, [&](const NodeRef& n) {
    if (const auto* a = n.as<AllocNode>()) out.insert(a->buffer->data);
    if (const auto* b = n.as<BlockNode>())
      for (const Buffer& x : b->allocs) out.insert(x->data);
    return !n.is<ExprNode>();
  });
  return out;
}

class LoopCheck {
public:
  LoopCheck(const LoopSite& site, bool allowReduction)
      : site_(site), loop_(site.loop), allowReduction_(allowReduction) {}

  Status run() {
    if (isConst(loop_->extent, 1) || isConst(loop_->extent, 0)) return {};
    BEVEL_CHECK(checkAxes());
    collect();
    auto inside = madeUnder(loop_->body);
    for (const Accessed& a : accesses_) {
      if (!a.access.buffer) return illegal("has an effect that regions do not describe", a.access.node);
      if (!a.access.write || inside.contains(a.access.buffer->data)) continue;
      for (const Accessed& b : accesses_)
        if (b.access.buffer && b.access.buffer->sameAs(*a.access.buffer) &&
            !sameReduction(a.access, b.access))
          BEVEL_CHECK(checkPair(a, b));
    }
    return {};
  }

  bool touchesApart(const Var& data) {
    if (isConst(loop_->extent, 1) || isConst(loop_->extent, 0)) return true;
    collect();
    std::erase_if(accesses_,
                  [&](const Accessed& a) { return a.access.buffer && a.access.buffer->data != data; });
    return std::ranges::all_of(accesses_, [&](const Accessed& a) {
      return a.access.buffer && std::ranges::all_of(accesses_, [&](const Accessed& b) {
               return b.access.buffer && apart(a, b);
             });
    });
  }

private:
  struct Accessed {
    BufferAccess access;
    std::vector<std::optional<Slab>> slabs;
  };

  void collect() {
    for (BufferAccess& a : collectAccesses(loop_->body)) {
      std::vector<std::optional<Slab>> slabs;
      for (const Range& r : a.region) slabs.push_back(slabOf(r, loop_->var, a.loops));
      accesses_.push_back({std::move(a), std::move(slabs)});
    }
  }

  /// What is known of the loops around, made when numbers alone do not answer.
  Analyzer& analyzer() {
    if (analyzer_) return *analyzer_;
    analyzer_.emplace();
    for (const Stmt& s : site_.around)
      if (const auto* l = s.as<ForNode>()) enclosing_.emplace_back(l->var, range(l->min, l->extent));
    for (const VarRange& l : enclosing_) bindSizes(l.second->extent);
    bindSizes(loop_->extent);
    for (const VarRange& l : enclosing_) analyzer_->bind(l.first, l.second);
    return *analyzer_;
  }
  /// A dependence needs iterations: the factors of extents, which are sizes, are then at least one (loops
  /// around are bound afterwards). Divisors of a fused loop's variable are such factors.
  void bindSizes(const Expr& extent) {
    if (const auto* b = extent.as<BinaryNode>(); b && b->op == BinaryOp::kMul) {
      bindSizes(b->a);
      bindSizes(b->b);
    } else if (!asConst(extent)) {
      bindDims({extent}, *analyzer_);
      analyzer_->know(constant(extent->dtype, 1) <= extent);
    }
  }

  Status illegal(const std::string& why, const NodeRef& at) {
    return fail(
        Error(ErrorCode::kIllegal, fmt::format("loop \"{}\" {}", loop_->var->name, why)).at(loop_).at(at));
  }

  /// Axes that the loop binds: reduction axes carry a dependence by definition.
  Status checkAxes() {
    for (const BlockRealize& r : blocksUnder(loop_->body)) {
      for (size_t i = 0; i < r->values.size(); ++i) {
        const IterVar& axis = r->block->iters[i];
        if (axis->type == IterType::kSpatial || !usesVar(r->values[i], loop_->var)) continue;
        if (axis->type == IterType::kReduce && allowReduction_) {
          BEVEL_CHECK(addReduction(r));
          continue;
        }
        return illegal(fmt::format("binds the {} axis \"{}\" of block \"{}\"",
                                   kIterTypeNames[int(axis->type)], axis->var->name, r->block->name),
                       r);
      }
    }
    return {};
  }

  /// Contributions to one element may come in any order; other accesses of it may not come between.
  Status addReduction(const BlockRealize& r) {
    if (r->block->init)
      return illegal(fmt::format("is over a reduction of block \"{}\", whose init must come first: decompose "
                                 "the reduction before",
                                 r->block->name),
                     r);
    BEVEL_CHECK(checkAnyOrder(*r->block));
    for (const auto* list : {&r->block->reads, &r->block->writes})
      for (const BufferRegion& x : *list)
        if (x->buffer->sameAs(*r->block->writes[0]->buffer)) reductionOf_[x.get()] = r->block.get();
    return {};
  }
  /// Both are the block's own accesses of what it accumulates.
  bool sameReduction(const BufferAccess& a, const BufferAccess& b) const {
    auto x = reductionOf_.find(a.node.get()), y = reductionOf_.find(b.node.get());
    return x != reductionOf_.end() && y != reductionOf_.end() && x->second == y->second;
  }

  Status checkPair(const Accessed& w, const Accessed& a) {
    if (apart(w, a) || isPrivate(w.access.buffer)) return {};
    return illegal(fmt::format("carries a dependence: different iterations {} \"{}\" at the same place, or "
                               "it cannot be proved that they do not",
                               a.access.write ? "write" : "write and read", w.access.buffer->name),
                   w.access.node);
  }

  bool apart(const Accessed& x, const Accessed& y) {
    const BufferAccess &w = x.access, &a = y.access;
    size_t rank = std::min(w.region.size(), a.region.size());
    for (size_t d = 0; d < rank; ++d)
      if (x.slabs[d] && y.slabs[d] && areApart(*x.slabs[d], *y.slabs[d])) {
        BEVEL_ASSERT(!compareQuickAnswers || apartInDimension(w, a, d), "numbers and expressions disagree");
        return true;
      }
    for (size_t d = 0; d < rank; ++d)
      if (!(x.slabs[d] && y.slabs[d]) && apartInDimension(w, a, d)) return true;
    return sameIndices(w, a) && oneToOne(w, a);
  }

  /// A block around allocates the buffer, nothing outside of the loop touches it, and no iteration leaves anything in
  /// it for another.
  bool isPrivate(const Buffer& buffer) {
    auto [at, fresh] = private_.try_emplace(buffer->data, false);
    if (!fresh) return at->second;
    bool allocated = false;
    for (const Stmt& s : site_.around)
      if (const auto* r = s.as<BlockRealizeNode>())
        allocated |= std::ranges::any_of(r->block->allocs.raw(), [&](const NodeRef& b) {
          return b.as<BufferNode>()->data == buffer->data;
        });
    if (!allocated) return false;
    bool outside = false;
    walk(site_.around.front(), [&](const NodeRef& n) {
      if (n == NodeRef(loop_)) return false;
      if (auto* load = n.as<LoadNode>()) outside |= load->buffer->data == buffer->data;
      if (auto* store = n.as<StoreNode>()) outside |= store->buffer->data == buffer->data;
      if (auto* call = n.as<CallNode>())
        for (const NodeRef& arg : call->args) {
          auto* b = arg.as<BufferNode>();
          outside |= (b && b->data == buffer->data) || arg == NodeRef(buffer->data);
        }
      return !outside;
    });
    return at->second = !outside && isPrivateToIteration(loop_, buffer, analyzer());
  }

  /// |step| of the loop exceeds every distance between the rest of one index and of the other.
  bool apartInDimension(const BufferAccess& w, const BufferAccess& a, size_t d) {
    auto lw = linearIn(w.region[d]->min, loop_->var, analyzer()),
         la = linearIn(a.region[d]->min, loop_->var, analyzer());
    if (!lw || !la) return false;
    auto cw = asConst(lw->factor), ca = asConst(la->factor);
    if (!cw || !ca || *cw != *ca || *cw == 0) return false;
    IntSet rw = relax(lw->rest, w.region[d]->extent, w.loops),
           ra = relax(la->rest, a.region[d]->extent, a.loops);
    if (!rw.bounded() || !ra.bounded()) return false;
    Expr step = intImm(std::max(*cw, arith::satNeg(*cw)));
    return analyzer().prove(castTo(kInt64, rw.max - ra.min) < step) &&
           analyzer().prove(castTo(kInt64, ra.max - rw.min) < step);
  }
  IntSet relax(const Expr& offset, const Expr& extent, const std::vector<VarRange>& loops) {
    IntSet set = IntSet::range(range(offset, extent));
    for (size_t i = loops.size(); i-- > 0;) {
      IntSetMap one{{loops[i].first, IntSet::range(loops[i].second)}};
      if (set.min) set.min = evalSet(set.min, one, analyzer()).min;
      if (set.max) set.max = evalSet(set.max, one, analyzer()).max;
    }
    return set;
  }

  static bool sameIndices(const BufferAccess& w, const BufferAccess& a) {
    if (w.region.size() != a.region.size()) return false;
    for (size_t d = 0; d < w.region.size(); ++d)
      if (!same(w.region[d], a.region[d])) return false;
    return true;
  }
  /// The loop and the loops inside that the indices use map one to one to elements, under the conditions that
  /// hold of both accesses; it is enough when they do together with the loops around.
  bool oneToOne(const BufferAccess& w, const BufferAccess& a) {
    Array<Expr> indices;
    for (const Range& r : w.region) {
      if (!isConst(r->extent, 1)) return false;
      indices.push_back(r->min);
    }
    auto used = [&](const VarRange& l) {
      return std::ranges::any_of(indices, [&](const Expr& i) { return usesVar(i, l.first); });
    };
    IterRanges iters{{loop_->var, range(loop_->min, loop_->extent)}}, around;
    std::ranges::copy_if(w.loops, std::back_inserter(iters), used);
    analyzer(); // finds the loops around
    std::ranges::copy_if(enclosing_, std::back_inserter(around), used);
    around.insert(around.end(), iters.begin(), iters.end());
    Expr condition = boolImm(true);
    for (const Expr& c : w.conditions)
      if (std::ranges::any_of(a.conditions, [&](const Expr& other) { return same(c, other); }))
        condition = logicalAnd(condition, c);
    auto injective = [&](const IterRanges& over, const Expr& under) {
      return detectIterMap(indices, over, under, analyzer(), IterMapLevel::kInjective).has_value();
    };
    return injective(iters, condition) || injective(iters, boolImm(true)) || injective(around, condition);
  }

  const LoopSite& site_;
  const For& loop_;
  bool allowReduction_;
  std::vector<Accessed> accesses_;
  std::optional<Analyzer> analyzer_;
  std::vector<VarRange> enclosing_;
  std::unordered_map<Var, bool, RefHash> private_; // what is known of buffers, by data variable
  std::unordered_map<const Object*, const BlockNode*> reductionOf_; // accesses of accumulated elements
};

} // namespace

Status checkIndependent(const LoopSite& site, bool allowReduction) {
  return LoopCheck(site, allowReduction).run();
}

bool touchesApart(const LoopSite& site, const Var& data) {
  return LoopCheck(site, false).touchesApart(data);
}

} // namespace bevel
