// Sets of integers as symbolic intervals [min, max]: what an index reaches while its variables range over
// sets. All operations give supersets unless they say otherwise.
#pragma once

#include "arith/analyzer.h"

#include <unordered_map>

namespace bevel {

/// min <= x <= max, both inclusive; a null bound is infinite. `empty`: no value at all.
struct IntSet {
  Expr min, max;
  bool empty = false;

  static IntSet everything() { return {}; }
  static IntSet nothing() { return {nullptr, nullptr, true}; }
  static IntSet point(const Expr& value) { return {value, value, false}; }
  static IntSet interval(Expr lo, Expr hi) { return {std::move(lo), std::move(hi), false}; }
  /// [min, min + extent).
  static IntSet range(const Range& r);
  bool isPoint() const { return min && min == max; }
  bool isEverything() const { return !empty && !min && !max; }
  bool bounded() const { return min && max; }
};

using IntSetMap = std::unordered_map<Var, IntSet, RefHash>;

/// Every value that e takes while each variable of the map ranges over its set (independently); variables
/// outside the map stay symbols. Sums, products by a known sign, floor and truncating division and modulo,
/// min, max, select, casts, if_then_else; anything else that contains a mapped variable is unbounded, unless
/// its constant bounds are known.
IntSet evalSet(const Expr& e, const IntSetMap& vars, Analyzer& analyzer);
/// The union over all positions of [min, min + extent).
IntSet evalSet(const Range& r, const IntSetMap& vars, Analyzer& analyzer);
/// Sets from loop ranges.
IntSetMap asSets(const std::vector<std::pair<Var, Range>>& ranges);

/// Smallest interval around both.
IntSet unionSet(const IntSet& a, const IntSet& b, Analyzer& analyzer);
/// Exact: the values in both (it may be empty without being flagged so).
IntSet intersectSet(const IntSet& a, const IntSet& b, Analyzer& analyzer);
/// The set as a range; an unbounded side is taken from `otherwise` (which may be null: then the result is
/// null).
Range toRange(const IntSet& set, const Range& otherwise, Analyzer& analyzer);

} // namespace bevel
