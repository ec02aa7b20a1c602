// All operators.
#pragma once

namespace bevel {

/// Puts every family of ops.def into OpRegistry::global(); later calls do nothing. Thread safe.
void registerOps();

} // namespace bevel
