// Course program 7 (2.5): batched matmul and relu of 16x128x128, brought step by step to the program of
// p07_target.py.
#include "support.h"

#include "base/file.h"
#include "sched/schedule.h"
#include "sched/steps/blocks.h"
#include "sched/steps/get.h"
#include "sched/steps/loops.h"
#include "sched/steps/place.h"

#include <fmt/format.h>

namespace bevel::course {

using namespace steps;
namespace {

Result<Schedule> scheduled(const Module& module) {
  BEVEL_TRY(Schedule sch, Schedule::create(module));
  BEVEL_TRY(BlockRV y, sch.run(GetSblock{"Y"}));
  BEVEL_TRY(BlockRV c, sch.run(GetSblock{"C"}));
  // The relu's loops are the outer ones: samples, rows, strips of eight columns. A strip of Y is computed
  // inside.
  BEVEL_TRY(auto outer, sch.run(GetLoops{c})); // n, i, j
  BEVEL_TRY(auto strips, sch.run(Split{outer[2], {16, 8}}));
  BEVEL_CHECK(sch.run(ComputeAt{y, strips[0]}));
  // Four steps of k at a time, then the columns of the strip.
  BEVEL_TRY(auto inner, sch.run(GetLoops{y})); // n, i, j0, columns, k
  BEVEL_TRY(auto steps, sch.run(Split{inner[4], {32, 4}}));
  BEVEL_CHECK(sch.run(Reorder{{steps[0], steps[1], inner[3]}}));
  BEVEL_TRY(BlockRV init, sch.run(DecomposeReduction{y, steps[0]}));
  // How the loops run.
  BEVEL_CHECK(sch.run(Unroll{steps[1]}));
  BEVEL_TRY(auto begin, sch.run(GetLoops{init}));
  BEVEL_CHECK(sch.run(Vectorize{begin.back()}));
  BEVEL_CHECK(sch.run(Vectorize{strips[1]}));
  BEVEL_CHECK(sch.run(Parallel{outer[0]}));
  return sch;
}

} // namespace

Status bmmRelu() {
  BEVEL_TRY(Module module, readExample("p07_bmm_relu.py"));
  BEVEL_TRY(Module target, readExample("p07_target.py"));
  BEVEL_TRY(Schedule sch, scheduled(module));
  BEVEL_CHECK(expectEqual("scheduled program and target", sch.mod(), target));

  HostArray a = randomArray({16, 128, 128}, 1), b = randomArray({16, 128, 128}, 2);
  HostArray want = zeros({16, 128, 128}), c = zeros({16, 128, 128});
  BEVEL_TRY(Kernel before, Kernel::build(program(module, "bmm_relu")));
  BEVEL_TRY(Kernel after, Kernel::build(program(sch.mod(), "bmm_relu")));
  BEVEL_CHECK(before({a, b, want}));
  BEVEL_CHECK(after({a, b, c}));
  BEVEL_CHECK(expectClose("before and after", c, want));
  BEVEL_TRY(double msBefore, before.time({a, b, c}));
  BEVEL_TRY(double msAfter, after.time({a, b, c}));
  fmt::print("  before {:.3f} ms, after {:.3f} ms: {:.1f}x\n", msBefore, msAfter, msBefore / msAfter);
  return {};
}

} // namespace bevel::course
