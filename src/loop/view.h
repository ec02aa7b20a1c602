// Tensor programs that only give the elements of their input another shape.
#pragma once

#include "ir/graph.h"

namespace bevel {

/// True when the program has one input and one result, and the result provably holds the elements of the
/// input in row-major order: reshape, flatten, squeeze, expand_dims. A caller may then take the input's
/// memory as the result.
bool isView(const PrimFunc& f);

} // namespace bevel
