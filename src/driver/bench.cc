// See bench.h.
#include "driver/bench.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace bevel {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

typedef float Vector __attribute__((vector_size(64)));

// Independent chains of multiply-adds: as many as hide the latency, few enough to stay in registers.
__attribute__((target_clones("avx512f", "avx2,fma", "default"), optimize("fp-contract=fast"))) double
chains(int64_t rounds, float seed) {
  Vector a[6];
  for (int i = 0; i < 6; ++i)
    for (int k = 0; k < 16; ++k) a[i][k] = seed + float(i + k);
  Vector m = a[0] * 0 + 0.999f, c = a[0] * 0 + 0.001f;
  for (int64_t r = 0; r < rounds; ++r)
    for (int i = 0; i < 6; ++i) a[i] = a[i] * m + c;
  double sum = 0;
  for (int i = 0; i < 6; ++i)
    for (int k = 0; k < 16; ++k) sum += double(a[i][k]);
  return sum;
}

template <class F> void onThreads(int threads, F f) {
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back([&, t] { f(t); });
  f(0);
  for (std::thread& t : others) t.join();
}

volatile double sink; // keeps the measured work alive

} // namespace

Machine measureMachine(int threads) {
  Machine out;
  constexpr int64_t kRounds = 400000;
  for (int attempt = 0; attempt < 5; ++attempt) {
    double begin = now();
    onThreads(threads, [&](int t) { sink = chains(kRounds, float(t)); });
    out.gflops = std::max(out.gflops, double(threads) * double(kRounds) * 6 * 16 * 2 / (now() - begin) / 1e9);
  }
  constexpr size_t kWords = 8u << 20; // 64 MB a thread
  std::vector<std::vector<uint64_t>> data(size_t(threads), std::vector<uint64_t>(kWords, 1));
  for (int attempt = 0; attempt < 4; ++attempt) {
    double begin = now();
    onThreads(threads, [&](int t) {
      uint64_t sum[8] = {};
      const auto& d = data[size_t(t)];
      for (size_t i = 0; i < d.size(); i += 8)
        for (size_t k = 0; k < 8; ++k) sum[k] += d[i + k];
      sink = double(sum[0] + sum[1] + sum[2] + sum[3] + sum[4] + sum[5] + sum[6] + sum[7]);
    });
    out.gbytes = std::max(out.gbytes, double(threads) * double(kWords) * 8 / (now() - begin) / 1e9);
  }
  return out;
}

Result<std::vector<KernelTime>> kernelTimes(const Session& session, size_t runs, const Machine& machine) {
  std::vector<KernelTime> out;
  std::vector<double> flops, bytes;
  double total = 0;
  for (int32_t i = 0; i < bevel_profile_num_rows(session.instance()); ++i) {
    bevel_profile_entry e = {};
    if (int32_t status = bevel_profile_row(session.instance(), i, &e)) return fail(runtimeError(status));
    if (e.kind == BEVEL_CALLEE_FUNCTION) continue; // what it calls is listed
    std::string name = e.callee, nodes = e.origins ? e.origins : "";
    size_t k = 0;
    while (k < out.size() && !(out[k].name == name && out[k].nodes == nodes)) ++k;
    if (k == out.size()) {
      out.push_back({name, nodes});
      flops.push_back(e.flops);
      bytes.push_back(e.bytes);
    }
    out[k].calls += e.calls;
    out[k].ms += double(e.nanoseconds) / 1e6;
    total += double(e.nanoseconds) / 1e6;
  }
  for (size_t k = 0; k < out.size(); ++k) {
    KernelTime& r = out[k];
    double seconds = r.ms / 1e3 / double(std::max<uint64_t>(r.calls, 1));
    if (flops[k] >= 0 && seconds > 0) r.gflops = flops[k] / seconds / 1e9;
    if (bytes[k] >= 0 && seconds > 0) r.gbytes = bytes[k] / seconds / 1e9;
    if (r.gflops >= 0 && r.gbytes >= 0 && machine.gflops > 0) // the time that either bound allows at best
      r.roofline = std::max(flops[k] / machine.gflops, bytes[k] / machine.gbytes) / 1e9 / seconds;
    r.percent = total > 0 ? r.ms / total * 100 : 0;
    r.ms /= double(runs);
    r.calls = (r.calls + runs / 2) / runs;
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const KernelTime& a, const KernelTime& b) { return a.ms > b.ms; });
  return out;
}

} // namespace bevel
