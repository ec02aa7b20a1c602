// Schedule steps and traces.
#include "ir/build.h"
#include "ir/printer_impl.h"
#include "ir/step.h"

namespace bevel {

Array<Var> StepNode::outputs() const {
  const StepField* result = step->result();
  if (!result) return {};
  if (result->field.type == FieldType::kNode) return {at<Var>(result->field)};
  return at<Array<Var>>(result->field);
}

namespace detail {

/// A handle that the script did not name is b0, l1 or v2: by what it stands for, and how many there are before it.
std::string Printer::defineHandle(const Var& v) {
  std::string number = std::to_string(handles_++);
  std::string letter = v->dtype.isHandle() ? v->scope.substr(0, 1) : "v";
  return names_.define(v.get(), v->name.empty() ? letter + number : v->name);
}

void Printer::stepField(const StepNode& s, const StepField& f) {
  auto item = [&](const NodeRef& v) { stepValue(v); };
  switch (f.field.type) {
  case FieldType::kNode: {
    const auto& value = s.at<NodeRef>(f.field);
    const auto* items = f.isTuple ? value.as<ListNode>() : nullptr;
    return items ? tuple(items->items, item) : stepValue(value);
  }
  case FieldType::kList:
    put(f.role == StepRole::kVariadic ? "" : "["), commaList(s.at<Array<NodeRef>>(f.field), item);
    return put(f.role == StepRole::kVariadic ? "" : "]");
  case FieldType::kInts:
    put("["), commaList(s.at<std::vector<int64_t>>(f.field), [&](int64_t v) { put(std::to_string(v)); });
    return put("]");
  case FieldType::kDoubles:
    put("["), commaList(s.at<std::vector<double>>(f.field),
                        [&](double v) { attrValue(constantFloat(DType::Float(64), v)); });
    return put("]");
  case FieldType::kInt:
    return put(std::to_string(s.at<int64_t>(f.field)));
  case FieldType::kBool:
    return put(s.at<bool>(f.field) ? "True" : "False");
  case FieldType::kString:
    return put(quoted(s.at<std::string>(f.field)));
  default:
    return put("…");
  }
}

void Printer::stepValue(const NodeRef& v) {
  if (const auto* handle = v.as<VarNode>()) {
    const std::string* name = names_.find(handle);
    return put(name ? *name : handle->name.empty() ? "?" : handle->name);
  }
  if (const auto* map = v.as<LambdaNode>()) return lambda(*map);
  if (const auto* items = v.as<ListNode>()) {
    put("["), commaList(items->items, [&](const NodeRef& x) { stepValue(x); });
    return put("]");
  }
  attrValue(v);
}

void Printer::lambda(const LambdaNode& n) {
  put("lambda");
  for (size_t i = 0; i < n.params.size(); ++i) put((i ? ", " : " ") + n.params[i]->name);
  put(": ");
  tuple(n.values, [&](const Expr& e) { put(Printer(options_).run(e)); }); // names of its own
}

void Printer::step(const StepNode& s) {
  Mark mark(*this, NodeRef(&s));
  const StepField* result = s.step->result();
  Array<Var> outputs = s.outputs();
  commaList(outputs, [&](const Var& v) { put(v ? defineHandle(v) : "None"); });
  if (result && !outputs.empty())
    put(result->field.type == FieldType::kList && outputs.size() == 1 ? ", = " : " = ");
  put(std::string("sch.") + s.kindName() + "(");
  Ref<StepNode> defaults = s.step->create(*s.step);
  bool first = true;
  for (const StepField& f : s.step->fields) {
    if (f.role == StepRole::kOut) continue;
    std::string text = capture([&] { stepField(s, f); });
    if (f.isOptional() && text == capture([&] { stepField(*defaults, f); })) continue;
    separator(first), put(f.role == StepRole::kVariadic ? text : f.name + "=" + text);
  }
  put(")");
}

void Printer::trace(const StepListNode& t) {
  bool first = true;
  for (const Step& s : t.steps) {
    if (!std::exchange(first, false)) line();
    step(*s);
  }
}

} // namespace detail
} // namespace bevel
