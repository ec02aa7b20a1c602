// THE pass lists: a model's way from graph functions to programs that can be lowered.
#pragma once

#include "ir/pass.h"
#include "select/schedule.h"
#include "target/target.h"

#include <memory>

namespace bevel {

/// What the passes need to know, and what they report.
struct PipelineContext {
  Target target = Target::host();
  int threads = 0;      // that compile; 0: one a processor
  bool optimize = true; // false: no fusion and no schedules, every operator as its plain loops
  bool fastMath = false;
  bool useCache = true;
  std::string
      scheduleFile; // a trace for the module instead of default schedules of the programs that it names
  std::vector<ScheduleReport> schedules; // filled by "schedule"
};

/// The passes that `compile` runs, in order. They refer to the context, which must outlive them.
std::vector<Pass> compilePasses(PipelineContext& context);

/// Those of them that schedule tensor programs, for programs that are run by themselves.
std::vector<Pass> programPasses(PipelineContext& context);

/// All passes by name, for `bevel opt --passes`: those of compilePasses, and the lowering passes of tensor
/// programs.
std::vector<Pass> knownPasses(PipelineContext& context);

} // namespace bevel
