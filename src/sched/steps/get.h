// Steps that look: handles of blocks and loops.
#pragma once

#include "sched/step_of.h"

namespace bevel::steps {

/// Gives the handle of a block by its name.
struct GetSblock {
  std::string name;
  std::string funcName = {};
  BlockRV result = {};
  STEP_FIELDS(GetSblock, IN(name), OPTION(funcName), OUT(result))
};

/// Gives the loops around a block within its scope, outermost first.
struct GetLoops {
  BlockRV block;
  Array<LoopRV> results = {};
  STEP_FIELDS(GetLoops, IN(block), OUT(results))
};

/// Gives the blocks directly inside a block, or under a loop, in program order.
struct GetChildBlocks {
  RV blockOrLoop;
  Array<BlockRV> results = {};
  STEP_FIELDS(GetChildBlocks, IN(blockOrLoop), OUT(results))
};

/// Gives the blocks of the same scope that write what a block reads, in program order.
struct GetProducers {
  BlockRV block;
  Array<BlockRV> results = {};
  STEP_FIELDS(GetProducers, IN(block), OUT(results))
};

/// Gives the blocks of the same scope that read what a block writes, in program order.
struct GetConsumers {
  BlockRV block;
  Array<BlockRV> results = {};
  STEP_FIELDS(GetConsumers, IN(block), OUT(results))
};

/// Chooses the function of a module in which `get_sblock` looks for blocks from now on.
struct WorkOn {
  std::string funcName = {};
  STEP_FIELDS(WorkOn, IN(funcName))
};

} // namespace bevel::steps
