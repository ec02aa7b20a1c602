// Replaying a trace is cheap: search does it for every candidate.
#include "tests/sched/support.h"

#include <chrono>

namespace bevel::testing {
namespace {

TEST(Replay, CostsLittleAStep) {
  PrimFunc f = matmul(512, 512, 512);
  auto trace = Trace::parse(R"(b = sch.get_sblock(name="C")
i, j, k = sch.get_loops(block=b)
w = sch.cache_write(block=b, write_buffer_index=0, storage_scope="register")
i0, i1, i2 = sch.split(loop=i, factors=[None, 4, 8])
j0, j1, j2 = sch.split(loop=j, factors=[None, 2, 16])
k0, k1 = sch.split(loop=k, factors=[None, 8])
sch.reorder(i0, j0, i1, j1, k0, k1, i2, j2)
sch.reverse_compute_at(block=w, loop=j1)
init = sch.decompose_reduction(block=b, loop=k0)
sch.unroll(loop=i2)
sch.vectorize(loop=j2)
sch.parallel(loop=i0)
)");
  ASSERT_TRUE(trace.has_value()) << trace.error().str();
  Schedule first = scheduleOf(f);
  ASSERT_OK(trace->applyTo(first));
  Schedule start = scheduleOf(f);
  constexpr int kRuns = 50;
  auto begin = std::chrono::steady_clock::now();
  for (int r = 0; r < kRuns; ++r) {
    Schedule s = start;
    ASSERT_OK(trace->applyTo(s));
  }
  double micros = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
  double each = micros / kRuns / double(trace->steps.size());
  RecordProperty("microseconds_a_step", std::to_string(each));
  printf("replay: %.1f us a step\n", each);
  EXPECT_LT(each, 2000); // a bound that a loaded machine keeps; the figure itself is printed
}

} // namespace
} // namespace bevel::testing
