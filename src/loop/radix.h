// Axis values as sums of loop variables with constant factors: the common form of a binding, recognised
// without the general machinery of arith/iter_map.h.
#pragma once

#include "ir/stmt.h"

#include <optional>
#include <vector>

namespace bevel {

struct PlainTerm {
  const VarNode* var;
  int64_t factor; // positive
};
/// Adds the terms of `scale * e`; false when e is not a sum of variables with positive constant factors plus
/// a constant, or a variable is among the terms already.
bool plainTerms(const Expr& e, int64_t scale, std::vector<PlainTerm>& terms, int64_t& offset);

/// A one-to-one sum: each factor is larger than all that the smaller ones reach.
struct MixedRadix {
  bool dense; // takes every value of [offset, offset + total)
  Expr total; // of a dense one
  int64_t offset;
};
/// Nothing when a variable is not one of the loops (each starting at 0, all but the one of the largest factor
/// of constant extent; other variables are as constants when `othersStay`), or the sum is not one to one.
std::optional<MixedRadix> mixedRadix(const Expr& value, const std::vector<For>& loops,
                                     bool othersStay = false);

} // namespace bevel
