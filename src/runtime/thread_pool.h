// The fork-join pool behind parallel_for. Threads spin for a bounded time between the loops of a run, and
// park (they use no processor time) once no run is going on.
#pragma once

#include "runtime/object.h"

#include <atomic>
#include <memory>
#include <thread>

struct bevel_pool {};

namespace bevel::rt {

class ThreadPool final : public Object, public bevel_pool {
public:
  using Task = void (*)(void* arg, int32_t part);

  /// `numThreads` counts the caller; fewer are made where the system refuses.
  explicit ThreadPool(int32_t numThreads);
  ~ThreadPool() override;

  int32_t size() const { return int32_t(workers_.size()) + 1; }

  /// Runs task(arg, p) for 0 <= p < parts <= size(), part 0 on the calling thread, and waits for all.
  /// Returns false, having done nothing, where another thread's loop is running on this pool, and in a process made
  /// by fork after the pool.
  bool run(int32_t parts, Task task, void* arg);

  /// Between these, workers spin while they wait for work.
  void beginRun() { activeRuns_.fetch_add(1, std::memory_order_relaxed); }
  void endRun() { activeRuns_.fetch_sub(1, std::memory_order_relaxed); }

private:
  struct alignas(64) Worker {
    std::atomic<uint32_t> ticket{0}; // changes when there is work, or when the pool stops
    std::atomic<bool> parked{false};
    std::thread thread;
  };

  void work(int32_t part);
  void waitForTicket(Worker& worker, uint32_t seen);
  void waitForWorkers();

  const uint32_t forks_; // of this process when the pool was made
  std::vector<std::unique_ptr<Worker>> workers_;
  // Written while no worker runs, read by the workers that got a ticket.
  Task task_ = nullptr;
  void* arg_ = nullptr;
  std::atomic<bool> stop_{false};
  alignas(64) std::atomic<bool> busy_{false};
  std::atomic<int32_t> activeRuns_{0};
  alignas(64) std::atomic<int32_t> pending_{0}; // workers that have not finished their part
  std::atomic<bool> joinParked_{false};
};

/// Processors that this process may run on.
int32_t availableProcessors();

} // namespace bevel::rt
