#pragma once

#include "sched/step_of.h"

namespace bevel::steps {

/// Attaches a key with a value to a block or loop: a constant, a sampled integer, or a list or dictionary
/// of constants. An existing value is replaced.
struct Annotate {
  RV blockOrLoop;
  std::string annKey;
  AnyArg annVal;
  STEP_FIELDS(Annotate, IN(blockOrLoop), IN(annKey), IN(annVal))
};

} // namespace bevel::steps
