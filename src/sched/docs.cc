#include "sched/docs.h"

#include "sched/step.h"

namespace bevel {

namespace {

std::string signature(const StepInfo& step) {
  std::string out = std::string("sch.") + step.name + "(";
  bool first = true;
  for (const StepField& f : step.fields) {
    if (f.role == StepRole::kOut) continue;
    if (!first) out += ", ";
    first = false;
    if (f.role == StepRole::kVariadic) out += "*";
    out += f.name;
    if (f.role == StepRole::kOption || f.role == StepRole::kDecision) out += "=…";
  }
  out += ")";
  if (!step.hasResult()) return out;
  const StepField& result = step.fields.back();
  static const char* const kKinds[] = {"block", "loop", "integer"};
  std::string kind = kKinds[int(result.handleKind)];
  return out + " → " + (result.isList ? kind + "s" : kind);
}

void fenced(std::string& out, const char* title, const char* code) {
  out += std::string(title) + "\n\n```python\n" + code + "```\n\n";
}

} // namespace

std::string stepsMarkdown() {
  std::string out = "# Schedule steps\n\nGenerated from `src/sched/steps/` by `./dev golden --update`; the "
                    "examples are executed by the "
                    "tests. A schedule script, a trace and a "
                    "tuning record are the same text: one step a line.\n\n";
  for (const StepInfo* step : allSteps()) {
    out += std::string("## ") + step->name + "\n\n`" + signature(*step) + "`";
    for (const std::string& alias : step->aliases) out += " (also `" + alias + "`)";
    out += std::string("\n\n") + step->doc.text + "\n\n";
    fenced(out, "Before:", step->doc.before);
    fenced(out, "Steps:", step->doc.script);
    fenced(out, "After:", step->doc.after);
  }
  return out;
}

} // namespace bevel
