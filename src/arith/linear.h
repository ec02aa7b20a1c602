// An index as a linear function of chosen variables, and conditions solved for one variable.
#pragma once

#include "arith/int_set.h"

namespace bevel {

/// Σ coefficients[k] * vars[k] + offset; neither holds any of the variables.
struct LinearIndex {
  std::vector<Expr> coefficients; // in the order of the variables; constant 0 where a variable does not occur
  Expr offset;
};

/// Fails (kUnsupported) when e is not linear in the variables: one occurs under a division, comparison, load,
/// or in a product with another.
Result<LinearIndex> linearIn(const Expr& e, const std::vector<Var>& vars, Analyzer& analyzer);
/// The constant coefficients alone; nothing when one is symbolic or e is not linear.
std::optional<std::vector<int64_t>> constStrides(const Expr& e, const std::vector<Var>& vars,
                                                 Analyzer& analyzer);

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
