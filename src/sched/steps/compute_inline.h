#pragma once

#include "sched/step_of.h"

namespace bevel::steps {

/// Puts the expression of a block in place of every read of its result, and removes the block and its
/// buffer.
struct ComputeInline {
  BlockRV block;
  STEP_FIELDS(ComputeInline, IN(block))
};

} // namespace bevel::steps
