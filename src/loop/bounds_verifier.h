// Proves that every access of a tensor program lies within its buffer, or says which one may not.
#pragma once

#include "base/result.h"
#include "ir/graph.h"

namespace bevel {

/// Fails (kIllegal, naming buffer, dimension and index) at the first access that cannot be proved to lie
/// inside its buffer, given loop domains, block predicates and conditions around it. Symbolic dimensions
/// count as >= 0. Works before lowering (blocks) and after (flat form); the mask of a lane is a condition. The region
/// that a view shows must lie inside its source. Accesses
/// whose index depends on loaded values cannot be proved: they must be clamped or guarded by a condition to
/// pass.
Status verifyBounds(const PrimFunc& f);

} // namespace bevel
