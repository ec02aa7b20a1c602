// Recursion over deep IR runs on a thread with a large stack.
#pragma once

#include "base/function_ref.h"

#include <optional>

namespace bevel {

/// Runs f on a thread with a 1 GiB (lazily committed) stack and waits; runs it in place when already on one. The stack
/// is smaller where the process may not reserve so much (ulimit -v).
void withLargeStack(FunctionRef<void()> f);
/// The same of a function with a result.
template <class F> auto onLargeStack(F f) {
  std::optional<decltype(f())> out;
  withLargeStack([&] { out.emplace(f()); });
  return *std::move(out);
}

} // namespace bevel
