// What a tensor program needs of its sizes so that no iteration leaves a buffer.
#pragma once

#include "ir/graph.h"

#include <vector>

namespace bevel {

/// Conditions over the program's symbolic sizes and scalar parameters. Each is broken only where some iteration
/// certainly reads or writes outside of a buffer: the index is linear in loops that run whenever their extents
/// are positive, and no condition guards it. What is proved for all sizes >= 0 is left out.
///
///   for i, j in T.grid(2, n): … C[i, j] …       C of shape (m, n)     →     [n <= 0 or 1 < m]
std::vector<Expr> sizeConditions(const PrimFunc& f);

} // namespace bevel
