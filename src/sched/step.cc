#include "sched/step.h"

#include "ir/structural.h"
#include "sched/steps/step_impl.h"

#include <algorithm>

namespace bevel {

namespace steps {
#define STEP(Struct)                                                                                         \
  struct Struct;                                                                                             \
  template <> const StepInfo& info<Struct>();
#include "sched/steps/steps.def"
#undef STEP
} // namespace steps

namespace {

std::vector<const StepInfo*>& table() {
  static std::vector<const StepInfo*> rows = {
#define STEP(Struct) &steps::info<steps::Struct>(),
#include "sched/steps/steps.def"
#undef STEP
  };
  return rows;
}

} // namespace

std::vector<const StepInfo*> allSteps() {
  return table();
}

const StepInfo* findStep(std::string_view name) {
  for (const StepInfo* info : table())
    if (name == info->node.name || std::ranges::find(info->aliases, name) != info->aliases.end()) return info;
  return nullptr;
}

Status registerStep(const StepInfo& row) {
  if (findStep(row.node.name))
    return fail(ErrorCode::kUsage, "there is a schedule step " + row.name() + " already");
  table().push_back(&row);
  return {};
}

namespace {

/// A call with the names of its arguments.
std::string signature(const StepInfo& info) {
  std::string out = "sch." + info.name() + "(";
  for (const StepField& f : info.fields) {
    if (f.role == StepRole::kOut) continue;
    if (out.back() != '(') out += ", ";
    if (f.role == StepRole::kVariadic) out += "*";
    out += f.name;
    if (f.isOptional()) out += "=…";
  }
  return out + ")";
}

Error argumentError(const StepInfo& info, const std::string& text) {
  return Error(ErrorCode::kUsage, info.name() + ": " + text).note("usage: " + signature(info));
}

/// The arguments of one call, as they are found.
struct Binder {
  const StepInfo& info;
  Ref<StepNode> step;
  std::vector<const StepField*> given = {};

  bool has(const StepField& f) const { return std::ranges::find(given, &f) != given.end(); }
  Status set(const StepField& f, const NodeRef& v) {
    if (has(f)) return fail(argumentError(info, "argument " + f.name + " is given twice"));
    given.push_back(&f);
    if (!v && f.isOptional()) return {}; // None: as without it
    if (Status done = f.set(*step, f.field, v); !done)
      return fail(argumentError(info, "argument " + f.name + ": " + done.error().message));
    return {};
  }
  Status positional(const std::vector<NodeRef>& args) {
    if (!info.fields.empty() && info.fields[0].role == StepRole::kVariadic) {
      if (args.empty()) return {};
      bool isList = args.size() == 1 && args[0].is<ListNode>();
      return set(info.fields[0], isList ? args[0] : NodeRef(list(Array<NodeRef>(args))));
    }
    for (size_t i = 0; i < args.size(); ++i) {
      if (i >= info.fields.size() || info.fields[i].role == StepRole::kOut)
        return fail(argumentError(info, "too many arguments"));
      BEVEL_CHECK(set(info.fields[i], args[i]));
    }
    return {};
  }
  Status byName(const std::string& name, const NodeRef& v) {
    for (const StepField& f : info.fields)
      if (f.name == name && f.role != StepRole::kOut) return set(f, v);
    return fail(argumentError(info, "there is no argument " + name));
  }
};

} // namespace

Result<Ref<StepNode>> makeStep(const StepInfo& info, const std::vector<NodeRef>& args,
                               const std::vector<std::pair<std::string, NodeRef>>& named) {
  Binder binder{info, info.create(info)};
  BEVEL_CHECK(binder.positional(args));
  for (const auto& [name, value] : named) BEVEL_CHECK(binder.byName(name, value));
  for (const StepField& f : info.fields)
    if (!f.isOptional() && f.role != StepRole::kOut && !binder.has(f))
      return fail(argumentError(info, "argument " + f.name + " is missing"));
  return binder.step;
}

std::string stepsMarkdown() {
  std::string out =
      "# Schedule steps\n\nGenerated from `src/sched/steps/` and `tests/golden/steps/` by `./dev golden "
      "--update`. A schedule script, a trace and a tuning record are the same text: one step a line.\n\n";
  for (const StepInfo* step : allSteps()) {
    out += "## " + step->name() + "\n\n`" + signature(*step);
    if (const StepField* result = step->result())
      out += std::string(" → ") + result->handle + (result->field.type == FieldType::kList ? "s" : "");
    out += "`";
    for (const std::string& alias : step->aliases) out += " (also `" + alias + "`)";
    out += std::string("\n\n") + step->doc + "\n\n";
  }
  return out;
}

Ref<StepNode> copyOf(const StepNode& step) {
  return Ref<StepNode>(static_cast<StepNode*>(kindInfo(step).clone(step)));
}

Ref<StepNode> freshStep(const StepNode& step, const VarMap& handles) {
  NodeRef mapped = substitute(NodeRef(&step), handles);
  Ref<StepNode> out = copyOf(*mapped.as<StepNode>());
  setResults(*out, {});
  return out;
}

void setResults(StepNode& step, const Array<NodeRef>& handles) {
  const StepField* result = step.step->result();
  if (!result) return;
  if (result->field.type == FieldType::kNode)
    step.at<NodeRef>(result->field) = handles.empty() ? nullptr : handles[0];
  else
    step.at<Array<NodeRef>>(result->field) = handles;
}

Var newHandle(const StepField& result, std::string name) {
  bool isInteger = result.handle == std::string_view("integer");
  auto v = make<VarNode>(std::move(name), isInteger ? kInt64 : DType::Handle());
  if (!isInteger) v->scope = result.handle;
  return Var(v);
}

NodeRef resultOf(const StepNode& step) {
  const StepField* result = step.step->result();
  if (!result) return nullptr;
  if (result->field.type == FieldType::kNode) return step.at<NodeRef>(result->field);
  return list(step.at<Array<NodeRef>>(result->field));
}

std::string snakeCase(std::string_view camelCase) {
  std::string out;
  for (char c : camelCase) {
    if (c >= 'A' && c <= 'Z') {
      out += '_';
      c = char(c - 'A' + 'a');
    }
    out += c;
  }
  return out;
}

} // namespace bevel
