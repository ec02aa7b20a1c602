// Statements and functions of the graph layer.
#include "ir/parser_impl.h"

namespace bevel::detail {

bool Parser::isLeaf(const GraphExpr& e) {
  return !e.is<GraphCallNode>() && !e.is<GraphIfNode>() && !e.is<SeqExprNode>() && !e.is<FunctionNode>();
}

void Parser::closePlain() {
  if (seq_->plain.empty()) return;
  seq_->blocks.push_back(make<const BindingBlockNode>(Array<NodeRef>(seq_->plain), false));
  seq_->plain.clear();
}

void Parser::emit(NodeRef binding) {
  (seq_->open ? *seq_->open : seq_->plain).push_back(std::move(binding));
}

/// A call inside another expression gets a variable of its own.
GraphExpr Parser::leaf(GraphExpr e, const char* name) {
  if (isLeaf(e)) return e;
  GraphVar v = make<const GraphVarNode>(name, e->type, seq_->dataflow);
  emit(make<const VarBindingNode>(v, e));
  return v;
}

GraphExpr Parser::flatten(GraphExpr e) {
  return seq_ ? leaf(std::move(e), seq_->dataflow ? "lv" : "gv") : e;
}

bool Parser::relaxBind(const Token& target, Value value, const std::optional<Value>& annotation) {
  std::string name(target.text);
  Type type;
  if (annotation) {
    type = toType(*annotation, target);
    if (!type) return false;
  }
  seq_->lastName = name, seq_->lastIsBinding = false;
  // R.output means the last assignment to the name in the dataflow block.
  auto output = seq_->outputs.find(name);
  bool dataflow = seq_->dataflow && (output == seq_->outputs.end() || --output->second > 0);
  Type pattern = value.tag == Value::kMatchCast ? value.items[0].to<TypeNode>() : Type();
  if (pattern || (value.isSequence() && !value.fresh)) {
    value = Value::of(pattern ? cast<GraphExprNode>(value.node) : graphArg(value, target));
    if (!value.ok()) return false;
  }
  auto e = value.to<GraphExprNode>();
  bool graph = pattern || (e && !e.is<GlobalVarNode>() && !e.is<DTypeImmNode>());
  if (!graph) { // Python values, scalars, types: other names for the same
    if (value.fresh && value.tag == Value::kNone) return failed(target, "this statement gives no value");
    bind(name, std::move(value));
    return true;
  }
  if (!type) type = pattern ? pattern : e->type;
  GraphVar v = make<const GraphVarNode>(name, type, dataflow);
  if (pattern)
    emit(placed(make<MatchCastNode>(v, e, pattern), target));
  else
    emit(placed(make<VarBindingNode>(v, e), target));
  bind(name, Value::of(v));
  return seq_->lastIsBinding = true;
}

bool Parser::relaxReturn(const Value& value, const Token& where) {
  if (!value.ok()) return false;
  if (seq_->open) return failed(where, "a return stands outside the dataflow block");
  GraphExpr e = graphArg(value, where);
  if (!e) return false;
  seq_->result = leaf(e, "gv");
  return true;
}

/// Names that R.output lists in the dataflow suite that follows, with the number of their assignments.
void Parser::findOutputs() {
  seq_->outputs.clear();
  int depth = 0;
  std::unordered_map<std::string, int> assigned;
  for (size_t i = pos_; i + 3 < tokens_.size(); ++i) {
    const Token& t = tokens_[i];
    depth += (t.kind == TokenKind::kIndent) - (t.kind == TokenKind::kDedent);
    if (t.kind == TokenKind::kDedent && depth <= 0) break;
    bool lineStart =
        i > 0 && (tokens_[i - 1].kind == TokenKind::kNewline || tokens_[i - 1].kind == TokenKind::kIndent ||
                  tokens_[i - 1].kind == TokenKind::kDedent);
    if (lineStart)
      for (size_t k = i; tokens_[k].kind == TokenKind::kName && k + 1 < tokens_.size(); k += 2) { // a, b = …
        ++assigned[std::string(tokens_[k].text)];
        if (!tokens_[k + 1].is(",")) break;
      }
    if (!tokens_[i + 1].is(".") || !tokens_[i + 2].is("output")) continue;
    for (size_t k = i + 3;
         k < tokens_.size() && !tokens_[k].is(")") && tokens_[k].kind != TokenKind::kNewline; ++k)
      if (tokens_[k].kind == TokenKind::kName) seq_->outputs[std::string(tokens_[k].text)] = 1;
  }
  for (auto& [name, count] : seq_->outputs) count = std::max(1, assigned[name]);
}

/// `with R.dataflow():` or `with R.bindings():`
bool Parser::relaxWith() {
  Token where = take(), headAt = peek();
  Value head = expr();
  if (!head.ok()) return false;
  if (head.tag != Value::kBindings) return failed(headAt, "expected R.dataflow()", "with R.dataflow():");
  if (seq_->open) return failed(where, "binding blocks do not nest");
  closePlain();
  std::vector<NodeRef> bindings;
  bool dataflow = head.number;
  seq_->open = &bindings, seq_->dataflow = dataflow;
  if (dataflow) findOutputs();
  bool ok = suite([&] { return relaxStatement(); });
  seq_->open = nullptr, seq_->dataflow = false;
  seq_->blocks.push_back(make<const BindingBlockNode>(Array<NodeRef>(bindings), dataflow));
  bool oneOutput = dataflow && seq_->outputs.size() == 1;
  if (oneOutput) seq_->lastName = seq_->outputs.begin()->first;
  seq_->lastIsBinding = oneOutput && ok;
  seq_->outputs.clear();
  return ok;
}

/// One branch: its statements, whose last one names the value.
bool Parser::relaxBranch(SeqExpr& out, GraphVar& var, const Token& where) {
  Nested nested(*this);
  if (!nested.ok) return false;
  SeqState seq;
  Saved saved(seq_, &seq);
  Scope scope(*this);
  if (!suite([&] { return relaxStatement(); })) return false;
  if (const Value* last = seq.lastIsBinding ? lookup(seq.lastName) : nullptr) var = last->to<GraphVarNode>();
  if (seq.result) return failed(where, "a branch gives its value by its last assignment, not by return");
  if (!var)
    return errors_.empty() && failed(where, "a branch ends with an assignment of its value",
                                     "assign the same name at the end of both branches");
  GraphExpr body = var;
  auto* binding = seq.plain.empty() ? nullptr : seq.plain.back().as<VarBindingNode>();
  if (binding && binding->var == var && isLeaf(binding->value)) {
    body = binding->value;
    seq.plain.pop_back();
  }
  closePlain();
  out = make<const SeqExprNode>(seq.blocks, body);
  return true;
}

bool Parser::relaxIf() {
  Token where = take();
  if (seq_->dataflow)
    return failed(where, "a dataflow block has no branches", "end the dataflow block before the 'if'");
  GraphExpr condition = graphArg(expr(), where);
  if (!condition) return false;
  SeqExpr branches[2];
  GraphVar vars[2];
  if (!relaxBranch(branches[0], vars[0], where)) return false;
  if (!accept("else")) return failed(peek(), "an 'if' of a graph function has an 'else'");
  if (!relaxBranch(branches[1], vars[1], where)) return false;
  if (vars[0]->name != vars[1]->name)
    return failed(
        where, "the branches end with different names, '" + vars[0]->name + "' and '" + vars[1]->name + "'",
        "assign the same name at the end of both branches");
  Type type = vars[0]->type;
  GraphVar var = make<const GraphVarNode>(vars[0]->name, type, false);
  auto value = placed(make<GraphIfNode>(condition, branches[0], branches[1], type), where);
  emit(placed(make<VarBindingNode>(var, value), where));
  bind(var->name, Value::of(var));
  seq_->lastName = var->name, seq_->lastIsBinding = true;
  return true;
}

bool Parser::relaxNested() {
  auto marks = decorators();
  if (!marks || !expect("def")) return false;
  Token name = peek();
  if (!expectKind(TokenKind::kName, "a function name")) return false;
  if (marks->kind != "function")
    return failed(name, "a function inside a graph function is marked @R.function");
  Nested nested(*this);
  if (!nested.ok) return false;
  GraphExpr f = relaxFunction(std::string(name.text), *marks);
  return f && relaxBind(name, Value::of(f), std::nullopt);
}

bool Parser::relaxStatement() {
  if (at("with")) return relaxWith();
  if (at("if")) return relaxIf();
  if (at("@")) return relaxNested();
  if (at("for") || at("while"))
    return failed(peek(), "graph functions have no loops",
                  "use R.while_loop over two functions of the module");
  return simple() && endOfLine();
}

bool Parser::relaxParams(Array<GraphVar>& params) {
  if (!expect("(")) return false;
  while (!at(")")) {
    Token name = peek();
    if (!expectKind(TokenKind::kName, "a parameter")) return false;
    Type type;
    if (accept(":")) {
      Token where = peek();
      type = toType(expr(), where);
      if (!type) return false;
    }
    GraphVar v = make<const GraphVarNode>(std::string(name.text), type, false);
    if (auto it = scopes_.back().find(v->name); it != scopes_.back().end() && !it->second.as<VarNode>())
      return failed(name, "two parameters are named '" + v->name + "'");
    params.push_back(v);
    bind(v->name, Value::of(v));
    if (!accept(",")) break;
  }
  return expect(")");
}

GraphExpr Parser::relaxFunction(const std::string& name, const Decorators& marks) {
  Token where = previous();
  SeqState seq;
  Saved savedSeq(seq_, &seq);
  Saved savedFrame(frame_, nullptr);
  Saved savedAttrs(attrs_, nullptr);
  Scope scope(*this);
  Array<GraphVar> params;
  Type result;
  {
    Saved symbols(defineSymbols_, true);
    if (!relaxParams(params)) return nullptr;
  }
  if (accept("->") && !accept("None")) {
    Token at = peek();
    result = toType(expr(), at);
    if (!result) return nullptr;
  }
  if (!suite([&] { return relaxStatement(); })) return nullptr;
  if (!seq.result) { // its statements are read
    if (errors_.empty()) failed(where, "function '" + name + "' returns nothing", "end it with a return");
    return make<const OpRefNode>("faulty");
  }
  closePlain();
  SeqExpr body = make<const SeqExprNode>(seq.blocks, seq.result);
  if (marks.isPrivate) attrs_ = withAttr(attrs_, "private", boolImm(true));
  return placed(make<FunctionNode>(params, body, result ? result : body->type, attrs_, marks.pure), where);
}

} // namespace bevel::detail
