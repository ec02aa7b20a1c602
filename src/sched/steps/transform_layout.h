#pragma once

#include "sched/step_of.h"

namespace bevel::steps {

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
