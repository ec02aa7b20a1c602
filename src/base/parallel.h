// Independent pieces of compiling on several threads.
#pragma once

#include "base/function_ref.h"

#include <cstddef>

namespace bevel {

/// Calls f(i) for every i in [0, n) on up to `threads` threads (0: one a processor), each with a large stack,
/// and waits. Pieces are handed out one by one, in order. f must not throw.
void parallelFor(size_t n, int threads, FunctionRef<void(size_t)> f);

} // namespace bevel
