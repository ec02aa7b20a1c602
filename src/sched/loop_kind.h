// What parallel, vectorize, unroll and bind share: the checks on a loop, and changing its kind.
#pragma once

#include "sched/scope.h"

#include <utility>

namespace bevel {

/// A serial loop whose iterations may run in any order, or at once, with the same results. `allowReduction`:
/// over the reals, for whoever combines the iterations' contributions.
Result<Path> checkIndependentLoop(const Schedule& sch, LoopRV loop, bool allowReduction = false);
/// The loops around a path's target with their domains, outermost first.
std::vector<std::pair<Var, Range>> enclosingRanges(const Path& path);
void setLoopKind(Schedule& sch, const Path& path, ForKind kind, const std::string& thread = "");
/// True when each loop variable occurs in at most one axis of the block, as a term with a positive constant
/// factor, and the axes are spatial or reductions: then any order of the loops gives the same results.
bool hasPlainBinding(const BlockRealize& realize);
/// True when each iteration keeps to a slab of its own in every buffer written under the loop, by a quick
/// look at the bindings and declared accesses of the blocks alone; false means nothing.
bool isPlainlyIndependent(const For& loop, const Path& path);
/// Simplifies axis values and predicates of the blocks under a statement, knowing the ranges of the loops
/// inside it.
Stmt simplifyBindings(const Stmt& s, Analyzer& analyzer);

} // namespace bevel
