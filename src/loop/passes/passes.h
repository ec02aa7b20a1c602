// The lowering passes, one file each; each file shows a before and an after at its head. passes.def
// lists them in order. Each sees the target that the program is lowered for.
#pragma once

#include "base/result.h"
#include "ir/graph.h"
#include "target/target.h"

namespace bevel {

#define LOOP_PASS(name, doc, function, needed)                                                               \
  Result<PrimFunc> function(const PrimFunc& f, const Target& target);
#include "loop/passes/passes.def"
#undef LOOP_PASS

} // namespace bevel
