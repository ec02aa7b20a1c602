#pragma once

#include "sched/step_of.h"

namespace bevel::steps {

/// Puts a block into its only producer: what the producer would store goes through the block's expression
/// and into its output.
struct ReverseComputeInline {
  BlockRV block;
  STEP_FIELDS(ReverseComputeInline, IN(block))
};

} // namespace bevel::steps
