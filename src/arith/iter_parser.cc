// Parsing indices into pieces of iterators, and checking the pieces.
//
// 1. Each iterator of extent > 1 is a mark. The simplified index is a sum of terms; a term is an iterator, or a
//    quotient or remainder of a sum that fuses into one dense mark, times something free of iterators.
// 2. Pieces fuse when, from the smallest scale up, each scale is the previous scale times the previous extent.
//    Equal sums give the same mark, so that `f // 8` and `f % 8` are seen to be two pieces of one thing.
// 3. A predicate that bounds a fusible sum gives a mark with the cut extent; it is taken wherever its pieces
//    occur together.
// 4. Pieces of one mark must not overlap; the level says whether they must also be complete.
#include "arith/iter_parser.h"

#include "ir/structural.h"

#include <algorithm>

namespace bevel::arith {

namespace {

Error notAffine(const Expr& e, const char* why) {
  return Error(ErrorCode::kIllegal, std::string("not an affine map of the iterators: ") + why).at(e);
}

std::vector<Var> varsOf(const IterRanges& iters) {
  std::vector<Var> out;
  for (const auto& [v, r] : iters) out.push_back(v);
  return out;
}

} // namespace

IterMark variableMark(const Var& v, const Range& r) {
  auto m = make<IterMarkNode>();
  m->var = v;
  m->source = isConst(r->min, 0) ? Expr(v) : v - r->min;
  m->extent = r->extent;
  return IterMark(m.get());
}

IterMark sumMark(std::vector<IterSplit> pieces, const Expr& base, const Expr& extent) {
  auto m = make<IterMarkNode>();
  m->sum = {std::move(pieces), base};
  m->extent = extent;
  return IterMark(m.get());
}

BoundIterators::BoundIterators(const IterRanges& iters, Analyzer& analyzer)
    : an_(analyzer), saved_(analyzer.save(varsOf(iters))) {
  for (const auto& [v, r] : iters) an_.unbind(v);
  for (const auto& [v, r] : iters) an_.bind(v, r);
}
BoundIterators::~BoundIterators() {
  an_.putBack(saved_);
}

IterParser::IterParser(const IterRanges& iters, Analyzer& analyzer, IterMapLevel level)
    : an_(analyzer), level_(level) {
  for (const auto& [v, r] : iters) {
    Expr extent = simp(r->extent);
    if (isConst(extent, 1)) continue;
    if (!asConst(extent)) extent = r->extent; // a product is kept: its factors divide it
    marks_.push_back(variableMark(v, range(simp(r->min), extent)));
  }
}

bool IterParser::usesIterators(const Expr& e) const {
  return usesAnyVar(e, [this](const VarNode* v) {
    return std::any_of(marks_.begin(), marks_.end(), [v](const IterMark& m) { return m->var.get() == v; });
  });
}

bool IterParser::samePiece(const IterSplit& a, const IterSplit& b) {
  return a.source == b.source && equal(a.lowerFactor, b.lowerFactor) && equal(a.extent, b.extent);
}

void IterParser::addPiece(IterSum& sum, const IterSplit& piece) {
  for (size_t i = 0; i < sum.pieces.size(); ++i) {
    if (!samePiece(sum.pieces[i], piece)) continue;
    sum.pieces[i].scale = simp(sum.pieces[i].scale + piece.scale);
    if (isConst(sum.pieces[i].scale, 0)) sum.pieces.erase(sum.pieces.begin() + ptrdiff_t(i));
    return;
  }
  sum.pieces.push_back(piece);
}

static void convert(IterSplit& piece, DType t) {
  for (Expr* x : {&piece.lowerFactor, &piece.extent, &piece.scale}) *x = castTo(t, *x);
}

static void convert(IterSum& sum, DType t) {
  for (IterSplit& p : sum.pieces) convert(p, t);
  sum.base = castTo(t, sum.base);
}

Result<IterSum> IterParser::parse(const Expr& e) {
  if (!isIndexType(e->dtype)) return fail(notAffine(e, "the index is not of an index type"));
  Expr s = simp(e);
  DType t = e->dtype;
  auto form = an_.exactForm(s);
  IterSum sum{{}, constant(t, 0)};
  LinearForm base = LinearForm::of(form.constant);
  for (const Term& term : form.terms) {
    if (!usesIterators(term.atom)) {
      base.add(term.atom, term.coef);
      continue;
    }
    if (!an_.isExact(term.atom)) return fail(notAffine(e, "its arithmetic may wrap"));
    std::vector<Expr> factors;
    collectFactors(term.atom, factors);
    Expr moving, scale = fitsDType(term.coef, t) ? constant(t, term.coef) : nullptr;
    if (!scale) return fail(notAffine(e, "a coefficient leaves the index type"));
    for (const Expr& f : factors) {
      if (!usesIterators(f))
        scale = scale * f;
      else if (moving)
        return fail(notAffine(e, "iterators are multiplied with each other"));
      else
        moving = f;
    }
    BEVEL_TRY(IterSum part, parseAtom(moving));
    for (IterSplit& p : part.pieces) {
      p.scale = simp(p.scale * scale);
      addPiece(sum, p);
    }
    sum.base = sum.base + part.base * scale;
  }
  Expr rest = an_.toExpr(base, t);
  if (!rest) return fail(notAffine(e, "the offset leaves the index type"));
  sum.base = simp(sum.base + rest);
  DType widest = sum.base->dtype;
  for (const IterSplit& p : sum.pieces)
    if (p.scale->dtype.bits > widest.bits) widest = p.scale->dtype;
  if (widest != t) convert(sum, widest);
  return sum;
}

Result<IterSum> IterParser::parseAtom(const Expr& atom) {
  DType t = atom->dtype;
  Expr one = constant(t, 1);
  if (atom->kind == Kind::kVar) {
    for (const IterMark& m : marks_)
      if (Expr(m->var) == atom) {
        Expr min = m->source == atom ? constant(t, 0) : simp(atom - m->source);
        return IterSum{{{m, one, m->extent, one}}, min};
      }
  }
  if (auto c = atom.as<CastNode>(); c && isIndexType(t) && isIndexType(c->value->dtype)) {
    bool narrows = t.bits < c->value->dtype.bits;
    ConstBound b = narrows ? an_.bound(c->value) : ConstBound{0, 0};
    if (narrows && (b.min < minValue(t) || b.max > maxValue(t)))
      return fail(notAffine(atom, "a value is cast to a type that may not hold it"));
    BEVEL_TRY(IterSum inner, parse(c->value));
    if (!narrows) convert(inner, t); // else its parts stay wide: alone they may not fit
    return inner;
  }
  auto b = atom.as<BinaryNode>();
  bool divides = b && (b->op == BinaryOp::kFloorDiv || b->op == BinaryOp::kFloorMod);
  bool truncates = b && (b->op == BinaryOp::kDiv || b->op == BinaryOp::kMod) && an_.bound(b->a).min >= 0;
  if (!(divides || truncates))
    return fail(notAffine(atom, "an operation other than +, -, *, // and % is applied"));
  Expr zero = constant(t, 0);
  if (usesIterators(b->b) || !an_.proveLess(zero, b->b))
    return fail(notAffine(atom, "a divisor is not known to be positive"));
  BEVEL_TRY(IterSum inner, parse(b->a));
  BEVEL_TRY(IterSum one1, fuse(inner));
  return divide(one1, b->b, b->op == BinaryOp::kFloorMod || b->op == BinaryOp::kMod, atom);
}

/// ceil(extent / d): what is left of a product when d is one of its factors.
Expr IterParser::dividedExtent(const Expr& extent, const Expr& d) {
  std::vector<Expr> factors;
  collectFactors(extent, factors);
  auto it = std::ranges::find_if(factors, [&](const Expr& f) { return equal(f, d); });
  Expr one = constant(extent->dtype, 1);
  if (factors.size() < 2 || it == factors.end()) return simp(floordiv(extent + d - one, d));
  factors.erase(it);
  Expr left = factors[0];
  for (size_t i = 1; i < factors.size(); ++i) left = left * factors[i];
  return left;
}

/// sum is one piece (or none) plus base.
Result<IterSum> IterParser::divide(const IterSum& sum, const Expr& c, bool mod, const Expr& at) {
  DType t = at->dtype;
  Expr zero = constant(t, 0), one = constant(t, 1);
  auto rest = [&](const Expr& base) { return simp(mod ? floormod(base, c) : floordiv(base, c)); };
  if (sum.pieces.empty()) return IterSum{{}, rest(sum.base)};
  IterSplit p = sum.pieces[0];
  if (divisible(p.scale, c)) { // the piece divides exactly, whatever the base
    if (mod) return IterSum{{}, rest(sum.base)};
    p.scale = simp(floordiv(p.scale, c));
    return IterSum{{p}, rest(sum.base)};
  }
  if (!divisible(sum.base, c))
    return fail(notAffine(
        at, "a quotient or remainder is taken of an index with an offset that the divisor does not divide"));
  if (!divisible(c, p.scale)) return fail(notAffine(at, "a divisor is not a multiple of the scale"));
  Expr d = simp(floordiv(c, p.scale)); // (piece * scale + k*c) // c = piece // d + k
  Expr base = rest(sum.base);
  if (an_.proveLessEqual(p.extent, d)) { // the piece stays below the divisor
    if (mod) return IterSum{{p}, base};
    return IterSum{{}, base};
  }
  bool outermost = !an_.proveLess(p.lowerFactor * p.extent, p.source->extent);
  if (!outermost && !divisible(p.extent, d))
    return fail(notAffine(at, "a remainder is divided by something that does not divide its extent"));
  if (mod) {
    p.extent = d;
  } else {
    p.extent = dividedExtent(p.extent, d);
    p.lowerFactor = simp(p.lowerFactor * d);
    p.scale = one;
  }
  return IterSum{{p}, base};
}

IterMark IterParser::fusedMark(std::vector<IterSplit> pieces, const Expr& extent) {
  auto equalPieces = [this](const IterSplit& a, const IterSplit& b) {
    return samePiece(a, b) && equal(a.scale, b.scale);
  };
  for (const IterMark& m : fused_)
    if (std::ranges::equal(m->sum.pieces, pieces, equalPieces)) return m;
  fused_.push_back(sumMark(std::move(pieces), constant(extent->dtype, 0), extent));
  return fused_.back();
}

/// Takes the pieces of a constrained sum, scaled, out of `left`; the largest such sum first.
bool IterParser::takeConstrained(std::vector<IterSplit>& left, const Expr& scale, std::vector<IterSplit>& out,
                                 Expr& base) {
  for (ConstrainedSum& c : constrained_) {
    std::vector<size_t> found;
    for (const IterSplit& want : c.mark->sum.pieces) {
      size_t i = 0;
      while (i < left.size() && !(samePiece(left[i], want) && equal(left[i].scale, want.scale * scale))) ++i;
      if (i == left.size()) break;
      found.push_back(i);
    }
    if (found.size() != c.mark->sum.pieces.size()) continue;
    std::sort(found.rbegin(), found.rend());
    for (size_t i : found) left.erase(left.begin() + ptrdiff_t(i));
    out.push_back({c.mark, constant(scale->dtype, 1), c.mark->extent, scale});
    base = simp(base - c.mark->sum.base * scale);
    return true;
  }
  return false;
}

Result<IterSum> IterParser::fuse(const IterSum& sum) {
  if (sum.pieces.empty() || (sum.pieces.size() == 1 && constrained_.empty())) return sum;
  Expr zero = constant(sum.base->dtype, 0);
  for (const IterSplit& p : sum.pieces)
    if (!an_.proveLess(zero, p.scale))
      return fail(notAffine(normalize(sum, an_), "the sign of a scale is negative or unknown"));
  // The smallest scale first: a constant one if there is any, else whichever works.
  std::vector<size_t> starts;
  for (size_t i = 0; i < sum.pieces.size(); ++i) starts.push_back(i);
  std::stable_sort(starts.begin(), starts.end(), [&](size_t a, size_t b) {
    auto x = asConst(sum.pieces[a].scale), y = asConst(sum.pieces[b].scale);
    return x && (!y || *x < *y);
  });
  if (asConst(sum.pieces[starts[0]].scale)) starts.resize(1);
  for (size_t start : starts) {
    std::vector<IterSplit> left = sum.pieces, chain; // chain: smallest first
    Expr first = sum.pieces[start].scale, scale = first, base = sum.base;
    while (!left.empty()) {
      if (!takeConstrained(left, scale, chain, base)) {
        auto it =
            std::find_if(left.begin(), left.end(), [&](const IterSplit& p) { return equal(p.scale, scale); });
        if (it == left.end()) break;
        chain.push_back(*it);
        left.erase(it);
      }
      scale = simp(scale * chain.back().extent);
    }
    if (!left.empty()) continue;
    if (chain.size() == 1) {
      chain[0].scale = first;
      return IterSum{chain, base};
    }
    Expr running = constant(zero->dtype, 1);
    for (IterSplit& p : chain) {
      p.scale = running;
      running = simp(running * p.extent);
    }
    std::reverse(chain.begin(), chain.end());
    IterMark m = fusedMark(std::move(chain), running);
    return IterSum{{{m, constant(zero->dtype, 1), running, first}}, base};
  }
  return fail(notAffine(normalize(sum, an_), "the pieces of the sum overlap or leave gaps"));
}

Result<IterSum> IterParser::orderStrided(const IterSum& sum) {
  IterSum out{{}, sum.base};
  std::vector<IterSplit> left = sum.pieces;
  Expr reach = constant(sum.base->dtype, 1); // one more than the largest value so far
  while (!left.empty()) {
    auto fits = [&](const IterSplit& p) {
      return an_.proveLessEqual(reach, p.scale) &&
             std::all_of(left.begin(), left.end(),
                         [&](const IterSplit& q) { return an_.proveLessEqual(p.scale, q.scale); });
    };
    auto it = std::find_if(left.begin(), left.end(), fits);
    if (it == left.end()) return fail(notAffine(normalize(sum, an_), "the pieces of the sum overlap"));
    reach = simp(reach + (it->extent - 1) * it->scale);
    out.pieces.insert(out.pieces.begin(), *it);
    left.erase(it);
  }
  return out;
}

// Predicates.

Status IterParser::addPredicate(const Expr& predicate) {
  if (!predicate || isConst(predicate, 1)) return {};
  std::vector<Expr> conditions;
  auto split = [&](auto&& self, const Expr& e) -> void {
    auto b = e.as<BinaryNode>();
    if (auto c = e.as<CallNode>(); c && c->op == Intrin::kLikely) return self(self, c->arg(0));
    if (b && b->op == BinaryOp::kAnd) {
      self(self, b->a);
      self(self, b->b);
    } else {
      conditions.push_back(e);
    }
  };
  split(split, simp(predicate));
  for (const Expr& c : conditions) {
    if (!usesIterators(c)) { // no iterator is left where it does not hold
      if (level_ == IterMapLevel::kInjective || an_.prove(c)) continue;
      return fail(notAffine(c, "a predicate without iterators may not hold"));
    }
    auto added = addBound(c);
    if (!added && level_ != IterMapLevel::kInjective) return added;
  }
  std::stable_sort(constrained_.begin(), constrained_.end(),
                   [](const ConstrainedSum& a, const ConstrainedSum& b) {
                     return a.mark->sum.pieces.size() > b.mark->sum.pieces.size();
                   });
  return {};
}

/// One comparison: sum < high, or sum >= low.
Status IterParser::addBound(const Expr& condition) {
  auto b = condition.as<BinaryNode>();
  if (!b || !isComparison(b->op) || b->op == BinaryOp::kEq || b->op == BinaryOp::kNe ||
      !isIndexType(b->a->dtype))
    return fail(notAffine(condition, "a predicate is not a bound on a sum of iterators"));
  Expr a = b->a, c = b->b;
  BinaryOp op = b->op;
  if (op == BinaryOp::kGt || op == BinaryOp::kGe) {
    std::swap(a, c);
    op = op == BinaryOp::kGt ? BinaryOp::kLt : BinaryOp::kLe;
  }
  auto d = an_.exactDifference(a, c);
  if (op == BinaryOp::kLe) d.addConst(-1); // d < 0
  LinearForm moving, fixed = LinearForm::of(d.constant);
  for (const Term& t : d.terms) (usesIterators(t.atom) ? moving : fixed).add(t.atom, t.coef);
  Expr x = an_.toExpr(moving, a->dtype), rest = an_.toExpr(fixed, a->dtype);
  if (!d.valid || !x || !rest) return fail(notAffine(condition, "a predicate's arithmetic may overflow"));
  bool upper =
      std::any_of(moving.terms.begin(), moving.terms.end(), [](const Term& t) { return t.coef > 0; });
  BEVEL_TRY(IterSum sum, parse(upper ? x : negate(x)));
  // x < -rest, or -x > rest
  return upper ? constrain(std::move(sum), nullptr, simp(negate(rest)), condition)
               : constrain(std::move(sum), simp(rest + 1), nullptr, condition);
}

Status IterParser::constrain(IterSum sum, const Expr& low, const Expr& high, const Expr& condition) {
  std::vector<ConstrainedSum> none;
  std::swap(constrained_, none); // the sum is fused from unconstrained pieces
  auto fusedSum = fuse(sum);
  std::swap(constrained_, none);
  if (!fusedSum) return fail(std::move(fusedSum.error()));
  IterSplit piece = fusedSum->pieces[0];
  DType t = piece.extent->dtype;
  Expr zero = constant(t, 0), one = constant(t, 1);
  bool fusedMarkPiece = !piece.source->var;
  std::vector<IterSplit> pieces = fusedMarkPiece ? piece.source->sum.pieces : std::vector<IterSplit>{piece};
  if (!fusedMarkPiece) pieces[0].scale = one;
  // piece * scale + base < high  ⟺  piece < ceil((high - base) / scale)
  Expr from = zero, to = piece.extent;
  if (high) to = simp(floordiv(high - fusedSum->base + piece.scale - one, piece.scale));
  if (low) from = simp(floordiv(low - fusedSum->base + piece.scale - one, piece.scale));
  auto known = std::ranges::find_if(constrained_, [&](const ConstrainedSum& c) {
    return std::ranges::equal(c.mark->sum.pieces, pieces,
                              [this](const IterSplit& a, const IterSplit& b) { return samePiece(a, b); });
  });
  bool again = known != constrained_.end(); // a second bound on the same sum
  Expr oldFrom = again ? negate(known->mark->sum.base) : zero;
  Expr oldTo = again ? simp(oldFrom + known->mark->extent) : piece.extent;
  if (!again && an_.proveLessEqual(oldTo, to) && an_.proveLessEqual(from, zero)) return {}; // cuts nothing
  to = simp(min(to, oldTo));
  from = simp(max(from, oldFrom));
  IterMark mark = sumMark(pieces, simp(negate(from)), simp(to - from));
  if (again)
    *known = {mark, known->condition && condition ? logicalAnd(known->condition, condition) : condition};
  else
    constrained_.push_back({mark, condition});
  return {};
}

// Checks.

Status IterParser::checkMark(const IterMark& mark, std::vector<IterSplit> splits) {
  DType t = mark->extent->dtype; // or wider, where a part is
  for (const IterSplit& p : splits)
    if (p.extent->dtype.bits > t.bits) t = p.extent->dtype;
  for (IterSplit& p : splits) convert(p, t);
  Expr expected = constant(t, 1), extent = castTo(t, mark->extent),
       who = mark->var ? Expr(mark->var) : normalize(mark->sum, an_);
  bool complete = level_ != IterMapLevel::kSurjective;
  if (splits.empty()) return complete ? Status(fail(notAffine(who, "an iterator is not used"))) : Status();
  size_t count = splits.size();
  Expr reach;
  while (!splits.empty()) {
    auto it = std::find_if(splits.begin(), splits.end(),
                           [&](const IterSplit& s) { return equal(s.lowerFactor, expected); });
    if (it == splits.end() && !complete) // gaps are allowed: the smallest one that starts beyond
      it = std::find_if(splits.begin(), splits.end(), [&](const IterSplit& s) {
        return divisible(s.lowerFactor, expected) &&
               std::all_of(splits.begin(), splits.end(), [&](const IterSplit& o) {
                 return an_.proveLessEqual(s.lowerFactor, o.lowerFactor);
               });
      });
    if (it == splits.end())
      return fail(notAffine(who, "pieces of an iterator overlap or leave a part of it unused"));
    reach = simp(it->lowerFactor * it->extent);
    expected = reach;
    splits.erase(it);
  }
  bool ok = true;
  switch (level_) {
  case IterMapLevel::kBijective:
    ok = equal(reach, extent);
    break;
  case IterMapLevel::kSurjective:
    ok = count == 1 || an_.proveLessEqual(reach, extent);
    break;
  case IterMapLevel::kInjective:
    ok = an_.proveLessEqual(extent, reach);
    break;
  }
  return ok ? Status()
            : Status(fail(notAffine(who, "an iterator is not divided evenly, or not wholly used")));
}

Status IterParser::checkPieces(const std::vector<IterSum>& indices) {
  std::vector<std::pair<IterMark, std::vector<IterSplit>>> byMark;
  auto add = [&](auto&& self, const IterSplit& p) -> void {
    auto it = std::find_if(byMark.begin(), byMark.end(), [&](const auto& e) { return e.first == p.source; });
    bool fresh = it == byMark.end();
    if (fresh)
      byMark.push_back({p.source, {p}});
    else
      it->second.push_back(p);
    if (fresh && !p.source->var)
      for (const IterSplit& q : p.source->sum.pieces) self(self, q); // a fused mark uses its pieces once
  };
  for (const IterSum& s : indices)
    for (const IterSplit& p : s.pieces) add(add, p);
  for (const IterMark& m : marks_)
    if (std::none_of(byMark.begin(), byMark.end(), [&](const auto& e) { return e.first == m; }))
      byMark.push_back({m, {}});
  for (auto& [mark, splits] : byMark) BEVEL_CHECK(checkMark(mark, splits));
  if (level_ == IterMapLevel::kInjective) return {};
  for (const ConstrainedSum& c : constrained_) {
    bool whole = std::any_of(byMark.begin(), byMark.end(), [&](const auto& e) { return e.first == c.mark; });
    if (whole) continue;
    for (const auto& [mark, splits] : byMark)
      if (mark->var && !splits.empty() && usesVar(c.condition, mark->var))
        return fail(notAffine(c.condition, "a predicate cuts iterators that the indices use apart"));
  }
  return {};
}

} // namespace bevel::arith
