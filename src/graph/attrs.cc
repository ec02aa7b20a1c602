// Attributes of operators: declarations and typed access.
#include "graph/op.h"

namespace bevel {

OpAttr intAttr(std::string name, int64_t otherwise, std::string doc) {
  return {std::move(name), AttrKind::kInt, intImm(otherwise), false, std::move(doc)};
}
OpAttr floatAttr(std::string name, double otherwise, std::string doc) {
  return {std::move(name), AttrKind::kFloat, constantFloat(DType::Float(64), otherwise), false,
          std::move(doc)};
}
OpAttr strAttr(std::string name, std::string otherwise, std::string doc) {
  return {std::move(name), AttrKind::kString, str(std::move(otherwise)), false, std::move(doc)};
}
OpAttr intsAttr(std::string name, std::string doc) {
  return {std::move(name), AttrKind::kInts, nullptr, false, std::move(doc)};
}
OpAttr floatsAttr(std::string name, std::string doc) {
  return {std::move(name), AttrKind::kFloats, nullptr, false, std::move(doc)};
}
OpAttr dtypeAttr(std::string name, DType otherwise, std::string doc) {
  NodeRef value = otherwise.isVoid() ? nullptr : NodeRef(str(otherwise.str()));
  return {std::move(name), AttrKind::kDType, std::move(value), false, std::move(doc)};
}
OpAttr required(OpAttr attr) {
  attr.otherwise = nullptr;
  attr.required = true;
  return attr;
}

NodeRef OpCall::attr(std::string_view name) const {
  if (NodeRef given = bevel::attr(attrs, name)) return given;
  for (const OpAttr& a : op.attrs)
    if (a.name == name) return a.otherwise;
  return nullptr;
}

namespace {

int64_t asInt(const NodeRef& value) {
  const auto* i = value.as<IntImmNode>();
  return i ? i->value : 0;
}

double asDouble(const NodeRef& value) {
  if (const auto* f = value.as<FloatImmNode>()) return f->value;
  return double(asInt(value));
}

} // namespace

int64_t OpCall::i(std::string_view name) const {
  return asInt(attr(name));
}
double OpCall::f(std::string_view name) const {
  return asDouble(attr(name));
}

std::string OpCall::s(std::string_view name) const {
  NodeRef value = attr(name);
  const auto* text = value.as<StringImmNode>();
  return text ? text->value : "";
}

std::vector<int64_t> OpCall::ints(std::string_view name) const {
  std::vector<int64_t> out;
  NodeRef value = attr(name);
  if (const auto* items = value.as<ListNode>())
    for (const NodeRef& x : items->items) out.push_back(asInt(x));
  return out;
}

std::vector<double> OpCall::floats(std::string_view name) const {
  std::vector<double> out;
  NodeRef value = attr(name);
  if (const auto* items = value.as<ListNode>())
    for (const NodeRef& x : items->items) out.push_back(asDouble(x));
  return out;
}

DType OpCall::dtypeAttr(std::string_view name) const {
  NodeRef value = attr(name);
  if (const auto* t = value.as<DTypeImmNode>()) return t->value;
  if (const auto* text = value.as<StringImmNode>()) return DType::parse(text->value).value_or(DType::Void());
  return DType::Void();
}

} // namespace bevel
