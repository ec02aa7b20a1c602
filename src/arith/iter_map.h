// Affine iteration maps: indices written as sums of pieces of iterators, where each piece is
// `(source // lowerFactor) % extent * scale` and the source is an iterator or a fused (dense) sum of pieces.
// They decide whether a map from loops to indices is one to one, invert it, and divide it at an inner tile.
//
//     io in [0, 4), ii in [0, 32):  [io*32 + ii]               one index, bijective onto [0, 128)
//     f in [0, 128):                [f // 32, f % 32]          two indices, bijective onto [0, 4) x [0, 32)
//     … under io*32 + ii < 100:     [io*32 + ii]               bijective onto [0, 100)
//
// Source of the idea: TVM's iter_affine_map (Chen et al.), rewritten with explicit levels.
#pragma once

#include "arith/analyzer.h"

#include <unordered_map>

namespace bevel {

class IterMarkNode;
using IterMark = Ref<const IterMarkNode>;

/// (source // lowerFactor) % extent * scale; all three positive except scale, which may be negative in sums
/// that are not normal.
struct IterSplit {
  IterMark source;
  Expr lowerFactor, extent, scale;
};

/// Σ pieces + base.
struct IterSum {
  std::vector<IterSplit> pieces; // scales descending
  Expr base;
};

/// An iterator in [0, extent): a variable (minus its minimum), or a fused sum of pieces.
class IterMarkNode : public Object {
public:
  Expr source; // the variable, or variable - min; null for a fused sum
  Var var;     // null for a fused sum
  IterSum sum; // of a fused source
  Expr extent;
};

/// What is demanded of the map from the iterators (under the predicate) to the indices.
enum class IterMapLevel : uint8_t {
  kBijective,  // one to one, onto the dense box of the extents; every iterator is used wholly
  kSurjective, // onto the dense box; iterators may be left out
  kInjective,  // one to one; strides may leave holes
};

using IterRanges = std::vector<std::pair<Var, Range>>;

struct IterMap {
  std::vector<IterSum> indices; // each of one piece, or of several when strides leave holes (kInjective)
  std::vector<Expr>
      extents; // of each index: it takes values in base + [0, extent) (densely unless kInjective)
  IterRanges iters;
};

/// Writes the indices as pieces of the iterators under the predicate (null or true: none; conjunctions of
/// upper and lower bounds on sums such as `io*32 + ii < n` shrink the fused extent). Fails (kIllegal) with
/// the reason when an index is not of that form, pieces overlap, or the level is not proved.
Result<IterMap> detectIterMap(const Array<Expr>& indices, const IterRanges& iters, const Expr& predicate,
                              Analyzer& analyzer, IterMapLevel level);
/// Tests set it: what a quick way to an answer finds is held against the general one, and a difference is an internal
/// error.
extern bool compareQuickAnswers;
/// A sum or piece as an ordinary expression.
Expr normalize(const IterSum& sum, Analyzer& analyzer);
Expr normalize(const IterSplit& piece, Analyzer& analyzer);

/// For a bijective map: each iterator's variable as an expression of the index values.
Result<std::unordered_map<Var, Expr, RefHash>>
inverseIterMap(const IterMap& map, const std::vector<Expr>& values, Analyzer& analyzer);

/// One index as outer * innerExtent + inner.
struct DividedIndex {
  Expr outer, inner;             // over the outer and the inner variables
  Expr outerExtent, innerExtent; // constant or symbolic
};
struct DividedSubspace {
  std::vector<DividedIndex> indices;
  Expr outerPredicate, innerPredicate; // bool, never null
};

/// Divides a map at an inner tile: iterators in `inner` make the inner part of every index, the others the
/// outer part. For blockize, compute_at and rfactor. Fails (kIllegal) when an index mixes them otherwise.
Result<DividedSubspace> divideSubspace(const Array<Expr>& indices, const IterRanges& iters,
                                       const std::vector<Var>& inner, const Expr& predicate,
                                       Analyzer& analyzer);

} // namespace bevel
