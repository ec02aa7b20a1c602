// The large-stack thread.
#include "base/stack.h"

#include "base/result.h"

#include <pthread.h>

namespace bevel {
namespace {
thread_local bool onLargeStack = false;

void* enter(void* f) {
  onLargeStack = true;
  (*static_cast<FunctionRef<void()>*>(f))();
  return nullptr;
}
} // namespace

void withLargeStack(FunctionRef<void()> f) {
  if (onLargeStack) return f();
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, size_t(1) << 30);
  pthread_t thread;
  int failed = pthread_create(&thread, &attributes, enter, &f);
  pthread_attr_destroy(&attributes);
  BEVEL_ASSERT(failed == 0, "cannot start a thread");
  pthread_join(thread, nullptr);
}

} // namespace bevel
