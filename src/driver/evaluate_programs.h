// Constant folding of tensor programs by machine code: weights are large, an interpreter is too slow for
// them.
#pragma once

#include "ir/graph.h"
#include "target/target.h"

namespace bevel {

/// Replaces calls of tensor programs whose arguments are all constants by their results:
///
///   lv = call_tir(matmul_pack, (W,))      →     gv = call_tir(matmul, (x, Wp))        Wp: computed now
///   gv = call_tir(matmul, (x, lv))
///
/// Programs are compiled for this machine. Left alone: results that would be more than four times the size of
/// the arguments, and programs for a target that this machine cannot run.
Result<Module> evaluatePrograms(const Module& module, const Target& target, int threads = 0,
                                bool useCache = true);

} // namespace bevel
