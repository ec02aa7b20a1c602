#pragma once

#include "sched/step_of.h"

namespace bevel::steps {

/// Lets a block write into a buffer of another storage scope, from which a new block copies to the
/// original; gives the copying block.
struct CacheWrite {
  BlockRV block;
  int64_t writeBufferIndex = 0;
  std::string storageScope;
  Array<BlockRV> consumerBlocks = {};
  BlockRV result = {};
  STEP_FIELDS(CacheWrite, IN(block), IN(writeBufferIndex), IN(storageScope), OPTION(consumerBlocks),
              OUT(result))
};

} // namespace bevel::steps
