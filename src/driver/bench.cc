// See bench.h.
#include "driver/bench.h"

#include "arith/analyzer.h"
#include "ir/build.h"
#include "ir/parser.h"

#include <algorithm>
#include <thread>
#include <unistd.h>

namespace bevel {
namespace {

typedef float Vector8 __attribute__((vector_size(32)));
typedef uint64_t Words __attribute__((vector_size(32), aligned(8), may_alias));
typedef float Vector16 __attribute__((vector_size(64)));
constexpr int kChains =
    10; // independent multiply-adds: more than hide the latency, few enough to stay in registers

// The chains are written out: a loop over an array would keep them in memory.
#define BEVEL_CHAINS(Vector, lanes)                                                                          \
  Vector m = Vector{} + 0.999f, c = Vector{} + 0.001f;                                                       \
  Vector a0 = c + seed, a1 = a0 + 1.f, a2 = a0 + 2.f, a3 = a0 + 3.f, a4 = a0 + 4.f;                          \
  Vector a5 = a0 + 5.f, a6 = a0 + 6.f, a7 = a0 + 7.f, a8 = a0 + 8.f, a9 = a0 + 9.f;                          \
  for (int64_t r = 0; r < rounds; ++r) {                                                                     \
    a0 = a0 * m + c, a1 = a1 * m + c, a2 = a2 * m + c, a3 = a3 * m + c, a4 = a4 * m + c;                     \
    a5 = a5 * m + c, a6 = a6 * m + c, a7 = a7 * m + c, a8 = a8 * m + c, a9 = a9 * m + c;                     \
  }                                                                                                          \
  Vector all = a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9;                                              \
  double sum = 0;                                                                                            \
  for (int k = 0; k < lanes; ++k) sum += double(all[k]);                                                     \
  return sum;

#if defined(__x86_64__)
__attribute__((target("avx512f"), optimize("O2", "fp-contract=fast"))) double chains512(int64_t rounds,
                                                                                        float seed) {
  BEVEL_CHAINS(Vector16, 16)
}
__attribute__((target("avx2,fma"), optimize("O2", "fp-contract=fast"))) double chains256(int64_t rounds,
                                                                                         float seed) {
  BEVEL_CHAINS(Vector8, 8)
}
#endif
__attribute__((optimize("O2", "fp-contract=fast"))) double chainsAny(int64_t rounds, float seed) {
  BEVEL_CHAINS(Vector8, 8)
}

// Operations of one round, and the function that this machine can run.
struct Chains {
  double (*run)(int64_t rounds, float seed) = chainsAny;
  int lanes = 8;
};
Chains chainsOfMachine() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return {chains512, 16};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {chains256, 8};
#endif
  return {};
}

template <class F> void onThreads(int threads, F f) {
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back([&, t] { f(t); });
  f(0);
  for (std::thread& t : others) t.join();
}

volatile double sink; // keeps the measured work alive

// Reads the words so many times; fast in builds for debugging too, as the chains are.
__attribute__((optimize("O2"))) double readAll(const Words* d, size_t words, int times) {
  Words a = {}, b = {}, c = {}, e = {};
  for (int round = 0; round < times; ++round)
    for (size_t i = 0; i < words / 4; i += 4)
      a ^= d[i] + uint64_t(round), b ^= d[i + 1], c ^= d[i + 2] + uint64_t(round), e ^= d[i + 3];
  Words all = a + b + c + e;
  return double(all[0] + all[1] + all[2] + all[3]);
}

// GB/s at which the threads read, each so many bytes of its own so many times.
double readSpeed(int threads, size_t bytes, int times) {
  size_t words = bytes / 128 * 16;
  double best = 0;
  std::vector<std::vector<uint64_t>> data(size_t(threads), std::vector<uint64_t>(words, 1));
  for (int attempt = 0; attempt < 4; ++attempt) {
    double begin = now();
    onThreads(threads, [&](int t) {
      sink = readAll(reinterpret_cast<const Words*>(data[size_t(t)].data()), words, times);
    });
    best = std::max(best, double(threads) * double(words) * 8 * times / (now() - begin) / 1e9);
  }
  return best;
}

} // namespace

Result<std::vector<double>> timeRuns(FunctionRef<Status()> run, double seconds) {
  for (int i = 0; i < kWarmUps; ++i) BEVEL_CHECK(run());
  std::vector<double> times;
  for (double begin = now(); times.size() < 3 || now() - begin < seconds;) {
    double start = now();
    BEVEL_CHECK(run());
    times.push_back((now() - start) * 1000);
  }
  std::sort(times.begin(), times.end());
  return times;
}

Machine measureMachine(int threads) {
  Machine out;
  constexpr int64_t kRounds = 400000;
  const Chains chains = chainsOfMachine();
  for (int attempt = 0; attempt < 5; ++attempt) {
    double begin = now();
    onThreads(threads, [&](int t) { sink = chains.run(kRounds, float(t)); });
    double operations = double(threads) * double(kRounds) * kChains * chains.lanes * 2;
    out.gflops = std::max(out.gflops, operations / (now() - begin) / 1e9);
  }
  auto cacheSize = [](int name, long otherwise) { return std::max(sysconf(name), otherwise); };
  long own = cacheSize(_SC_LEVEL2_CACHE_SIZE, 256 << 10);
  out.cacheBytes = double(cacheSize(_SC_LEVEL3_CACHE_SIZE, own));
  out.gbytes = readSpeed(threads, 64 << 20, 1);
  out.cacheGbytes = std::max(out.gbytes, readSpeed(threads, size_t(own) / 2, 256));
  return out;
}

// What the text of a profile's row comes to for the dims of its last call; `constant` where there is none.
static double amountOf(double constant, const char* text, const bevel_profile_entry& e) {
  if (constant >= 0 || !*text) return constant;
  ParseOptions options;
  for (int32_t d = 0; d < e.num_dims; ++d)
    options.captures.emplace_back("d" + std::to_string(d), intImm(e.dims[d]));
  auto parsed = parseExpression(text, options);
  if (!parsed || !parsed->is<ExprNode>()) return -1;
  Analyzer analyzer;
  auto value = asConst(analyzer.simplify(cast<ExprNode>(*parsed)));
  return value ? double(*value) : -1;
}

Result<std::vector<KernelTime>> kernelTimes(const Session& session, size_t runs, const Machine& machine) {
  std::vector<KernelTime> out;
  std::vector<double> flops, bytes;
  double total = 0;
  for (int32_t i = 0; i < bevel_profile_num_rows(session.instance()); ++i) {
    bevel_profile_entry e = {};
    BEVEL_CHECK(runtimeStatus(bevel_profile_row(session.instance(), i, &e)));
    if (e.kind == BEVEL_CALLEE_FUNCTION) continue; // what it calls is listed
    std::string name = e.callee, nodes = e.origins ? e.origins : "";
    size_t k = 0;
    while (k < out.size() && !(out[k].name == name && out[k].nodes == nodes)) ++k;
    if (k == out.size()) {
      out.push_back({name, nodes});
      flops.push_back(amountOf(e.flops, e.flops_text, e));
      bytes.push_back(amountOf(e.bytes, e.bytes_text, e));
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
    double bandwidth = bytes[k] <= machine.cacheBytes ? machine.cacheGbytes : machine.gbytes;
    if (r.gflops >= 0 && r.gbytes >= 0 && machine.gflops > 0) // the time that either bound allows at best
      r.roofline = std::max(flops[k] / machine.gflops, bytes[k] / bandwidth) / 1e9 / seconds;
    r.percent = total > 0 ? r.ms / total * 100 : 0;
    r.ms /= double(runs);
    r.calls = (r.calls + runs / 2) / runs;
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const KernelTime& a, const KernelTime& b) { return a.ms > b.ms; });
  return out;
}

} // namespace bevel
