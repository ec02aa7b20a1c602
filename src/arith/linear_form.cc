// Checked arithmetic on linear forms.
#include "arith/linear_form.h"

#include <algorithm>

namespace bevel::arith {

void LinearForm::addConst(int64_t c) {
  auto sum = checkedAdd(constant, c);
  if (sum)
    constant = *sum;
  else
    valid = false;
}

/// The term of an atom, or the end. A variable equals itself alone, which saves long sums the comparisons.
std::vector<Term>::const_iterator LinearForm::find(const Expr& atom) const {
  if (atom->kind == Kind::kVar) return std::ranges::find(terms, atom, &Term::atom);
  return std::ranges::find_if(terms, [&](const Term& t) { return sameExpr(t.atom, atom); });
}

void LinearForm::add(const Expr& atom, int64_t coef) {
  if (coef == 0) return;
  auto found = find(atom);
  if (found == terms.end()) {
    terms.push_back({atom, coef});
    return;
  }
  int64_t& total = terms[size_t(found - terms.begin())].coef;
  auto sum = checkedAdd(total, coef);
  if (!sum)
    valid = false;
  else if (*sum == 0)
    terms.erase(found);
  else
    total = *sum;
}

void LinearForm::add(const LinearForm& other, int64_t factor) {
  valid = valid && other.valid;
  auto c = checkedMul(other.constant, factor);
  if (!c)
    valid = false;
  else
    addConst(*c);
  for (const Term& t : other.terms) {
    auto k = checkedMul(t.coef, factor);
    if (!k)
      valid = false;
    else
      add(t.atom, *k);
  }
}

void LinearForm::scale(int64_t factor) {
  if (factor == 0) {
    terms.clear();
    constant = 0;
    return;
  }
  auto c = checkedMul(constant, factor);
  valid = valid && c;
  if (c) constant = *c;
  for (Term& t : terms) {
    auto k = checkedMul(t.coef, factor);
    valid = valid && k;
    if (k) t.coef = *k;
  }
}

int64_t LinearForm::coefOf(const Expr& atom) const {
  auto found = find(atom);
  return found == terms.end() ? 0 : found->coef;
}

int64_t LinearForm::gcdOfTerms() const {
  int64_t g = 0;
  for (const Term& t : terms) g = gcd64(g, t.coef);
  return g;
}

bool LinearForm::sameAs(const LinearForm& other) const {
  if (!valid || !other.valid || constant != other.constant || terms.size() != other.terms.size())
    return false;
  return std::all_of(terms.begin(), terms.end(),
                     [&](const Term& t) { return other.coefOf(t.atom) == t.coef; });
}

LinearForm difference(const LinearForm& a, const LinearForm& b) {
  LinearForm d = a;
  d.add(b, -1);
  return d;
}

LinearForm product(const LinearForm& a, const LinearForm& b) {
  LinearForm out, moving = a;
  out.valid = a.valid && b.valid;
  for (const Term& x : a.terms)
    for (const Term& y : b.terms) {
      auto coef = checkedMul(x.coef, y.coef);
      out.valid = out.valid && coef;
      std::vector<Expr> factors;
      collectFactors(x.atom, factors);
      collectFactors(y.atom, factors);
      out.add(productOf(factors), coef.value_or(0));
    }
  moving.constant = 0;
  out.add(moving, b.constant);
  out.add(b, a.constant);
  return out;
}

void LinearForm::splitBy(int64_t g, LinearForm& multiple, LinearForm& rest) const {
  for (const Term& t : terms)
    if (t.coef % g == 0)
      multiple.terms.push_back({t.atom, t.coef / g});
    else
      rest.terms.push_back(t);
  rest.constant = constant;
}

static bool addPlain(LinearForm& f, const Expr& e, int64_t factor) {
  if (e.is<VarNode>()) return f.add(e, factor), f.valid;
  if (auto c = asConst(e)) {
    auto product = checkedMul(*c, factor);
    return product && (f.addConst(*product), f.valid);
  }
  const auto* b = e.as<BinaryNode>();
  if (!b) return false;
  if (b->op == BinaryOp::kAdd) return addPlain(f, b->a, factor) && addPlain(f, b->b, factor);
  if (b->op == BinaryOp::kSub) return addPlain(f, b->a, factor) && addPlain(f, b->b, -factor);
  auto scale = b->op == BinaryOp::kMul ? asConst(b->b) : std::nullopt;
  auto product = scale ? checkedMul(*scale, factor) : std::nullopt;
  return product && *product != INT64_MIN && addPlain(f, b->a, *product);
}

std::optional<LinearForm> plainForm(const Expr& e) {
  LinearForm f;
  if (!isIndexType(e->dtype) || !addPlain(f, e, 1)) return std::nullopt;
  return f;
}

} // namespace bevel::arith
