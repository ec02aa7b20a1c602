// Access to a node's inputs and attributes, and emission, for converters.
#include "arith/analyzer.h"
#include "import/onnx_importer.h"

namespace bevel::onnx {

Node::Node(Importer& im, const NodeProto& p, std::string n, int64_t version)
    : proto(p), name(std::move(n)), opset(version), importer(im) {}

BlockBuilder& Node::builder() {
  return importer.builder();
}
Analyzer& Node::analyzer() {
  return importer.builder().analyzer();
}
Value Node::value(GraphExpr e) {
  return importer.ofExpr(std::move(e));
}

GraphExpr Node::x(size_t i) {
  if (!has(i)) return absent();
  auto e = importer.materialise(inputs[i]);
  BEVEL_ASSERT(e.has_value(), "a known integer tensor can always be materialised");
  return *e;
}

Array<GraphExpr> Node::all() {
  Array<GraphExpr> out;
  for (size_t i = 0; i < inputs.size(); ++i) out.push_back(x(i));
  return out;
}

const TensorTypeNode& Node::tensor(size_t i) const {
  static const TensorType none = make<const TensorTypeNode>(DType::Void(), Array<Expr>{});
  const auto* t = has(i) ? inputs[i]->type.as<TensorTypeNode>() : nullptr;
  return t ? *t : *none;
}

Status Node::require(size_t count) const {
  for (size_t i = 0; i < count; ++i) {
    if (!has(i)) return fail(ErrorCode::kInvalid, fmt::format("input {} is missing", i));
    const auto* t = inputs[i]->type.as<TensorTypeNode>();
    if (!t) return fail(ErrorCode::kInvalid, fmt::format("input {} is not a tensor", i));
    if (!t->known) return fail(ErrorCode::kUnsupported, fmt::format("the shape of input {} is unknown", i));
  }
  return {};
}

Status Node::check(const Expr& condition, const char* what) {
  if (analyzer().prove(condition)) return {};
  if (isConst(analyzer().simplify(condition), 0)) return invalid(what);
  for (const Scope* s = &importer.scope(); s; s = s->parent)
    for (const Expr& known : s->checked)
      if (same(known, condition)) return {};
  Array<Expr> value = {bevel::castTo(kInt64, condition)}, one = {intImm(1)};
  builder().matchCast(make<const ShapeExprNode>(value), make<const ShapeTypeNode>(one), "check");
  importer.scope().checked.push_back(condition);
  return {};
}

Result<Array<Expr>> Node::ints(size_t i) {
  if (const auto* t = has(i) ? in(i)->type.as<TensorTypeNode>() : nullptr; t && t->ndim > 1)
    return invalid(fmt::format("input '{}' has {} dimensions, a vector or a scalar is expected",
                               proto.inputs[i], t->ndim));
  return importer.intsOf(has(i) ? inputs[i] : nullptr);
}

std::optional<std::vector<int64_t>> Node::constInts(size_t i) const {
  if (!has(i)) return std::nullopt;
  if (inputs[i]->known) return constDims(inputs[i]->ints);
  Tensor t = constant(i);
  if (!t || !(t->dtype.isInteger() || t->dtype.isBool())) return std::nullopt;
  std::vector<int64_t> out;
  for (int64_t k = 0; k < t->size(); ++k) out.push_back(t->asInt(k));
  return out;
}

Tensor Node::constant(size_t i) const {
  const auto* c = has(i) ? inputs[i]->expr.as<ConstantNode>() : nullptr;
  return c ? c->value : nullptr;
}

std::optional<double> Node::scalar(size_t i) const {
  Tensor t = constant(i);
  if (!t || t->size() != 1 || t->dtype.isString()) return std::nullopt;
  return t->asDouble(0);
}

// A reference to an attribute of the function being inlined is followed through the calls.
const AttributeProto* Node::attr(std::string_view name) const {
  const AttributeProto* found = nullptr;
  for (const AttributeProto& a : proto.attributes)
    if (a.name == name) found = &a;
  for (const Frame* f = &importer.frame(); found && !found->refName.empty(); f = f->caller) {
    std::string wanted = found->refName;
    found = nullptr;
    if (!f || !f->call) break;
    for (const AttributeProto& a : f->call->attributes)
      if (a.name == wanted) found = &a;
    if (!found)
      for (const AttributeProto& a : f->function->attributeDefaults)
        if (a.name == wanted) return &a;
  }
  return found;
}

int64_t Node::attrInt(std::string_view name, int64_t otherwise) const {
  const AttributeProto* a = attr(name);
  return a && a->type == AttrType::kInt ? a->i : otherwise;
}
double Node::attrFloat(std::string_view name, double otherwise) const {
  const AttributeProto* a = attr(name);
  return !a                            ? otherwise
         : a->type == AttrType::kFloat ? double(a->f)
         : a->type == AttrType::kInt   ? double(a->i)
                                       : otherwise;
}
std::string Node::attrStr(std::string_view name, const std::string& otherwise) const {
  const AttributeProto* a = attr(name);
  return a && a->type == AttrType::kString ? a->s : otherwise;
}
std::vector<int64_t> Node::attrInts(std::string_view name) const {
  const AttributeProto* a = attr(name);
  return a ? a->ints : std::vector<int64_t>{};
}
std::vector<double> Node::attrFloats(std::string_view name) const {
  const AttributeProto* a = attr(name);
  return a ? std::vector<double>(a->floats.begin(), a->floats.end()) : std::vector<double>{};
}

Result<GraphExpr> Node::emit(const std::string& op, Array<GraphExpr> args, Dict attrs) {
  if (attrs && attrs->keys.empty()) attrs = nullptr;
  auto call = mutableCopy(opCall(op, std::move(args), std::move(attrs)));
  call->origin = importer.builder().origin();
  return importer.emit(GraphCall(call));
}

Result<Values> Node::one(const std::string& op, Array<GraphExpr> args,
                         std::vector<std::pair<std::string, NodeRef>> attrs) {
  BEVEL_TRY(GraphExpr e, emit(op, std::move(args), dict(std::move(attrs))));
  return Values{value(e)};
}

Result<Values> Node::fields(const GraphExpr& tuple) {
  const auto* t = tuple->type.as<TupleTypeNode>();
  if (!t) return fail(ErrorCode::kInternal, "a tuple was expected");
  Values out;
  for (size_t i = 0; i < t->fields_.size(); ++i) {
    if (const auto* made = tuple.as<TupleNode>()) {
      out.push_back(value(made->items[i]));
      continue;
    }
    BEVEL_TRY(GraphVar v, builder().emit(make<const TupleGetNode>(tuple, int64_t(i))));
    out.push_back(value(v));
  }
  return out;
}

GraphExpr Node::scalarConstant(DType dtype, double value) {
  auto t = TensorObject::zeros(dtype, {});
  t->setDouble(0, value);
  return make<const ConstantNode>(Tensor(t));
}

Result<GraphExpr> Node::castTo(const GraphExpr& e, DType dtype) {
  if (dtypeOfExpr(e) == dtype) return e;
  return emit("astype", {e}, {{"dtype", make<const DTypeImmNode>(dtype)}});
}

namespace {

Result<NodeRef> directAttr(const OpAttr& want, const AttributeProto& a) {
  auto wrong = [&] {
    return fail(ErrorCode::kInvalid, fmt::format("attribute '{}' has the wrong type", a.name));
  };
  switch (want.kind) {
  case AttrKind::kInt:
    return a.type == AttrType::kInt ? Result<NodeRef>(intImm(a.i)) : wrong();
  case AttrKind::kFloat:
    return a.type == AttrType::kFloat ? Result<NodeRef>(constantFloat(DType::Float(64), a.f)) : wrong();
  case AttrKind::kString:
    return a.type == AttrType::kString ? Result<NodeRef>(str(a.s)) : wrong();
  case AttrKind::kInts:
    return a.type == AttrType::kInts ? Result<NodeRef>(intList(a.ints)) : wrong();
  case AttrKind::kFloats: {
    if (a.type != AttrType::kFloats) return wrong();
    Array<NodeRef> items;
    for (float f : a.floats) items.push_back(constantFloat(DType::Float(64), f));
    return list(items);
  }
  case AttrKind::kDType: {
    auto t = a.type == AttrType::kInt ? dtypeOf(int32_t(a.i)) : std::nullopt;
    return t ? Result<NodeRef>(make<const DTypeImmNode>(*t)) : wrong();
  }
  case AttrKind::kNode: { // a list of strings
    if (a.type != AttrType::kStrings) return wrong();
    Array<NodeRef> items;
    for (const std::string& s : a.strings) items.push_back(str(s));
    return list(items);
  }
  }
  return wrong();
}

} // namespace

Result<Values> convertDirect(Node& node, const Op& op) {
  std::vector<std::pair<std::string, NodeRef>> attrs;
  for (const AttributeProto& given : node.proto.attributes) {
    const AttributeProto* a = node.attr(given.name);
    if (!a || given.name == "consumed_inputs") continue;
    const OpAttr* want = nullptr;
    for (const OpAttr& w : op.attrs)
      if (w.name == given.name) want = &w;
    if (!want) return node.invalid(fmt::format("there is no attribute '{}'", given.name));
    BEVEL_TRY(NodeRef value, directAttr(*want, *a));
    attrs.emplace_back(want->name, std::move(value));
  }
  BEVEL_TRY(GraphExpr e, node.emit(op.name, node.all(), dict(std::move(attrs))));
  if (e->type.is<TupleTypeNode>()) return node.fields(e);
  return Values{node.value(e)};
}

} // namespace bevel::onnx
