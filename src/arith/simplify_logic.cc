// Comparisons, min and max, and/or/not, and choices.
//
// A comparison becomes a linear form d = a - b; if its sign is proved it is decided, else it is written
// canonically: terms on the side where they are positive, divided by their common factor, constants on the
// right.
//
//     8*x + y < 16   with 0 <= y < 8     →  x < 2      (kept where y may leave [0, 8): 8*2 - 1 < 16 holds)
//     n + 3 > n + m                      →  m < 3
#include "arith/analyzer.h"

#include "ir/structural.h"

namespace bevel {

using namespace arith;

namespace {
constexpr size_t kMaxConjuncts = 8; // beyond, conjuncts are not simplified under one another
constexpr int kMaxNodes = 64;       // of an expression whose parts are simplified under one another: each is
                                    // simplified once for every condition around it

bool isSmall(const Expr& e) {
  int nodes = 0;
  walk(e, [&](const NodeRef&) { return ++nodes <= kMaxNodes; });
  return nodes <= kMaxNodes;
}

bool compares(BinaryOp op, int64_t a, int64_t b) {
  switch (op) {
  case BinaryOp::kLt:
    return a < b;
  case BinaryOp::kLe:
    return a <= b;
  case BinaryOp::kEq:
    return a == b;
  default:
    return a != b;
  }
}
} // namespace

Expr Analyzer::visitMinMax(BinaryOp op, const Expr& a, const Expr& b, const Expr& e) {
  bool min = op == BinaryOp::kMin;
  if (sameExpr(a, b)) return a;
  LinearForm d = exactDifference(b, a); // b - a
  if (d.valid) {
    if (proveNonNegative(d)) return min ? a : b;
    d.scale(-1);
    if (d.valid && proveNonNegative(d)) return min ? b : a;
  }
  // Constants stand on the right, for the rules.
  if (asConst(a) && !asConst(b)) return finish(make<const BinaryNode>(op, b, a));
  return finish(e);
}

/// Writes `d op 0` (op is <, <=, ==, !=) canonically; null where the result might not fit the dtype.
Expr Analyzer::canonicalComparison(BinaryOp op, const LinearForm& diff, const Expr& a, const Expr& b) {
  DType t = a->dtype;
  LinearForm d = diff;
  int64_t g = d.gcdOfTerms();
  bool equality = op == BinaryOp::kEq || op == BinaryOp::kNe;
  if (op == BinaryOp::kLe) { // d <= 0 is d - 1 < 0
    d.addConst(-1);
    if (!d.valid) return nullptr;
  }
  // d = g*X + rest with a bounded rest: for some g only X decides.
  if (!equality && d.terms.size() > 1) {
    for (const Term& lead : d.terms) {
      int64_t h = lead.coef == INT64_MIN ? 1 : lead.coef < 0 ? -lead.coef : lead.coef;
      if (h <= 1 || (g > 1 && h == g)) continue;
      LinearForm x, rest;
      d.splitBy(h, x, rest);
      ConstBound r = formBound(rest);
      if (!r.bounded() || r.min == INT64_MIN + 1 || rest.terms.empty()) continue;
      int64_t low = floorDivide(-r.max - 1, h), high = floorDivide(-r.min - 1, h); // X <= (-rest - 1) / h
      if (low != high || high == INT64_MAX) continue;
      x.constant = -(high + 1); // X < high + 1
      d = x;
      g = d.gcdOfTerms();
      break;
    }
  }
  if (g > 1) {
    if (equality) {
      if (d.constant % g != 0) return boolImm(op == BinaryOp::kNe);
      d.constant /= g;
    } else {
      d.constant = floorDivide(d.constant, g); // g*X + c < 0  ⟺  X + floor(c / g) < 0
    }
    for (Term& x : d.terms) x.coef /= g;
  }
  LinearForm left, right;
  for (const Term& x : d.terms) {
    if (x.coef == INT64_MIN) return nullptr;
    if (x.coef > 0)
      left.terms.push_back(x);
    else
      right.terms.push_back({x.atom, -x.coef});
  }
  // Now left - right + c compares with 0. One side of terms: a constant on the right, written with < or >=.
  bool oneSided = left.terms.empty() || right.terms.empty();
  bool turned = left.terms.empty();
  if (op == BinaryOp::kLe && !oneSided) d.addConst(1); // stays <=
  if (d.constant == INT64_MIN || !d.valid) return nullptr;
  if (turned) std::swap(left, right);
  BinaryOp written = op == BinaryOp::kLe && oneSided ? BinaryOp::kLt : op;
  if (turned) {
    right.constant = d.constant; // -X + c < 0  ⟺  X >= c + 1
    if (!equality) {
      right.addConst(1);
      written = BinaryOp::kGe;
    }
  } else if (oneSided || d.constant <= 0) {
    right.constant = -d.constant;
  } else {
    left.constant = d.constant;
  }
  LinearForm fa = exactForm(a), fb = exactForm(b);
  auto fits = [&](const LinearForm& f) { return fitsAsOperand(f, fa, t) || fitsAsOperand(f, fb, t); };
  if (!right.valid || !fits(left) || !fits(right)) return nullptr;
  Expr x = toExpr(left, t), y = toExpr(right, t);
  return x && y ? Expr(make<const BinaryNode>(written, x, y)) : nullptr;
}

Expr Analyzer::visitComparison(BinaryOp op, Expr a, Expr b, const Expr& e) {
  if (op == BinaryOp::kGt || op == BinaryOp::kGe) {
    op = op == BinaryOp::kGt ? BinaryOp::kLt : BinaryOp::kLe;
    std::swap(a, b);
  }
  LinearForm d = exactDifference(a, b);
  Expr same = make<const BinaryNode>(op, a, b);
  if (op == BinaryOp::kLe && asConst(a)) same = make<const BinaryNode>(BinaryOp::kGe, b, a);
  if (identicalExpr(same, e)) same = e;
  if (!d.valid) return finish(same);
  if (d.isConst()) return boolImm(compares(op, d.constant, 0));
  LinearForm negative = d;
  negative.scale(-1);
  bool equality = op == BinaryOp::kEq || op == BinaryOp::kNe;
  if (equality) {
    bool apart = provePositive(d) || (negative.valid && provePositive(negative));
    if (!apart) { // residues that never meet
      int64_t g = 0, base = d.constant;
      for (const Term& x : d.terms) {
        ModularSet m = modular(x.atom);
        auto k = checkedMul(m.coeff, x.coef), o = checkedMul(m.base, x.coef);
        auto sum = o ? checkedAdd(base, *o) : std::nullopt;
        g = k ? gcd64(g, *k) : 1;
        if (!sum)
          g = 1;
        else
          base = *sum;
      }
      apart = g > 1 && base % g != 0;
    }
    if (apart) return boolImm(op == BinaryOp::kNe);
    if (negative.valid && proveNonNegative(d) && proveNonNegative(negative))
      return boolImm(op == BinaryOp::kEq);
  } else {
    LinearForm holds = negative; // a < b: -d > 0
    bool yes = negative.valid && (op == BinaryOp::kLt ? provePositive(holds) : proveNonNegative(holds));
    if (yes) return boolImm(true);
    if (op == BinaryOp::kLt ? proveNonNegative(d) : provePositive(d)) return boolImm(false);
  }
  Expr canonical = canonicalComparison(op, d, a, b);
  if (!canonical || canonical->kind == Kind::kIntImm) return canonical ? canonical : finish(same);
  if (identicalExpr(canonical, e)) canonical = e;
  return finish(canonical);
}

Expr Analyzer::visitNot(const Expr& a) {
  if (auto c = asConst(a)) return constant(a->dtype, *c == 0);
  return finish(make<const UnaryNode>(UnaryOp::kNot, a));
}

namespace {
void flatten(BinaryOp op, const Expr& e, std::vector<Expr>& out) {
  if (auto b = e.as<BinaryNode>(); b && b->op == op) {
    flatten(op, b->a, out);
    flatten(op, b->b, out);
  } else {
    out.push_back(e);
  }
}
} // namespace

/// e where the condition is known to hold (or to fail); unchanged where that would let an unsafe access
/// through.
Expr Analyzer::under(const Expr& condition, bool holds, const Expr& e, bool lazy) {
  if (condition->dtype.lanes > 1 || asConst(condition) || (!lazy && mayFault(e)) || hasEffects(condition) ||
      !isSmall(e) || !isSmall(condition))
    return visit(e);
  size_t depth = push(holds ? condition : visitNot(condition));
  Expr result = visit(e);
  restore(depth);
  return result;
}

Expr Analyzer::visitAndOr(const BinaryNode* n, const Expr& e) {
  bool conj = n->op == BinaryOp::kAnd;
  std::vector<Expr> parts, kept;
  flatten(n->op, e, parts);
  for (Expr& p : parts) p = visit(p);
  if (parts.size() <= kMaxConjuncts && n->dtype.lanes == 1 && isSmall(e))
    for (size_t i = 0; i < parts.size(); ++i) { // each under the others that are still there
      if (asConst(parts[i])) continue;
      size_t depth = assumed_.size();
      for (size_t j = 0; j < parts.size(); ++j)
        if (j != i && !asConst(parts[j])) push(conj ? parts[j] : visitNot(parts[j]));
      Expr reduced = visit(parts[i]);
      restore(depth);
      if (asConst(reduced)) parts[i] = reduced;
    }
  for (const Expr& p : parts) {
    auto c = asConst(p);
    if (c && (*c != 0) != conj) return constant(n->dtype, conj ? 0 : 1);
    if (!c) kept.push_back(p);
  }
  if (kept.empty()) return constant(n->dtype, conj ? 1 : 0);
  Expr result = kept[0];
  for (size_t i = 1; i < kept.size(); ++i) result = make<const BinaryNode>(n->op, result, kept[i]);
  if (identicalExpr(result, e)) result = e;
  return result->kind == Kind::kBinary && kept.size() > 1 ? finish(result) : result;
}

Expr Analyzer::visitChoice(const Expr& condition, const Expr& x, const Expr& y, bool lazy, const Expr& e) {
  Expr c = visit(condition);
  if (auto v = asConst(c); v && c->dtype.lanes == 1) return visit(*v ? x : y);
  Expr a = under(c, true, x, lazy), b = under(c, false, y, lazy);
  if (sameExpr(a, b)) return a;
  // An answer that holds on its side only may still serve for both.
  if (c == condition && a == x && b == y) return finish(e);
  if (!lazy) return finish(make<const SelectNode>(c, a, b));
  return finish(make<const CallNode>(e->dtype, Intrin::kIfThenElse, Array<NodeRef>{c, a, b}));
}

} // namespace bevel
