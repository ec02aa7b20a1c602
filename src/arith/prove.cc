// Facts and the search that proves `form >= 0` from them.
//
// 1. Interval bounds of the atoms may decide, either way.
// 2. A fact L >= 0 that holds an atom with the sign it has in the form f is subtracted so that the atom
// vanishes:
//    if f - k*L >= 0 then f >= 0. Loop ranges with symbolic ends and assumed conditions are such facts.
// 3. Quotients, remainders, min, max and choices bring facts of their own: c*(x//c) <= x, min(a, b) <= a, …
// 4. In a product u*rest with rest >= 0, facts about u are multiplied by rest: i <= m-1 gives i*n <= (m-1)*n.
//
// All arithmetic here is on forms, exact or refused; nothing is rebuilt, so nothing can overflow.
#include "arith/analyzer.h"

#include <algorithm>

namespace bevel {

using namespace arith;

namespace {
constexpr int kBudget = 64; // forms looked at in one proof
constexpr int kDepth = 5;
} // namespace

LinearForm Analyzer::exactDifference(const Expr& a, const Expr& b) {
  LinearForm d;
  d.valid = false;
  if (a->dtype != b->dtype || a->dtype.lanes != 1 || !a->dtype.isInteger()) return d;
  LinearForm x = exactForm(a), y = exactForm(b);
  return difference(x, y);
}

bool Analyzer::proveNonNegative(const LinearForm& f) {
  if (!f.valid) return false;
  if (proving_) return search(f, 2); // within another proof: its budget
  if (auto known = byBounds(f)) return *known;
  budget_ = kBudget;
  proving_ = true;
  bool proved = false;
  for (int depth = 1; depth <= kDepth && !proved && budget_ > 0; depth += 2) proved = search(f, depth);
  proving_ = false;
  return proved;
}

/// All atoms are variables of which nothing but bounds is known: then the form reaches its bounds.
bool Analyzer::isIndependent(const LinearForm& f) const {
  return facts_.empty() && assumed_.empty() && std::ranges::all_of(f.terms, [&](const Term& t) {
           auto it = t.atom->kind == Kind::kVar ? vars_.find(cast<VarNode>(t.atom)) : vars_.end();
           return it != vars_.end() && !it->second.value && !it->second.data;
         });
}

/// Whether the bounds of the atoms prove f >= 0; nothing where a search may prove what they do not.
std::optional<bool> Analyzer::byBounds(const LinearForm& f) {
  ConstBound b = formBound(f);
  if (b.min >= 0) return true;
  if (b.max < 0 || isIndependent(f)) return false;
  return std::nullopt;
}

bool Analyzer::provePositive(LinearForm f) {
  f.addConst(-1);
  return proveNonNegative(f);
}

bool Analyzer::proveLess(const Expr& a, const Expr& b) {
  return provePositive(exactDifference(simplify(b), simplify(a)));
}
bool Analyzer::proveLessEqual(const Expr& a, const Expr& b) {
  return proveNonNegative(exactDifference(simplify(b), simplify(a)));
}

/// Whether the bounds of its sides prove an inequality of scalars, before anything is rewritten; nothing where
/// more than bounds may prove it.
std::optional<bool> Analyzer::decide(const Expr& condition) {
  const auto* n = condition.as<BinaryNode>();
  if (!n || n->op < BinaryOp::kLt || n->op > BinaryOp::kGe) return std::nullopt;
  bool less = n->op == BinaryOp::kLt || n->op == BinaryOp::kLe;
  LinearForm d = less ? exactDifference(n->b, n->a) : exactDifference(n->a, n->b);
  if (!d.valid) return std::nullopt;
  if (n->op == BinaryOp::kLt || n->op == BinaryOp::kGt) d.addConst(-1);
  return d.valid ? byBounds(d) : std::nullopt;
}

bool Analyzer::prove(const Expr& condition) {
  if (!condition->dtype.isBool()) return false;
  if (auto decided = decide(condition)) return *decided;
  auto c = asConst(simplify(condition));
  return c && *c != 0;
}

bool Analyzer::search(const LinearForm& f, int depth) {
  if (!f.valid || budget_ <= 0) return false;
  --budget_;
  ConstBound b = formBound(f);
  if (b.min >= 0) return true;
  if (depth == 0 || b.max < 0) return false;
  // Unbounded terms first: nothing can be proved while one remains, but what a bounded quotient or product
  // brings may remove it.
  bool infinite = false;
  for (bool unbounded : {true, false})
    for (const Term& t : f.terms) {
      if ((scaled(bound(t.atom), t.coef).min == kNegInf) != unbounded) continue;
      bool again = unbounded && infinite; // some step must remove the first of them; the others can wait
      infinite |= unbounded;
      if (again) continue;
      if (!infinite || unbounded
              ? searchFacts(f, t, depth) || searchStructure(f, t, depth) || searchProduct(f, t, depth)
              : searchStructure(f, t, depth))
        return true;
    }
  return false;
}

bool Analyzer::cancelWith(const LinearForm& f, const Term& t, const LinearForm& fact, int depth) {
  int64_t c = fact.coefOf(t.atom);
  if (c == 0 || (c < 0) != (t.coef < 0) || c == INT64_MIN || t.coef == INT64_MIN) return false;
  int64_t g = gcd64(c, t.coef), m = (c < 0 ? -c : c) / g, k = (t.coef < 0 ? -t.coef : t.coef) / g;
  LinearForm rest = f;
  rest.scale(m);
  auto minus = checkedMul(k, -1);
  if (!minus) return false;
  rest.add(fact, *minus);
  return search(rest, depth - 1);
}

bool Analyzer::searchFacts(const LinearForm& f, const Term& t, int depth) {
  for (const std::vector<Fact>* list : {&assumed_, &facts_})
    for (const Fact& fact : *list) {
      if (fact.form.terms.empty()) continue;
      if (cancelWith(f, t, fact.form, depth)) return true;
      if (!fact.zero) continue;
      LinearForm negative = fact.form;
      negative.scale(-1);
      if (negative.valid && cancelWith(f, t, negative, depth)) return true;
    }
  return false;
}

/// f with the term's atom replaced by a, by b; both (or one) must be proved.
bool Analyzer::searchChoice(const LinearForm& f, const Term& t, const Expr& a, const Expr& b, bool both,
                            int depth) {
  auto with = [&](const Expr& x) {
    LinearForm g = f;
    g.add(t.atom, -t.coef);
    g.add(exactForm(x), t.coef);
    return g.valid && search(g, depth - 1);
  };
  return both ? with(a) && with(b) : with(a) || with(b);
}

/// The term is plus or minus x // y with y > 0: x // y <= r means x < (r + 1) * y, and x // y >= -r means x
/// >= -r * y.
bool Analyzer::searchQuotient(const LinearForm& f, const Term& t, const BinaryNode& quotient, int depth) {
  LinearForm divisor = exactForm(quotient.b), g = f;
  if (!divisor.valid || divisor.terms.size() > 2 || !provePositive(divisor)) return false;
  g.add(t.atom, -t.coef);
  if (t.coef < 0) g.addConst(1);
  g = product(g, divisor);
  g.add(exactForm(quotient.a), t.coef);
  if (t.coef < 0) g.addConst(-1);
  return g.valid && search(g, depth - 1);
}

bool Analyzer::searchStructure(const LinearForm& f, const Term& term, int depth) {
  Term t = term; // f may be copied and changed below
  if (t.coef == INT64_MIN) return false;
  if (auto s = t.atom.as<SelectNode>()) return searchChoice(f, t, s->a, s->b, true, depth);
  if (auto c = t.atom.as<CallNode>(); c && c->op == Intrin::kIfThenElse)
    return searchChoice(f, t, c->arg(1), c->arg(2), true, depth);
  auto n = t.atom.as<BinaryNode>();
  if (!n) return false;
  switch (n->op) {
  case BinaryOp::kMin:
    return searchChoice(f, t, n->a, n->b, t.coef > 0, depth);
  case BinaryOp::kMax:
    return searchChoice(f, t, n->a, n->b, t.coef < 0, depth);
  case BinaryOp::kFloorDiv: {
    auto c = asConst(n->b);
    if (t.coef == 1 || t.coef == -1) return searchQuotient(f, t, *n, depth);
    if (!c || *c <= 0) return false;
    LinearForm fact = exactForm(n->a); // x - c*q >= 0
    fact.add(t.atom, -*c);
    if (t.coef > 0) { // c*q - x + c - 1 >= 0
      fact.scale(-1);
      fact.addConst(*c - 1);
    }
    return fact.valid && cancelWith(f, t, fact, depth);
  }
  case BinaryOp::kFloorMod: {
    LinearForm divisor = exactForm(n->b), fact;
    if (t.coef < 0 && bound(n->a).min >= 0) { // x - x % b >= 0 for x >= 0 and b > 0
      fact = exactForm(n->a);
      fact.add(t.atom, -1);
      if (provePositive(divisor) && fact.valid && cancelWith(f, t, fact, depth)) return true;
    }
    if (asConst(n->b) || !provePositive(divisor)) return false;
    fact = t.coef < 0 ? divisor : LinearForm(); // b - 1 - x % b >= 0, or x % b >= 0
    if (t.coef < 0) fact.addConst(-1);
    fact.add(t.atom, t.coef < 0 ? -1 : 1);
    return fact.valid && cancelWith(f, t, fact, depth);
  }
  default:
    return false;
  }
}

bool Analyzer::searchProduct(const LinearForm& f, const Term& term, int depth) {
  auto n = term.atom.as<BinaryNode>();
  if (!n || n->op != BinaryOp::kMul || !isExact(term.atom)) return false;
  Term t = term;
  std::vector<Expr> factors;
  collectFactors(t.atom, factors);
  for (size_t i = 0; i < factors.size(); ++i) {
    Expr rest;
    for (size_t j = 0; j < factors.size(); ++j)
      if (j != i) rest = rest ? Expr(make<const BinaryNode>(BinaryOp::kMul, rest, factors[j])) : factors[j];
    LinearForm other;
    other.add(rest, 1);
    // y * (x // y) lies in (x - y, x] for y > 0.
    if (auto q = factors[i].as<BinaryNode>();
        q && q->op == BinaryOp::kFloorDiv && sameExpr(q->b, rest) && provePositive(other)) {
      LinearForm fact = exactForm(q->a);
      fact.add(t.atom, -1);
      if (t.coef > 0) {
        fact.scale(-1);
        fact.add(other);
        fact.addConst(-1);
      }
      if (fact.valid && cancelWith(f, t, fact, depth)) return true;
    }
    if (!proveNonNegative(other)) continue;
    auto times = [&](const LinearForm& fact) { return product(fact, other); }; // fact * rest >= 0
    ConstBound b = bound(factors[i]);
    LinearForm fact;
    if (t.coef > 0 && b.min != kNegInf) {
      fact.add(factors[i], 1);
      fact.addConst(-b.min);
    } else if (t.coef < 0 && b.max != kPosInf) {
      fact.add(factors[i], -1);
      fact.addConst(b.max);
    }
    if (!fact.terms.empty() && fact.valid && cancelWith(f, t, times(fact), depth)) return true;
    for (const std::vector<Fact>* list : {&assumed_, &facts_})
      for (const Fact& known : *list) {
        int64_t c = known.form.coefOf(factors[i]);
        if (c == 0 || (c < 0) != (t.coef < 0)) continue;
        if (cancelWith(f, t, times(known.form), depth)) return true;
      }
  }
  return false;
}

// Facts.

void Analyzer::addFormFact(LinearForm f, bool zero, const VarNode* owner, std::vector<Fact>& out) {
  int64_t g = f.gcdOfTerms();
  if (!f.valid || g == 0) return;
  if (g > 1 && (!zero || f.constant % g == 0)) {
    f.constant = floorDivide(f.constant, g);
    for (Term& t : f.terms) t.coef /= g;
  }
  Fact fact;
  fact.owner = owner;
  int64_t k = f.terms[0].coef;
  if (f.terms.size() == 1 && (k == 1 || k == -1) && f.constant != INT64_MIN) {
    fact.atom = f.terms[0].atom;
    int64_t at = k == 1 ? -f.constant : f.constant;
    fact.bound = zero ? ConstBound{at, at} : k == 1 ? ConstBound{at, kPosInf} : ConstBound{kNegInf, at};
    fact.bound = sane(fact.bound);
    addDividendFact(fact, owner, out);
  } else {
    fact.form = std::move(f);
    fact.zero = zero;
  }
  out.push_back(std::move(fact));
}

/// x // c >= low means x >= low * c, and x // c <= high means x <= high * c + c - 1.
void Analyzer::addDividendFact(const Fact& fact, const VarNode* owner, std::vector<Fact>& out) {
  auto q = fact.atom.as<BinaryNode>();
  auto c = q && q->op == BinaryOp::kFloorDiv ? asConst(q->b) : std::nullopt;
  if (!c || *c <= 0) return;
  LinearForm x = exactForm(q->a), negative = x;
  negative.scale(-1);
  if (auto low = fact.bound.min == kNegInf ? std::nullopt : checkedMul(fact.bound.min, -*c)) {
    x.addConst(*low);
    addFormFact(x, false, owner, out);
  }
  auto high = fact.bound.max == kPosInf ? std::nullopt : checkedMul(fact.bound.max, *c);
  if (high && *high <= kPosInf - *c) {
    negative.addConst(*high + *c - 1);
    addFormFact(negative, false, owner, out);
  }
}

void Analyzer::addComparisonFacts(const BinaryNode* c, bool holds, const VarNode* owner,
                                  std::vector<Fact>& out) {
  LinearForm d = exactDifference(c->a, c->b), negative = d; // d compares with 0
  negative.scale(-1);
  BinaryOp op = c->op;
  if (!holds) {
    static constexpr BinaryOp kNegated[] = {BinaryOp::kNe, BinaryOp::kEq, BinaryOp::kGe,
                                            BinaryOp::kGt, BinaryOp::kLe, BinaryOp::kLt};
    op = kNegated[int(op) - int(BinaryOp::kEq)];
  }
  switch (op) {
  case BinaryOp::kLt:
    negative.addConst(-1);
    [[fallthrough]];
  case BinaryOp::kLe:
    return addFormFact(negative, false, owner, out);
  case BinaryOp::kGt:
    d.addConst(-1);
    [[fallthrough]];
  case BinaryOp::kGe:
    return addFormFact(d, false, owner, out);
  case BinaryOp::kEq: {
    addFormFact(d, true, owner, out);
    auto mod = c->a.as<BinaryNode>();
    auto r = asConst(c->b), m = mod ? asConst(mod->b) : std::nullopt;
    bool residue =
        mod && (mod->op == BinaryOp::kFloorMod || (mod->op == BinaryOp::kMod && r == 0)) && r && m && *m > 1;
    if (!residue || *r < 0 || *r >= *m) return;
    Fact fact;
    fact.owner = owner;
    fact.atom = mod->a;
    fact.residue = {*m, *r};
    out.push_back(std::move(fact));
    return;
  }
  default: { // != at an end of the range moves the end
    ConstBound b = formBound(d);
    if (b.min == 0) {
      d.addConst(-1);
      addFormFact(d, false, owner, out);
    } else if (b.max == 0) {
      negative.addConst(-1);
      addFormFact(negative, false, owner, out);
    }
    return;
  }
  }
}

void Analyzer::addFacts(const Expr& condition, bool holds, const VarNode* owner, std::vector<Fact>& out) {
  if (asConst(condition) || condition->dtype.lanes > 1) return;
  if (auto c = condition.as<CallNode>(); c && c->op == Intrin::kLikely)
    return addFacts(c->arg(0), holds, owner, out);
  if (auto u = condition.as<UnaryNode>(); u && u->op == UnaryOp::kNot)
    return addFacts(u->a, !holds, owner, out);
  auto b = condition.as<BinaryNode>();
  if (b && ((b->op == BinaryOp::kAnd && holds) || (b->op == BinaryOp::kOr && !holds))) {
    addFacts(b->a, holds, owner, out);
    addFacts(b->b, holds, owner, out);
    return;
  }
  if (hasEffects(condition)) return;
  if (b && isComparison(b->op) && b->a->dtype.isInteger()) addComparisonFacts(b, holds, owner, out);
  Fact fact;
  fact.owner = owner;
  fact.atom = condition;
  fact.bound = holds ? ConstBound{1, 1} : ConstBound{0, 0};
  out.push_back(std::move(fact));
}

} // namespace bevel
