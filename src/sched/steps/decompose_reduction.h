#pragma once

#include "sched/step_of.h"

namespace bevel::steps {

/// Splits a reduction into a block that initialises and one that updates; gives the handle of the former.
struct DecomposeReduction {
  BlockRV block;
  LoopRV loop;
  BlockRV result = {};
  STEP_FIELDS(DecomposeReduction, IN(block), IN(loop), OUT(result))
};

} // namespace bevel::steps
