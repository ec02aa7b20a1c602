// One walk over the statements that run unconditionally; see the header.
#include "loop/size_conditions.h"

#include "arith/linear.h"
#include "ir/structural.h"
#include "loop/kernel_signature.h"
#include "loop/regions.h"

#include <algorithm>
#include <unordered_set>

namespace bevel {
namespace {

class SizeWalk {
public:
  explicit SizeWalk(const PrimFunc& f) {
    bindDims(f, analyzer_);
    for (const Var& v : kernelDims(f)) sizes_.insert(v);
    visit(f->body);
  }
  std::vector<Expr> conditions;

private:
  void visit(const Stmt& s) {
    if (!s) return;
    if (const auto* all = s.as<SeqNode>())
      for (const Stmt& item : all->stmts) visit(item);
    else if (const auto* loop = s.as<ForNode>())
      visitLoop(*loop);
    else if (const auto* realize = s.as<BlockRealizeNode>())
      visitBlock(*realize);
    else if (const auto* store = s.as<StoreNode>()) {
      if (store->predicate) return;
      check(store->buffer, store->indices);
      for (const Expr& e : store->indices) visitLoads(e);
      visitLoads(store->value);
    } else if (const auto* evaluate = s.as<EvaluateNode>())
      visitLoads(evaluate->value);
  }

  void visitLoop(const ForNode& loop) {
    Expr min = substitute(loop.min, axes_), extent = substitute(loop.extent, axes_);
    if (!isOfSizes(min) || !isOfSizes(extent)) return; // the iterations depend on the loops around
    loops_.push_back(loop.var);
    ranges_.push_back({min, extent});
    visit(loop.body);
    loops_.pop_back();
    ranges_.pop_back();
  }

  void visitBlock(const BlockRealizeNode& r) {
    if (!isConst(r.predicate, 1) || !r.block->matches.empty()) return;
    for (size_t i = 0; i < r.values.size(); ++i)
      axes_[r.block->iters[i]->var] = substitute(r.values[i], axes_);
    visit(r.block->init);
    visit(r.block->body);
  }

  /// Loads that are evaluated whenever the expression is.
  void visitLoads(const Expr& e) {
    walk(e, [&](const NodeRef& n) {
      if (n.is<CallNode>() || n.is<SelectNode>() || n.is<ReduceNode>()) return false;
      if (const auto* b = n.as<BinaryNode>(); b && b->dtype.isBool()) return false;
      const auto* l = n.as<LoadNode>();
      if (l && !l->predicate) check(l->buffer, l->indices);
      return true;
    });
  }

  void check(const Buffer& b, const Array<Expr>& indices) {
    for (size_t d = 0; d < indices.size(); ++d) {
      auto ends = endsOf(indices[d]);
      if (!ends || !isOfSizes(b->shape[d])) continue;
      require(ends->first >= constant(ends->first->dtype, 0));
      require(castTo(kInt64, ends->second) < castTo(kInt64, b->shape[d]));
    }
  }

  /// The least and the greatest value of an index that is linear in the loops.
  std::optional<std::pair<Expr, Expr>> endsOf(const Expr& index) {
    if (index->dtype.isVector() || !index->dtype.isInteger()) return std::nullopt;
    auto form = linearIn(substitute(index, axes_), loops_, analyzer_);
    if (!form || !isOfSizes(form->offset)) return std::nullopt;
    Expr least = form->offset, greatest = form->offset;
    for (size_t i = 0; i < loops_.size(); ++i) {
      auto coefficient = asConst(form->coefficients[i]);
      if (!coefficient) return std::nullopt;
      if (*coefficient == 0) continue;
      auto type = index->dtype;
      Expr factor = constant(type, *coefficient), first = castTo(type, ranges_[i].first) * factor,
           last = castTo(type, ranges_[i].first + ranges_[i].second - 1) * factor;
      if (*coefficient < 0) std::swap(first, last);
      least = least + first, greatest = greatest + last;
    }
    return std::pair(analyzer_.simplify(least), analyzer_.simplify(greatest));
  }

  void require(Expr condition) {
    for (const auto& [min, extent] : ranges_)
      if (auto c = asConst(extent); !c || *c <= 0)
        condition = logicalOr(extent <= constant(extent->dtype, 0), condition);
    condition = analyzer_.simplify(condition);
    if (analyzer_.prove(condition)) return;
    bool known = std::any_of(conditions.begin(), conditions.end(),
                             [&](const Expr& c) { return structuralEqual(c, condition); });
    if (!known) conditions.push_back(condition);
  }

  bool isOfSizes(const Expr& e) const {
    bool ok = true;
    walk(e, [&](const NodeRef& n) {
      if (n.is<VarNode>()) ok &= sizes_.contains(cast<VarNode>(n));
      ok &= !n.is<LoadNode>() && !n.is<CallNode>();
      return ok;
    });
    return ok;
  }

  Analyzer analyzer_;
  std::unordered_set<Var, RefHash> sizes_;
  std::vector<Var> loops_;
  std::vector<std::pair<Expr, Expr>> ranges_; // min and extent of each
  VarMap axes_;                               // of blocks, as expressions of the loops
};

} // namespace

std::vector<Expr> sizeConditions(const PrimFunc& f) {
  return SizeWalk(f).conditions;
}

} // namespace bevel
