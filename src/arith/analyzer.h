// What is known about index expressions: bounds of variables, values, conditions that hold here. Simplifies,
// bounds and proves under that knowledge. One Analyzer serves one walk over a program; it is cheap to make
// and not thread safe.
//
//     Analyzer an;
//     an.bind(i, range(0, 32)); an.bind(j, range(0, 8));
//     an.simplify(floordiv(i * 8 + j, 8))            i
//     { auto inside = an.assume(i * 8 + j < n); an.prove(i * 8 < n); }      true
//
// Index arithmetic (signed 32 and 64 bits, over variables) does not overflow by the IR's contract; arithmetic
// on loaded values, on calls and on other integer types wraps, and is rewritten only where bounds prove that
// it does not.
#pragma once

#include "ir/build.h"

#include <cstdint>
#include <memory>

namespace bevel {

inline constexpr int64_t kNegInf = INT64_MIN;
inline constexpr int64_t kPosInf = INT64_MAX;

/// Constant bounds of a value, both inclusive. kNegInf and kPosInf mean unbounded.
struct ConstBound {
  int64_t min = kNegInf, max = kPosInf;
  bool isPoint() const { return min == max && min != kNegInf && min != kPosInf; }
  bool bounded() const { return min != kNegInf && max != kPosInf; }
  bool within(int64_t lo, int64_t hi) const { return min >= lo && max <= hi; }
  friend bool operator==(const ConstBound&, const ConstBound&) = default;
};

/// All values are coeff * k + base; coeff 0 means the constant base. 0 <= base < coeff otherwise.
struct ModularSet {
  int64_t coeff = 1, base = 0;
  bool divisibleBy(int64_t c) const { return c != 0 && coeff % c == 0 && base % c == 0; }
};

/// Undoes one Analyzer::assume when it goes out of scope. Scopes end in the reverse order of their start.
class AssumeScope {
public:
  AssumeScope(AssumeScope&& other) noexcept;
  AssumeScope& operator=(AssumeScope&&) = delete;
  ~AssumeScope();

private:
  friend class Analyzer;
  AssumeScope(class AnalyzerState* state, size_t depth) : state_(state), depth_(depth) {}
  class AnalyzerState* state_;
  size_t depth_;
};

class Analyzer {
public:
  using Scope = AssumeScope;
  Analyzer();
  ~Analyzer();
  Analyzer(const Analyzer&) = delete;
  Analyzer& operator=(const Analyzer&) = delete;

  /// var lies in [min, min + extent), constant or symbolic; an extent of one makes it a value. Replaces what
  /// was bound.
  void bind(const Var& var, const Range& range);
  /// var has this value; simplify puts it in place of var.
  void bind(const Var& var, const Expr& value);
  void bind(const Var& var, ConstBound bound);
  /// The condition holds as long as the analyzer lives; see assume.
  void know(const Expr& condition);
  /// Forgets var.
  void unbind(const Var& var);

  /// Until the scope ends the condition holds: conjunctions are split; comparisons, equalities and
  /// `floormod(x, c) == r` are used, other conditions are recognised when they occur again.
  [[nodiscard]] Scope assume(const Expr& condition);

  /// An equal expression, never larger in effect: all values agree wherever e does not overflow or divide by
  /// zero.
  Expr simplify(const Expr& e);
  /// True only when the condition (bool) holds for all values that the knowledge allows.
  bool prove(const Expr& condition);
  bool proveEqual(const Expr& a, const Expr& b);
  bool proveLess(const Expr& a, const Expr& b);      // a < b
  bool proveLessEqual(const Expr& a, const Expr& b); // a <= b
  /// Constant bounds of an integer or bool expression (of all lanes of a vector).
  ConstBound bound(const Expr& e);
  /// Residue class of an integer expression.
  ModularSet modular(const Expr& e);

  AnalyzerState& state() { return *state_; }

private:
  std::unique_ptr<AnalyzerState> state_;
};

} // namespace bevel
