// How good is the machine code? A register tile against the machine's peak, elementwise loops, and compile
// time, for our pass pipeline beside LLVM's O1 and O3.
//
//   bench_llvm_tile [target]          prints one line a kernel and pipeline: compile ms, GFLOP/s or GB/s,
//   share of peak
#include "codegen/llvm.h"
#include "ir/build.h"

#include <cstdio>
#include <ctime>
#include <functional>
#include <immintrin.h>

using namespace bevel;

namespace {

double now(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return double(t.tv_sec) + double(t.tv_nsec) * 1e-9;
}

/// Best time of each function. They run in turns and in short trials, so that a busy machine disturbs all of
/// them alike and every one finds a quiet moment.
std::vector<double> seconds(const std::vector<std::function<void()>>& functions, int repeat) {
  std::vector<double> best(functions.size(), 1e9);
  for (int trial = 0; trial < 300; ++trial)
    for (size_t k = 0; k < functions.size(); ++k) {
      double start = now(CLOCK_MONOTONIC);
      for (int i = 0; i < repeat; ++i) functions[k]();
      best[k] = std::min(best[k], (now(CLOCK_MONOTONIC) - start) / repeat);
    }
  return best;
}

constexpr int kPeakSteps = 5000;

/// Independent fused multiply-adds that never leave the registers.
__attribute__((target("avx2,fma"), optimize("O3"))) float multiplyAdds() {
  __m256 acc[12];
  for (auto& a : acc) a = _mm256_set1_ps(1);
  __m256 x = _mm256_set1_ps(0.5f), y = _mm256_set1_ps(0.25f);
  for (int i = 0; i < kPeakSteps; ++i) {
#pragma GCC unroll 12
    for (auto& a : acc) a = _mm256_fmadd_ps(a, x, y);
    asm volatile("" : "+x"(x), "+x"(y));
  }
  float sum = 0;
  for (auto& a : acc) sum += _mm256_cvtss_f32(a);
  return sum;
}

Expr ramp(Expr base, int lanes) {
  return make<const RampNode>(base, constant(base->dtype, 1), lanes);
}
Expr broadcast(Expr v, int lanes) {
  return make<const BroadcastNode>(v, lanes);
}
Expr loadVector(const Buffer& b, Expr at, int lanes) {
  return make<const LoadNode>(b, Array<Expr>{ramp(at, lanes)});
}
Stmt storeVector(const Buffer& b, Expr v, Expr at, int lanes) {
  return make<const StoreNode>(b, v, Array<Expr>{ramp(at, lanes)});
}

PrimFunc function(const std::vector<Buffer>& buffers, Stmt body) {
  Array<Var> params;
  for (const Buffer& b : buffers) params.push_back(b->data);
  return make<const PrimFuncNode>(params, Array<Buffer>(buffers), body);
}

/// C[mr, nv * lanes] = sum over k of A[k, mr] * B[k, nv * lanes], `unroll` steps of k a turn.
PrimFunc tile(int mr, int nv, int lanes, int64_t depth, int unroll) {
  int width = nv * lanes;
  Buffer a = buffer("A", kFloat32, dims({depth * mr})), b = buffer("B", kFloat32, dims({depth * width}));
  Buffer c = buffer("C", kFloat32, dims({mr * width})),
         acc = buffer("acc", kFloat32, dims({mr * width}), "register");
  std::vector<Stmt> first, body, last;
  Var k = var("k");
  for (int u = 0; u < unroll; ++u)
    for (int i = 0; i < mr; ++i)
      for (int j = 0; j < nv; ++j) {
        Expr slot = intImm((i * nv + j) * lanes);
        Expr step = k * unroll + u;
        Expr product =
            broadcast(load(a, {step * mr + i}), lanes) * loadVector(b, step * width + j * lanes, lanes);
        body.push_back(storeVector(acc, loadVector(acc, slot, lanes) + product, slot, lanes));
        if (u > 0) continue;
        first.push_back(storeVector(acc, broadcast(constantFloat(kFloat32, 0), lanes), slot, lanes));
        last.push_back(storeVector(c, loadVector(acc, slot, lanes), intImm(i * width + j * lanes), lanes));
      }
  Stmt all = seq({seq(first), forLoop(k, intImm(depth / unroll), seq(body)), seq(last)});
  return function({a, b, c}, make<const AllocNode>(acc, all, dict({{"lanes", intImm(lanes)}})));
}

/// C[i] = f(A[i], B[i]); lanes 1 leaves the vectors to LLVM.
PrimFunc elementwise(int64_t n, int lanes, const std::function<Expr(Expr, Expr)>& f) {
  Buffer a = buffer("A", kFloat32, dims({n})), b = buffer("B", kFloat32, dims({n})),
         c = buffer("C", kFloat32, dims({n}));
  Var i = var("i");
  if (lanes == 1)
    return function({a, b, c}, forLoop(i, intImm(n), store(c, f(load(a, {i}), load(b, {i})), {i})));
  Expr at = i * lanes;
  return function({a, b, c},
                  forLoop(i, intImm(n / lanes),
                          storeVector(c, f(loadVector(a, at, lanes), loadVector(b, at, lanes)), at, lanes)));
}

struct Case {
  const char* name;
  PrimFunc f;
  double work; // flops, or bytes
  bool isBytes;
};

void measure(const Case& c, const Target& target) {
  static const char* const kNames[] = {"own", "O0", "O1", "O3"};
  const Pipeline pipelines[] = {Pipeline::kOwn, Pipeline::kO1, Pipeline::kO3};
  static float a[1 << 16], b[1 << 16], out[1 << 16];
  for (int i = 0; i < 1 << 16; ++i) a[i] = float(i % 7) * 0.1f, b[i] = float(i % 5) * 0.1f;
  bevel_ctx ctx{};
  ctx.num_threads = 1;
  void* buffers[] = {a, b, out};
  std::vector<double> compile(std::size(pipelines), 1e9);
  std::vector<std::shared_ptr<const JitModule>> modules(std::size(pipelines));
  volatile float sink = 0;
  std::vector<std::function<void()>> functions = {[&] { sink = sink + multiplyAdds(); }};
  for (size_t p = 0; p < std::size(pipelines); ++p) {
    CompileOptions options;
    options.useCache = false;
    options.pipeline = pipelines[p];
    KernelSource source{"kernel", c.f};
    for (int i = 0; i < 5; ++i) {
      double start = now(CLOCK_PROCESS_CPUTIME_ID);
      auto result = compileJit(std::span(&source, 1), target, options);
      if (!result) {
        std::printf("%s\n", result.error().str().c_str());
        return;
      }
      modules[p] = *result;
      compile[p] = std::min(compile[p], now(CLOCK_PROCESS_CPUTIME_ID) - start);
    }
    bevel_kernel kernel = modules[p]->kernel("kernel");
    int calls = std::max(1, int(4e5 / c.work));
    functions.push_back([=, &ctx, &buffers] {
      for (int i = 0; i < calls; ++i) kernel(&ctx, buffers, nullptr, nullptr);
    });
  }
  std::vector<double> time = seconds(functions, 4);
  double peak = 12.0 * 16 * kPeakSteps / time[0] * 1e-9 * target.limits.vectorBits / 256;
  for (size_t p = 0; p < std::size(pipelines); ++p) {
    double rate = c.work * std::max(1, int(4e5 / c.work)) / time[p + 1] * 1e-9;
    std::printf("%-22s %-4s compile %6.1f ms  %8.1f %s", c.name, kNames[int(pipelines[p])], compile[p] * 1e3,
                rate, c.isBytes ? "GB/s" : "GFLOP/s");
    if (!c.isBytes) std::printf("  %5.1f %% of %.1f", rate / peak * 100, peak);
    std::printf("\n");
  }
}

} // namespace

int main(int argc, char** argv) {
  auto target = Target::parse(argc > 1 ? argv[1] : "host");
  if (!target) {
    std::printf("%s\n", target.error().str().c_str());
    return 2;
  }
  int v = target->lanes(kFloat32);
  std::printf("target %s\n", target->str().c_str());
  int64_t depth = 256, n = 4096;
  auto chain = [](Expr a, Expr b) { return max(a * b + a, constantFloat(a->dtype, 0)); };
  auto exponential = [](Expr a, Expr b) { return call(Intrin::kExp, {a}) + b; };
  for (const Case& c :
       {Case{"tile 6x2v", tile(6, 2, v, depth, 1), 2.0 * 6 * 2 * v * double(depth), false},
        Case{"tile 6x2v unroll 4", tile(6, 2, v, depth, 4), 2.0 * 6 * 2 * v * double(depth), false},
        Case{"tile 6x2v unroll 16", tile(6, 2, v, depth, 16), 2.0 * 6 * 2 * v * double(depth), false},
        Case{"tile 4x3v", tile(4, 3, v, depth, 1), 2.0 * 4 * 3 * v * double(depth), false},
        Case{"fma relu, vectors", elementwise(n, v, chain), 12.0 * double(n), true},
        Case{"fma relu, scalar loop", elementwise(n, 1, chain), 12.0 * double(n), true},
        Case{"exp, vectors", elementwise(n, v, exponential), 12.0 * double(n), true},
        Case{"exp, scalar loop", elementwise(n, 1, exponential), 12.0 * double(n), true}})
    measure(c, *target);
}
