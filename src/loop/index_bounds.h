// Whether the indices of a tensor program stay inside its buffers. The verifier of the IR asks here too, through
// ir/access_hook.h: what it reports leaves a buffer in some iteration, whatever the data.
#pragma once

#include "base/result.h"
#include "ir/graph.h"

#include <vector>

namespace bevel {

/// Fails (kIllegal, naming buffer, dimension and index) at the first access that cannot be proved to lie
/// inside its buffer, given loop domains, block predicates and conditions around it. Symbolic dimensions
/// count as >= 0. Works before lowering (blocks) and after (flat form); the mask of a lane is a condition. The region
/// that a view shows must lie inside its source. Accesses
/// whose index depends on loaded values cannot be proved: they must be clamped or guarded by a condition to
/// pass.
Status verifyBounds(const PrimFunc& f);

/// Conditions over the program's symbolic sizes and scalar parameters. Each is broken only where some iteration
/// certainly reads or writes outside of a buffer: the index is linear in loops that run whenever their extents
/// are positive, and no condition guards it. What is proved for all sizes >= 0 is left out.
///
///   for i, j in T.grid(2, n): … C[i, j] …       C of shape (m, n)     →     [n <= 0 or 1 < m]
std::vector<Expr> sizeConditions(const PrimFunc& f);

} // namespace bevel
