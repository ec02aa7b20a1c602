// Fork-join with one mailbox a worker.
//
// 1. run() writes the task, then gives each worker that takes part a new ticket; others see nothing.
// 2. A worker that waits spins on its ticket, then parks on it. It announces the parking before it looks at the
//    ticket a last time, and run() looks at the announcement after it changed the ticket: in the one total order
//    of these operations one of the two sees the other, so no wake-up is lost.
// 3. run() does part 0 itself, then waits in the same way for the count of unfinished workers to become 0.
#include "runtime/thread_pool.h"

#include <chrono>
#include <pthread.h>
#include <sched.h>
#include <system_error>

namespace bevel::rt {

static void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Spins until done() or about 100 microseconds went by; whether done. First it looks often, then it pauses,
/// then it yields: where the thread that it waits for shares its processor, only that lets the other go on.
template <class Done, class KeepOn> static bool spin(Done done, KeepOn keepOn) {
  using Clock = std::chrono::steady_clock;
  for (int i = 0; i < 256; ++i) // a pause takes 40 ns and more
    if (done()) return true;
  for (int i = 0; i < 64; ++i) {
    if (done()) return true;
    pause();
  }
  for (auto end = Clock::now() + std::chrono::microseconds(100); keepOn() && Clock::now() < end;) {
    sched_yield();
    for (int i = 0; i < 16; ++i) {
      if (done()) return true;
      pause();
    }
  }
  return done();
}

/// How often this process was made by fork: threads of the pools of before exist in the parent only.
static std::atomic<uint32_t>& forks() {
  static std::atomic<uint32_t> count{0};
  static const int registered = pthread_atfork(nullptr, nullptr, [] { count.fetch_add(1); });
  (void)registered;
  return count;
}

ThreadPool::ThreadPool(int32_t numThreads) : forks_(forks().load()) {
  for (int32_t i = 1; i < numThreads; ++i) workers_.push_back(std::make_unique<Worker>());
  for (int32_t i = 1; i < numThreads; ++i) {
    try {
      workers_[size_t(i - 1)]->thread = std::thread([this, i] { work(i); });
    } catch (const std::system_error&) { // no more threads: go on with those there are
      workers_.resize(size_t(i - 1));
      break;
    }
  }
}

ThreadPool::~ThreadPool() {
  if (forks_ != forks().load()) {
    new auto(std::move(workers_)); // kept for ever: there is no thread to be joined
    return;
  }
  stop_.store(true);
  for (auto& worker : workers_) {
    worker->ticket.fetch_add(1);
    worker->ticket.notify_one();
  }
  for (auto& worker : workers_) worker->thread.join();
}

void ThreadPool::waitForTicket(Worker& worker, uint32_t seen) {
  auto changed = [&] { return worker.ticket.load(std::memory_order_acquire) != seen; };
  auto running = [&] { return activeRuns_.load(std::memory_order_relaxed) > 0; };
  if (spin(changed, running)) return;
  worker.parked.store(true);
  while (worker.ticket.load() == seen) worker.ticket.wait(seen);
  worker.parked.store(false);
}

void ThreadPool::work(int32_t part) {
  // The vector does not change after the constructor, which may still be starting later threads.
  uint32_t seen = 0;
  Worker& self = *workers_[size_t(part - 1)];
  for (;;) {
    waitForTicket(self, seen);
    ++seen;
    if (stop_.load()) return;
    task_(arg_, part);
    if (pending_.fetch_sub(1) == 1 && joinParked_.load()) pending_.notify_one();
  }
}

void ThreadPool::waitForWorkers() {
  auto done = [&] { return pending_.load(std::memory_order_acquire) == 0; };
  if (spin(done, [] { return true; })) return;
  joinParked_.store(true);
  for (int32_t left; (left = pending_.load()) != 0;) pending_.wait(left);
  joinParked_.store(false);
}

bool ThreadPool::run(int32_t parts, Task task, void* arg) {
  if (forks_ != forks().load(std::memory_order_relaxed)) return false;
  if (busy_.exchange(true, std::memory_order_acquire)) return false;
  task_ = task, arg_ = arg;
  pending_.store(parts - 1, std::memory_order_relaxed);
  for (int32_t i = 1; i < parts; ++i) {
    Worker& worker = *workers_[size_t(i - 1)];
    worker.ticket.fetch_add(1);
    if (worker.parked.load()) worker.ticket.notify_one();
  }
  task(arg, 0);
  if (parts > 1) waitForWorkers();
  busy_.store(false, std::memory_order_release);
  return true;
}

int32_t availableProcessors() {
#ifdef __linux__
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) return CPU_COUNT(&set);
#endif
  unsigned n = std::thread::hardware_concurrency();
  return n ? int32_t(n) : 1;
}

} // namespace bevel::rt
