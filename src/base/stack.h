// Recursion over deep IR runs on a thread with a large stack.
#pragma once

#include "base/function_ref.h"

namespace bevel {

/// Runs f on a thread with a 1 GiB (lazily committed) stack and waits; runs it in place when already on one.
void withLargeStack(FunctionRef<void()> f);

} // namespace bevel
