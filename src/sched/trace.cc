// Traces: text, replay, decisions, simplification.

#include "sched/trace.h"

#include "base/near_name.h"
#include "ir/printer.h"
#include "ir/script.h"
#include "ir/structural.h"
#include "sched/schedule.h"

#include <unordered_set>

namespace bevel {

NodeRef Trace::node() const {
  return make<const StepListNode>(steps);
}

std::string Trace::str() const {
  return steps.empty() ? "" : print(node());
}

uint64_t Trace::hash() const {
  return structuralHash(node());
}

bool operator==(const Trace& a, const Trace& b) {
  return structuralEqual(a.node(), b.node());
}

Status Trace::applyTo(Schedule& schedule) const {
  Schedule before = schedule;
  VarMap handles;
  for (const Step& step : steps) {
    Status done = schedule.replay(*step, handles);
    if (done) continue;
    size_t index = size_t(&step - &steps[0]);
    std::string text = str(); // the names are those of the whole trace
    for (size_t line = 0; line < index; ++line) text.erase(0, text.find('\n') + 1);
    done.error().notes.push_back("in step " + std::to_string(index + 1) + ": " +
                                 text.substr(0, text.find('\n')));
    schedule = std::move(before);
    return done;
  }
  return {};
}

namespace {

const StepField* decisionField(const StepNode& s) {
  for (const StepField& f : s.step->fields)
    if (f.role == StepRole::kDecision) return &f;
  return nullptr;
}

} // namespace

std::optional<std::vector<int64_t>> Trace::decision(size_t i) const {
  const StepField* f = decisionField(*steps[i]);
  if (!f) return std::nullopt;
  std::vector<int64_t> out;
  if (f->field.type == FieldType::kInts)
    out = steps[i]->at<std::vector<int64_t>>(f->field);
  else if (const auto* value = steps[i]->at<NodeRef>(f->field).as<IntImmNode>())
    out.push_back(value->value);
  if (out.empty()) return std::nullopt;
  return out;
}

Trace Trace::withDecision(size_t i, const std::vector<int64_t>& decision) const {
  Trace out = *this;
  const StepField* f = decisionField(*steps[i]);
  if (!f) return out;
  Ref<StepNode> step = copyOf(*steps[i]);
  if (f->field.type == FieldType::kInts)
    step->at<std::vector<int64_t>>(f->field) = decision;
  else
    step->at<NodeRef>(f->field) = decision.empty() ? NodeRef() : NodeRef(intImm(decision[0]));
  out.steps.set(i, Step(step));
  return out;
}

std::vector<size_t> Trace::samplingSteps() const {
  std::vector<size_t> out;
  for (size_t i = 0; i < steps.size(); ++i)
    if (decisionField(*steps[i])) out.push_back(i);
  return out;
}

Trace Trace::simplified() const {
  std::unordered_set<NodeRef, RefHash> used;
  std::vector<Step> kept;
  for (size_t i = steps.size(); i-- > 0;) {
    std::string_view name = steps[i]->kindName();
    bool needed = !name.starts_with("get_") && !name.starts_with("sample_"); // these only look
    for (const Var& handle : steps[i]->outputs()) needed |= used.contains(handle);
    if (!needed) continue;
    kept.insert(kept.begin(), steps[i]);
    walk(steps[i], [&](const NodeRef& n) { return used.insert(n), true; });
  }
  return {kept};
}

namespace {

/// The step that a call of a script means.
Result<Ref<StepNode>> stepOf(const ScriptCall& call) {
  if (const StepInfo* info = findStep(call.name)) return makeStep(*info, call.args, call.named);
  std::vector<std::string> names;
  for (const StepInfo* step : allSteps()) names.push_back(step->name());
  return fail(Error(ErrorCode::kInvalid, "there is no schedule step " + call.name)
                  .help(didYouMean(call.name, names)));
}

/// As many handles as the names on the left, without a schedule to count the results.
Status defineHandles(StepNode& step, const ScriptCall& call) {
  const StepField* result = step.step->result();
  if (!result) return {};
  bool isList = result->field.type == FieldType::kList;
  if (isList && call.asList)
    return fail(
        Error(ErrorCode::kInvalid, call.name + " gives a list: its length is not known before it runs")
            .help("bind each result: `a, b = sch." + call.name + "(…)`"));
  Array<NodeRef> handles;
  for (const std::string& name : call.targets) handles.push_back(newHandle(*result, name));
  if (!isList && handles.empty()) handles.push_back(newHandle(*result, ""));
  setResults(step, handles);
  return {};
}

} // namespace

Result<Trace> Trace::parse(std::string_view text, std::string file) {
  Trace trace;
  BEVEL_CHECK(parseScript(text, file, [&](const ScriptCall& call) -> Result<NodeRef> {
    BEVEL_TRY(Ref<StepNode> step, stepOf(call));
    BEVEL_CHECK(defineHandles(*step, call));
    trace.steps.push_back(Step(step));
    return resultOf(*step);
  }));
  return trace;
}

Status runScript(Schedule& schedule, std::string_view text, std::string file) {
  Schedule before = schedule;
  Status done = parseScript(text, file, [&](const ScriptCall& call) -> Result<NodeRef> {
    BEVEL_TRY(Ref<StepNode> step, stepOf(call));
    const StepField* result = step->step->result();
    bool named = result && !(call.asList && result->field.type == FieldType::kList);
    BEVEL_CHECK(schedule.execute(step, named ? call.targets : std::vector<std::string>()));
    return resultOf(*step);
  });
  if (!done) schedule = std::move(before);
  return done;
}

} // namespace bevel
