// The kinds of schedule steps: a list of names (steps.def) and what a program registers besides.
#pragma once

#include "ir/step.h"
#include "sched/value.h"

#include <functional>

namespace bevel {

class Schedule;

/// What a step does, once it is proved legal: the schedule carries it out.
struct Plan {
  Stmt body = {};              // of the function worked on; null: as it is
  Array<NodeRef> results = {}; // what the handles stand for: names of blocks, loops' variables, integers
  std::string block = {}, renamed = {}; // a block and its new name, which is "" when it was taken out
};

/// What is known of a kind of step. See sched/steps/step_impl.h for how a step file is written.
struct StepInfo : StepKind {
  std::vector<std::string> aliases; // older spellings
  const char* doc = "";             // what it does, demands and refuses; paragraphs in Markdown
  /// What the step does, or why it is illegal. Sampling steps fill their decision, and few steps choose the function
  /// worked on; whoever asks takes that back when the step fails.
  std::function<Result<Plan>(Schedule&, StepNode&)> check;
  std::string name() const { return node.name; }
};
inline const StepInfo& infoOf(const StepNode& step) {
  return static_cast<const StepInfo&>(*step.step);
}

/// All kinds of steps: those of steps.def in its order, then the registered ones.
std::vector<const StepInfo*> allSteps();
/// The page of documentation of all steps: docs/steps.md.
std::string stepsMarkdown();
/// By name or alias; null when there is none.
const StepInfo* findStep(std::string_view name);
/// Adds a kind of step of a program that uses this library: `registerStep(steps::info<MyStep>())`. The row must
/// live as long as the program. Fails (kUsage) when the name is taken. Not while schedules run on other threads.
Status registerStep(const StepInfo& row);

/// A step with these arguments: positional ones in order (a variadic first argument takes all of them), then
/// named ones; null is None. Fails (kUsage) on a wrong type, an unknown name, one given twice, or a missing one;
/// naming what is at fault.
Result<Ref<StepNode>> makeStep(const StepInfo& info, const std::vector<NodeRef>& args,
                               const std::vector<std::pair<std::string, NodeRef>>& named);

/// A copy of the whole step, as its kind makes it: mutableCopy, which knows StepNode alone, would cut the fields off.
Ref<StepNode> copyOf(const StepNode& step);

/// A copy to execute, with other handles for those of its arguments (those without other ones stay): no results yet.
Ref<StepNode> freshStep(const StepNode& step, const VarMap& handles = {});

/// The step's result: a handle, a List of handles, or null.
NodeRef resultOf(const StepNode& step);
/// Makes these its results; as many as its kind gives.
void setResults(StepNode& step, const Array<NodeRef>& handles);
/// A handle like those that a step gives.
Var newHandle(const StepField& result, std::string name);

} // namespace bevel
