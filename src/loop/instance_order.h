// When the instances of a block (one a value of its axes) may run in another order, and when its init may run
// ahead of them all. Reordering, moving, fusing rules and decomposing reductions ask the same questions.
#pragma once

#include "base/result.h"
#include "ir/graph.h"
#include "ir/structural.h"

#include <string>
#include <vector>

namespace bevel {

/// Calls out, barriers and other effects beyond loads and stores in the block's body or init.
bool hasOrderedEffect(const BlockNode& block);

/// The instances keep the results (over the reals) in any order, by the form of the block alone: no effects,
/// only spatial and reduction axes, every written element belongs to one value of the spatial axes, and the
/// block reads of its outputs at most what it accumulates. Blocks with an init also need the order of
/// `hoistInit`, or one that keeps the first step first. Fails (kIllegal) with the reason.
Status checkAnyOrder(const BlockNode& block);

/// What an init needs that runs before a nest of loops.
struct InitHoist {
  std::vector<For> loops; // those of the nest that the init keeps, outermost first
  VarMap firstStep;       // the others, at their start
  Expr predicate;         // where the init runs
};
/// Proves that running the block's init before the nest gives the same: the first step of the nest is the one
/// at which all reduction axes are at their start, and no other is; the init overwrites nothing that the block
/// has to see. `nest`: loops down to the block, outermost first; loops around are constants. An empty reduction
/// then gives the init's value. Fails (kIllegal) with the reason.
Result<InitHoist> hoistInit(const PrimFunc& f, const BlockRealize& realize, const std::vector<For>& nest);
/// The init as a nest of its own; its loops are named as before, and `loopSuffix`.
Stmt initNest(const BlockRealize& realize, const InitHoist& hoist, const std::string& name,
              const std::string& loopSuffix);

} // namespace bevel
