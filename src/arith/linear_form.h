// Σ coefficient * atom + constant: the canonical form of integer sums. Coefficients are checked: a form that
// would leave int64 becomes invalid and is not used.
#pragma once

#include "arith/compare.h"
#include "arith/number.h"

#include <optional>

namespace bevel::arith {

struct Term {
  Expr atom;
  int64_t coef;
};

/// Terms keep the order of first occurrence, so that simplified text looks like its source and is
/// deterministic.
class LinearForm {
public:
  std::vector<Term> terms;
  int64_t constant = 0;
  bool valid = true;

  static LinearForm of(int64_t c) {
    LinearForm f;
    f.constant = c;
    return f;
  }
  bool isConst() const { return terms.empty(); }
  void addConst(int64_t c);
  /// Merges with an equal atom; drops what cancels.
  void add(const Expr& atom, int64_t coef);
  void add(const LinearForm& other, int64_t factor = 1);
  void scale(int64_t factor);
  /// Coefficient of an atom, 0 when absent.
  int64_t coefOf(const Expr& atom) const;
  /// Greatest common divisor of the coefficients (not of the constant); 0 without terms.
  int64_t gcdOfTerms() const;
  /// This form as g * multiple + rest, no coefficient of which g divides; the constant goes to the rest.
  void splitBy(int64_t g, LinearForm& multiple, LinearForm& rest) const;
  bool sameAs(const LinearForm& other) const;

private:
  std::vector<Term>::const_iterator find(const Expr& atom) const;
};

LinearForm difference(const LinearForm& a, const LinearForm& b);
/// a * b, term by term.
LinearForm product(const LinearForm& a, const LinearForm& b);
/// The form of a sum of variables with constant factors, as it is written: nothing is simplified. Nothing when
/// the expression has another form, or is not of an index type.
std::optional<LinearForm> plainForm(const Expr& e);

} // namespace bevel::arith
