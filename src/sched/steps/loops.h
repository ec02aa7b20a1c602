// Steps about loops.
#pragma once

#include "sched/step_of.h"

namespace bevel::steps {

/// Splits a loop into nested loops; at most one factor is None and is inferred.
struct Split {
  LoopRV loop;
  Factors factors;
  bool preserveUnitIters = true;
  bool disablePredication = false;
  Array<LoopRV> results = {};
  STEP_FIELDS(Split, IN(loop), IN(factors), OPTION(preserveUnitIters), OPTION(disablePredication),
              OUT(results))
};

/// Fuses nested loops, given outermost first, into one.
struct Fuse {
  Array<LoopRV> loops;
  bool preserveUnitIters = true;
  LoopRV result = {};
  STEP_FIELDS(Fuse, VARIADIC(loops), OPTION(preserveUnitIters), OUT(result))
};

/// Puts nested loops into the given order, outermost first; loops between them that are not named stay
/// where they are.
struct Reorder {
  Array<LoopRV> orderedLoops;
  STEP_FIELDS(Reorder, VARIADIC(orderedLoops))
};

/// Puts a loop of one iteration around a block or a loop.
struct AddUnitLoop {
  RV blockOrLoop;
  LoopRV result = {};
  STEP_FIELDS(AddUnitLoop, IN(blockOrLoop), OUT(result))
};

/// Runs the iterations of a loop on several threads.
struct Parallel {
  LoopRV loop;
  STEP_FIELDS(Parallel, IN(loop))
};

/// Runs the iterations of a loop as the lanes of vectors.
struct Vectorize {
  LoopRV loop;
  STEP_FIELDS(Vectorize, IN(loop))
};

/// Writes out the iterations of a loop one after the other. The extent must be a constant.
struct Unroll {
  LoopRV loop;
  STEP_FIELDS(Unroll, IN(loop))
};

/// Binds a loop to an axis of a GPU's threads: blockIdx.x/y/z, threadIdx.x/y/z, vthread, vthread.x/y/z.
struct Bind {
  LoopRV loop;
  std::string threadAxis;
  STEP_FIELDS(Bind, IN(loop), IN(threadAxis))
};

} // namespace bevel::steps
