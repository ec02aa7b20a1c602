// Detection, normal form, inverse and subspace division of iteration maps.
#include "arith/iter_map.h"

#include "arith/iter_parser.h"
#include "ir/structural.h"

#include <algorithm>

namespace bevel {

using namespace arith;

bool compareQuickAnswers = false;

static Result<IterMap> detectGeneral(const Array<Expr>& indices, const IterRanges& iters,
                                     const Expr& predicate, Analyzer& analyzer, IterMapLevel level) {
  BoundIterators bound(iters, analyzer);
  IterParser parser(iters, analyzer, level);
  BEVEL_CHECK(parser.addPredicate(predicate));
  IterMap out;
  out.iters = iters;
  for (const Expr& index : indices) {
    BEVEL_TRY(IterSum sum, parser.parse(index));
    auto fused = parser.fuse(sum);
    if (!fused && level == IterMapLevel::kInjective) fused = parser.orderStrided(sum);
    if (!fused) return fail(std::move(fused.error()));
    DType t = index->dtype;
    Expr extent = constant(t, 1);
    for (const IterSplit& p : fused->pieces) extent = extent + (p.extent - 1) * p.scale;
    bool dense = fused->pieces.empty() ||
                 (fused->pieces.size() == 1 && analyzer.proveEqual(fused->pieces[0].scale, constant(t, 1)));
    if (!dense && level != IterMapLevel::kInjective)
      return fail(
          Error(ErrorCode::kIllegal, "not an affine map of the iterators: the index skips values").at(index));
    out.extents.push_back(analyzer.simplify(extent));
    out.indices.push_back(std::move(*fused));
  }
  BEVEL_CHECK(parser.checkPieces(out.indices));
  return out;
}

Result<IterMap> detectIterMap(const Array<Expr>& indices, const IterRanges& iters, const Expr& predicate,
                              Analyzer& analyzer, IterMapLevel level) {
  auto plain = plainIterMap(indices, iters, predicate, analyzer, level);
  if (!plain) return detectGeneral(indices, iters, predicate, analyzer, level);
  if (compareQuickAnswers) {
    auto general = detectGeneral(indices, iters, predicate, analyzer, level);
    BEVEL_ASSERT(general.has_value(), "only the quick recognition accepts a map");
    BoundIterators bound(iters, analyzer);
    for (size_t i = 0; i < indices.size(); ++i)
      BEVEL_ASSERT(analyzer.proveEqual(plain->extents[i], general->extents[i]) &&
                       (level == IterMapLevel::kInjective ||
                        analyzer.proveEqual(plain->indices[i].base, general->indices[i].base)),
                   "the quick recognition finds another map");
  }
  return std::move(*plain);
}

Expr normalize(const IterSplit& p, Analyzer& an) {
  Expr e = p.source->var ? p.source->source : normalize(p.source->sum, an);
  auto widen = [](const Expr& x, DType t) { return x->dtype == t ? x : castTo(t, x); };
  e = widen(e, p.extent->dtype);
  bool all = an.proveLessEqual(widen(p.source->extent, p.extent->dtype), p.lowerFactor * p.extent);
  if (!isConst(p.lowerFactor, 1)) e = floordiv(e, p.lowerFactor);
  if (!all) e = floormod(e, p.extent);
  return isConst(p.scale, 1) ? e : e * p.scale;
}

Expr normalize(const IterSum& sum, Analyzer& an) {
  Expr e;
  for (const IterSplit& p : sum.pieces) e = e ? e + normalize(p, an) : normalize(p, an);
  if (!e) return sum.base;
  return isConst(sum.base, 0) ? e : e + sum.base;
}

namespace {

/// Values of marks, gathered from the pieces that make them up.
class Inverter {
public:
  explicit Inverter(Analyzer& an) : an_(an) {}

  void give(const IterSplit& p, const Expr& value) {
    Expr part = isConst(p.lowerFactor, 1) ? value : value * p.lowerFactor;
    for (Entry& e : entries_)
      if (e.mark == p.source) {
        e.value = e.value + part;
        return;
      }
    entries_.push_back({p.source, part});
  }

  /// Hands the values of fused marks down to their pieces until only variables are left.
  void spread() {
    // A fused mark is complete when no other fused mark below or beside it still feeds it: outer marks come
    // first, as every piece of a mark is given before the mark is spread.
    bool progress = true;
    while (progress) {
      progress = false;
      for (size_t i = 0; i < entries_.size(); ++i) {
        if (entries_[i].mark->var || entries_[i].spread || isFedByAnother(i)) continue;
        entries_[i].spread = true;
        progress = true;
        IterMark mark = entries_[i].mark;
        Expr total = an_.simplify(entries_[i].value - mark->sum.base);
        for (size_t k = 0; k < mark->sum.pieces.size(); ++k) {
          const IterSplit& p = mark->sum.pieces[k];
          Expr v = isConst(p.scale, 1) ? total : floordiv(total, p.scale);
          give({p.source, p.lowerFactor, p.extent, p.scale}, k == 0 ? v : floormod(v, p.extent));
        }
      }
    }
  }

  Expr valueOf(const Var& v) const {
    for (const Entry& e : entries_)
      if (e.mark->var == v) return e.value;
    return nullptr;
  }

private:
  struct Entry {
    IterMark mark;
    Expr value;
    bool spread = false;
  };
  bool isFedByAnother(size_t i) const {
    for (const Entry& e : entries_) {
      if (e.spread || e.mark->var || e.mark == entries_[i].mark) continue;
      for (const IterSplit& p : e.mark->sum.pieces)
        if (p.source == entries_[i].mark) return true;
    }
    return false;
  }
  Analyzer& an_;
  std::vector<Entry> entries_;
};

} // namespace

Result<std::unordered_map<Var, Expr, RefHash>>
inverseIterMap(const IterMap& map, const std::vector<Expr>& values, Analyzer& analyzer) {
  BEVEL_ASSERT(values.size() == map.indices.size(), "one value for each index");
  Inverter inverter(analyzer);
  for (size_t i = 0; i < values.size(); ++i) {
    const IterSum& sum = map.indices[i];
    Expr left = isConst(sum.base, 0) ? values[i] : values[i] - sum.base;
    for (size_t k = 0; k < sum.pieces.size(); ++k) { // scales descending: peel them off
      const IterSplit& p = sum.pieces[k];
      bool one = isConst(p.scale, 1);
      inverter.give(p, one ? left : floordiv(left, p.scale));
      if (!one) left = floormod(left, p.scale);
    }
  }
  inverter.spread();
  std::unordered_map<Var, Expr, RefHash> out;
  for (const auto& [v, r] : map.iters) {
    Expr value = inverter.valueOf(v);
    if (!value && !isConst(analyzer.simplify(r->extent), 1))
      return fail(Error(ErrorCode::kIllegal, "the map has no inverse: an iterator is not used").at(v));
    out[v] = analyzer.simplify(value ? r->min + value : r->min);
  }
  return out;
}

namespace {

/// A sum divided: value = outer * innerExtent + inner.
class SubspaceDivider {
public:
  SubspaceDivider(const std::vector<Var>& inner, Analyzer& an) : inner_(inner), an_(an) {}

  Result<DividedIndex> divide(const IterSum& sum) {
    DType t = sum.base->dtype;
    Expr zero = constant(t, 0), one = constant(t, 1);
    DividedIndex out{zero, zero, one, one};
    bool outerSeen = false;
    for (size_t i = sum.pieces.size(); i-- > 0;) { // smallest scale first
      const IterSplit& p = sum.pieces[i];
      BEVEL_TRY(DividedIndex d, dividePiece(p));
      bool hasInner = !isConst(d.innerExtent, 1), hasOuter = !isConst(d.outerExtent, 1);
      if (hasInner && outerSeen)
        return fail(
            Error(ErrorCode::kIllegal, "an inner iterator lies outside an outer one in the same index")
                .at(normalize(sum, an_)));
      if (hasInner) {
        out.inner = out.inner + d.inner * out.innerExtent;
        out.innerExtent = an_.simplify(out.innerExtent * d.innerExtent);
      }
      if (hasOuter) {
        out.outer = out.outer + d.outer * out.outerExtent;
        out.outerExtent = an_.simplify(out.outerExtent * d.outerExtent);
        outerSeen = true;
      }
    }
    return out;
  }

private:
  Result<DividedIndex> dividePiece(const IterSplit& p) {
    DType t = p.extent->dtype;
    Expr zero = constant(t, 0), one = constant(t, 1);
    IterSplit unit = p;
    unit.scale = one;
    if (p.source->var) {
      bool isInner = std::find(inner_.begin(), inner_.end(), p.source->var) != inner_.end();
      Expr e = normalize(unit, an_);
      return isInner ? DividedIndex{zero, e, one, p.extent} : DividedIndex{e, zero, p.extent, one};
    }
    BEVEL_TRY(DividedIndex m, divide(p.source->sum)); // source = outer * K + inner
    Expr k = m.innerExtent, low = p.lowerFactor, high = an_.simplify(p.lowerFactor * p.extent);
    auto piece = [&](Expr e, const Expr& total, const Expr& from, const Expr& extent) {
      if (!isConst(from, 1)) e = floordiv(e, from);
      return an_.proveLessEqual(total, from * extent) ? e : floormod(e, extent);
    };
    auto divides = [&](const Expr& a, const Expr& b) { return isConst(an_.simplify(floormod(a, b)), 0); };
    if (isConst(k, 1)) return DividedIndex{piece(m.outer, m.outerExtent, low, p.extent), zero, p.extent, one};
    if (an_.proveLessEqual(high, k) && divides(k, high))
      return DividedIndex{zero, piece(m.inner, k, low, p.extent), one, p.extent};
    if (divides(low, k)) {
      Expr from = an_.simplify(floordiv(low, k));
      return DividedIndex{piece(m.outer, m.outerExtent, from, p.extent), zero, p.extent, one};
    }
    if (!divides(k, low) || !divides(high, k))
      return fail(Error(ErrorCode::kIllegal, "a piece of a fused index straddles the inner tile")
                      .at(normalize(p, an_)));
    Expr innerExtent = an_.simplify(floordiv(k, low)), outerExtent = an_.simplify(floordiv(high, k));
    return DividedIndex{piece(m.outer, m.outerExtent, one, outerExtent), piece(m.inner, k, low, innerExtent),
                        outerExtent, innerExtent};
  }

  const std::vector<Var>& inner_;
  Analyzer& an_;
};

void splitPredicate(const Expr& e, const IterRanges& iters, const std::vector<Var>& inner,
                    DividedSubspace& out) {
  auto b = e.as<BinaryNode>();
  if (b && b->op == BinaryOp::kAnd) {
    splitPredicate(b->a, iters, inner, out);
    splitPredicate(b->b, iters, inner, out);
    return;
  }
  bool usesInner = usesAnyVar(e, [&](const VarNode* v) {
    return std::any_of(inner.begin(), inner.end(), [v](const Var& x) { return x.get() == v; });
  });
  Expr& side = usesInner ? out.innerPredicate : out.outerPredicate;
  side = isConst(side, 1) ? e : logicalAnd(side, e);
}

} // namespace

Result<DividedSubspace> divideSubspace(const Array<Expr>& indices, const IterRanges& iters,
                                       const std::vector<Var>& inner, const Expr& predicate,
                                       Analyzer& analyzer) {
  BEVEL_TRY(IterMap map, detectIterMap(indices, iters, nullptr, analyzer, IterMapLevel::kSurjective));
  BoundIterators bound(iters, analyzer);
  DividedSubspace out{{}, boolImm(true), boolImm(true)};
  SubspaceDivider divider(inner, analyzer);
  for (const IterSum& sum : map.indices) {
    BEVEL_TRY(DividedIndex d, divider.divide(sum));
    d.outer = analyzer.simplify(d.outer);
    d.inner = analyzer.simplify(d.inner);
    if (!isConst(sum.base, 0)) { // the offset goes to the inner part of an index without outer iterators
      if (isConst(d.outerExtent, 1))
        d.inner = analyzer.simplify(d.inner + sum.base);
      else if (isConst(d.innerExtent, 1))
        d.outer = analyzer.simplify(d.outer + sum.base);
      else if (isConst(analyzer.simplify(floormod(sum.base, d.innerExtent)), 0))
        d.outer = analyzer.simplify(d.outer + floordiv(sum.base, d.innerExtent));
      else
        return fail(Error(ErrorCode::kIllegal, "the offset of an index is not a multiple of its inner tile")
                        .at(sum.base));
    }
    out.indices.push_back(std::move(d));
  }
  if (predicate && !isConst(predicate, 1)) splitPredicate(predicate, iters, inner, out);
  return out;
}

} // namespace bevel
