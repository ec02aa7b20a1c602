// Patterns of rewrite rules: their small nodes, the parser of their text, and building expressions from them.
#pragma once

#include "ir/build.h"

#include <array>
#include <optional>
#include <string_view>
#include <vector>

namespace bevel::arith {

struct Pattern {
  enum Kind : uint8_t { kAny, kConst, kInt, kLanes, kBinary, kNot, kSelect, kIf, kRamp, kBroadcast };
  Kind kind;
  BinaryOp op = BinaryOp::kAdd;
  bool boolean = false; // of kAny: a condition; of kInt: true or false
  int64_t value = 0;    // slot of kAny and kConst, value of kInt
  int kids[3] = {-1, -1, -1};
};
using PatternArena = std::vector<Pattern>;

inline constexpr std::string_view kWildcardNames = "xyzwpqr"; // the last three are conditions

struct Bindings {
  std::array<Expr, 7> any;
  std::array<std::optional<int64_t>, 3> constants;
  int lanes = 0;
  DType valueType;        // of integer constants that appear
  DType rootType = kBool; // of the whole
};

/// Parses a side of a rule; ends the process on a mistake in the table.
int parsePattern(std::string_view text, PatternArena& arena);
bool hasWildcard(const PatternArena& arena, int index);
/// Value of a pattern of constants; nothing when it has a wildcard, divides by zero or overflows.
std::optional<int64_t> foldPattern(const PatternArena& arena, int index, const Bindings& binds);

/// Builds the expression of a pattern under bindings; null when a constant does not fit its dtype.
class Builder {
public:
  Builder(const PatternArena& arena, const Bindings& binds) : arena_(arena), binds_(binds) {}
  Expr build(int index);

private:
  const PatternArena& arena_;
  const Bindings& binds_;
};

} // namespace bevel::arith
