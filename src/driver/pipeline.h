// THE pass lists: a model's way from graph functions to programs that can be lowered.
#pragma once

#include "ir/pass.h"
#include "select/decisions.h"
#include "select/schedule.h"
#include "target/target.h"

#include <functional>
#include <map>

namespace bevel {

struct BuildOptions {
  Target target = Target::host();
  int threads = 0;                  // that compile; 0: one a processor
  bool optimize = true;             // false: plain loops, for comparison and for finding faults
  bool checkSchedules = true;       // every default schedule is lowered, to see whether it can be
  bool onlySchedule = false;        // of the optimisations, only the schedules of single operators
  bool interpret = false;           // tensor programs run in the reference interpreter (load only)
  bool fastMath = false;            // reassociation, approximate division (docs/numerics.md)
  bool useCache = true;             // the on-disk kernel cache
  bool debugInfo = true;            // line tables of kernels
  bool notes = false;               // passes note what they decide
  std::vector<std::string> without; // passes that are left out
  std::string dumpDir;              // every stage as text; "": none
  std::string scheduleFile;         // a trace to be applied instead of default schedules; "": none
  NamedAnswers answers;             // to questions of the passes over the module (`bevel explain` lists them)
  std::map<std::string, int64_t> dims;                // values for named dimensions of an ONNX model
  std::map<std::string, std::vector<int64_t>> shapes; // shapes of inputs by name
  std::vector<std::string> overridden;                // ONNX inputs with initialisers that will be given
  /// Called when a stage begins, or goes on: its name, pieces done and in all (0: unknown).
  std::function<void(const std::string& stage, size_t done, size_t total)> progress;
};

/// What a pass tells people of its decisions: `bevel explain` shows it, pass by pass and subject by subject.
struct Note {
  std::string pass, subject, text;
  bool program = false; // the subject is a tensor program: nothing is told of those that ran while compiling
  bool detail = false;  // shown where details are asked for
};

/// What the passes need to know, and what they report.
struct PipelineContext {
  explicit PipelineContext(BuildOptions o) : options(std::move(o)) { decisions.answers = options.answers; }
  BuildOptions options;
  std::vector<Note> notes;               // where the options want them
  std::vector<ScheduleReport> schedules; // filled by "schedule"
  ModuleDecisions decisions;             // of "choose_algorithm", "choose_layout" and "fuse"
};

/// The passes that `compile` runs, in order, down to flat loops. They refer to the context, which must outlive them.
std::vector<Pass> compilePasses(PipelineContext& context);

/// Those of them that schedule tensor programs, for programs that are run by themselves.
std::vector<Pass> programPasses(PipelineContext& context);

/// How a compile runs passes.
PassOptions passOptions(const BuildOptions& options);

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
