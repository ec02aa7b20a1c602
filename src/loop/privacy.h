// Whether a buffer holds nothing that one iteration of a loop leaves for another: then it may be allocated
// inside the loop, and the loop may be parallel in spite of it.
#pragma once

#include "ir/graph.h"

namespace bevel {

class Analyzer;

/// True when, within each iteration of `loop`, every read of the buffer is provably preceded by writes of the
/// same iteration that cover it, and no block that updates the buffer has a reduction, scan or opaque axis
/// that the loop binds (a partial result must outlive the reduction loop). All accesses of the buffer must
/// lie under the loop: the caller checks. The analyzer knows the variables around the loop.
bool isPrivateToIteration(const For& loop, const Buffer& buffer, Analyzer& analyzer);

} // namespace bevel
