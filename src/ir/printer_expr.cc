// Prints scalar expressions, buffer regions and attribute values.
#include "ir/printer_impl.h"

#include "ir/build.h"
#include "ir/structural.h"

namespace bevel::detail {
namespace {

/// The operator that an expression is written with, or null where it is a call.
const Operator* infixOf(const BinaryNode& n) {
  return n.op == BinaryOp::kDiv && !n.a->dtype.isFloat() ? nullptr : operatorOf(n.op);
}

int precedenceOf(const Expr& e) {
  if (auto* b = e.as<BinaryNode>()) {
    const Operator* infix = infixOf(*b);
    return infix ? infix->precedence : kPrecAtom;
  }
  if (auto* u = e.as<UnaryNode>()) return u->op == UnaryOp::kNot ? kPrecNot : kPrecUnary;
  if (auto* i = e.as<IntImmNode>()) return i->dtype == kInt32 && i->value < 0 ? kPrecUnary : kPrecAtom;
  return kPrecAtom;
}

bool isImmediate(const Expr& e) {
  return e.is<IntImmNode>() || e.is<FloatImmNode>();
}

} // namespace

void Printer::expr(const Expr& e, int minPrecedence) {
  if (!e) return put("None");
  bool parens = precedenceOf(e) < minPrecedence;
  if (parens) put("(");
  {
    Mark mark(*this, e);
    exprNode(e);
  }
  if (parens) put(")");
}

void Printer::operand(const Expr& e, DType bareDType, int minPrecedence) {
  auto* imm = e.as<IntImmNode>();
  if (!imm || imm->dtype.isBool()) return expr(e, minPrecedence);
  Mark mark(*this, e);
  if (imm->dtype != bareDType || imm->value < minValue(bareDType) || imm->value > maxValue(bareDType))
    return typedInt(*imm);
  put(std::to_string(imm->value));
}

void Printer::typedInt(const IntImmNode& n) {
  std::string value = std::to_string(n.value);
  if (n.dtype.isUInt() && n.dtype.bits == 64) value = std::to_string(uint64_t(n.value));
  if (n.dtype.isBool()) value = n.value ? "True" : "False";
  put("T." + n.dtype.str() + "(" + value + ")");
}

void Printer::intImm(const IntImmNode& n) {
  bool bare = n.dtype == kInt32 && n.value >= minValue(kInt32) && n.value <= maxValue(kInt32);
  bare ? put(std::to_string(n.value)) : typedInt(n);
}

void Printer::unaryExpr(const UnaryNode& n) {
  put(n.op == UnaryOp::kNeg ? "-" : n.op == UnaryOp::kNot ? "not " : "~");
  int precedence = n.op == UnaryOp::kNot ? kPrecNot : kPrecUnary;
  if (isImmediate(n.a))
    operand(n.a, DType::Void()); // typed: "-3" would be a constant
  else
    expr(n.a, precedence);
}

void Printer::binaryExpr(const BinaryNode& n) {
  const Operator* infix = infixOf(n);
  DType bareA = isImmediate(n.b) || !n.b ? DType::Void() : n.b->dtype;
  DType bareB = isImmediate(n.a) || !n.a ? DType::Void() : n.a->dtype;
  if (!infix) {
    put(functionOf(n.op)), put("(");
    operand(n.a, bareA), put(", "), operand(n.b, bareB);
    return put(")");
  }
  bool compare = infix->precedence == kPrecCompare; // does not chain
  operand(n.a, bareA, infix->precedence + compare);
  put(" "), put(infix->text), put(" ");
  operand(n.b, bareB, infix->precedence + 1);
}

void Printer::exprNode(const Expr& e) {
  switch (e->kind) {
  case Kind::kVar:
    return put(varName(e.get(), e.as<VarNode>()->name));
  case Kind::kIntImm:
    return intImm(*e.as<IntImmNode>());
  case Kind::kFloatImm: {
    std::string text = floatText(e.as<FloatImmNode>()->value, e->dtype);
    bool special = text.back() == 'n' || text.back() == 'f'; // nan, inf
    return put("T." + e->dtype.str() + "(" + (special ? quoted(text) : text) + ")");
  }
  case Kind::kStringImm:
    return put(quoted(e.as<StringImmNode>()->value));
  case Kind::kUnary:
    return unaryExpr(*e.as<UnaryNode>());
  case Kind::kBinary:
    return binaryExpr(*e.as<BinaryNode>());
  case Kind::kSelect: {
    auto& n = *e.as<SelectNode>();
    put("T.Select("), expr(n.condition), put(", "), expr(n.a), put(", "), expr(n.b);
    return put(")");
  }
  case Kind::kCast:
    return put("T.Cast(" + quoted(e->dtype.str()) + ", "), expr(e.as<CastNode>()->value), put(")");
  case Kind::kLoad: {
    auto& n = *e.as<LoadNode>();
    put(bufferName(n.buffer));
    if (!n.predicate) return indices(n.buffer, n.indices);
    put(".vload("), indices(n.buffer, n.indices);
    return put(", predicate="), expr(n.predicate), put(")");
  }
  case Kind::kRamp: {
    auto& n = *e.as<RampNode>();
    put("T.Ramp("), expr(n.base), put(", "), expr(n.stride);
    return put(", " + std::to_string(n.dtype.lanes) + ")");
  }
  case Kind::kBroadcast:
    return put("T.Broadcast("), expr(e.as<BroadcastNode>()->value),
           put(", " + std::to_string(e->dtype.lanes) + ")");
  case Kind::kShuffle: {
    auto& n = *e.as<ShuffleNode>();
    put("T.Shuffle(["), commaList(n.vectors, [&](const Expr& v) { expr(v); });
    put("], ["), commaList(n.indices, [&](const Expr& i) { expr(i); });
    return put("])");
  }
  case Kind::kLet:
    return letExpr(*e.as<LetNode>());
  case Kind::kCall:
    return callExpr(*e.as<CallNode>());
  case Kind::kReduce:
    return reduceExpr(*e.as<ReduceNode>());
  default:
    return put("<expression>");
  }
}

void Printer::letExpr(const LetNode& n) {
  std::string value = capture([&] { expr(n.value); }); // before the variable is in scope
  names_.push();
  put("T.let(" + names_.define(n.var.get(), n.var->name) + ", " + value + ", ");
  expr(n.body);
  put(")");
  names_.pop();
}

void Printer::callExpr(const CallNode& n) {
  const IntrinInfo& info = intrinInfo(n.op);
  put(std::string("T.") + info.name + "(");
  bool first = true;
  DType expected = impliedDType(n.op, n.args);
  if (info.rule == DTypeRule::kDTypeFirst) separator(first), put(quoted(n.dtype.str()));
  for (const NodeRef& arg : n.args) {
    separator(first);
    auto* region = arg.as<BufferRegionNode>();
    if (region)
      put("T.region("), any(arg), put(")");
    else
      any(arg);
  }
  keywords(n.attrs, first, "dtype");
  if (info.rule != DTypeRule::kDTypeFirst && n.dtype != expected)
    separator(first), put("dtype=" + quoted(n.dtype.str()));
  put(")");
}

void Printer::iterVar(const IterVarNode& n) {
  put("T.iter_var(" + varName(n.var.get(), n.var->name) + ", T.Range(");
  expr(n.domain->min), put(", "), stop(n.domain->min, n.domain->extent, DType::Void());
  put(std::string("), ") + quoted(kIterTypeNames[int(n.type)]) + ")");
}

void Printer::reduceExpr(const ReduceNode& n) {
  const CombinerNode& c = *n.combiner;
  put("T.reduce(T.comm_reducer(["), commaList(c.identity, [&](const Expr& e) { expr(e); });
  put("], lambda ");
  names_.push();
  bool first = true;
  for (auto* side : {&c.lhs, &c.rhs})
    for (const Var& v : *side) separator(first), put(names_.define(v.get(), v->name));
  put(": ");
  if (c.result.size() == 1)
    expr(c.result[0]);
  else
    tuple(c.result, [&](const Expr& e) { expr(e); });
  names_.pop();
  put("), axis=[");
  names_.push();
  for (const IterVar& axis : n.axes) names_.define(axis->var.get(), axis->var->name);
  commaList(n.axes, [&](const IterVar& axis) { iterVar(*axis); });
  put("], source=["), commaList(n.source, [&](const Expr& e) { expr(e); });
  put("]");
  if (!n.init.empty()) put(", init=["), commaList(n.init, [&](const Expr& e) { expr(e); }), put("]");
  if (n.condition) put(", condition="), expr(n.condition);
  names_.pop();
  put(", value_index=" + std::to_string(n.index) + ")");
}

void Printer::indices(const Buffer& b, const Array<Expr>& list) {
  put("[");
  if (list.empty()) put("()");
  for (size_t i = 0; i < list.size(); ++i) {
    if (i) put(", ");
    operand(list[i], b && i < b->shape.size() && b->shape[i] ? b->shape[i]->dtype : kInt32);
  }
  put("]");
}

void Printer::stop(const Expr& min, const Expr& extent, DType bareDType) {
  auto lo = min.as<IntImmNode>(), n = extent.as<IntImmNode>();
  int64_t sum = 0;
  if (lo && n && lo->dtype == n->dtype && !__builtin_add_overflow(lo->value, n->value, &sum) &&
      sum >= minValue(lo->dtype) && sum <= maxValue(lo->dtype)) {
    Expr end = make<const IntImmNode>(lo->dtype, sum);
    return bareDType.isVoid() ? expr(end) : operand(end, bareDType);
  }
  if (lo && lo->value == 0 && !n) return expr(extent); // the parser takes a start of 0 off
  if (!min || !extent) return put("None");
  expr(make<const BinaryNode>(BinaryOp::kAdd, min, extent));
}

void Printer::region(const BufferRegionNode& n) {
  put(bufferName(n.buffer) + "[");
  if (n.region.empty()) put("()");
  for (size_t i = 0; i < n.region.size(); ++i) {
    if (i) put(", ");
    const Range& r = n.region[i];
    if (!r) {
      put("None");
      continue;
    }
    DType bare =
        n.buffer && i < n.buffer->shape.size() && n.buffer->shape[i] ? n.buffer->shape[i]->dtype : kInt32;
    operand(r->min, bare);
    auto one = r->extent.as<IntImmNode>();
    if (one && one->value == 1 && r->min && one->dtype == r->min->dtype) continue; // a point
    put(":"), stop(r->min, r->extent, bare);
  }
  put("]");
}

std::string Printer::varName(const Object* object, const std::string& hint) {
  if (!object) return "None";
  if (const std::string* name = names_.find(object)) return *name;
  auto view = views_.find(object);
  if (view != views_.end()) return bufferName(view->second.front()) + ".data";
  return names_.defineGlobal(object, hint);
}

std::string Printer::bufferName(const Buffer& b) {
  if (!b) return "None";
  if (const std::string* name = names_.find(b.get())) return *name;
  if (auto it = views_.find(b->data.get()); it != views_.end()) {
    for (size_t i = it->second.size(); i-- > 0;) // the last declared view of that form
      if (same(it->second[i], b)) return *names_.find(it->second[i].get());
    return *names_.find(it->second.back().get());
  }
  return names_.defineGlobal(b.get(), b->name);
}

void Printer::defineBuffer(const Buffer& b) {
  names_.define(b.get(), b->name);
  views_[b->data.get()].push_back(b);
}

void Printer::dictText(const Dict& d) {
  put("{");
  bool first = true;
  if (d)
    for (size_t i = 0; i < d->keys.size(); ++i)
      separator(first), put(quoted(d->keys[i]) + ": "), attrValue(d->values[i]);
  put("}");
}

/// Attribute values: bare integers are int64, bare floats float64.
void Printer::attrValue(const NodeRef& node) {
  if (!node) return put("None");
  if (auto* i = node.as<IntImmNode>()) {
    if (i->dtype == kInt64) return put(std::to_string(i->value));
    if (i->dtype == kBool) return put(i->value ? "True" : "False");
    return typedInt(*i);
  }
  if (auto* f = node.as<FloatImmNode>(); f && f->dtype.isIeee(64)) {
    std::string text = floatText(f->value, f->dtype);
    bool special = text.back() == 'n' || text.back() == 'f';
    return put(special ? "float(" + quoted(text) + ")" : text);
  }
  if (auto* l = node.as<ListNode>()) {
    put("["), commaList(l->items, [&](const NodeRef& item) { attrValue(item); });
    return put("]");
  }
  if (node->kind == Kind::kDict) return dictText(cast<DictNode>(node));
  any(node);
}

void Printer::keywords(const Dict& d, bool& first, std::string_view reserved) {
  if (!d) return;
  bool plain = true;
  for (const std::string& key : d->keys)
    plain &= isIdentifier(key) && !isReservedKeyword(key) && key != reserved;
  if (!plain || d->keys.empty()) {
    separator(first), put("attrs="), dictText(d);
    return;
  }
  for (size_t i = 0; i < d->keys.size(); ++i)
    separator(first), put(d->keys[i] + "="), attrValue(d->values[i]);
}

} // namespace bevel::detail
