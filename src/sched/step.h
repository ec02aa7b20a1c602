// A schedule step in generic form: a row of the step table, and an instance of it in a trace.
//
// A step's struct lists its fields once, with their roles; text, hash, parsing and calls from other languages
// follow from the list. See sched/steps/step_impl.h for how a step file is written.
#pragma once

#include "sched/value.h"

#include <span>

namespace bevel {

class Schedule;
class StepNode;
using StepRef = Ref<const StepNode>;

/// How a field takes part in a step.
enum class StepRole : uint8_t {
  kIn,       // an argument without default
  kVariadic, // the first argument: a list written without brackets, `sch.reorder(l1, l2)`
  kOption,   // an argument with default: left out of the text when it has it
  kDecision, // an option that a sampling step fills in when it is absent, and that search changes
  kOut,      // a result; the last field
};

struct StepField {
  const char* member; // the C++ name
  std::string name;   // the text's name: snake case
  StepRole role;
  StepValue (*get)(const void* step);
  Status (*set)(void* step, const StepValue& value);
  RVKind handleKind; // of a result, or of a list of results
  bool isList;       // a list of values
};

/// A step's documentation; the example is executed by a test.
struct StepDoc {
  const char* text;   // what it does, what it demands, what it refuses; paragraphs in Markdown
  const char* before; // a tensor program (or module) in the notation
  const char* script; // schedule lines
  const char* after;  // the program after them
};

/// What is known of a kind of step.
struct StepInfo {
  const char* name;                 // "split"
  std::vector<std::string> aliases; // older spellings
  StepDoc doc;
  std::vector<StepField> fields; // arguments in order, then the result
  Ref<StepNode> (*create)();     // with defaults
  Ref<StepNode> (*clone)(const StepNode& step);
  /// Checks and applies; fills the result fields and, for sampling steps, the decision.
  Status (*execute)(Schedule& schedule, StepNode& step);
  const StepField* find(std::string_view field) const;
  bool hasResult() const { return !fields.empty() && fields.back().role == StepRole::kOut; }
};

/// All kinds of steps, in the order of steps.def.
std::span<const StepInfo* const> allSteps();
/// By name or alias; null when there is none.
const StepInfo* findStep(std::string_view name);

/// One step with its arguments and results. Immutable once in a trace.
class StepNode : public Object {
public:
  const StepInfo* info;
  explicit StepNode(const StepInfo& i) : info(&i) {}
  virtual void* data() = 0; // the step's struct
  virtual const void* data() const = 0;
  StepValue get(const StepField& f) const { return f.get(data()); }
  /// The handles it gives, in order.
  std::vector<RV> outputs() const;
};

/// Sets the arguments of a fresh step: positional ones in order (a variadic first argument takes all of
/// them), then named ones. Fails (kUsage) on a wrong type, an unknown name, one given twice, or a missing
/// one; naming what is at fault.
Status bindArguments(StepNode& step, const std::vector<StepValue>& args,
                     const std::vector<std::pair<std::string, StepValue>>& named);

/// A copy to execute: the same arguments, no results yet.
Ref<StepNode> freshCopy(const StepNode& step);

uint64_t hashStep(const StepNode& step, uint64_t seed = 0);
bool sameStep(const StepNode& a, const StepNode& b);

} // namespace bevel
