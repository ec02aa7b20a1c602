#pragma once

#include "sched/step_of.h"

namespace bevel::steps {

/// Copies what consumers read of a buffer into a buffer of another storage scope, and lets them read the
/// copy; gives the copying block.
struct CacheRead {
  BlockRV block;
  int64_t readBufferIndex = 0;
  std::string storageScope;
  Array<BlockRV> consumerBlocks = {};
  BlockRV result = {};
  STEP_FIELDS(CacheRead, IN(block), IN(readBufferIndex), IN(storageScope), OPTION(consumerBlocks),
              OUT(result))
};

} // namespace bevel::steps
