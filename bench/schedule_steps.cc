// How long schedule steps take: a trace of a tiled matrix product and each of its steps, in microseconds.
// `./dev build release bench_schedule_steps && build-release/bench/bench_schedule_steps`; the figures are medians.
#include "ir/parser.h"
#include "ir/structural.h"
#include "sched/schedule.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>

namespace bevel {
namespace {

const char* const kProgram = R"(
@T.prim_func
def main(A: T.Buffer((512, 512), "float32"), B: T.Buffer((512, 512), "float32"), D: T.Buffer((512, 512), "float32")):
    C = T.sblock_alloc_buffer((512, 512))
    for i, j, k in T.grid(512, 512, 512):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T.grid(512, 512):
        with T.sblock("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = T.max(C[vi, vj], T.float32(0))
)";

const char* const kTrace = R"(
b0 = sch.get_sblock(name="C", func_name="main")
l1, l2, l3 = sch.get_loops(block=b0)
l4, l5 = sch.split(loop=l1, factors=[None, 4])
l6, l7 = sch.split(loop=l2, factors=[None, 16])
l8, l9 = sch.split(loop=l3, factors=[None, 4])
sch.reorder(l4, l6, l8, l9, l5, l7)
b10 = sch.get_sblock(name="D", func_name="main")
sch.reverse_compute_at(block=b10, loop=l6)
sch.parallel(loop=l4)
sch.unroll(loop=l5)
sch.vectorize(loop=l7)
b11 = sch.decompose_reduction(block=b0, loop=l8)
)";

double now() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

Status measure() {
  BEVEL_TRY(Module module, parseModule(kProgram));
  BEVEL_TRY(Trace trace, Trace::parse(kTrace));
  constexpr int kRuns = 300;
  std::vector<double> whole, create;
  std::vector<std::vector<double>> steps(trace.steps.size());
  for (int run = 0; run < kRuns; ++run) {
    double begin = now();
    BEVEL_TRY(Schedule sch, Schedule::create(module));
    double made = now();
    create.push_back(made - begin);
    BEVEL_CHECK(trace.applyTo(sch));
    whole.push_back(now() - made);
  }
  for (int run = 0; run < kRuns; ++run) { // the same steps one by one
    BEVEL_TRY(Schedule sch, Schedule::create(module));
    VarMap handles;
    for (size_t k = 0; k < trace.steps.size(); ++k) {
      double begin = now();
      BEVEL_CHECK(sch.replay(*trace.steps[k], handles));
      steps[k].push_back(now() - begin);
    }
  }
  fmt::print("Schedule::create {:.1f} us\n", median(create));
  double sum = 0;
  for (size_t k = 0; k < steps.size(); ++k) {
    sum += median(steps[k]);
    Trace one;
    one.steps = {trace.steps[k]};
    fmt::print("{:8.1f} us  {}", median(steps[k]), one.str());
  }
  fmt::print("{:8.1f} us  a step on average of {}; the trace as a whole {:.1f} us\n",
             sum / double(steps.size()), steps.size(), median(whole));
  return {};
}

} // namespace
} // namespace bevel

int main() {
  bevel::Status status = bevel::measure();
  if (!status) fmt::print(stderr, "{}\n", status.error().message);
  return status ? 0 : 1;
}
