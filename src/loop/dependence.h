// What may run in which order, and what certainly runs: the one place that decides it. Schedule steps, rules and
// lowering ask here; each answer is a proof or a refusal that says why.
//
// What a block accesses is what it declares (or what its body does, where it declares nothing), and what its
// condition, the values of its axes and the ranges of the loops around it read.
#pragma once

#include "ir/structural.h"
#include "loop/block_scope.h"

namespace bevel {

class Analyzer;

/// Why the iterations of a loop of the model may not run in any order, or at once (an Error of code kIllegal that names
/// the buffer and the block), or success. Blocks count by their axes: a loop that binds only spatial axes of blocks
/// carries no dependence; reduction, scan and opaque axes do, unless `allowReduction` (over the reals, for whoever
/// combines the contributions). Statements outside blocks count by their accesses. Different iterations writing the
/// same element (even the same value) is a dependence. A buffer that nothing outside of the loop touches and that is
/// private to each iteration carries none, for every iteration gets its own.
Status checkIndependent(const AccessModel& model, const For& loop, bool allowReduction = false);
/// Different iterations touch different elements of the buffer. Of two blocks, where they are given: what one of them
/// touches in an iteration, the other does not in another one.
bool touchesApart(const AccessModel& model, const For& loop, const Var& data,
                  const BlockRealizeNode* one = nullptr, const BlockRealizeNode* other = nullptr);

/// Where a block may go.
struct Place {
  std::vector<For> loops; // of the scope around it, outermost first
  int position;           // it comes after the blocks before this one
};
/// The blocks of a scope of which an instance may run between an instance of `block` where it stands and the same one at
/// the place, and that write the buffer or (unless `writing`) read it. Without a buffer: whose effects are ordered.
/// They stand between both, or in a loop around one of them that the other is not in; of a loop around the block,
/// iterations that touch the buffer apart do not matter, nor (for what it reads, and a later place) those in which the
/// block only runs again.
std::vector<int> between(const ScopeInfo& scope, int block, const Place& place, const Var& data,
                         bool writing);

/// Calls out, barriers and other effects beyond loads and stores in the block's body or init.
bool hasOrderedEffect(const BlockNode& block);
/// No element is written for several values of the block's spatial axes: their order does not matter then.
Status checkOwnsElements(const BlockNode& block);
/// The instances of the block (one a value of its axes) keep the results (over the reals) in any order, by the form
/// of the block alone: no effects, only spatial and reduction axes, every written element belongs to one value of the
/// spatial axes, and the block reads of its outputs at most what it accumulates. Blocks with an init also need an
/// order that keeps the first step first.
Status checkAnyOrder(const BlockNode& block);
/// The same in a nest of loops that hold the block alone, outermost first: whatever the order of the loops, their
/// first step stays the only one that initialises.
Status checkAnyOrder(const PrimFunc& f, const BlockRealize& realize, const std::vector<For>& nest);

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

/// The block without its init: what it writes, it reads as soon as the init is elsewhere.
Block withoutInit(const Block& block);

/// The executed instances of the block provably are all values of its axes. `loops`: around it in its scope.
bool covers(const BlockRealize& realize, const std::vector<For>& loops, Analyzer& analyzer);

/// True when, within each iteration of `loop`, every read of the buffer is provably preceded by writes of the
/// same iteration that cover it, and no block that updates the buffer has a reduction, scan or opaque axis
/// that the loop binds (a partial result must outlive the reduction loop). All accesses of the buffer must
/// lie under the loop: the caller checks. The analyzer knows the variables around the loop. `inside`: the accesses of
/// its body, by what blocks do, for declared regions leave out what a block reads of its own output.
bool isPrivateToIteration(const AccessModel& inside, const For& loop, const Buffer& buffer,
                          Analyzer& analyzer);
inline constexpr AccessOptions kInsideBlocks = {.useDeclared = false};

} // namespace bevel
