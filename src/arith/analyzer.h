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
//
//   simplify.cc        dispatch over kinds, caching         bounds.cc      constant bounds
//   simplify_sum.cc    sums: linear form, recombination     modular.cc     residue classes
//   simplify_div.cc    quotients and remainders             prove.cc       conditions, facts, the search
//   simplify_logic.cc  comparisons, min/max, and/or/select  analyzer.cc    bindings, scopes
//   rules.cc           the table of rewrite rules (rules.def)
#pragma once

#include "arith/linear_form.h"
#include "ir/build.h"

#include <unordered_map>

namespace bevel {

/// Undoes one Analyzer::assume when it goes out of scope. Scopes end in the reverse order of their start.
class AssumeScope {
public:
  AssumeScope(class Analyzer& analyzer, size_t depth) : analyzer_(&analyzer), depth_(depth) {}
  AssumeScope(AssumeScope&& other) noexcept : AssumeScope(other) { other.analyzer_ = nullptr; }
  AssumeScope& operator=(AssumeScope&&) = delete;
  ~AssumeScope();

private:
  AssumeScope(const AssumeScope&) = default;
  Analyzer* analyzer_;
  size_t depth_;
};

class Analyzer {
  using LinearForm = arith::LinearForm;
  using Term = arith::Term;
  struct VarInfo {
    ConstBound bound;
    Expr value;        // put in place of the variable; null when there is none
    bool data = false; // its value was loaded or computed by a call: arithmetic on it may wrap
  };
  struct Fact;

public:
  Analyzer() = default;
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
  [[nodiscard]] AssumeScope assume(const Expr& condition);

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
  /// Whether the bounds of its sides prove an inequality of scalars, before anything is rewritten; nothing where
  /// more than bounds may prove it.
  std::optional<bool> decide(const Expr& condition);

  /// What is known of some variables, to be put back later.
  struct Saved {
    std::vector<std::pair<Var, VarInfo>> known;
    std::vector<Var> vars;
    std::vector<Fact> facts;
  };
  Saved save(const std::vector<Var>& vars) const;
  void putBack(const Saved& saved);

  // Forms.
  /// Linear form of a ring expression; leaves are taken as they are.
  LinearForm formOf(const Expr& e);
  /// The same, when the arithmetic of e provably does not wrap; else e as one atom.
  LinearForm exactForm(const Expr& e);
  /// True when no ring operation at the top of e can leave its dtype.
  bool isExact(const Expr& e);
  /// True when e depends on loaded or computed values.
  bool isData(const Expr& e);
  ConstBound formBound(const LinearForm& f);
  /// The expression of a form; null when a constant does not fit the dtype.
  Expr toExpr(const LinearForm& f, DType dtype);
  /// Whether the value of f provably fits the dtype, f being made of terms of the exact form `whole`.
  bool fitsAsOperand(const LinearForm& f, const LinearForm& whole, DType dtype);

  // Proof of form >= 0, > 0 and == 0 under all facts.
  bool proveNonNegative(const LinearForm& f);
  bool provePositive(LinearForm f);
  /// a - b as exact forms; invalid when it cannot be formed.
  LinearForm exactDifference(const Expr& a, const Expr& b);

private:
  friend class RuleEngine;
  friend class AssumeScope;
  /// Something that holds: `form` is >= 0 (or == 0 when `zero`), or bounds and residue class of one atom,
  /// which may be a condition (bounds [1, 1] or [0, 0]).
  struct Fact {
    LinearForm form;
    bool zero = false;
    Expr atom; // null for a form
    ConstBound bound;
    ModularSet residue;
    const VarNode* owner = nullptr; // bound variable this follows from
  };

  size_t push(const Expr& condition); // assumes; the depth to restore
  void restore(size_t depth);
  // simplify.cc
  Expr visit(const Expr& e);
  Expr dispatch(const Expr& e);
  Expr visitBinary(const BinaryNode* n, const Expr& e);
  Expr visitVar(const Expr& e);
  Expr visitUnary(const UnaryNode* n, const Expr& e);
  Expr visitCast(const CastNode* n, const Expr& e);
  Expr visitLet(const LetNode* n, const Expr& e);
  Expr visitReduce(const ReduceNode* n, const Expr& e);
  Expr visitCall(const CallNode* n, const Expr& e);
  Expr visitChildren(const Expr& e);
  Expr visitFloat(const BinaryNode* n, const Expr& a, const Expr& b, const Expr& e);
  Expr finish(const Expr& e); // rules of the table, then done
  Expr rebuild(const BinaryNode* n, const Expr& a, const Expr& b, const Expr& e);
  // simplify_sum.cc
  Expr visitSum(const Expr& e);
  void collect(LinearForm& f, const Expr& e, int64_t coef, bool simplifyLeaves);
  bool collectProduct(LinearForm& f, const BinaryNode* m, int64_t coef, bool simplifyLeaves);
  bool recombine(LinearForm& f);
  bool recombinePair(LinearForm& f, size_t i, size_t j);
  bool recombineWhole(LinearForm& f, size_t i);
  // simplify_div.cc
  Expr visitDivision(BinaryOp op, const Expr& a, const Expr& b, const Expr& e);
  Expr floorDivConst(const Expr& a, int64_t c, const Expr& e);
  Expr floorModConst(const Expr& a, int64_t c, const Expr& e);
  Expr divideSymbolic(bool mod, const Expr& a, const Expr& b);
  Expr truncDivConst(BinaryOp op, const Expr& a, int64_t c);
  Expr quotient(const LinearForm& q, const LinearForm& r, int64_t c, DType t);
  // simplify_logic.cc
  Expr visitMinMax(BinaryOp op, const Expr& a, const Expr& b, const Expr& e);
  Expr visitComparison(BinaryOp op, Expr a, Expr b, const Expr& e);
  Expr canonicalComparison(BinaryOp op, const LinearForm& d, const Expr& a, const Expr& b);
  Expr visitAndOr(const BinaryNode* n, const Expr& e);
  Expr visitNot(const Expr& a);
  Expr visitChoice(const Expr& condition, const Expr& a, const Expr& b, bool lazy, const Expr& e);
  Expr under(const Expr& condition, bool holds, const Expr& e, bool lazy);
  // bounds.cc, modular.cc
  ConstBound computeBound(const Expr& e);
  ConstBound ringBound(const Expr& e);
  ConstBound binaryBound(const BinaryNode* n);
  ModularSet computeModular(const Expr& e);
  // prove.cc
  bool isIndependent(const LinearForm& f) const;
  std::optional<bool> byBounds(const LinearForm& f);
  bool search(const LinearForm& f, int depth);
  bool searchFacts(const LinearForm& f, const Term& t, int depth);
  bool searchStructure(const LinearForm& f, const Term& t, int depth);
  bool searchQuotient(const LinearForm& f, const Term& t, const BinaryNode& quotient, int depth);
  bool searchProduct(const LinearForm& f, const Term& t, int depth);
  bool searchChoice(const LinearForm& f, const Term& t, const Expr& a, const Expr& b, bool both, int depth);
  bool cancelWith(const LinearForm& f, const Term& t, const LinearForm& fact, int depth);
  std::vector<Expr> sizeConditions(const Expr& extent);
  void addFacts(const Expr& condition, bool holds, const VarNode* owner, std::vector<Fact>& out);
  void addFormFact(LinearForm f, bool zero, const VarNode* owner, std::vector<Fact>& out);
  void addDividendFact(const Fact& fact, const VarNode* owner, std::vector<Fact>& out);
  void addComparisonFacts(const BinaryNode* c, bool holds, const VarNode* owner, std::vector<Fact>& out);
  void changed() { ++epoch_; }

  struct CacheEntry {
    Expr key, value;
    uint64_t epoch = 0;
    ConstBound bound;
  };
  /// Direct-mapped by identity; small until it is used much, for most analyzers live for a few questions.
  struct Cache {
    std::vector<CacheEntry> entries;
    size_t stores = 0;
    CacheEntry& slot(const Expr& e);
    CacheEntry& store(const Expr& e); // to be filled
  };

  std::unordered_map<Var, VarInfo, RefHash> vars_;
  std::vector<Fact> facts_;   // from bindings
  std::vector<Fact> assumed_; // a stack
  Cache simplified_, bounds_;
  uint64_t epoch_ = 1;
  int budget_ = 0; // steps left of the proof search in progress
  bool proving_ = false;
  int ruleDepth_ = 0;
  int dataVars_ = 0;     // variables whose info says data
  bool effects_ = false; // the expression in hand has side effects: nothing is dropped
};

} // namespace bevel
