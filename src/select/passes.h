// Op-specific rewrites of graph functions, before operators become tensor programs. All take and give whole
// modules, and leave alone what they do not understand.
#pragma once

#include "base/result.h"
#include "ir/question.h"

namespace bevel {

/// Removes and merges what has no effect: x * 1, x + 0, casts there and back, reshapes and transposes in a
/// row; powers with small constant exponents become multiplications and roots.
Result<Module> simplifyGraph(const Module& module);

/// Inference batch norms and per-channel constants behind a convolution, transposed convolution or matmul
/// with constant weights become part of its weights and of one bias added behind it; batch norms elsewhere
/// become a multiplication and an addition.
Result<Module> foldAffine(const Module& module);

/// Chains that exporters make of one operator become that operator again: layer_norm, rms_norm, softmax.
Result<Module> recognizePatterns(const Module& module);

/// Transposed convolutions whose windows do not overlap become convolutions of kernel one and moves. Asks for each:
/// "pixel products of BINDING".
Result<Module> chooseAlgorithm(const Module& module, const Ask& ask = {});

/// Regions around convolutions compute channels last (see layout.cc). The function's attribute
/// "channels_last" holds the number of convolutions and poolings so converted. Asks for each convolution: "layout of
/// BINDING".
Result<Module> chooseLayout(const Module& module, const Ask& ask = {});

} // namespace bevel
