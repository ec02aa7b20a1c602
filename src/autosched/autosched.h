// The default schedule of every tensor program: rules write a trace, the target model takes its decisions.
#pragma once

#include "autosched/question.h"
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

/// With the model's answers it never fails on a valid program: where no rule fits, or a step is refused, that part
/// keeps its plain loops and `why` says so; a schedule that cannot be lowered is replaced by the next simpler one,
/// or is an error (strictSchedules). With other answers
/// (autosched/decisions.h) it fails with the reason where one of them cannot be carried out, or the whole not lowered.
Result<DefaultSchedule> scheduleDefault(const PrimFunc& f, const Target& target, const Answers& answers = {});

/// The schedule by all rules as it comes, for a compile that lowers it next: only where that fails need scheduleDefault
/// be asked, which lowers what it gives.
Result<DefaultSchedule> scheduleByRules(const PrimFunc& f, const Target& target);

/// A schedule that cannot be lowered is an error: the environment variable BEVEL_STRICT_SCHEDULE is 1, as tests run.
bool strictSchedules();

/// A way to schedule a program, and what it does without, for people.
struct ScheduleWay {
  const char* name;
  FunctionRef<Result<DefaultSchedule>(const PrimFunc&, const Target&)> make;
};
/// The first of these schedules that can be lowered; the last one when none can, or when the program itself
/// cannot be.
Result<DefaultSchedule> firstLowerable(const PrimFunc& f, const Target& target,
                                       const std::vector<ScheduleWay>& ways);

} // namespace bevel
