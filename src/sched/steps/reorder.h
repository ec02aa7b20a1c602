#pragma once

#include "sched/step_of.h"

namespace bevel::steps {

/// Puts nested loops into the given order, outermost first; loops between them that are not named stay
/// where they are.
struct Reorder {
  Array<LoopRV> orderedLoops;
  STEP_FIELDS(Reorder, VARIADIC(orderedLoops))
};

} // namespace bevel::steps
