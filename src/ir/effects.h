// What a piece of program does beyond computing values: the one answer to "does this read memory" and "may this
// be moved, repeated or dropped".
#pragma once

#include "ir/graph.h"

namespace bevel {

/// A load, or a call that may read.
bool readsMemory(const NodeRef& node);
/// Every effect under the node that is not described by loads and stores: kPure when none.
Effect effectOf(const NodeRef& node);
/// A call to outside of the program whose pointers, with their extents and masks, tell all that it touches: every
/// pointer that it gets is an access_ptr, and it writes through one of them.
bool isDescribed(const CallNode& call);
/// The same, where described calls count as what their pointers say.
Effect undescribedEffectOf(const NodeRef& node);

} // namespace bevel
