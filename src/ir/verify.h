// Checks that IR is well formed: what every pass may rely on and must keep.
#pragma once

#include "base/result.h"
#include "ir/graph.h"

#include <vector>

namespace bevel {

/// Checks a module or a function (see docs/ir.md, "Well-formed IR"): types of operands, scopes (each use lies
/// under its definition), unique loop variables, block names and buffers, index counts, affine indices
/// within constant shapes, axis counts; in graphs single assignment, dataflow variables that stay in their
/// block, calls that fit their callee, and types on every variable. The first fault is returned, with the
/// node at fault in `nodes`.
Status verify(const NodeRef& moduleOrFunction);
/// All faults (at most `limit`), in order of appearance.
std::vector<Error> verifyAll(const NodeRef& moduleOrFunction, size_t limit = 20);

} // namespace bevel
