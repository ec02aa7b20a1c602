// What parallel, vectorize, unroll and bind share: the checks on a loop, and changing its kind.
#pragma once

#include "base/function_ref.h"
#include "sched/scope.h"

#include <utility>

namespace bevel {

/// A serial loop whose iterations may run in any order, or at once, with the same results. `allowReduction`:
/// over the reals, for whoever combines the iterations' contributions.
Result<Path> checkIndependentLoop(const Schedule& sch, LoopRV loop, bool allowReduction = false);
/// The loops around a path's target with their domains, outermost first.
std::vector<std::pair<Var, Range>> enclosingRanges(const Path& path);
/// The path, unless its loop holds a loop of which `clashes` is true.
Result<Path> checkNoneInside(const Path& path, FunctionRef<bool(const ForNode&)> clashes);
/// After a step put something under a loop: the loops at and around it that run at once are still independent
/// in the new program.
Status checkThreads(const Stmt& root, const Path& loop);
void setLoopKind(Schedule& sch, const Path& path, ForKind kind, const std::string& thread = "");
/// The loops, with this block alone inside, give the same results in any order: the block allows any order of
/// its instances (loop/instance_order.h), each loop drives at most one axis, as a term with a positive constant
/// factor, and where there is an init, its step stays the first. False means nothing.
bool keepsResultsInAnyOrder(const BlockRealize& realize, const std::vector<For>& loops);
/// All accesses of the buffer by the blocks under the loop stay, in some dimension, within the iteration's own
/// slab.
bool staysApart(const std::vector<ScopeBlock>& blocks, const Var& data, const For& loop);
/// True when each iteration keeps to a slab of its own in every buffer written under the loop, by a quick
/// look at the bindings and declared accesses of the blocks alone; false means nothing.
bool isPlainlyIndependent(const For& loop, const Path& path);
/// Simplifies axis values and predicates of the blocks under a statement, knowing the ranges of the loops
/// inside it.
Stmt simplifyBindings(const Stmt& s, Analyzer& analyzer);

} // namespace bevel
