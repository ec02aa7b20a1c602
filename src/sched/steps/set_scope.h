#pragma once

#include "sched/step_of.h"

namespace bevel::steps {

/// Changes the storage scope of an intermediate buffer.
struct SetScope {
  BlockRV block;
  BufferArg buffer = writeBuffer(0);
  std::string storageScope;
  STEP_FIELDS(SetScope, IN(block), IN(buffer), IN(storageScope))
};

} // namespace bevel::steps
