// Whether the iterations of a loop depend on each other: by the elements that they touch.
//
//   for i in n: A[i] = B[i]            none
//   for i in n: A[i // 2] = B[i]       iterations 0 and 1 write the same element
//   for i in n: A[i] = A[i - 1]        iteration 1 reads what iteration 0 wrote
//
// For every write and every other access of the same buffer, two different iterations must provably touch
// different elements: in some dimension the index moves by more per iteration than the loops inside can make
// up for, or the indices are together a one to one image of the loop and those inside it.
#include "loop/dependence.h"

#include "arith/dims.h"
#include "arith/iter_map.h"
#include "arith/linear.h"
#include "arith/number.h"
#include "ir/structural.h"
#include "loop/block_scope.h"
#include "loop/instance_order.h"
#include "loop/privacy.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>

namespace bevel {
namespace {

class LoopCheck {
public:
  LoopCheck(const For& loop, const std::vector<VarRange>& enclosing, bool allowReduction)
      : loop_(loop), enclosing_(enclosing), allowReduction_(allowReduction) {
    for (const VarRange& l : enclosing) bindSizes(l.second->extent);
    bindSizes(loop_->extent);
    for (const VarRange& l : enclosing) analyzer_.bind(l.first, l.second);
  }

  Status run(const std::vector<Buffer>& accessedOnlyHere) {
    if (isConst(loop_->extent, 1) || isConst(loop_->extent, 0)) return {};
    BEVEL_CHECK(checkAxes());
    std::unordered_set<Var, RefHash> inside;
    for (const Buffer& b : accessedOnlyHere)
      if (isPrivateToIteration(loop_, b, analyzer_)) inside.insert(b->data);
    walk(loop_->body, [&](const NodeRef& n) {
      if (const auto* a = n.as<AllocNode>()) inside.insert(a->buffer->data);
      if (const auto* b = n.as<BlockNode>())
        for (const Buffer& x : b->allocs) inside.insert(x->data);
      return !n.is<ExprNode>();
    });
    std::vector<BufferAccess> accesses = collectAccesses(loop_->body);
    for (const BufferAccess& a : accesses) {
      if (!a.buffer) return illegal("has an effect that regions do not describe", a.node);
      if (!a.write || inside.contains(a.buffer->data)) continue;
      for (const BufferAccess& b : accesses)
        if (b.buffer && b.buffer->sameAs(*a.buffer) && !sameReduction(a, b)) BEVEL_CHECK(checkPair(a, b));
    }
    return {};
  }

private:
  /// A dependence needs iterations: the factors of extents, which are sizes, are then at least one (loops
  /// around are bound afterwards). Divisors of a fused loop's variable are such factors.
  void bindSizes(const Expr& extent) {
    if (const auto* b = extent.as<BinaryNode>(); b && b->op == BinaryOp::kMul) {
      bindSizes(b->a);
      bindSizes(b->b);
    } else if (!asConst(extent)) {
      bindDims({extent}, analyzer_);
      analyzer_.know(constant(extent->dtype, 1) <= extent);
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

  Status checkPair(const BufferAccess& w, const BufferAccess& a) {
    for (size_t d = 0; d < std::min(w.region.size(), a.region.size()); ++d)
      if (apartInDimension(w, a, d)) return {};
    if (sameIndices(w, a) && oneToOne(w, a)) return {};
    return illegal(fmt::format("carries a dependence: different iterations {} \"{}\" at the same place, or "
                               "it cannot be proved that they do not",
                               a.write ? "write" : "write and read", w.buffer->name),
                   w.node);
  }

  /// |step| of the loop exceeds every distance between the rest of one index and of the other.
  bool apartInDimension(const BufferAccess& w, const BufferAccess& a, size_t d) {
    auto lw = linearIn(w.region[d]->min, {loop_->var}, analyzer_),
         la = linearIn(a.region[d]->min, {loop_->var}, analyzer_);
    if (!lw || !la) return false;
    auto cw = asConst(lw->coefficients[0]), ca = asConst(la->coefficients[0]);
    if (!cw || !ca || *cw != *ca || *cw == 0) return false;
    IntSet rw = relax(lw->offset, w.region[d]->extent, w.loops),
           ra = relax(la->offset, a.region[d]->extent, a.loops);
    if (!rw.bounded() || !ra.bounded()) return false;
    Expr step = intImm(std::max(*cw, arith::satNeg(*cw)));
    return analyzer_.prove(castTo(kInt64, rw.max - ra.min) < step) &&
           analyzer_.prove(castTo(kInt64, ra.max - rw.min) < step);
  }
  IntSet relax(const Expr& offset, const Expr& extent, const std::vector<VarRange>& loops) {
    IntSet set = IntSet::range(range(offset, extent));
    for (size_t i = loops.size(); i-- > 0;) {
      IntSetMap one{{loops[i].first, IntSet::range(loops[i].second)}};
      if (set.min) set.min = evalSet(set.min, one, analyzer_).min;
      if (set.max) set.max = evalSet(set.max, one, analyzer_).max;
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
    std::ranges::copy_if(enclosing_, std::back_inserter(around), used);
    around.insert(around.end(), iters.begin(), iters.end());
    Expr condition = boolImm(true);
    for (const Expr& c : w.conditions)
      if (std::ranges::any_of(a.conditions, [&](const Expr& other) { return same(c, other); }))
        condition = logicalAnd(condition, c);
    auto injective = [&](const IterRanges& over, const Expr& under) {
      return detectIterMap(indices, over, under, analyzer_, IterMapLevel::kInjective).has_value();
    };
    return injective(iters, condition) || injective(iters, boolImm(true)) || injective(around, condition);
  }

  For loop_;
  const std::vector<VarRange>& enclosing_;
  bool allowReduction_;
  Analyzer analyzer_;
  std::unordered_map<const Object*, const BlockNode*> reductionOf_; // accesses of accumulated elements
};

} // namespace

Status checkParallel(const For& loop, const std::vector<VarRange>& enclosing, bool allowReduction,
                     const std::vector<Buffer>& accessedOnlyHere) {
  return LoopCheck(loop, enclosing, allowReduction).run(accessedOnlyHere);
}

Status checkReorderable(const For& loop, const std::vector<VarRange>& enclosing,
                        const std::vector<Buffer>& accessedOnlyHere) {
  return LoopCheck(loop, enclosing, true).run(accessedOnlyHere);
}

Effect effectOf(const NodeRef& node) {
  Effect worst = Effect::kPure;
  walk(node, [&](const NodeRef& n) {
    if (const auto* c = n.as<CallNode>()) worst = std::max(worst, intrinInfo(c->op).effect);
    return true;
  });
  return worst;
}

} // namespace bevel
