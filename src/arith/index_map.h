// A map from indices to indices, `lambda i, j: (i // 16, j, i % 16)`: layouts of buffers, and the
// argument of transform_layout, transform_block_layout and tensorisation.
#pragma once

#include "arith/iter_map.h"
#include "base/function_ref.h"

#include <optional>
#include <string>

namespace bevel {

class IndexMap;
/// An inverse whose source may be padded: `padding` (over the inverse's initial indices) is true where there
/// is no element.
struct PaddedInverse;

class IndexMap {
public:
  std::vector<Var> initial;
  Array<Expr> final;

  IndexMap() = default;
  IndexMap(std::vector<Var> from, Array<Expr> to) : initial(std::move(from)), final(std::move(to)) {}
  IndexMap(const Lambda& map) : initial(map->params), final(map->values) {}
  operator Lambda() const { return make<const LambdaNode>(initial, final); }
  static IndexMap identity(size_t rank, DType dtype = kInt64);
  /// From a function of the index variables, which are named i0, i1, …
  static IndexMap of(size_t rank, FunctionRef<Array<Expr>(const std::vector<Var>&)> f, DType dtype = kInt64);

  /// The final indices at these initial ones, simplified.
  Array<Expr> apply(const Array<Expr>& indices, Analyzer& analyzer) const;
  /// Shape of the result of mapping a dense tensor of this shape: final index k takes values in [0,
  /// shape[k]).
  Result<Array<Expr>> applyShape(const Array<Expr>& shape, Analyzer& analyzer) const;
  /// Smallest box around the image of a box.
  Result<Array<Range>> applyRanges(const Array<Range>& ranges, Analyzer& analyzer) const;
  /// The inverse over a box of initial indices; fails (kIllegal) unless the map is bijective onto its final
  /// shape.
  Result<IndexMap> inverse(const Array<Range>& ranges, Analyzer& analyzer) const;
  /// The inverse of an injective map whose final box may have padding (`i // 4, i % 4` over 14).
  Result<PaddedInverse> nonSurjectiveInverse(const Array<Range>& ranges, Analyzer& analyzer) const;
  /// first, then this: `this ∘ first`.
  IndexMap after(const IndexMap& first, Analyzer& analyzer) const;
  bool isIdentity() const;
  /// Same up to the names of the initial indices.
  bool equals(const IndexMap& other) const;
  /// `lambda i, j: (i // 16, j, i % 16)`.
  std::string str() const;
};

struct PaddedInverse {
  IndexMap map;
  Expr padding; // over map.initial; constant false when there is none
};

} // namespace bevel
