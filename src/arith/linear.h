// An index as a linear function of chosen variables, and conditions solved for one variable.
#pragma once

#include "arith/int_set.h"
#include "arith/linear_form.h"

namespace bevel {

/// The form of e, in which each of the variables is a term of its own (wherever it was widened) and the other terms
/// hold none of them. Nothing when one occurs with a factor that is no constant, under a division, comparison or load.
std::optional<arith::LinearForm> affineIn(const Expr& e, const std::vector<Var>& vars, Analyzer& analyzer);
/// The terms without the variables as an expression.
Expr restOf(const arith::LinearForm& form, const std::vector<Var>& vars, DType dtype, Analyzer& analyzer);

/// factor * var + rest; neither holds the variable. Fails (kUnsupported) when e is not of that form.
struct LinearIn {
  Expr factor, rest;
};
Result<LinearIn> linearIn(const Expr& e, const Var& var, Analyzer& analyzer);

/// The values of a variable for which a condition holds.
struct SolvedInterval {
  IntSet set; // contains only values for which the condition holds
  bool exact; // … and all of them
};

/// Solves a condition (comparisons linear in var, joined by `and`) for var: for `a*x + b < c` the interval of
/// x in which it is true, for all values of the variables in `relax` (loops inside x's; may be empty). The
/// bounds are expressions in the remaining variables. Fails (kUnsupported) when it is not of that form or the
/// sign of the coefficient is unknown.
Result<SolvedInterval> solveFor(const Expr& condition, const Var& var, const IntSetMap& relax,
                                Analyzer& analyzer);

} // namespace bevel
