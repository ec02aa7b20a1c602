#include "autosched/decisions.h"

#include "ir/printer.h"
#include "sched/steps/sample.h"

#include <map>

namespace bevel {

namespace {

const steps::Decide* decideStep(const Step& step) {
  const auto* node = dynamic_cast<const StepOf<steps::Decide>*>(step.get());
  return node ? &node->value : nullptr;
}

size_t position(const steps::Decide& d) {
  return size_t(d.decision.as<IntImmNode>()->value);
}

steps::Decide stepOf(const Question& q, size_t answer) {
  return {q.name, q.candidates, q.costs, int64_t(answer), q.why};
}

} // namespace

void recordIn(Trace& trace, const Question& q, size_t answer) {
  trace.steps.push_back(make<const StepOf<steps::Decide>>(stepOf(q, answer)));
}

Answers recordedAnswers(const Trace& trace) {
  std::map<std::string, size_t> known;
  for (const Step& step : trace.steps)
    if (const steps::Decide* d = decideStep(step)) known[d->name] = position(*d);
  return [known](const Question& q) {
    auto it = known.find(q.name);
    return it == known.end() ? q.choice : it->second;
  };
}

Result<Decision> record(Schedule& sch, const Question& q, size_t answer) {
  BEVEL_TRY(Array<ExprRV> values, sch.run(stepOf(q, answer)));
  return Decision{answer, values};
}

Result<Decision> decide(Schedule& sch, const RuleContext& context, const Question& q) {
  return record(sch, q, context.answers ? context.answers(q) : q.choice);
}

Error refusedAnswer(const Question& q, size_t answer, const Error& why) {
  Error error = why;
  error.message = "answer " + std::to_string(answer) + " to \"" + q.name + "\" is refused: " + why.message;
  return error;
}

std::string candidateText(const NodeRef& candidate) {
  const auto* name = candidate.as<StringImmNode>();
  const auto* number = candidate.as<IntImmNode>();
  if (name) return name->value;
  if (number) return std::to_string(number->value);
  std::string text = print(candidate);
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

std::vector<DecisionReport> decisionsOf(const Trace& trace) {
  std::vector<DecisionReport> out;
  for (const Step& step : trace.steps) {
    const steps::Decide* d = decideStep(step);
    if (!d) continue;
    DecisionReport report{d->name, {}, d->costs, position(*d), d->why};
    for (const AnyArg& c : d->candidates) report.candidates.push_back(candidateText(c));
    out.push_back(std::move(report));
  }
  return out;
}

} // namespace bevel
