// Times of repeated runs, and profiles of a run against the machine's roofline.
#pragma once

#include "base/function_ref.h"
#include "driver/session.h"

namespace bevel {

/// Runs before those that are timed: memory is allocated, pages are touched.
constexpr int kWarmUps = 2;
/// Runs again and again for so many seconds, three times at least: milliseconds of each run, sorted.
Result<std::vector<double>> timeRuns(FunctionRef<Status()> run, double seconds);

/// What the machine can do, measured in a fraction of a second.
struct Machine {
  double gflops = 0;                      // fp32 multiply-adds in vector registers
  double gbytes = 0;                      // streaming reads from memory, GB/s
  double cacheGbytes = 0, cacheBytes = 0; // reads from the cores' own caches; size of the largest cache
};
Machine measureMachine(int threads);

/// Time of a kernel (or run-time function) over all its calls in one run of the model.
struct KernelTime {
  std::string name, nodes;
  uint64_t calls = 0;                             // a run
  double ms = 0, percent = 0;                     // of one run
  double gflops = -1, gbytes = -1, roofline = -1; // negative: unknown
};
/// The profile of `runs` runs, slowest first. Calls of one kernel for the same nodes are one row.
Result<std::vector<KernelTime>> kernelTimes(const Session& session, size_t runs, const Machine& machine);

} // namespace bevel
