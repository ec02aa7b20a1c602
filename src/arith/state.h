// The Analyzer's knowledge and engines; only arith's own files include this.
//
//   simplify.cc        dispatch over kinds, caching         bounds.cc      constant bounds
//   simplify_sum.cc    sums: linear form, recombination     modular.cc     residue classes
//   simplify_div.cc    quotients and remainders             prove.cc       conditions, facts, the search
//   simplify_logic.cc  comparisons, min/max, and/or/select  analyzer.cc    bindings, scopes, the public class
//   rules.cc           the table of rewrite rules (rules.def)
#pragma once

#include "arith/linear_form.h"

#include <unordered_map>

namespace bevel {

class AnalyzerState {
public:
  using LinearForm = arith::LinearForm;
  using Term = arith::Term;

  struct VarInfo {
    ConstBound bound;
    Expr value;        // put in place of the variable; null when there is none
    bool data = false; // its value was loaded or computed by a call: arithmetic on it may wrap
  };

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

  // Engines.
  Expr simplify(const Expr& e);
  std::optional<bool> decide(const Expr& condition);
  bool prove(const Expr& condition);
  ConstBound bound(const Expr& e);
  ModularSet modular(const Expr& e);

  // Knowledge.
  void bind(const Var& var, const Range& range);
  void bindValue(const Var& var, const Expr& value);
  void bindBound(const Var& var, ConstBound bound);
  void unbind(const Var& var);
  /// What is known of some variables, to be put back later.
  struct Saved {
    std::vector<std::pair<Var, VarInfo>> known;
    std::vector<Var> vars;
    std::vector<Fact> facts;
  };
  Saved save(const std::vector<Var>& vars) const;
  void putBack(const Saved& saved);
  void know(const Expr& condition);
  size_t assume(const Expr& condition); // returns the depth to restore
  void restore(size_t depth);

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
  bool proveLess(const Expr& a, const Expr& b);
  bool proveLessEqual(const Expr& a, const Expr& b);

private:
  friend class RuleEngine;
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
