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

DType dimensionType(const Buffer& b, size_t i) {
  return b && i < b->shape.size() && b->shape[i] ? b->shape[i]->dtype : kInt32;
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
  put("T.", n.dtype.str(), "(", value, ")");
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
  if (!infix)
    return put(functionOf(n.op), "("), operand(n.a, bareA), put(", "), operand(n.b, bareB), put(")");
  bool compare = infix->precedence == kPrecCompare; // does not chain
  operand(n.a, bareA, infix->precedence + compare);
  put(" ", infix->text, " ");
  operand(n.b, bareB, infix->precedence + 1);
}

void Printer::exprNode(const Expr& e) {
  if (auto* n = e.as<VarNode>()) return put(varName(n, n->name));
  if (auto* n = e.as<IntImmNode>()) return intImm(*n);
  if (auto* n = e.as<FloatImmNode>()) {
    std::string text = floatText(n->value, n->dtype);
    bool special = text.back() == 'n' || text.back() == 'f'; // nan, inf
    return put("T.", n->dtype.str(), "(", special ? quoted(text) : text, ")");
  }
  if (auto* n = e.as<StringImmNode>()) return put(quoted(n->value));
  if (auto* n = e.as<UnaryNode>()) return unaryExpr(*n);
  if (auto* n = e.as<BinaryNode>()) return binaryExpr(*n);
  if (auto* n = e.as<SelectNode>()) return put("T.Select(", n->condition, ", ", n->a, ", ", n->b, ")");
  if (auto* n = e.as<CastNode>()) return put("T.Cast(", n->dtype, ", ", n->value, ")");
  if (auto* n = e.as<LoadNode>()) {
    put(bufferName(n->buffer));
    if (!n->predicate) return indices(n->buffer, n->indices);
    put(".vload("), indices(n->buffer, n->indices);
    return put(", predicate=", n->predicate, ")");
  }
  if (auto* n = e.as<RampNode>()) return put("T.Ramp(", n->base, ", ", n->stride, ", ", n->dtype.lanes, ")");
  if (auto* n = e.as<BroadcastNode>()) return put("T.Broadcast(", n->value, ", ", n->dtype.lanes, ")");
  if (auto* n = e.as<ShuffleNode>()) return put("T.Shuffle([", n->vectors, "], [", n->indices, "])");
  if (auto* n = e.as<LetNode>()) return letExpr(*n);
  if (auto* n = e.as<CallNode>()) return callExpr(*n);
  if (auto* n = e.as<ReduceNode>()) return reduceExpr(*n);
  put("<expression>");
}

void Printer::letExpr(const LetNode& n) {
  std::string value = capture([&] { expr(n.value); }); // before the variable is in scope
  Scope scope(*this);
  put("T.let(", names_.define(n.var.get(), n.var->name), ", ", value, ", ", n.body, ")");
}

void Printer::callExpr(const CallNode& n) {
  const IntrinInfo& info = intrinInfo(n.op);
  put(std::string("T.") + info.name + "(");
  bool first = true;
  DType expected = impliedDType(n.op, n.args);
  if (info.rule == DTypeRule::kDTypeFirst) separator(first), put(quoted(n.dtype.str()));
  for (const NodeRef& arg : n.args) {
    separator(first);
    arg.is<BufferRegionNode>() ? put("T.region(", arg, ")") : any(arg);
  }
  keywords(n.attrs, first, "dtype");
  if (info.rule != DTypeRule::kDTypeFirst && n.dtype != expected)
    separator(first), put("dtype=" + quoted(n.dtype.str()));
  put(")");
}

void Printer::iterVar(const IterVarNode& n) {
  put("T.iter_var(", varName(n.var.get(), n.var->name), ", ", n.domain);
  put(", ", quoted(kIterTypeNames[int(n.type)]), ")");
}

void Printer::reduceExpr(const ReduceNode& n) {
  const CombinerNode& c = *n.combiner;
  put("T.reduce(T.comm_reducer([", c.identity, "], lambda ");
  {
    Scope scope(*this);
    bool first = true;
    for (auto* side : {&c.lhs, &c.rhs})
      for (const Var& v : *side) separator(first), put(names_.define(v.get(), v->name));
    put(": ");
    c.result.size() == 1 ? expr(c.result[0]) : tuple(c.result, [&](const Expr& e) { expr(e); });
  }
  put("), axis=[");
  Scope scope(*this);
  for (const IterVar& axis : n.axes) names_.define(axis->var.get(), axis->var->name);
  commaList(n.axes, [&](const IterVar& axis) { iterVar(*axis); });
  put("], source=[", n.source, "]");
  if (!n.init.empty()) put(", init=[", n.init, "]");
  if (n.condition) put(", condition=", n.condition);
  put(", value_index=", n.index, ")");
}

void Printer::indices(const Buffer& b, const Array<Expr>& list) {
  put("[");
  if (list.empty()) put("()");
  for (size_t i = 0; i < list.size(); ++i) {
    if (i) put(", ");
    operand(list[i], dimensionType(b, i));
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
    DType bare = dimensionType(n.buffer, i);
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
  return names_.define(object, hint, true);
}

std::string Printer::bufferName(const Buffer& b) {
  if (!b) return "None";
  if (const std::string* name = names_.find(b.get())) return *name;
  if (auto it = views_.find(b->data.get()); it != views_.end()) {
    for (size_t i = it->second.size(); i-- > 0;) // the last declared view of that form
      if (same(it->second[i], b)) return *names_.find(it->second[i].get());
    return *names_.find(it->second.back().get());
  }
  return names_.define(b.get(), b->name, true);
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
  if (auto* l = node.as<ListNode>())
    return put("["), commaList(l->items, [&](const NodeRef& item) { attrValue(item); }), put("]");
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
