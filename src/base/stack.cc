// The large-stack thread.
#include "base/stack.h"

#include <algorithm>
#include <exception>
#include <pthread.h>
#include <sys/resource.h>

namespace bevel {
namespace {
constexpr size_t kLeast = size_t(8) << 20;

thread_local bool isLargeStack = false;

struct Task {
  FunctionRef<void()> run;
  std::exception_ptr thrown; // memory that runs out, say: goes on where the thread was started
};

void* enter(void* task) {
  isLargeStack = true;
  try {
    static_cast<Task*>(task)->run();
  } catch (...) {
    static_cast<Task*>(task)->thrown = std::current_exception();
  }
  return nullptr;
}
} // namespace

void withLargeStack(FunctionRef<void()> f) {
  if (isLargeStack) return f();
  size_t bytes = size_t(1) << 30;
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    bytes = std::clamp<size_t>(limit.rlim_cur / 64, kLeast, bytes) / 4096 * 4096;
  Task task{f, nullptr};
  pthread_t thread;
  int failed = -1;
  for (; failed != 0 && bytes >= kLeast; bytes /= 2) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, bytes);
    failed = pthread_create(&thread, &attributes, enter, &task);
    pthread_attr_destroy(&attributes);
  }
  if (failed != 0) return f(); // no thread is to be had
  pthread_join(thread, nullptr);
  if (task.thrown) std::rethrow_exception(task.thrown);
}

} // namespace bevel
