// See parallel.h.
#include "base/parallel.h"

#include "base/stack.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace bevel {

void parallelFor(size_t n, int threads, FunctionRef<void(size_t)> f) {
  size_t count = threads > 0 ? size_t(threads) : std::max(1u, std::thread::hardware_concurrency());
  count = std::min(count, n);
  std::atomic<size_t> next = 0;
  auto work = [&] {
    withLargeStack([&] {
      for (size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < n;) f(i);
    });
  };
  std::vector<std::thread> others;
  for (size_t t = 1; t < count; ++t) others.emplace_back(work);
  work();
  for (std::thread& t : others) t.join();
}

} // namespace bevel
