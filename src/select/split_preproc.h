// Work on constants that a schedule wants done ahead of time.
#pragma once

#include "base/result.h"
#include "ir/graph.h"

namespace bevel {

/// Splits blocks annotated "preproc" off into programs of their own, called where the program is called:
///
///   lv = call_tir(matmul, (x, W))      →     lv = call_tir(matmul_pack, (W,))
///                                            lv1 = call_tir(matmul, (x, lv))
///
/// When the arguments are constants, a later pass runs the packing at compile time. Blocks that read anything
/// but parameters stay where they are.
Result<Module> splitPreproc(const Module& module);

} // namespace bevel
