// The default schedule of every tensor program: rules write a trace, the target model takes its decisions.
#pragma once

#include "sched/schedule.h"
#include "target/target.h"

namespace bevel {

struct DefaultSchedule {
  PrimFunc function;
  Trace trace;
  std::vector<std::string> why; // a line a rule, for people
};

/// Never fails on a valid program: where no rule fits, or a step is refused, that part keeps its plain loops
/// and `why` says so.
Result<DefaultSchedule> scheduleDefault(const PrimFunc& f, const Target& target);

} // namespace bevel
