// Steps about buffers: copies, storage scopes, layouts.
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

/// Changes the storage scope of an intermediate buffer.
struct SetScope {
  BlockRV block;
  BufferArg buffer = writeBuffer(0);
  std::string storageScope;
  STEP_FIELDS(SetScope, IN(block), IN(buffer), IN(storageScope))
};

/// Stores a buffer in another layout: element `i, j` lies at the indices that the map gives.
struct TransformLayout {
  BlockRV block;
  BufferArg buffer = writeBuffer(0);
  Lambda indexMap;
  AnyArg padValue = {};
  bool assumeInjectiveTransform = false;
  STEP_FIELDS(TransformLayout, IN(block), IN(buffer), IN(indexMap), OPTION(padValue),
              OPTION(assumeInjectiveTransform))
};

} // namespace bevel::steps
