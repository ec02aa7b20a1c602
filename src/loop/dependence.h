// Dependences across the iterations of a loop, and effects that loads and stores do not tell.
#pragma once

#include "loop/regions.h"

namespace bevel {

/// Why the iterations of a loop may not run in any order, or at once (an Error of code kIllegal that names
/// the buffer and the block), or success. Blocks count by their axes: a loop that binds only spatial axes of
/// blocks carries no dependence; reduction, scan and opaque axes do, unless `allowReduction`. Statements
/// outside blocks count by their accesses. Different iterations writing the same element (even the same
/// value) is a dependence. `enclosing`: loops around this one with their domains, for bounds.
/// `accessedOnlyHere`: buffers allocated outside of the loop that nothing outside of it touches: one that is
/// private to each iteration (loop/privacy.h) carries no dependence, for plan_allocations gives every
/// iteration its own.
Status checkParallel(const For& loop, const std::vector<VarRange>& enclosing = {},
                     bool allowReduction = false, const std::vector<Buffer>& accessedOnlyHere = {});
/// True when executing the loop's iterations in another order, or interleaved with inner loops, keeps the
/// results (over the reals: reductions count as reorderable).
Status checkReorderable(const For& loop, const std::vector<VarRange>& enclosing = {},
                        const std::vector<Buffer>& accessedOnlyHere = {});

/// Every effect under the node that is not described by loads and stores: kPure when none.
Effect effectOf(const NodeRef& node);

} // namespace bevel
