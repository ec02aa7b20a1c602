// THE pass lists: a model's way from graph functions to programs that can be lowered.
#pragma once

#include "ir/pass.h"
#include "select/decisions.h"
#include "select/schedule.h"
#include "target/target.h"

#include <memory>

namespace bevel {

/// What the passes need to know, and what they report.
struct PipelineContext {
  Target target = Target::host();
  int threads = 0;        // that compile; 0: one a processor
  bool optimize = true;   // false: no fusion and no schedules, every operator as its plain loops
  bool interpret = false; // tensor programs run in the reference interpreter
  bool fastMath = false;
  bool useCache = true;
  std::string
      scheduleFile; // a trace for the module instead of default schedules of the programs that it names
  std::vector<ScheduleReport> schedules; // filled by "schedule"
  ModuleDecisions decisions;             // of "choose_algorithm", "choose_layout" and "fuse"
};

/// The passes that `compile` runs, in order. They refer to the context, which must outlive them.
std::vector<Pass> compilePasses(PipelineContext& context);

/// Those of them that schedule tensor programs, for programs that are run by themselves.
std::vector<Pass> programPasses(PipelineContext& context);

/// The error with the line of its file that it is about.
Error withSource(Error error);

/// The module after the schedule of a script (a trace is one).
Result<Module> applyTraceFile(const Module& module, const std::string& path);

/// Passes that belong together, in the order in which a compile runs them, those included that the options
/// leave out.
struct PassGroup {
  std::string name, doc;
  std::vector<Pass> passes;
};
/// All passes: those of compilePasses, the lowering passes of tensor programs, and checks of them.
std::vector<PassGroup> passGroups(PipelineContext& context);
/// The same as one list, for `bevel opt --passes`; names are unique.
std::vector<Pass> knownPasses(PipelineContext& context);
/// The documentation page of the passes.
std::string passesMarkdown();

} // namespace bevel
