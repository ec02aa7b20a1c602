// The default schedule of every tensor program: rules write a trace, the target model takes its decisions.
#pragma once

#include "base/function_ref.h"
#include "ir/graph.h"
#include "sched/trace.h"
#include "target/target.h"

namespace bevel {

struct DefaultSchedule {
  PrimFunc function;
  Trace trace;
  std::vector<std::string> why; // a line a rule, for people
  bool simpler = false;         // a better schedule could not be lowered; `why` tells
};

/// Never fails on a valid program: where no rule fits, or a step is refused, that part keeps its plain loops
/// and `why` says so. A schedule that cannot be lowered is replaced by the next simpler one; with the
/// environment variable BEVEL_STRICT_SCHEDULE=1, as tests run, it is an error.
Result<DefaultSchedule> scheduleDefault(const PrimFunc& f, const Target& target);

/// A way to schedule a program, and what it does without, for people.
struct ScheduleWay {
  const char* name;
  FunctionRef<DefaultSchedule(const PrimFunc&, const Target&)> make;
};
/// The first of these schedules that can be lowered; the last one when none can, or when the program itself
/// cannot be.
Result<DefaultSchedule> firstLowerable(const PrimFunc& f, const Target& target,
                                       const std::vector<ScheduleWay>& ways);

} // namespace bevel
