#include "sched/docs.h"

#include "sched/step.h"

namespace bevel {

namespace {

std::string signature(const StepInfo& step) {
  std::string out = "sch." + step.name() + "(";
  bool first = true;
  for (const StepField& f : step.fields) {
    if (f.role == StepRole::kOut) continue;
    if (!std::exchange(first, false)) out += ", ";
    if (f.role == StepRole::kVariadic) out += "*";
    out += f.name;
    if (f.isOptional()) out += "=…";
  }
  out += ")";
  const StepField* result = step.result();
  if (!result) return out;
  return out + " → " + result->handle + (result->field.type == FieldType::kList ? "s" : "");
}

} // namespace

std::string stepsMarkdown() {
  std::string out =
      "# Schedule steps\n\nGenerated from `src/sched/steps/` and `tests/golden/steps/` by `./dev golden "
      "--update`. A schedule script, a trace and a tuning record are the same text: one step a line.\n\n";
  for (const StepInfo* step : allSteps()) {
    out += "## " + step->name() + "\n\n`" + signature(*step) + "`";
    for (const std::string& alias : step->aliases) out += " (also `" + alias + "`)";
    out += std::string("\n\n") + step->doc + "\n\n";
  }
  return out;
}

} // namespace bevel
