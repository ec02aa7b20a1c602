// Course program 3 (2.4): `mm_relu` with its columns in strips of jfactor. The steps are taken by the C++
// interface; what they leave behind, the trace, is the text of p03_transform_8.py. Timed before and after,
// with several factors.
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

Result<Schedule> transformed(const Module& module, int jfactor) {
  BEVEL_TRY(Schedule sch, Schedule::create(module));
  BEVEL_TRY(BlockRV y, sch.run(GetSblock{"Y", "mm_relu"}));
  BEVEL_TRY(BlockRV c, sch.run(GetSblock{"C", "mm_relu"}));
  BEVEL_TRY(auto loops, sch.run(GetLoops{y})); // i, j, k
  BEVEL_TRY(auto strips, sch.run(Split{loops[1], {std::nullopt, jfactor}}));
  BEVEL_CHECK(sch.run(Reorder{{strips[0], loops[2], strips[1]}})); // a strip's columns go innermost
  BEVEL_CHECK(sch.run(ReverseComputeAt{c, strips[0]}));            // a finished strip is used at once
  BEVEL_CHECK(sch.run(DecomposeReduction{y, loops[2]})); // the sums begin before k, not at its first step
  return sch;
}

} // namespace

Status transform() {
  BEVEL_TRY(Module module, readExample("p02_mm_relu.py"));
  HostArray a = randomArray({128, 128}, 1), b = randomArray({128, 128}, 2), want = zeros({128, 128});
  BEVEL_TRY(Kernel before, Kernel::build(program(module, "mm_relu")));
  BEVEL_CHECK(before({a, b, want}));
  BEVEL_TRY(double start, before.time({a, b, want}));
  fmt::print("  {:>8} {:>10} {:>8}\n  {:>8} {:10.3f} {:>8}\n", "jfactor", "ms", "faster", "–", start, "–");
  for (int jfactor : {4, 8, 16, 32, 128}) {
    BEVEL_TRY(Schedule sch, transformed(module, jfactor));
    BEVEL_TRY(Kernel after, Kernel::build(program(sch.mod(), "mm_relu")));
    HostArray c = zeros({128, 128});
    BEVEL_CHECK(after({a, b, c}));
    BEVEL_TRY(double ms, after.time({a, b, c}));
    fmt::print("  {:8} {:10.3f} {:7.1f}x\n", jfactor, ms, start / ms);
    BEVEL_CHECK(expectClose(fmt::format("jfactor {}", jfactor), c, want));
  }
  BEVEL_TRY(Schedule eight, transformed(module, 8));
  BEVEL_TRY(std::string text, readFile(file("p03_transform_8.py")));
  BEVEL_TRY(Trace trace, Trace::parse(text, "p03_transform_8.py"));
  BEVEL_TRY(Schedule replayed, Schedule::create(module));
  BEVEL_CHECK(trace.applyTo(replayed));
  if (!(trace == eight.trace()))
    return fail(Error(ErrorCode::kInvalid, "the trace is not the file's").note(eight.trace().str()));
  return expectEqual("the trace file and the calls", replayed.mod(), eight.mod());
}

} // namespace bevel::course
