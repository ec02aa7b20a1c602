// What parallel, vectorize, unroll and bind share: the checks on a loop, and changing its kind.
#pragma once

#include "base/function_ref.h"
#include "loop/dependence.h"
#include "sched/scope.h"

namespace bevel {

/// A serial loop whose iterations may run in any order, or at once, with the same results. `allowReduction`:
/// over the reals, for whoever combines the iterations' contributions.
Result<Path> checkIndependentLoop(const Schedule& sch, LoopRV loop, bool allowReduction = false);
/// The accesses of the path's target and what stands around it.
AccessModel modelOf(const Path& path);
/// The path's loop holds no loop of which `clashes` is true.
Status checkNoneInside(const Path& path, FunctionRef<bool(const ForNode&)> clashes);
/// After a step put something under a loop: the loops at and around it that run at once are still independent
/// in the new program.
Status checkThreads(const Stmt& root, const Path& loop);
/// The path's loop with another kind.
Plan withKind(const Path& path, ForKind kind, const std::string& thread = "");

} // namespace bevel
