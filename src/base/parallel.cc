// See parallel.h.
#include "base/parallel.h"

#include "base/stack.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace bevel {

void parallelFor(size_t n, int threads, FunctionRef<void(size_t)> f) {
  size_t count = threads > 0 ? size_t(threads) : std::max(1u, std::thread::hardware_concurrency());
  count = std::min(count, n);
  std::atomic<size_t> next = 0;
  std::exception_ptr thrown; // by the first part that failed
  std::mutex mutex;
  auto work = [&] {
    try {
      withLargeStack([&] {
        for (size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < n;) f(i);
      });
    } catch (...) {
      std::lock_guard lock(mutex);
      if (!thrown) thrown = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  try {
    for (size_t t = 1; t < count; ++t) others.emplace_back(work);
  } catch (const std::system_error&) { // no more threads: go on with those there are
  }
  work();
  for (std::thread& t : others) t.join();
  if (thrown) std::rethrow_exception(thrown);
}

} // namespace bevel
