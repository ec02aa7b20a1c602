// The table of rewrite rules (rules.def) and its engine: patterns over small fixed nodes, matched greedily
// with both orders of commutative operands.
#pragma once

#include "ir/build.h"

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

namespace bevel {

class AnalyzerState;

/// What a rule is valid for.
enum class RuleDomain : char {
  kAny = 'A',   // every dtype, floats included
  kInt = 'I',   // integers; holds for all values
  kExact = 'X', // integers; sums and products in the pattern must not wrap
  kBool = 'B',
  kVector = 'V', // vectors of index types, whose arithmetic does not overflow
};

/// One line of the table, as written.
struct RuleText {
  RuleDomain domain;
  const char *pattern, *replacement, *condition;
};
std::span<const RuleText> ruleTexts();

class RuleEngine {
public:
  /// The replacement of the first rule that applies at the root of e, not simplified; null when none does.
  static Expr apply(const Expr& e, AnalyzerState& state);
  /// A side of a rule with its names replaced; for tests and documentation. `lanes` stands for L. Null when a
  /// folded constant does not fit.
  static Expr instantiate(std::string_view text, const std::unordered_map<std::string, Expr>& names,
                          int lanes = 4);
};

} // namespace bevel
