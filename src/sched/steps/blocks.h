// Steps about single blocks: reductions, axes, annotations.
#pragma once

#include "sched/step_of.h"

namespace bevel::steps {

/// Splits a reduction into a block that initialises and one that updates; gives the handle of the former.
struct DecomposeReduction {
  BlockRV block;
  LoopRV loop;
  BlockRV result = {};
  STEP_FIELDS(DecomposeReduction, IN(block), IN(loop), OUT(result))
};

/// Makes one loop of a reduction independent: each of its iterations reduces into a place of its own, and a
/// second block combines the places.
struct Rfactor {
  LoopRV loop;
  int64_t factorAxis = 0;
  BlockRV result = {};
  STEP_FIELDS(Rfactor, IN(loop), IN(factorAxis), OUT(result))
};

/// Gives a block other axes: the map takes the old axes to the new ones. The loops around the block become
/// one loop a new axis.
struct TransformBlockLayout {
  BlockRV block;
  Lambda indexMap;
  STEP_FIELDS(TransformBlockLayout, IN(block), IN(indexMap))
};

/// Attaches a key with a value to a block or loop: a constant, a sampled integer, or a list or dictionary
/// of constants. An existing value is replaced.
struct Annotate {
  RV blockOrLoop;
  std::string annKey;
  AnyArg annVal;
  STEP_FIELDS(Annotate, IN(blockOrLoop), IN(annKey), IN(annVal))
};

/// Removes the annotation of a block or loop.
struct Unannotate {
  RV blockOrLoop;
  std::string annKey;
  STEP_FIELDS(Unannotate, IN(blockOrLoop), IN(annKey))
};

} // namespace bevel::steps
