#pragma once

#include "sched/step_of.h"

namespace bevel::steps {

/// Gives a block other axes: the map takes the old axes to the new ones. The loops around the block become
/// one loop a new axis.
struct TransformBlockLayout {
  BlockRV block;
  Lambda indexMap;
  STEP_FIELDS(TransformBlockLayout, IN(block), IN(indexMap))
};

} // namespace bevel::steps
