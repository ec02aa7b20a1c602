// Sums in linear canonical form: equal atoms are merged, constants collected, and pieces of a quotient and
// its remainder joined again. Ring identities hold whether or not the arithmetic wraps, so no bounds are
// needed here; but a merged constant or coefficient that does not fit the dtype keeps the sum as it was.
//
//     j + i*8 - j + 3 - 1        →  i*8 + 2
//     (x // 8) * 8 + x % 8       →  x
//     (x // 8) % 4 * 8 + x % 8   →  x % 32
//     x - x // 8 * 8             →  x % 8
#include "arith/analyzer.h"
#include "ir/structural.h"

namespace bevel {

using namespace arith;

namespace {
constexpr size_t kMaxDistributed = 8; // terms of a product of two sums that is multiplied out
constexpr size_t kMaxFactors = 6;

/// x // lower, taken modulo upper/lower: (x % upper) // lower. upper 0: no modulo.
struct Piece {
  Expr x;
  int64_t upper = 0, lower = 1;
  bool trunc = false;
};

Piece pieceOf(const Expr& e) {
  Piece p{e};
  auto b = e.as<BinaryNode>();
  auto c = b ? asConst(b->b) : std::nullopt;
  if (!c || *c <= 0) return p;
  if (b->op == BinaryOp::kDiv || b->op == BinaryOp::kMod)
    return b->op == BinaryOp::kDiv ? Piece{b->a, 0, *c, true} : Piece{b->a, *c, 1, true};
  auto inner = b->a.as<BinaryNode>();
  auto d = inner ? asConst(inner->b) : std::nullopt;
  if (b->op == BinaryOp::kFloorDiv) {
    if (inner && inner->op == BinaryOp::kFloorMod && d && *d > 0 && *d % *c == 0) return {inner->a, *d, *c};
    return {b->a, 0, *c};
  }
  if (b->op == BinaryOp::kFloorMod) {
    if (inner && inner->op == BinaryOp::kFloorDiv && d && *d > 0)
      if (auto upper = checkedMul(*c, *d)) return {inner->a, *upper, *d};
    return {b->a, *c, 1};
  }
  return p;
}

Expr fromPiece(const Piece& p) {
  Expr x = p.x;
  if (p.trunc) {
    if (p.upper) return make<const BinaryNode>(BinaryOp::kMod, x, constant(x->dtype, p.upper));
    return p.lower == 1 ? x : Expr(make<const BinaryNode>(BinaryOp::kDiv, x, constant(x->dtype, p.lower)));
  }
  if (p.upper) x = make<const BinaryNode>(BinaryOp::kFloorMod, x, constant(x->dtype, p.upper));
  if (p.lower != 1) x = make<const BinaryNode>(BinaryOp::kFloorDiv, x, constant(x->dtype, p.lower));
  return x;
}
} // namespace

bool Analyzer::collectProduct(LinearForm& f, const BinaryNode* m, int64_t coef, bool simplifyLeaves) {
  LinearForm a, b;
  collect(a, m->a, 1, simplifyLeaves);
  collect(b, m->b, 1, simplifyLeaves);
  if (!a.valid || !b.valid) return false;
  if (b.isConst()) std::swap(a, b);
  if (a.isConst()) {
    auto k = checkedMul(a.constant, coef);
    if (!k) return false;
    f.add(b, *k);
    return true;
  }
  size_t na = a.terms.size() + (a.constant != 0), nb = b.terms.size() + (b.constant != 0);
  auto mostFactors = [](const LinearForm& form) {
    size_t most = 0;
    for (const Term& t : form.terms) {
      std::vector<Expr> factors;
      collectFactors(t.atom, factors);
      most = std::max(most, factors.size());
    }
    return most;
  };
  if (na * nb > kMaxDistributed || mostFactors(a) + mostFactors(b) > kMaxFactors) return false;
  LinearForm distributed = product(a, b);
  if (!distributed.valid) return false;
  f.add(distributed, coef);
  return true;
}

void Analyzer::collect(LinearForm& f, const Expr& e, int64_t coef, bool simplifyLeaves) {
  if (!f.valid || coef == 0) return;
  if (auto imm = e.as<IntImmNode>()) {
    bool wraps = e->dtype.isUInt() && e->dtype.bits >= 64 && imm->value < 0;
    auto v = checkedMul(imm->value, coef);
    if (v && !wraps)
      f.addConst(*v);
    else
      f.valid = false;
    return;
  }
  auto b = e.as<BinaryNode>();
  auto negated = checkedMul(coef, -1);
  if (!negated) {
    f.valid = false;
    return;
  }
  if (b && b->dtype.isInteger() && b->dtype.lanes == 1) {
    if (b->op == BinaryOp::kAdd || b->op == BinaryOp::kSub) {
      collect(f, b->a, coef, simplifyLeaves);
      collect(f, b->b, b->op == BinaryOp::kAdd ? coef : *negated, simplifyLeaves);
      return;
    }
    if (b->op == BinaryOp::kMul) {
      if (collectProduct(f, b, coef, simplifyLeaves)) return;
      Expr x = simplifyLeaves ? visit(b->a) : b->a, y = simplifyLeaves ? visit(b->b) : b->b;
      f.add(x == b->a && y == b->b ? e : Expr(make<const BinaryNode>(BinaryOp::kMul, x, y)), coef);
      return;
    }
  }
  if (auto u = e.as<UnaryNode>(); u && u->op == UnaryOp::kNeg && u->dtype.isInteger() && u->dtype.lanes == 1)
    return collect(f, u->a, *negated, simplifyLeaves);
  if (auto c = e.as<CastNode>(); c && isIndexType(c->dtype) && isIndexType(c->value->dtype) &&
                                 c->dtype.bits > c->value->dtype.bits && c->dtype.lanes == 1) {
    Expr inner = simplifyLeaves ? visit(c->value) : c->value;
    if ((isRing(inner) || inner->kind == Kind::kIntImm) && isExact(inner)) {
      LinearForm g = formOf(inner);
      for (Term& t : g.terms) t.atom = make<const CastNode>(c->dtype, t.atom);
      if (g.valid) return f.add(g, coef);
    }
  }
  Expr leaf = simplifyLeaves ? visit(e) : e;
  if (leaf != e && (isRing(leaf) || leaf->kind == Kind::kIntImm)) return collect(f, leaf, coef, false);
  f.add(leaf, coef);
}

LinearForm Analyzer::formOf(const Expr& e) {
  LinearForm f;
  collect(f, e, 1, false);
  return f;
}

Expr Analyzer::visitSum(const Expr& e) {
  LinearForm f;
  collect(f, e, 1, true);
  for (int round = 0; f.valid && round < 8 && recombine(f); ++round) {
  }
  Expr result = f.valid ? toExpr(f, e->dtype) : nullptr;
  if (result) return identicalExpr(result, e) ? e : result;
  // A constant left the dtype: keep the operation, simplify below it.
  if (auto b = e.as<BinaryNode>()) return rebuild(b, visit(b->a), visit(b->b), e);
  if (auto u = e.as<UnaryNode>()) return make<const UnaryNode>(u->op, visit(u->a));
  auto c = cast<CastNode>(e);
  return make<const CastNode>(c->dtype, visit(c->value));
}

Expr Analyzer::toExpr(const LinearForm& f, DType t) {
  if (!f.valid || !fitsDType(f.constant, t)) {
    bool subtracted =
        f.valid && f.constant < 0 && f.constant != INT64_MIN && !f.terms.empty() && fitsDType(-f.constant, t);
    if (!subtracted) return nullptr;
  }
  auto scaledAtom = [&](const Expr& atom, int64_t k) -> Expr {
    if (k == 1) return atom;
    return make<const BinaryNode>(BinaryOp::kMul, atom, constant(t, k));
  };
  for (const Term& term : f.terms) {
    if (fitsDType(term.coef, t)) continue;
    if (term.coef > 0 || term.coef == INT64_MIN || !fitsDType(-term.coef, t)) return nullptr;
  }
  Expr sum;
  for (const Term& term : f.terms)
    if (term.coef > 0) {
      Expr x = scaledAtom(term.atom, term.coef);
      sum = sum ? Expr(make<const BinaryNode>(BinaryOp::kAdd, sum, x)) : x;
    }
  bool constantFirst = !sum && !f.terms.empty() && f.constant != 0 && fitsDType(f.constant, t);
  if (constantFirst) sum = constant(t, f.constant);
  for (const Term& term : f.terms) {
    if (term.coef > 0) continue;
    if (!sum) {
      if (fitsDType(term.coef, t)) {
        sum = scaledAtom(term.atom, term.coef);
        continue;
      }
      sum = constant(t, 0);
    }
    if (term.coef == INT64_MIN || !fitsDType(-term.coef, t))
      sum = make<const BinaryNode>(BinaryOp::kAdd, sum, scaledAtom(term.atom, term.coef));
    else
      sum = make<const BinaryNode>(BinaryOp::kSub, sum, scaledAtom(term.atom, -term.coef));
  }
  if (!sum) return constant(t, f.constant);
  if (f.constant == 0 || constantFirst) return sum;
  bool subtract = f.constant < 0 && f.constant != INT64_MIN && fitsDType(-f.constant, t);
  if (subtract) return make<const BinaryNode>(BinaryOp::kSub, sum, constant(t, -f.constant));
  return make<const BinaryNode>(BinaryOp::kAdd, sum, constant(t, f.constant));
}

/// Joins two pieces of the same x; true when the form changed.
bool Analyzer::recombinePair(LinearForm& f, size_t i, size_t j) {
  Piece a = pieceOf(f.terms[i].atom), b = pieceOf(f.terms[j].atom);
  bool whole = a.upper == 0 && a.lower == 1;
  if (whole) a.trunc = b.trunc;
  if (a.trunc != b.trunc || !sameExpr(a.x, b.x)) return false;
  int64_t ka = f.terms[i].coef, kb = f.terms[j].coef;
  bool nests = b.lower != 0 && a.lower % b.lower == 0;
  Piece joined = a;
  int64_t k = 0;
  if (b.upper == a.lower && nests && checkedMul(kb, a.lower / b.lower) == ka) {
    joined.lower = b.lower; // k*(l/m) * (x%u//l) + k * (x%l//m)  →  k * (x%u//m)
    k = kb;
  } else if (b.upper == a.upper && b.lower % a.lower == 0 && b.lower != a.lower) {
    auto n = checkedMul(ka, b.lower / a.lower);
    if (!n || *n == INT64_MIN || kb != -*n) return false;
    joined.upper = b.lower; // k * (x%u//m) - k*(l/m) * (x%u//l)  →  k * (x%l//m)
    k = ka;
  } else if (b.lower == a.lower && b.upper > a.lower &&
             (a.upper == 0 || (a.upper > b.upper && a.upper % b.upper == 0)) && kb != INT64_MIN &&
             ka == -kb) {
    auto n = checkedMul(ka, b.upper / a.lower); // k * (x%u//m) - k * (x%l//m)  →  k*(l/m) * (x%u//l)
    if (!n) return false;
    joined.lower = b.upper;
    k = *n;
  } else {
    return false;
  }
  size_t last = std::max(i, j);
  f.terms.erase(f.terms.begin() + ptrdiff_t(last));
  size_t first = std::min(i, j);
  Expr atom = fromPiece(joined);
  f.terms.erase(f.terms.begin() + ptrdiff_t(first));
  LinearForm g;
  collect(g, visit(atom), k, false);
  f.add(g);
  return true;
}

/// x is a sum whose terms lie in the form: s - s//l*l → s % l, and s - s%l → s//l*l.
bool Analyzer::recombineWhole(LinearForm& f, size_t i) {
  Piece p = pieceOf(f.terms[i].atom);
  bool quotient = p.upper == 0 && p.lower != 1, remainder = p.upper != 0 && p.lower == 1;
  if (!(quotient || remainder) || !isRing(p.x)) return false;
  int64_t kp = f.terms[i].coef, k;
  if (kp == INT64_MIN) return false;
  if (quotient) {
    if (kp % p.lower != 0) return false;
    k = -(kp / p.lower);
  } else {
    k = -kp;
  }
  LinearForm s = formOf(p.x), rest = f;
  if (!s.valid) return false;
  for (const Term& t : s.terms) { // every term of s must be there, k times
    auto want = checkedMul(t.coef, k);
    if (!want || f.coefOf(t.atom) != *want) return false;
  }
  rest.terms.erase(rest.terms.begin() + ptrdiff_t(i));
  rest.add(s, -k);
  auto scale = remainder ? checkedMul(k, p.upper) : std::optional(k);
  if (!scale || !rest.valid) return false;
  Piece joined = quotient ? Piece{p.x, p.lower, 1, p.trunc} : Piece{p.x, 0, p.upper, p.trunc};
  LinearForm g;
  collect(g, visit(fromPiece(joined)), *scale, false);
  rest.add(g);
  if (!rest.valid) return false;
  f = rest;
  return true;
}

bool Analyzer::recombine(LinearForm& f) {
  bool pieces = false;
  for (const Term& t : f.terms) {
    auto b = t.atom.as<BinaryNode>();
    pieces = pieces || (b && b->op >= BinaryOp::kDiv && b->op <= BinaryOp::kFloorMod);
  }
  if (!pieces || f.terms.size() < 2) return false;
  for (size_t i = 0; i < f.terms.size(); ++i)
    for (size_t j = 0; j < f.terms.size(); ++j)
      if (i != j && recombinePair(f, i, j)) return true;
  for (size_t i = 0; i < f.terms.size(); ++i)
    if (recombineWhole(f, i)) return true;
  return false;
}

bool Analyzer::isData(const Expr& e) {
  if (readsData(e)) return true;
  return dataVars_ > 0 && usesAnyVar(e, [this](const VarNode* v) {
           auto it = vars_.find(Var(v));
           return it != vars_.end() && it->second.data;
         });
}

bool Analyzer::isExact(const Expr& e) {
  if (!isRing(e)) return true;
  if (isIndexType(e->dtype) && !isData(e)) return true;
  ConstBound all = dtypeBound(e->dtype.scalar());
  ConstBound v;
  if (auto u = e.as<UnaryNode>()) {
    if (!isExact(u->a)) return false;
    v = ConstBound{0, 0} - bound(u->a);
  } else {
    auto b = e.as<BinaryNode>();
    if (!isExact(b->a) || !isExact(b->b)) return false;
    ConstBound x = bound(b->a), y = bound(b->b);
    v = b->op == BinaryOp::kAdd ? x + y : b->op == BinaryOp::kSub ? x - y : x * y;
  }
  return v.bounded() && v.min >= all.min && v.max <= all.max;
}

LinearForm Analyzer::exactForm(const Expr& e) {
  LinearForm f;
  if (isExact(e)) f = formOf(e);
  if (!isExact(e) || !f.valid) {
    f = LinearForm();
    f.add(e, 1);
  }
  return f;
}

bool Analyzer::fitsAsOperand(const LinearForm& f, const LinearForm& whole, DType t) {
  if (!f.valid) return false;
  if (f.isConst()) return fitsDType(f.constant, t);
  // An atom exists already; a product may have come from multiplying out, so that nobody has computed it.
  bool lone = f.constant == 0 && f.terms.size() == 1 && f.terms[0].coef == 1;
  if (lone && !isRing(f.terms[0].atom)) return true;
  ConstBound b = formBound(f), all = dtypeBound(t);
  if (b.bounded() && b.within(all.min, all.max)) return true;
  // x + c' lies between x and x + c, which both fit, when c' lies between 0 and c.
  if (!isIndexType(t) || f.terms.size() != whole.terms.size()) return false;
  for (const Term& x : f.terms)
    if (whole.coefOf(x.atom) != x.coef) return false;
  bool towardsZero = whole.constant >= 0 ? f.constant >= 0 && f.constant <= whole.constant
                                         : f.constant <= 0 && f.constant >= whole.constant;
  bool oneAtom = f.terms.size() == 1 && f.terms[0].coef == 1;
  return f.constant == whole.constant || (oneAtom && towardsZero);
}

} // namespace bevel
