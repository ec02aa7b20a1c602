// Quotients and remainders. With the dividend as a linear form (only when its arithmetic does not wrap):
//
//     (8*i + j) // 8   with 0 <= j < 8   →  i                 (8*i + j) % 8   →  j
//     (4*i + j) // 8   with 0 <= j < 4   →  i // 2            (4*i + j) % 8   →  i % 2 * 4 + j
//     (i*n + j) // n   with 0 <= j < n   →  i                 (x + 11) // 8   →  (x + 3) // 8 + 1
//
// 1. Terms divisible by the divisor leave the quotient (and vanish from the remainder).
// 2. For every g > 1 that divides the divisor: what is left is g*X + Y; if Y stays within one multiple of g,
//    only X matters.
// 3. A constant moves out as far as the remaining dividend provably stays within its dtype. Truncating
//    division becomes floor division where the operands are not negative. The rest is left to the rules.
#include "arith/analyzer.h"

#include <algorithm>

namespace bevel {

using namespace arith;

namespace {

Expr floorOp(BinaryOp op, const Expr& a, int64_t c) {
  return make<const BinaryNode>(op, a, constant(a->dtype, c));
}

/// b stays within [q*c, q*c + c): gives q.
std::optional<int64_t> oneBlock(ConstBound b, int64_t c) {
  if (!b.bounded()) return std::nullopt;
  int64_t q = floorDivide(b.min, c);
  return floorDivide(b.max, c) == q ? std::optional(q) : std::nullopt;
}

/// Divisors g of c, 1 < g, that divide some coefficient; largest first.
std::vector<int64_t> commonFactors(const LinearForm& f, int64_t c) {
  std::vector<int64_t> out;
  for (const Term& t : f.terms)
    if (int64_t g = gcd64(t.coef, c); g > 1 && std::find(out.begin(), out.end(), g) == out.end())
      out.push_back(g);
  if (int64_t g = gcd64(f.gcdOfTerms(), c); g > 1 && std::find(out.begin(), out.end(), g) == out.end())
    out.push_back(g);
  std::sort(out.rbegin(), out.rend());
  return out;
}

} // namespace

/// q + r // c as an expression; null when it cannot be written.
Expr Analyzer::quotient(const LinearForm& q, const LinearForm& r, int64_t c, DType t) {
  LinearForm sum = q;
  Expr dividend = toExpr(r, t);
  if (!dividend) return nullptr;
  if (r.isConst())
    sum.addConst(floorDivide(r.constant, c));
  else
    collect(sum, c == 1 ? dividend : visit(floorOp(BinaryOp::kFloorDiv, dividend, c)), 1, false);
  while (sum.valid && recombine(sum)) {
  }
  return toExpr(sum, t);
}

Expr Analyzer::floorDivConst(const Expr& a, int64_t c, const Expr& e) {
  if (auto q = oneBlock(bound(a), c); q && fitsDType(*q, a->dtype)) return constant(a->dtype, *q);
  if (c == 1) return a;
  LinearForm f = exactForm(a), q, r;
  bool opaque = f.terms.size() == 1 && f.constant == 0 && f.terms[0].coef == 1;
  if (opaque) return finish(e);
  f.splitBy(c, q, r);
  for (size_t i = 0; i < r.terms.size(); ++i) { // an atom with a known residue: x = c * (x // c) + r
    ModularSet m = modular(r.terms[i].atom);
    int64_t k = r.terms[i].coef;
    auto moved = m.coeff > 1 && m.coeff % c == 0 ? checkedMul(k, floorModulo(m.base, c)) : std::nullopt;
    if (!moved) continue;
    q.add(floorOp(BinaryOp::kFloorDiv, r.terms[i].atom, c), k);
    r.addConst(*moved);
    r.terms.erase(r.terms.begin() + ptrdiff_t(i--));
  }
  if (!q.valid || !r.valid) return finish(e);
  if (auto block = oneBlock(formBound(r), c)) {
    q.addConst(*block);
    if (Expr done = toExpr(q, a->dtype)) return done;
  }
  for (int64_t g : commonFactors(r, c)) {
    LinearForm x, y;
    r.splitBy(g, x, y);
    auto block = oneBlock(formBound(y), g);
    if (!block) continue;
    x.addConst(*block);
    if (!q.terms.empty() && !fitsAsOperand(x, f, a->dtype)) continue; // else x is floor(a / g), which fits
    if (Expr done = quotient(q, x, c / g, a->dtype)) return done;
  }
  // The constant: all multiples of c out when the rest fits, else towards zero.
  for (bool towardsZero : {false, true}) {
    LinearForm left = r, out = q;
    left.constant = towardsZero ? r.constant % c : floorModulo(r.constant, c);
    out.addConst(towardsZero ? r.constant / c : floorDivide(r.constant, c));
    if (out.terms.empty() && out.constant == 0) break;
    if (!fitsAsOperand(left, f, a->dtype)) continue;
    if (Expr done = quotient(out, left, c, a->dtype)) return done;
  }
  return finish(e);
}

Expr Analyzer::floorModConst(const Expr& a, int64_t c, const Expr& e) {
  DType t = a->dtype;
  if (c == 1) return constant(t, 0);
  LinearForm f = exactForm(a);
  if (auto q = oneBlock(bound(a), c)) {
    auto shift = checkedMul(*q, -c);
    LinearForm whole = formOf(a);
    if (shift) whole.addConst(*shift);
    Expr done = shift && whole.valid ? toExpr(whole, t) : nullptr;
    if (done) return done;
  }
  bool opaque = f.terms.size() == 1 && f.constant == 0 && f.terms[0].coef == 1;
  if (opaque) {
    ModularSet m = modular(a);
    if (m.coeff % c == 0) return constant(t, floorModulo(m.base, c));
    return finish(e);
  }
  LinearForm r;
  for (const Term& x : f.terms)
    if (x.coef % c != 0) r.terms.push_back(x); // as it is: a quotient of the same dividend keeps it too
  r.constant = floorModulo(f.constant, c);
  if (r.isConst()) return constant(t, r.constant);
  if (auto block = oneBlock(formBound(r), c)) {
    auto shift = checkedMul(*block, -c);
    if (shift) r.addConst(*shift);
    if (Expr done = shift ? toExpr(r, t) : nullptr) return done;
    return finish(e);
  }
  for (int64_t g : commonFactors(r, c)) {
    LinearForm x, y;
    r.splitBy(g, x, y);
    auto block = oneBlock(formBound(y), g);
    if (!block || g == c) continue;
    x.addConst(*block);
    y.addConst(-*block * g);
    if (!fitsAsOperand(x, f, t)) continue;
    Expr high = toExpr(x, t);
    if (!high) continue;
    LinearForm sum;
    collect(sum, visit(floorOp(BinaryOp::kFloorMod, high, c / g)), g, false);
    sum.add(y);
    while (sum.valid && recombine(sum)) {
    }
    if (Expr done = toExpr(sum, t)) return done;
  }
  if (r.sameAs(f)) return finish(e);
  if (!fitsAsOperand(r, f, t)) {
    r.constant = f.constant % c;
    if (r.sameAs(f) || !fitsAsOperand(r, f, t)) return finish(e);
  }
  Expr dividend = toExpr(r, t);
  if (!dividend || identicalExpr(dividend, a)) return finish(e);
  return visit(floorOp(BinaryOp::kFloorMod, dividend, c));
}

/// a // b and a % b for a divisor that is not constant (and not zero: that is undefined).
Expr Analyzer::divideSymbolic(bool mod, const Expr& a, const Expr& b) {
  if (!isExact(a) || !isExact(b)) return nullptr;
  LinearForm f = exactForm(a), d = exactForm(b);
  DType t = a->dtype;
  if (!f.valid || !d.valid) return nullptr;
  LinearForm q, r;
  bool product = d.terms.size() == 1 && d.constant == 0;
  std::vector<Expr> divisor;
  if (product) collectFactors(d.terms[0].atom, divisor);
  auto divide = [&](const Term& x) -> bool { // x is a multiple of the divisor: adds x / divisor to q
    if (x.coef % d.terms[0].coef != 0) return false;
    std::vector<Expr> factors;
    collectFactors(x.atom, factors);
    for (const Expr& want : divisor) {
      auto it =
          std::find_if(factors.begin(), factors.end(), [&](const Expr& y) { return sameExpr(y, want); });
      if (it == factors.end()) return false;
      factors.erase(it);
    }
    int64_t k = x.coef / d.terms[0].coef;
    if (factors.empty()) {
      q.addConst(k);
      return true;
    }
    q.add(productOf(factors), k);
    return true;
  };
  for (const Term& x : f.terms)
    if (!product || d.terms[0].coef == INT64_MIN || d.terms[0].coef == -1 || !divide(x)) r.terms.push_back(x);
  r.constant = f.constant;
  bool moved = r.terms.size() != f.terms.size();
  if (!moved && f.sameAs(d)) return constant(t, mod ? 0 : 1);
  bool small = proveNonNegative(r) && provePositive(difference(d, r)); // 0 <= r < b
  if (small) return toExpr(mod ? r : q, t);
  if (!moved || !fitsAsOperand(r, f, t)) return nullptr;
  Expr rest = toExpr(r, t);
  if (!rest) return nullptr;
  if (mod) return visit(make<const BinaryNode>(BinaryOp::kFloorMod, rest, b));
  if (r.isConst() && r.constant == 0) return toExpr(q, t);
  collect(q, visit(make<const BinaryNode>(BinaryOp::kFloorDiv, rest, b)), 1, false);
  return toExpr(q, t);
}

/// Truncating by c > 0, sign of the dividend unknown: only what divides exactly may move out.
Expr Analyzer::truncDivConst(BinaryOp op, const Expr& a, int64_t c) {
  LinearForm f = exactForm(a);
  if (!f.valid || f.constant % c != 0) return nullptr;
  for (const Term& x : f.terms)
    if (x.coef % c != 0) return nullptr;
  if (op == BinaryOp::kMod) return constant(a->dtype, 0);
  f.constant /= c;
  for (Term& x : f.terms) x.coef /= c;
  return toExpr(f, a->dtype);
}

Expr Analyzer::visitDivision(BinaryOp op, const Expr& a, const Expr& b, const Expr& e) {
  bool truncating = op == BinaryOp::kDiv || op == BinaryOp::kMod;
  DType t = e->dtype;
  ConstBound all = bound(e);
  if (all.isPoint() && fitsDType(all.min, t)) return constant(t, all.min);
  auto c = asConst(b);
  if (truncating) {
    bool sameAsFloor = t.isUInt() || (bound(a).min >= 0 && bound(b).min > 0);
    if (sameAsFloor && (isIndexType(t) || t.isUInt())) {
      op = op == BinaryOp::kDiv ? BinaryOp::kFloorDiv : BinaryOp::kFloorMod;
      Expr floored = make<const BinaryNode>(op, a, b);
      return visitDivision(op, a, b, floored);
    }
    if (c && *c > 0)
      if (Expr done = truncDivConst(op, a, *c)) return done;
    return finish(e);
  }
  bool div = op == BinaryOp::kFloorDiv;
  if (c && *c > 0) return div ? floorDivConst(a, *c, e) : floorModConst(a, *c, e);
  if (!c)
    if (Expr done = divideSymbolic(!div, a, b)) return done;
  return finish(e);
}

} // namespace bevel
