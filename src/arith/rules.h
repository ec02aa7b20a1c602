// The table of rewrite rules (rules.def) and its engine: patterns are expressions, matched greedily with both orders
// of commutative operands.
#pragma once

#include "ir/build.h"

#include <string>
#include <unordered_map>
#include <vector>

namespace bevel {

class Analyzer;

/// What a rule is valid for.
enum class RuleDomain : char {
  kAny = 'A',   // every dtype, floats included
  kInt = 'I',   // integers; holds for all values
  kExact = 'X', // integers; sums and products in the pattern must not wrap
  kBool = 'B',
  kVector = 'V', // vectors of index types, whose arithmetic does not overflow
};

struct Rule {
  RuleDomain domain;
  Expr pattern, replacement;
  Expr condition; // may be null
  bool proved;    // the condition has wildcards: the analyzer proves it
};

class RuleEngine {
public:
  /// The rules of the table, in order. Their wildcards are variables.
  static const std::vector<Rule>& rules();
  /// The replacement of the first rule that applies at the root of e, not simplified; null when none does.
  static Expr apply(const Expr& e, Analyzer& analyzer);
  /// A side of a rule with its names replaced; for tests. Null when a folded constant does not fit.
  static Expr instantiate(const Expr& side, const std::unordered_map<std::string, Expr>& names,
                          int lanes = 4);
};

} // namespace bevel
