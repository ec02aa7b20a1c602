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
#include <span>

namespace bevel {
namespace {

using arith::LinearForm;

using Loops = std::span<const VarRange>; // inside of the loop, outermost first

/// The form without its multiple of the loop, over all values of the loops inside; their terms are taken from `rest`,
/// which gets the others. Nothing when numbers do not tell.
std::optional<ConstBound> boundInside(const LinearForm& form, const Var& loop, Loops inside, LinearForm& rest,
                                      int64_t sign) {
  ConstBound out{form.constant, form.constant};
  auto grow = [](int64_t& end, std::optional<int64_t> by) {
    return by && !__builtin_add_overflow(end, *by, &end);
  };
  for (const arith::Term& t : form.terms) {
    auto at = std::ranges::find_if(inside, [&](const VarRange& l) { return Expr(l.first) == t.atom; });
    if (Expr(loop) == t.atom) continue;
    if (at == inside.end()) {
      rest.add(t.atom, sign * t.coef);
      continue;
    }
    auto min = asConst(at->second->min), extent = asConst(at->second->extent);
    auto max = min && extent && *extent >= 1 ? arith::checkedAdd(*min, *extent - 1) : std::nullopt;
    if (!max) return std::nullopt;
    if (t.coef < 0) std::swap(min, max);
    if (!grow(out.min, arith::checkedMul(*min, t.coef)) || !grow(out.max, arith::checkedMul(*max, t.coef)))
      return std::nullopt;
  }
  return out;
}

class LoopCheck {
public:
  LoopCheck(const AccessModel& model, const For& loop, bool allowReduction)
      : model_(model), loop_(loop), allowReduction_(allowReduction) {}

  Status run() {
    if (isConst(loop_->extent, 1) || isConst(loop_->extent, 0)) return {};
    BEVEL_CHECK(checkAxes());
    collect();
    auto inside = buffersMadeInside(loop_->body);
    for (const Accessed& a : accesses_) {
      if (!a.access().buffer) return illegal("has an effect that regions do not describe", a.access().node);
      if (!a.access().write || inside.contains(a.access().buffer->data)) continue;
      for (const Accessed& b : accesses_)
        if (b.access().buffer && b.access().buffer->sameAs(*a.access().buffer) &&
            !sameReduction(a.access(), b.access()))
          BEVEL_CHECK(checkPair(a, b));
    }
    return {};
  }

  bool touchesApart(const Var& data, const BlockRealizeNode* one, const BlockRealizeNode* other) {
    if (isConst(loop_->extent, 1) || isConst(loop_->extent, 0)) return true;
    collect();
    auto isOf = [&](const Accessed& a, const BlockRealizeNode* block) {
      return (!block || a.access().block == block) && (!a.access().buffer || a.access().buffer->data == data);
    };
    return std::ranges::all_of(accesses_, [&](const Accessed& a) {
      return !isOf(a, one) || (a.access().buffer && std::ranges::all_of(accesses_, [&](const Accessed& b) {
                                 return !isOf(b, other) || (b.access().buffer && apart(a, b));
                               }));
    });
  }

private:
  struct Accessed {
    const AccessModel::Entry* entry;
    Loops loops; // inside
    const BufferAccess& access() const { return entry->access; }
  };

  void collect() {
    for (const AccessModel::Entry& e : model_.entries()) {
      const auto& loops = e.access.loops;
      auto at = std::ranges::find_if(loops, [&](const VarRange& l) { return l.first == loop_->var; });
      if (at == loops.end()) continue;
      if (accesses_.empty()) enclosing_.assign(loops.begin(), at);
      accesses_.push_back({&e, Loops(at + 1, loops.end())});
    }
  }

  /// What is known of the loops around, made when numbers alone do not answer.
  Analyzer& analyzer() {
    if (analyzer_) return *analyzer_;
    analyzer_.emplace();
    std::vector<VarRange> outside;
    for (const Stmt& s : model_.around)
      if (const auto* l = s.as<ForNode>()) outside.emplace_back(l->var, range(l->min, l->extent));
    enclosing_.insert(enclosing_.begin(), outside.begin(), outside.end());
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
    if (apart(w, a) || isPrivate(w.access().buffer)) return {};
    return illegal(fmt::format("carries a dependence: different iterations {} \"{}\" at the same place, or "
                               "it cannot be proved that they do not",
                               a.access().write ? "write" : "write and read", w.access().buffer->name),
                   w.access().node);
  }

  bool apart(const Accessed& x, const Accessed& y) {
    const BufferAccess &w = x.access(), &a = y.access();
    size_t rank = std::min(w.region.size(), a.region.size());
    std::vector<std::optional<bool>> quick;
    for (size_t d = 0; d < rank; ++d)
      if (quick.push_back(apartByNumbers(x, y, d)); quick[d] == true) {
        BEVEL_ASSERT(!compareQuickAnswers || apartInDimension(x, y, d), "numbers and expressions disagree");
        return true;
      }
    for (size_t d = 0; d < rank; ++d)
      if (!quick[d] && apartInDimension(x, y, d)) return true;
    return sameIndices(w, a) && oneToOne(x, a);
  }

  /// Nothing when numbers do not tell.
  std::optional<bool> apartByNumbers(const Accessed& x, const Accessed& y, size_t d) const {
    const auto &a = x.entry->forms[d], &b = y.entry->forms[d];
    auto widthA = asConst(x.access().region[d]->extent), widthB = asConst(y.access().region[d]->extent);
    if (!a || !b || !widthA || !widthB || *widthA < 1 || *widthB < 1) return std::nullopt;
    LinearForm rest;
    auto p = boundInside(*a, loop_->var, x.loops, rest, 1),
         q = boundInside(*b, loop_->var, y.loops, rest, -1);
    if (!p || !q || !rest.valid) return std::nullopt;
    int64_t factor = a->coefOf(loop_->var), step = std::max(factor, arith::satNeg(factor)), pq = 0, qp = 0;
    if (factor == 0 || factor != b->coefOf(loop_->var) || !rest.terms.empty()) return false;
    return !__builtin_add_overflow(p->max, *widthA - 1, &p->max) &&
           !__builtin_add_overflow(q->max, *widthB - 1, &q->max) &&
           !__builtin_sub_overflow(p->max, q->min, &pq) && !__builtin_sub_overflow(q->max, p->min, &qp) &&
           pq < step && qp < step;
  }

  /// A block around allocates the buffer, nothing outside of the loop touches it, and no iteration leaves anything in
  /// it for another.
  bool isPrivate(const Buffer& buffer) {
    auto [at, fresh] = private_.try_emplace(buffer->data, false);
    if (!fresh) return at->second;
    bool allocated = std::ranges::any_of(model_.around, [&](const Stmt& s) {
      const auto* r = s.as<BlockRealizeNode>();
      return r && std::ranges::any_of(r->block->allocs.raw(), [&](const NodeRef& b) {
               return b.as<BufferNode>()->data == buffer->data;
             });
    });
    if (!allocated || usesBuffer(model_.around.front(), buffer->data, loop_)) return false;
    if (!inside_) inside_.emplace(loop_->body, std::vector<Stmt>(), kInsideBlocks);
    return at->second = isPrivateToIteration(*inside_, loop_, buffer, analyzer());
  }

  /// |step| of the loop exceeds every distance between the rest of one index and of the other.
  bool apartInDimension(const Accessed& x, const Accessed& y, size_t d) {
    const BufferAccess &w = x.access(), &a = y.access();
    auto lw = linearIn(w.region[d]->min, loop_->var, analyzer()),
         la = linearIn(a.region[d]->min, loop_->var, analyzer());
    if (!lw || !la) return false;
    auto cw = asConst(lw->factor), ca = asConst(la->factor);
    if (!cw || !ca || *cw != *ca || *cw == 0) return false;
    IntSet rw = relax(lw->rest, w.region[d]->extent, x.loops),
           ra = relax(la->rest, a.region[d]->extent, y.loops);
    if (!rw.bounded() || !ra.bounded()) return false;
    Expr step = intImm(std::max(*cw, arith::satNeg(*cw)));
    return analyzer().prove(castTo(kInt64, rw.max - ra.min) < step) &&
           analyzer().prove(castTo(kInt64, ra.max - rw.min) < step);
  }
  IntSet relax(const Expr& offset, const Expr& extent, Loops loops) {
    return relaxed(offset, extent, {loops.begin(), loops.end()}, analyzer());
  }

  static bool sameIndices(const BufferAccess& w, const BufferAccess& a) {
    if (w.region.size() != a.region.size()) return false;
    for (size_t d = 0; d < w.region.size(); ++d)
      if (!same(w.region[d], a.region[d])) return false;
    return true;
  }
  /// The loop and the loops inside that the indices use map one to one to elements, under the conditions that
  /// hold of both accesses; it is enough when they do together with the loops around.
  bool oneToOne(const Accessed& x, const BufferAccess& a) {
    const BufferAccess& w = x.access();
    Array<Expr> indices;
    for (const Range& r : w.region) {
      if (!isConst(r->extent, 1)) return false;
      indices.push_back(r->min);
    }
    auto used = [&](const VarRange& l) {
      return std::ranges::any_of(indices, [&](const Expr& i) { return usesVar(i, l.first); });
    };
    IterRanges iters{{loop_->var, range(loop_->min, loop_->extent)}}, around;
    std::ranges::copy_if(x.loops, std::back_inserter(iters), used);
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

  const AccessModel& model_;
  const For& loop_;
  bool allowReduction_;
  std::vector<Accessed> accesses_;
  std::optional<Analyzer> analyzer_;
  std::vector<VarRange> enclosing_;
  std::optional<AccessModel> inside_;              // of blocks too
  std::unordered_map<Var, bool, RefHash> private_; // what is known of buffers, by data variable
  std::unordered_map<const Object*, const BlockNode*> reductionOf_; // accesses of accumulated elements
};

} // namespace

Status checkIndependent(const AccessModel& model, const For& loop, bool allowReduction) {
  return LoopCheck(model, loop, allowReduction).run();
}

bool touchesApart(const AccessModel& model, const For& loop, const Var& data, const BlockRealizeNode* one,
                  const BlockRealizeNode* other) {
  return LoopCheck(model, loop, false).touchesApart(data, one, other);
}

std::vector<int> between(const ScopeInfo& scope, int block, const Place& place, const Var& data,
                         bool writing) {
  const ScopeBlock& self = scope.blocks[size_t(block)];
  size_t common = sharedLoops(self.loops, place.loops);
  bool later = place.position > block;
  auto runsAround = [&](const ScopeBlock& x) {
    if (sharedLoops(x.loops, place.loops) > common) return true;
    for (size_t i = common, end = sharedLoops(x.loops, self.loops); i < end; ++i) {
      bool again =
          later && writing && data && !usesVar(self.realize, self.loops[i]->var); // the last run counts
      if (again ||
          (data && touchesApart(scope.model, self.loops[i], data, self.realize.get(), x.realize.get())))
        continue;
      return true;
    }
    return false;
  };
  std::vector<int> out;
  for (int i = 0; i < int(scope.blocks.size()); ++i) {
    const ScopeBlock& x = scope.blocks[size_t(i)];
    bool touches =
        data ? writes(x.block(), data) || (!writing && reads(x.block(), data)) : hasOrderedEffect(x.block());
    bool passed = later ? i > block && i < place.position : i >= place.position && i < block;
    if (i != block && touches && (passed || runsAround(x))) out.push_back(i);
  }
  return out;
}

} // namespace bevel
