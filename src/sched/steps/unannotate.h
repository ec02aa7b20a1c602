#pragma once

#include "sched/step_of.h"

namespace bevel::steps {

/// Removes the annotation of a block or loop.
struct Unannotate {
  RV blockOrLoop;
  std::string annKey;
  STEP_FIELDS(Unannotate, IN(blockOrLoop), IN(annKey))
};

} // namespace bevel::steps
