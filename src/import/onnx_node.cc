// Access to a node's inputs and attributes, and emission, for converters.
#include "arith/analyzer.h"
#include "graph/infer.h"
#include "import/onnx_importer.h"

#include <algorithm>

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

Term Node::x(size_t i) {
  return {*this, importer.materialise(has(i) ? inputs[i] : nullptr)};
}

Array<GraphExpr> Node::all() {
  Array<GraphExpr> out;
  for (size_t i = 0; i < inputs.size(); ++i) out.push_back(*x(i));
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

Result<Array<Expr>> Node::ints(Term e) {
  BEVEL_TRY(GraphExpr tensor, e);
  return importer.intsOf(value(tensor));
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
Ints Node::attrInts(std::string_view name) const {
  const AttributeProto* a = attr(name);
  return a ? a->ints : Ints{};
}
std::vector<double> Node::attrFloats(std::string_view name) const {
  const AttributeProto* a = attr(name);
  return a ? std::vector<double>(a->floats.begin(), a->floats.end()) : std::vector<double>{};
}

Result<DType> Node::attrType(std::string_view name, DType otherwise) const {
  if (!hasAttr(name)) return otherwise;
  int64_t given = attrInt(name, 0);
  if (auto t = dtypeOf(int32_t(given))) return *t;
  return unsupported(fmt::format("element type {} ('{}')", given, name));
}

Term Node::emit(const std::string& op, const Terms& terms, Attrs attrs) {
  Array<GraphExpr> args;
  DType beside = kInt64;
  for (const Term& t : terms.items) {
    if (!t.e_) return t;
    const auto* tensor = t.number_ ? nullptr : (*t.e_)->type.as<TensorTypeNode>();
    if (tensor) beside = tensor->dtype;
  }
  for (const Term& t : terms.items) args.push_back(t.number_ ? scalarConstant(beside, *t.number_) : *t.e_);
  std::vector<std::pair<std::string, NodeRef>> entries;
  for (Attr& a : attrs)
    if (a.value) entries.emplace_back(std::move(a.name), std::move(a.value));
  Dict given = entries.empty() ? nullptr : dict(std::move(entries));
  auto call = mutableCopy(opCall(op, std::move(args), std::move(given)));
  call->origin = importer.builder().origin();
  return {*this, importer.emit(GraphCall(call))};
}

Result<Values> Node::results(const Terms& terms) {
  Values out;
  for (Term t : terms.items) {
    BEVEL_TRY(GraphExpr e, t);
    out.push_back(value(e));
  }
  return out;
}

Result<Values> Node::fields(Term made) {
  BEVEL_TRY(GraphExpr tuple, made);
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

Term Term::binary(const char* op, const Term& a, const Term& b) {
  return (a.node_ ? a : b).node_->emit(op, {a, b});
}
Term::operator Result<Values>() const {
  if (!e_) return fail(e_.error());
  return Values{node_->value(*e_)};
}
Term Term::apply(const std::string& op, Attrs attrs) const {
  return node_->emit(op, {*this}, std::move(attrs));
}
Term Term::cast(DType dtype) const {
  return !e_ || dtypeOfExpr(*e_) == dtype ? *this : apply("astype", {{"dtype", dtype}});
}
Term Term::reshape(const Array<Expr>& shape) const {
  return node_->emit("reshape", {*this, shape});
}
Term Term::scalar() const {
  return !e_ || shapeOfExpr(*e_).empty() ? *this : reshape({});
}
Term Term::permute(const Ints& axes) const {
  return apply("permute_dims", {{"axes", axes}});
}
Term Term::unsqueeze(const Ints& axes) const {
  return axes.empty() ? *this : apply("expand_dims", {{"axis", axes}});
}
Term Term::squeeze(const Ints& axes) const {
  return apply("squeeze", {{"axis", axes}});
}
Term Term::broadcast(const Array<Expr>& shape) const {
  return node_->emit("broadcast_to", {*this, shape});
}
Term Term::slice(int64_t axis, const Expr& begin, const Expr& end) const {
  return node_->emit("strided_slice", {*this, Array<Expr>{begin}, Array<Expr>{end}, Array<Expr>{intImm(1)}},
                     {{"axes", Ints{axis}}});
}
Term Term::reduce(const std::string& op, const std::optional<Ints>& axes, bool keep) const {
  return apply(op, {{"keepdims", keep}, {"axis", axes ? intList(*axes) : NodeRef()}});
}

GraphExpr Node::scalarConstant(DType dtype, double value) {
  auto t = TensorObject::zeros(dtype, {});
  t->setDouble(0, value);
  return make<const ConstantNode>(Tensor(t));
}

namespace {

// The attribute as the operator wants it; null when it has another type. Where the operator wants a node, the file
// has a list of strings.
NodeRef directAttr(AttrKind want, const AttributeProto& a) {
  Array<NodeRef> items;
  if (want == AttrKind::kInt && a.type == AttrType::kInt) return intImm(a.i);
  if (want == AttrKind::kFloat && a.type == AttrType::kFloat) return constantFloat(DType::Float(64), a.f);
  if (want == AttrKind::kString && a.type == AttrType::kString) return str(a.s);
  if (want == AttrKind::kInts && a.type == AttrType::kInts) return intList(a.ints);
  if (want == AttrKind::kFloats && a.type == AttrType::kFloats) {
    for (float f : a.floats) items.push_back(constantFloat(DType::Float(64), f));
    return list(items);
  }
  if (want == AttrKind::kNode && a.type == AttrType::kStrings) {
    for (const std::string& s : a.strings) items.push_back(str(s));
    return list(items);
  }
  if (want == AttrKind::kDType && a.type == AttrType::kInt)
    if (auto t = dtypeOf(int32_t(a.i))) return make<const DTypeImmNode>(*t);
  return nullptr;
}

Result<Values> convertDirect(Node& node, const Op& op) {
  Attrs attrs;
  for (const AttributeProto& given : node.proto.attributes) {
    const AttributeProto* a = node.attr(given.name);
    if (!a || given.name == "consumed_inputs") continue;
    auto want = std::ranges::find(op.attrs, given.name, &OpAttr::name);
    if (want == op.attrs.end()) return node.invalid(fmt::format("there is no attribute '{}'", given.name));
    attrs.emplace_back(want->name, directAttr(want->kind, *a));
    if (!attrs.back().value) return node.invalid(fmt::format("attribute '{}' has the wrong type", a->name));
  }
  BEVEL_TRY(GraphExpr e, node.emit(op.name, node.all(), std::move(attrs)));
  if (e->type.is<TupleTypeNode>()) return node.fields(e);
  return Values{node.value(e)};
}

// What the table says of the inputs. Those behind the listed ones are of the last kind where that is variadic.
Status checkInputs(const Node& node, const Conversion& c) {
  BEVEL_CHECK(node.require(c.required));
  if (c.inputs.empty()) return {};
  bool variadic = c.inputs.back().kind == InputKind::kVariadic;
  if (node.size() > c.inputs.size() && !variadic)
    return node.invalid(
        fmt::format("{} inputs given, at most {} are expected", node.size(), c.inputs.size()));
  for (size_t i = 0; i < std::max(node.size(), c.inputs.size()); ++i) {
    const OpInput& input = c.inputs[std::min(i, c.inputs.size() - 1)];
    if (node.has(i))
      BEVEL_CHECK(checkInputType(node.proto.opType, input, node.in(i)->type));
    else if (input.kind != InputKind::kOptional)
      return node.invalid(fmt::format("input '{}' is missing", input.name));
  }
  return {};
}

} // namespace

Result<Values> convertNode(Node& node) {
  const NodeProto& p = node.proto;
  if (const Conversion* c = findConversion(p.domain, p.opType, node.opset); c && c->convert) {
    BEVEL_CHECK(checkInputs(node, *c));
    return c->convert(node);
  }
  if (const Op* op = findDirect(p.domain, p.opType, node.opset)) return convertDirect(node, *op);
  return node.unsupported(fmt::format("operator {} of opset {} is not supported", p.opType, node.opset));
}

} // namespace bevel::onnx
