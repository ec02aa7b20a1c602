#include "sched/step.h"

#include "base/hash.h"
#include "sched/steps/step_impl.h"

#include <algorithm>

namespace bevel {

namespace steps {
#define STEP(Struct, ...)                                                                                    \
  struct Struct;                                                                                             \
  template <> const StepInfo& info<Struct>();
#include "sched/steps/steps.def"
#undef STEP
} // namespace steps

std::span<const StepInfo* const> allSteps() {
  static const StepInfo* const table[] = {
#define STEP(Struct, ...) &steps::info<steps::Struct>(),
#include "sched/steps/steps.def"
#undef STEP
  };
  return table;
}

const StepInfo* findStep(std::string_view name) {
  for (const StepInfo* info : allSteps())
    if (name == info->name || std::ranges::find(info->aliases, name) != info->aliases.end()) return info;
  return nullptr;
}

const StepField* StepInfo::find(std::string_view field) const {
  for (const StepField& f : fields)
    if (f.name == field && f.role != StepRole::kOut) return &f;
  return nullptr;
}

std::vector<RV> StepNode::outputs() const {
  std::vector<RV> out;
  if (info->hasResult()) forEachRV(get(info->fields.back()), [&](RV rv) { out.push_back(rv); });
  return out;
}

namespace {

Error argumentError(const StepNode& step, const std::string& text) {
  std::string usage = std::string("sch.") + step.info->name + "(";
  for (const StepField& f : step.info->fields) {
    if (f.role == StepRole::kOut) continue;
    if (usage.back() != '(') usage += ", ";
    if (f.role == StepRole::kVariadic) usage += "*";
    usage += f.name;
    if (f.role == StepRole::kOption || f.role == StepRole::kDecision) usage += "=…";
  }
  return Error(ErrorCode::kUsage, std::string(step.info->name) + ": " + text).note("usage: " + usage + ")");
}

Status setArgument(StepNode& step, const StepField& f, const StepValue& v,
                   std::vector<const StepField*>& given) {
  if (std::ranges::find(given, &f) != given.end())
    return fail(argumentError(step, "argument " + f.name + " is given twice"));
  given.push_back(&f);
  if (Status set = f.set(step.data(), v); !set)
    return fail(argumentError(step, "argument " + f.name + ": " + set.error().message));
  return {};
}

} // namespace

Status bindArguments(StepNode& step, const std::vector<StepValue>& args,
                     const std::vector<std::pair<std::string, StepValue>>& named) {
  const std::vector<StepField>& fields = step.info->fields;
  std::vector<const StepField*> given;
  if (!fields.empty() && fields[0].role == StepRole::kVariadic) {
    bool isList = args.size() == 1 && args[0].kind == StepValue::Kind::kList;
    if (!args.empty())
      BEVEL_CHECK(setArgument(step, fields[0], isList ? args[0] : StepValue::ofList(args), given));
  } else {
    for (size_t i = 0; i < args.size(); ++i) {
      if (i >= fields.size() || fields[i].role == StepRole::kOut)
        return fail(argumentError(step, "too many arguments"));
      BEVEL_CHECK(setArgument(step, fields[i], args[i], given));
    }
  }
  for (const auto& [name, value] : named) {
    const StepField* f = step.info->find(name);
    if (!f) return fail(argumentError(step, "there is no argument " + name));
    BEVEL_CHECK(setArgument(step, *f, value, given));
  }
  for (const StepField& f : fields)
    if ((f.role == StepRole::kIn || f.role == StepRole::kVariadic) &&
        std::ranges::find(given, &f) == given.end())
      return fail(argumentError(step, "argument " + f.name + " is missing"));
  return {};
}

Ref<StepNode> freshCopy(const StepNode& step) {
  Ref<StepNode> out = step.info->create();
  for (const StepField& f : step.info->fields)
    if (f.role != StepRole::kOut)
      BEVEL_ASSERT(f.set(out->data(), step.get(f)).has_value(), "a step's own value does not fit its field");
  return out;
}

uint64_t hashStep(const StepNode& step, uint64_t seed) {
  uint64_t h = hashText(step.info->name, seed);
  for (const StepField& f : step.info->fields) h = hashValue(step.get(f), h);
  return h;
}

bool sameStep(const StepNode& a, const StepNode& b) {
  if (a.info != b.info) return false;
  for (const StepField& f : a.info->fields)
    if (!(a.get(f) == b.get(f))) return false;
  return true;
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
