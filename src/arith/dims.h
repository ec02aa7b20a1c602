// What is known of dimensions.
#pragma once

#include "arith/analyzer.h"

namespace bevel {

/// Tells the analyzer that these dimensions are >= 0. Of the variables, those follow to be >= 0 that are a
/// dimension, or a positive multiple of one: a variable inside of another expression may be a value of the
/// run, such as a negative axis.
void bindDims(const Array<Expr>& shape, Analyzer& analyzer);

} // namespace bevel
