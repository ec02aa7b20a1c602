// Internals of iteration maps: expressions parsed into sums of pieces. Only arith's own files include this.
#pragma once

#include "arith/analyzer.h"
#include "arith/iter_map.h"

namespace bevel::arith {

/// Binds iterators in the analyzer and puts back what was known of them when it goes out of scope.
class BoundIterators {
public:
  BoundIterators(const IterRanges& iters, Analyzer& analyzer);
  ~BoundIterators();
  BoundIterators(const BoundIterators&) = delete;
  BoundIterators& operator=(const BoundIterators&) = delete;

private:
  Analyzer& an_;
  Analyzer::Saved saved_;
};

/// The mark of an iterator, and of a fused sum.
IterMark variableMark(const Var& v, const Range& r);
IterMark sumMark(std::vector<IterSplit> pieces, const Expr& base, const Expr& extent);

/// A fused sum whose extent the predicate cut: Σ pieces - low lies in [0, mark->extent).
struct ConstrainedSum {
  IterMark mark;
  Expr condition;
};

/// The map where the indices are plain sums of iterators; nothing says nothing.
std::optional<IterMap> plainIterMap(const Array<Expr>& indices, const IterRanges& iters,
                                    const Expr& predicate, Analyzer& analyzer, IterMapLevel level);

class IterParser {
public:
  IterParser(const IterRanges& iters, Analyzer& analyzer, IterMapLevel level);

  /// Splits the predicate into constraints; fails when one is not on a sum of pieces (unless the level is
  /// injective).
  Status addPredicate(const Expr& predicate);
  /// Simplifies and parses an index; not fused yet.
  Result<IterSum> parse(const Expr& e);
  /// The pieces as one dense piece plus base; fails with the reason when they overlap or leave gaps.
  Result<IterSum> fuse(const IterSum& sum);
  /// Pieces ordered by scale without overlap (gaps allowed); for injective maps.
  Result<IterSum> orderStrided(const IterSum& sum);
  /// Every iterator's pieces are disjoint and, as the level demands, complete.
  Status checkPieces(const std::vector<IterSum>& indices);

private:
  Result<IterSum> parseAtom(const Expr& atom);
  Expr dividedExtent(const Expr& extent, const Expr& d);
  Result<IterSum> divide(const IterSum& sum, const Expr& c, bool mod, const Expr& at);
  void addPiece(IterSum& sum, const IterSplit& piece);
  Status addBound(const Expr& condition);
  Status constrain(IterSum sum, const Expr& low, const Expr& high, const Expr& condition);
  bool takeConstrained(std::vector<IterSplit>& left, const Expr& scale, std::vector<IterSplit>& out,
                       Expr& base);
  bool samePiece(const IterSplit& a, const IterSplit& b);
  IterMark fusedMark(std::vector<IterSplit> pieces, const Expr& extent);
  bool usesIterators(const Expr& e) const;
  Status checkMark(const IterMark& mark, std::vector<IterSplit> splits);
  Expr simp(const Expr& e) { return an_.simplify(e); }
  bool equal(const Expr& a, const Expr& b) { return an_.proveEqual(a, b); }
  bool divisible(const Expr& a, const Expr& b) { return isConst(simp(floormod(a, b)), 0); }

  Analyzer& an_;
  IterMapLevel level_;
  std::vector<IterMark> marks_; // of the iterators, in order; trivial ones are left out
  std::vector<IterMark> fused_;
  std::vector<ConstrainedSum> constrained_;
};

} // namespace bevel::arith
