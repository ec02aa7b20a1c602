// The common iteration maps, recognised without the general machinery: each index is a sum of different
// iterators with constant factors, each of which is larger than all that the smaller ones reach. A condition may
// cut such a sum at its upper end.
#include "arith/iter_parser.h"

#include "ir/structural.h"

#include <algorithm>

namespace bevel::arith {

namespace {

class PlainMap {
public:
  PlainMap(const IterRanges& iters, IterMapLevel level, Analyzer& analyzer)
      : iters_(iters), level_(level), an_(analyzer), used_(iters.size(), false) {
    map.iters = iters;
  }
  IterMap map;

  bool add(const Expr& index, const Expr& limit) {
    auto form = plainForm(index);
    return form && collect(*form, index->dtype) && chain(index->dtype, limit);
  }
  bool isComplete() const {
    if (level_ == IterMapLevel::kSurjective) return true;
    for (size_t k = 0; k < iters_.size(); ++k)
      if (!used_[k] && !isConst(iters_[k].second->extent, 1)) return false;
    return true;
  }

private:
  struct Piece {
    size_t iter;
    int64_t factor;
    std::optional<int64_t> extent;
  };

  /// The iterators of the index, smallest factor first, and what remains as its base.
  bool collect(const LinearForm& form, DType t) {
    pieces_.clear();
    LinearForm rest = LinearForm::of(form.constant);
    for (const Term& term : form.terms) {
      size_t k = 0;
      while (k < iters_.size() && Expr(iters_[k].first) != term.atom) ++k;
      if (k == iters_.size()) {
        rest.add(term.atom, term.coef);
        continue;
      }
      auto min = asConst(iters_[k].second->min), extent = asConst(iters_[k].second->extent);
      auto first = min ? checkedMul(*min, term.coef) : std::nullopt;
      if (used_[k] || !first || (extent && *extent < 1)) return false;
      used_[k] = true;
      rest.addConst(*first);
      if (extent == 1) continue;
      if (term.coef < 0) return false;
      pieces_.push_back({k, term.coef, extent});
    }
    std::ranges::sort(pieces_, {}, &Piece::factor);
    base_ = rest.valid ? an_.toExpr(rest, t) : nullptr;
    return base_ != nullptr;
  }

  bool chain(DType t, const Expr& limit) {
    std::optional<int64_t> reach = 1; // one more than the largest value so far; nothing when it is symbolic
    bool dense = true;
    Expr total = constant(t, 1), one = total;
    std::vector<IterSplit> splits; // scales descending
    for (const Piece& p : pieces_) {
      const auto& [v, range] = iters_[p.iter];
      if (!reach || p.factor < *reach || !fitsDType(p.factor, t)) return false;
      dense = dense && p.factor == *reach;
      auto span = p.extent ? checkedMul(*p.extent - 1, p.factor) : std::nullopt;
      if (p.extent && !span) return false;
      reach = span ? checkedAdd(*reach, *span) : std::nullopt;
      if ((span && !reach) || (reach && !fitsDType(*reach, t))) return false;
      total = reach ? constant(t, *reach) : range->extent * p.factor;
      splits.insert(splits.begin(), {variableMark(v, range), one, range->extent, constant(t, p.factor)});
    }
    if (!dense && (limit || level_ != IterMapLevel::kInjective)) return false;
    if (limit && !isConst(base_, 0)) return false;
    if (limit) total = an_.simplify(min(limit, total));
    if (dense && (limit ? !splits.empty() : splits.size() > 1))
      splits = {{sumMark(std::move(splits), constant(t, 0), total), one, total, one}};
    map.indices.push_back({std::move(splits), base_});
    map.extents.push_back(total);
    return true;
  }

  const IterRanges& iters_;
  IterMapLevel level_;
  Analyzer& an_;
  std::vector<bool> used_;
  std::vector<Piece> pieces_;
  Expr base_;
};

/// The limit of each index in a condition `index < limit and …`; false when it has other parts.
bool limitsOf(const Expr& condition, const Array<Expr>& indices, const IterRanges& iters,
              std::vector<Expr>& limits) {
  const auto* b = condition.as<BinaryNode>();
  if (b && b->op == BinaryOp::kAnd)
    return limitsOf(b->a, indices, iters, limits) && limitsOf(b->b, indices, iters, limits);
  if (!b || b->op != BinaryOp::kLt) return false;
  size_t i = 0;
  while (i < indices.size() && !same(indices[i], b->a)) ++i;
  bool moves = usesAnyVar(b->b, [&](const VarNode* v) {
    return std::ranges::any_of(iters, [&](const auto& it) { return it.first.get() == v; });
  });
  if (i == indices.size() || limits[i] || moves) return false;
  limits[i] = b->b;
  return true;
}

} // namespace

std::optional<IterMap> plainIterMap(const Array<Expr>& indices, const IterRanges& iters,
                                    const Expr& predicate, Analyzer& analyzer, IterMapLevel level) {
  std::vector<Expr> limits(indices.size());
  if (predicate && !isConst(predicate, 1) && !limitsOf(predicate, indices, iters, limits))
    return std::nullopt;
  PlainMap plain(iters, level, analyzer);
  for (size_t i = 0; i < indices.size(); ++i)
    if (!plain.add(indices[i], limits[i])) return std::nullopt;
  if (!plain.isComplete()) return std::nullopt;
  return std::move(plain.map);
}

} // namespace bevel::arith
