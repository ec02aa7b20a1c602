// Index maps: application, shapes, inverses with and without padding, composition, text.
#include "arith/index_map.h"

#include "arith/int_set.h"
#include "arith/iter_parser.h"
#include "ir/printer.h"
#include "ir/structural.h"

#include <algorithm>
#include <numeric>

namespace bevel {

using namespace arith;

namespace {

IterRanges zip(const std::vector<Var>& vars, const Array<Range>& ranges) {
  IterRanges out;
  for (size_t i = 0; i < vars.size(); ++i) out.emplace_back(vars[i], ranges[i]);
  return out;
}

Status checkRank(const IndexMap& map, size_t rank) {
  if (map.initial.size() == rank) return {};
  return fail(ErrorCode::kInvalid, "the index map takes " + std::to_string(map.initial.size()) +
                                       " indices, not " + std::to_string(rank));
}

/// The inverse of a bijective map of `iters`: variables o0, o1, … over the final box.
Result<IndexMap> invert(const IndexMap& map, const IterRanges& iters, Analyzer& an, std::vector<Range>* box) {
  BEVEL_TRY(IterMap detected, detectIterMap(map.final, iters, nullptr, an, IterMapLevel::kBijective));
  IndexMap out;
  std::vector<Expr> values;
  for (size_t i = 0; i < map.final.size(); ++i) {
    Var v = var("o" + std::to_string(i), map.final[i]->dtype);
    Range r = range(detected.indices[i].base, detected.extents[i]);
    an.bind(v, r);
    if (box) box->push_back(r);
    out.initial.push_back(v);
    values.push_back(v);
  }
  auto inverse = inverseIterMap(detected, values, an);
  if (inverse)
    for (const auto& [v, r] : iters) {
      Expr e = inverse->at(v);
      out.final.push_back(e->dtype == v->dtype ? e : an.simplify(castTo(v->dtype, e)));
    }
  for (const Var& v : out.initial) an.unbind(v);
  if (!inverse) return fail(std::move(inverse.error()));
  return out;
}

/// Collects divisors applied to `v + offset` under e.
void collectDivisors(const NodeRef& e, const Var& v, Analyzer& an,
                     std::vector<std::pair<int64_t, int64_t>>& out) {
  walk(e, [&](const NodeRef& n) {
    auto b = n.as<BinaryNode>();
    bool divides = b && b->op >= BinaryOp::kDiv && b->op <= BinaryOp::kFloorMod;
    auto c = divides ? asConst(b->b) : std::nullopt;
    if (!c || *c <= 1) return true;
    auto form = an.formOf(b->a);
    bool lone = form.valid && form.terms.size() == 1 && form.terms[0].coef == 1;
    if (!lone) return true;
    Expr atom = form.terms[0].atom;
    int64_t factor = *c;
    while (auto inner = atom.as<BinaryNode>()) { // quotients of quotients, remainders of remainders
      auto d = asConst(inner->b);
      if (!d || *d <= 0 || (inner->op != BinaryOp::kFloorDiv && inner->op != BinaryOp::kFloorMod))
        return true;
      auto product =
          inner->op == BinaryOp::kFloorDiv ? checkedMul(factor, *d) : std::optional(std::lcm(factor, *d));
      if (!product) return true;
      factor = *product;
      auto below = an.formOf(inner->a);
      if (!below.valid || below.terms.size() != 1 || below.terms[0].coef != 1) return true;
      form = below;
      atom = form.terms[0].atom;
    }
    if (atom == Expr(v)) out.emplace_back(form.constant, factor);
    return true;
  });
}

} // namespace

IndexMap IndexMap::identity(size_t rank, DType dtype) {
  return of(rank, [](const std::vector<Var>& v) { return Array<Expr>(v.begin(), v.end()); }, dtype);
}

IndexMap IndexMap::of(size_t rank, FunctionRef<Array<Expr>(const std::vector<Var>&)> f, DType dtype) {
  std::vector<Var> vars;
  for (size_t i = 0; i < rank; ++i) vars.push_back(var("i" + std::to_string(i), dtype));
  Array<Expr> to = f(vars);
  return {std::move(vars), std::move(to)};
}

Array<Expr> IndexMap::apply(const Array<Expr>& indices, Analyzer& an) const {
  BEVEL_ASSERT(indices.size() == initial.size(), "an index map is applied to another rank");
  VarMap map;
  for (size_t i = 0; i < initial.size(); ++i)
    map[initial[i]] =
        indices[i]->dtype == initial[i]->dtype ? indices[i] : castTo(initial[i]->dtype, indices[i]);
  Array<Expr> out;
  for (const Expr& e : final) out.push_back(an.simplify(substitute(e, map)));
  return out;
}

Result<Array<Range>> IndexMap::applyRanges(const Array<Range>& ranges, Analyzer& an) const {
  BEVEL_CHECK(checkRank(*this, ranges.size()));
  IterRanges iters = zip(initial, ranges);
  Array<Range> out;
  if (auto exact = detectIterMap(final, iters, nullptr, an, IterMapLevel::kSurjective)) {
    for (size_t i = 0; i < final.size(); ++i) out.push_back(range(exact->indices[i].base, exact->extents[i]));
    return out;
  }
  BoundIterators bound(iters, an);
  IntSetMap sets = asSets(iters);
  for (const Expr& e : final) {
    Range r = toRange(evalSet(e, sets, an), nullptr, an);
    if (!r) return fail(Error(ErrorCode::kUnsupported, "the image of the index map is not bounded").at(e));
    out.push_back(r);
  }
  return out;
}

Result<Array<Expr>> IndexMap::applyShape(const Array<Expr>& shape, Analyzer& an) const {
  Array<Range> ranges;
  for (size_t i = 0; i < shape.size(); ++i) {
    DType t = i < initial.size() ? initial[i]->dtype : kInt64;
    ranges.push_back(range(constant(t, 0), shape[i]->dtype == t ? shape[i] : castTo(t, shape[i])));
  }
  BEVEL_TRY(Array<Range> image, applyRanges(ranges, an));
  Array<Expr> out;
  for (const Range& r : image) {
    if (an.bound(r->min).min < 0 && !an.proveLessEqual(constant(r->min->dtype, 0), r->min))
      return fail(Error(ErrorCode::kIllegal, "the index map may give a negative index").at(r->min));
    out.push_back(an.simplify(r->min + r->extent));
  }
  return out;
}

Result<IndexMap> IndexMap::inverse(const Array<Range>& ranges, Analyzer& an) const {
  BEVEL_CHECK(checkRank(*this, ranges.size()));
  return invert(*this, zip(initial, ranges), an, nullptr);
}

Result<PaddedInverse> IndexMap::nonSurjectiveInverse(const Array<Range>& ranges, Analyzer& an) const {
  BEVEL_CHECK(checkRank(*this, ranges.size()));
  if (auto exact = invert(*this, zip(initial, ranges), an, nullptr))
    return PaddedInverse{*exact, boolImm(false)};
  // Each initial index v becomes w - left over [0, padded extent), for which every division is whole.
  IterRanges padded;
  VarMap shift;
  std::vector<Expr> offsets;
  Array<Expr> simple;
  {
    BoundIterators bound(zip(initial, ranges), an);
    for (const Expr& e : final) simple.push_back(an.simplify(e));
  }
  for (size_t i = 0; i < initial.size(); ++i) {
    const Var& v = initial[i];
    std::vector<std::pair<int64_t, int64_t>> divisors;
    for (const Expr& e : simple) collectDivisors(e, v, an, divisors);
    int64_t factor = 1;
    for (auto& [offset, c] : divisors) {
      int64_t g = std::gcd(factor, c);
      auto lcm = checkedMul(factor / g, c);
      if (!lcm) return fail(ErrorCode::kUnsupported, "the divisors of the index map are too large");
      factor = *lcm;
    }
    // min + offset must be a multiple of each divisor after `left` values of padding.
    int64_t left = -1;
    Expr min = an.simplify(ranges[i]->min);
    for (int64_t candidate = 0; candidate < std::min<int64_t>(factor, 4096) && left < 0; ++candidate) {
      bool whole = std::all_of(divisors.begin(), divisors.end(), [&](const auto& d) {
        return isConst(an.simplify(floormod(min + (d.first - candidate), d.second)), 0);
      });
      if (whole) left = candidate;
    }
    if (left < 0)
      return fail(Error(ErrorCode::kIllegal, "the index map's divisions of an index do not align").at(v));
    Var w = var(v->name, v->dtype);
    Expr extent = an.simplify(ranges[i]->extent + left);
    if (factor > 1) extent = an.simplify(floordiv(extent + (factor - 1), factor) * factor);
    padded.emplace_back(w, range(constant(v->dtype, 0), extent));
    shift[v] = w + (min - left);
    offsets.push_back(an.simplify(min - left));
  }
  IndexMap shifted;
  for (const auto& [w, r] : padded) shifted.initial.push_back(w);
  for (const Expr& e : simple) shifted.final.push_back(substitute(e, shift));
  std::vector<Range> box;
  BEVEL_TRY(IndexMap inverse, invert(shifted, padded, an, &box));
  for (size_t i = 0; i < box.size(); ++i) an.bind(inverse.initial[i], box[i]);
  PaddedInverse out{{}, boolImm(false)};
  out.map.initial = inverse.initial;
  for (size_t i = 0; i < padded.size(); ++i) {
    Expr value = an.simplify(inverse.final[i] + offsets[i]);
    Expr outside =
        an.simplify(logicalOr(value < ranges[i]->min, value >= ranges[i]->min + ranges[i]->extent));
    if (!isConst(outside, 0))
      out.padding = isConst(out.padding, 0) ? outside : logicalOr(out.padding, outside);
    out.map.final.push_back(value);
  }
  for (const Var& v : inverse.initial) an.unbind(v);
  return out;
}

IndexMap IndexMap::after(const IndexMap& first, Analyzer& an) const {
  return {first.initial, apply(first.final, an)};
}

bool IndexMap::isIdentity() const {
  if (initial.size() != final.size()) return false;
  for (size_t i = 0; i < initial.size(); ++i)
    if (final[i] != Expr(initial[i])) return false;
  return true;
}

bool IndexMap::equals(const IndexMap& other) const {
  return structuralEqual(Lambda(*this), Lambda(other));
}

std::string IndexMap::str() const {
  return print(Lambda(*this));
}

} // namespace bevel
