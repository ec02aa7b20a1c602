// Steps that choose where a block is computed.
#pragma once

#include "sched/step_of.h"

namespace bevel::steps {

/// Puts the expression of a block in place of every read of its result, and removes the block and its
/// buffer.
struct ComputeInline {
  BlockRV block;
  STEP_FIELDS(ComputeInline, IN(block))
};

/// Puts a block into its only producer: what the producer would store goes through the block's expression
/// and into its output.
struct ReverseComputeInline {
  BlockRV block;
  STEP_FIELDS(ReverseComputeInline, IN(block))
};

/// Moves a producer under a loop of its consumers: each iteration computes what that iteration reads, no
/// more and no less.
struct ComputeAt {
  BlockRV block;
  LoopRV loop;
  bool preserveUnitLoops = false;
  int64_t index = -1;
  STEP_FIELDS(ComputeAt, IN(block), IN(loop), OPTION(preserveUnitLoops), OPTION(index))
};

/// Moves a consumer under a loop of its producers: each iteration consumes what that iteration has
/// produced.
struct ReverseComputeAt {
  BlockRV block;
  LoopRV loop;
  bool preserveUnitLoops = false;
  int64_t index = -1;
  STEP_FIELDS(ReverseComputeAt, IN(block), IN(loop), OPTION(preserveUnitLoops), OPTION(index))
};

} // namespace bevel::steps
