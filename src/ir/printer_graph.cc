// Prints graph values and bindings.
#include "ir/printer_impl.h"

#include "ir/build.h"
#include "ir/structural.h"

#include <cmath>

namespace bevel::detail {

constexpr int64_t kInlineElements = 16; // larger constants stand beside the text

void Printer::graph(const NodeRef& e) {
  Mark mark(*this, e);
  if (auto* n = e.as<GraphVarNode>()) return put(varName(n, n->name));
  if (auto* n = e.as<GlobalVarNode>()) return put("cls.", n->name);
  if (e.is<ConstantNode>()) return constant(cast<ConstantNode>(e));
  if (auto* n = e.as<ShapeExprNode>())
    return put("R.shape(["), commaList(n->values, [&](const Expr& d) { dim(d); }), put("])");
  if (auto* n = e.as<TupleNode>()) return tuple(n->items, [&](const GraphExpr& item) { any(item); });
  if (auto* n = e.as<TupleGetNode>()) return put(n->tuple, "[", n->index, "]");
  if (auto* n = e.as<PrimValueNode>()) {
    if (n->value.is<StringImmNode>()) return put("R.str(", n->value, ")");
    return put("R.prim_value("), operand(n->value, kInt64), put(")");
  }
  if (auto* n = e.as<DTypeImmNode>()) return put("R.dtype(", n->value, ")");
  if (auto* n = e.as<OpRefNode>()) return put("R.op(", quoted(n->name), ")");
  if (auto* n = e.as<ExternFuncNode>()) return put("R.ExternFunc(", quoted(n->name), ")");
  if (auto* n = e.as<GraphCallNode>()) return graphCall(*n);
  put(e.is<GraphIfNode>() ? "<if>" : e.is<SeqExprNode>() ? "<sequence>" : "<value>");
}

void Printer::typeArgs(const char* key, const Array<Type>& types, bool& first) {
  if (types.empty()) return;
  separator(first), put(key, "=");
  tuple(types, [&](const Type& t) { type(t); });
}

/// call_tir and call_dps_packed: the callee, the tuple of tensors, the extra scalars, the types of the
/// results.
void Printer::callTir(const GraphCallNode& n) {
  put("R." + n.opName() + "(");
  if (auto* callee = n.args[0].as<ExternFuncNode>())
    put(quoted(callee->name));
  else
    any(n.args[0]);
  put(", ", n.args[1]);
  bool first = false;
  if (n.typeArgs.size() == 1)
    put(", out_sinfo=", n.typeArgs[0]);
  else if (n.typeArgs.size() > 1)
    put(", out_sinfo=[", n.typeArgs, "]");
  if (n.args.size() > 2) put(", tir_vars=", n.args[2]);
  keywords(n.attrs, first);
  put(")");
}

void Printer::graphCall(const GraphCallNode& n) {
  const std::string& op = n.opName();
  bool first = true;
  if ((op == "call_tir" || op == "call_dps_packed") && n.args.size() >= 2 && n.args.size() <= 3 &&
      n.args[1].is<TupleNode>())
    return callTir(n);
  if (auto* f = n.op.as<ExternFuncNode>()) {
    put("R.call_packed(" + quoted(f->name)), first = false;
  } else if (!op.empty()) {
    bool plain = true;
    for (size_t begin = 0; begin <= op.size();) {
      size_t dot = std::min(op.find('.', begin), op.size());
      plain &= isIdentifier(std::string_view(op).substr(begin, dot - begin));
      begin = dot + 1;
    }
    if (plain)
      put("R." + op + "(");
    else
      put("R.call_op(" + quoted(op)), first = false;
  } else
    any(n.op), put("(");
  for (const GraphExpr& arg : n.args) separator(first), any(arg);
  keywords(n.attrs, first);
  typeArgs("sinfo_args", n.typeArgs, first);
  put(")");
}

bool Printer::inlineConstant(const TensorObject& t) const {
  if (t.dtype.isString()) return true;
  if (t.size() > kInlineElements || t.dtype.lanes != 1 || t.dtype.code == TypeCode::kComplex ||
      t.dtype.isHandle())
    return false;
  for (int64_t i = 0; i < t.size(); ++i) { // unusual NaNs and large uint64 stay bytes
    auto copy = TensorObject::zeros(t.dtype, {1});
    if (t.dtype.isFloat()) {
      if (std::isnan(t.asDouble(i))) return false;
      copy->setDouble(0, t.asDouble(i));
      if (!(copy->asDouble(0) == t.asDouble(i)) ||
          std::signbit(copy->asDouble(0)) != std::signbit(t.asDouble(i)))
        return false;
    } else if (t.dtype.isUInt() && t.dtype.bits == 64 && t.view<uint64_t>()[size_t(i)] > uint64_t(INT64_MAX))
      return false;
  }
  return true;
}

void Printer::constantItems(const TensorObject& t, size_t axis, int64_t& next) {
  if (axis == t.shape.size()) {
    int64_t i = next++;
    if (t.dtype.isString()) return put(quoted(t.strings[size_t(i)]));
    if (t.dtype.isBool()) return put(t.asInt(i) ? "True" : "False");
    if (!t.dtype.isFloat()) return put(std::to_string(t.asInt(i)));
    std::string text = floatText(t.asDouble(i), t.dtype);
    bool special = text.back() == 'f';
    return put(special ? "float(" + quoted(text) + ")" : text);
  }
  put("[");
  for (int64_t k = 0; k < t.shape[axis]; ++k) put(k ? ", " : ""), constantItems(t, axis + 1, next);
  put("]");
}

void Printer::constant(const Constant& c) {
  const TensorObject& t = *c->value;
  if (inlineConstant(t)) {
    put("R.const(");
    int64_t next = 0;
    bool flat = t.size() == 0 && t.shape.size() > 1;
    if (flat)
      put("[]");
    else
      constantItems(t, 0, next);
    put(", " + quoted(t.dtype.str()));
    if (flat) {
      put(", shape=");
      tuple(t.shape, [&](int64_t d) { put(std::to_string(d)); });
    }
    return put(")");
  }
  auto [it, fresh] = constantIndex_.emplace(c->value.get(), constantIndex_.size());
  if (fresh && options_.constants) options_.constants->push_back(c);
  put("metadata[\"relax.expr.Constant\"][" + std::to_string(it->second) + "]");
}

void Printer::bindingTo(const GraphVarNode& var, const GraphExpr& value) {
  if (auto* n = value.as<GraphIfNode>()) return graphIf(var, *n);
  if (value.is<FunctionNode>()) {
    std::string name = names_.define(&var, var.name);
    bool saved = std::exchange(quoteSymbols_, false);
    function(cast<FunctionNode>(value), name);
    quoteSymbols_ = saved;
    return;
  }
  std::string text = capture([&] { any(value); });
  line(names_.define(&var, var.name));
  if (var.type) put(": ", var.type);
  put(" = ");
  Mark mark(*this, value);
  put(text);
}

void Printer::binding(const NodeRef& b) {
  if (auto* n = b.as<VarBindingNode>()) {
    Mark mark(*this, b, 1); // behind the end of the line before
    return bindingTo(*n->var, n->value);
  }
  auto* n = b.as<MatchCastNode>();
  if (!n) return line("pass");
  for (const NodeRef& v : freeVars(n->pattern))
    if (v.is<VarNode>() && !names_.find(v.get())) declareVar(cast<VarNode>(v));
  std::string value = capture([&] { any(n->value); });
  line();
  Mark mark(*this, b);
  put(names_.define(n->var.get(), n->var->name));
  if (n->var->type) put(": ", n->var->type);
  put(" = R.match_cast(", value, ", ", n->pattern, ")");
}

/// The branches end in a binding of the same name, which is the value.
void Printer::graphIf(const GraphVarNode& var, const GraphIfNode& n) {
  line();
  Mark mark(*this, NodeRef(&n));
  put("if ", n.condition, ":");
  const std::string name = names_.define(&var, var.name); // the same in both branches and after them
  for (bool taken : {true, false}) {
    const SeqExpr& branch = taken ? n.thenBranch : n.elseBranch;
    if (!taken) line("else:");
    Scope scope(*this, true);
    if (branch) {
      seqBlocks(branch);
      line(name);
      if (var.type) put(": ", var.type);
      put(" = ", branch->body);
    } else
      line("pass");
  }
}

void Printer::block(const BindingBlockNode& b, bool explicitScope) {
  if (!b.dataflow && !explicitScope) {
    for (const NodeRef& x : b.bindings) binding(x);
    return;
  }
  line(b.dataflow ? "with R.dataflow():" : "with R.bindings():");
  ++indent_;
  std::vector<const GraphVarNode*> outputs;
  for (const NodeRef& x : b.bindings) {
    binding(x);
    if (GraphVar v = boundVar(x); v && !v->dataflow) outputs.push_back(v.get());
  }
  if (b.dataflow)
    line("R.output("), commaList(outputs, [&](const GraphVarNode* v) { put(varName(v, v->name)); }), put(")");
  else if (b.bindings.empty())
    line("pass");
  --indent_;
}

void Printer::seqBlocks(const SeqExpr& s) {
  bool afterPlain = false;
  for (const BindingBlock& b : s->blocks) {
    if (!b) continue;
    bool plain = !b->dataflow;
    block(*b, plain && (afterPlain || b->bindings.empty())); // two plain blocks in a row stay two
    afterPlain = plain;
  }
}

void Printer::seqExpr(const SeqExpr& s) {
  seqBlocks(s);
  line("return "), any(s->body);
}

} // namespace bevel::detail
