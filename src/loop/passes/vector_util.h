// Arithmetic on explicit vectors that keeps Ramp and Broadcast visible.
#pragma once

#include "ir/build.h"

namespace bevel {

/// Scalars broadcast; vectors of that width stay.
Expr broadcastTo(const Expr& e, int lanes);
/// a op b where either may be a scalar or a vector: Ramp ± uniform, Ramp * uniform and Broadcast op Broadcast
/// stay in those forms.
Expr vectorBinary(BinaryOp op, const Expr& a, const Expr& b);
/// The scalar that every lane has, or null.
Expr uniformValue(const Expr& e);
/// Lane i of a vector made of Ramp, Broadcast and element-wise nodes; null when it is not known without
/// evaluating e.
Expr laneOf(const Expr& e, int64_t lane);

} // namespace bevel
