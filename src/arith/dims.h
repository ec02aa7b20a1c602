// What is known of dimensions.
#pragma once

#include "arith/analyzer.h"

namespace bevel {

/// Tells the analyzer that these dimensions are >= 0. A variable inside of another expression may be a value of the run, such
/// as a negative axis: of it only what follows is known.
void bindDims(const Array<Expr>& shape, Analyzer& analyzer);

} // namespace bevel
