// Statements and functions of the graph layer.
#include "ir/parser_impl.h"

namespace bevel::detail {

bool Parser::isLeaf(const GraphExpr& e) const {
  return !e.is<GraphCallNode>() && !e.is<GraphIfNode>() && !e.is<SeqExprNode>() && !e.is<FunctionNode>();
}

void Parser::closePlain(SeqState& seq) {
  if (seq.plain.empty()) return;
  seq.blocks.push_back(make<const BindingBlockNode>(Array<NodeRef>(seq.plain), false));
  seq.plain.clear();
}

void Parser::emit(SeqState& seq, NodeRef binding) {
  (seq.open ? *seq.open : seq.plain).push_back(std::move(binding));
}

/// A call inside another expression gets a variable of its own.
GraphExpr Parser::leaf(SeqState& seq, GraphExpr e, const char* name) {
  if (isLeaf(e)) return e;
  GraphVar v = make<const GraphVarNode>(name, e->type, seq.dataflow);
  emit(seq, make<const VarBindingNode>(v, e));
  return v;
}

GraphExpr Parser::flatten(GraphExpr e) {
  return seq_ ? leaf(*seq_, std::move(e), seq_->dataflow ? "lv" : "gv") : e;
}

bool Parser::relaxBind(SeqState& seq, const Token& target, Value value,
                       const std::optional<Value>& annotation) {
  std::string name(target.text);
  Type type;
  if (annotation) {
    type = toType(*annotation, target);
    if (!type) return false;
  }
  seq.lastName = name, seq.lastIsBinding = false;
  bool last = true; // of the assignments to this name in a dataflow block: the one that R.output means
  if (auto it = seq.outputs.find(name); seq.dataflow && it != seq.outputs.end())
    last = --it->second <= 0;
  else
    last = false;
  bool dataflow = seq.dataflow && !last;
  if (value.tag == Value::kMatchCast) {
    Type pattern = cast<TypeNode>(value.items[0].node);
    GraphVar v = make<const GraphVarNode>(name, type ? type : pattern, dataflow);
    emit(seq, placed(make<MatchCastNode>(v, cast<GraphExprNode>(value.node), pattern), target));
    bind(name, Value::of(v));
    return seq.lastIsBinding = true;
  }
  if (value.isSequence() && !value.fresh) {
    GraphExpr e = graphArg(value, target);
    if (!e) return false;
    value = Value::of(e);
  }
  bool graph = value.tag == Value::kNode && value.node.is<GraphExprNode>() &&
               !value.node.is<GlobalVarNode>() && !value.node.is<DTypeImmNode>();
  if (!graph) { // Python values, scalars, types: other names for the same
    if (value.fresh && value.tag == Value::kNone) return report(target, "this statement gives no value");
    bind(name, std::move(value));
    return true;
  }
  GraphExpr e = cast<GraphExprNode>(value.node);
  if (!type) type = e->type;
  GraphVar v = make<const GraphVarNode>(name, type, dataflow);
  emit(seq, placed(make<VarBindingNode>(v, e), target));
  bind(name, Value::of(v));
  return seq.lastIsBinding = true;
}

bool Parser::relaxAssign(SeqState& seq) {
  Assignment a = assignment();
  if (!a.value.ok()) return false;
  const std::vector<Token>& targets = a.targets;
  bool ok = true;
  if (targets.size() == 1)
    ok = relaxBind(seq, targets[0], std::move(a.value), a.annotation);
  else if (a.value.isSequence()) {
    if (a.value.items.size() != targets.size())
      ok = report(a.where, "expected " + std::to_string(targets.size()) + " values, found " +
                               std::to_string(a.value.items.size()));
    for (size_t i = 0; ok && i < targets.size(); ++i)
      ok = relaxBind(seq, targets[i], a.value.items[i], std::nullopt);
  } else { // a, b = f(x): the fields of a tuple
    GraphExpr tuple = graphArg(a.value, a.where);
    ok = bool(tuple);
    for (size_t i = 0; ok && i < targets.size(); ++i)
      ok = relaxBind(seq, targets[i], Value::of(make<const TupleGetNode>(tuple, int64_t(i))), std::nullopt);
  }
  if (!ok) poison(targets);
  return ok;
}

bool Parser::relaxReturn(SeqState& seq, const Value& value, const Token& where) {
  if (!value.ok()) return false;
  if (seq.open) return report(where, "a return stands outside the dataflow block");
  GraphExpr e = graphArg(value, where);
  if (!e) return false;
  seq.result = leaf(seq, e, "gv");
  return true;
}

bool Parser::relaxSimple(SeqState& seq) {
  if (accept("pass")) return true;
  if (seq.result) return report(peek(), "this statement follows the return");
  if (at("return")) {
    Token where = take();
    return relaxReturn(seq, exprList(), where);
  }
  if (!assignTargets().empty()) return relaxAssign(seq);
  Token where = peek();
  bool funcRet = at("R") && peek(1).is(".") && peek(2).is("func_ret");
  if (funcRet) {
    for (int i = 0; i < 3; ++i) take();
    Args args;
    args.name = "R.func_ret", args.at = where;
    if (!at("(")) return expect("(");
    return arguments(args).ok() && bindArguments(args, "value") &&
           relaxReturn(seq, *args.find("value"), where);
  }
  Value v = expr();
  if (!v.ok()) return false;
  if (v.fresh || v.tag == Value::kString || v.tag == Value::kNone) return true;
  if (v.as<GraphCallNode>()) {
    Token name = where;
    name.text = "_";
    return relaxBind(seq, name, std::move(v), std::nullopt);
  }
  return report(where, "this expression has no effect");
}

/// Names that R.output lists in the dataflow suite that follows, with the number of their assignments.
void Parser::findOutputs(SeqState& seq) {
  seq.outputs.clear();
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
    if (!t.is("R") || !tokens_[i + 1].is(".") || !tokens_[i + 2].is("output")) continue;
    for (size_t k = i + 3;
         k < tokens_.size() && !tokens_[k].is(")") && tokens_[k].kind != TokenKind::kNewline; ++k)
      if (tokens_[k].kind == TokenKind::kName) seq.outputs[std::string(tokens_[k].text)] = 1;
  }
  for (auto& [name, count] : seq.outputs) count = std::max(1, assigned[name]);
}

bool Parser::relaxWith(SeqState& seq) {
  Token where = take();
  bool known = at("R") && peek(1).is(".") && (peek(2).is("dataflow") || peek(2).is("bindings")) &&
               peek(3).is("(") && peek(4).is(")");
  if (!known) return report(peek(), "expected R.dataflow()", "with R.dataflow():");
  bool dataflow = peek(2).is("dataflow");
  for (int i = 0; i < 5; ++i) take();
  if (seq.open) return report(where, "binding blocks do not nest");
  closePlain(seq);
  std::vector<NodeRef> bindings;
  seq.open = &bindings, seq.dataflow = dataflow;
  if (dataflow) findOutputs(seq);
  bool ok = suiteStart();
  while (ok && !atKind(TokenKind::kDedent) && !atKind(TokenKind::kEnd)) relaxStatement(seq);
  if (ok && atKind(TokenKind::kDedent)) take();
  seq.open = nullptr, seq.dataflow = false;
  seq.blocks.push_back(make<const BindingBlockNode>(Array<NodeRef>(bindings), dataflow));
  bool oneOutput = dataflow && seq.outputs.size() == 1;
  if (oneOutput) seq.lastName = seq.outputs.begin()->first;
  seq.lastIsBinding = oneOutput && ok;
  seq.outputs.clear();
  return ok;
}

/// One branch: its statements, whose last one names the value.
bool Parser::relaxBranch(SeqState& outer, SeqExpr& out, GraphVar& var, const Token& where) {
  Nested nested(*this);
  if (!nested.ok) return false;
  SeqState seq;
  SeqState* saved = std::exchange(seq_, &seq);
  pushScope();
  bool ok = suiteStart();
  while (ok && !atKind(TokenKind::kDedent) && !atKind(TokenKind::kEnd)) relaxStatement(seq);
  if (ok && atKind(TokenKind::kDedent)) take();
  const Value* last = ok && seq.lastIsBinding ? lookup(seq.lastName) : nullptr;
  if (last && last->as<GraphVarNode>()) var = cast<GraphVarNode>(last->node);
  popScope();
  seq_ = saved;
  (void)outer;
  if (!ok) return false;
  if (seq.result) return report(where, "a branch gives its value by its last assignment, not by return");
  if (!var)
    return errors_.empty() && report(where, "a branch ends with an assignment of its value",
                                     "assign the same name at the end of both branches");
  GraphExpr body = var;
  if (!seq.plain.empty()) {
    auto* binding = seq.plain.back().as<VarBindingNode>();
    if (binding && binding->var == var && isLeaf(binding->value)) {
      body = binding->value;
      seq.plain.pop_back();
    }
  }
  closePlain(seq);
  out = make<const SeqExprNode>(seq.blocks, body);
  return true;
}

bool Parser::relaxIf(SeqState& seq) {
  Token where = take();
  if (seq.dataflow)
    return report(where, "a dataflow block has no branches", "end the dataflow block before the 'if'");
  Value v = expr();
  GraphExpr condition = v.ok() ? graphArg(v, where) : GraphExpr();
  if (!condition) return false;
  SeqExpr branches[2];
  GraphVar vars[2];
  if (!relaxBranch(seq, branches[0], vars[0], where)) return !errors_.empty() && false;
  if (!at("else")) return report(peek(), "an 'if' of a graph function has an 'else'");
  take();
  if (!relaxBranch(seq, branches[1], vars[1], where)) return false;
  if (vars[0]->name != vars[1]->name)
    return report(
        where, "the branches end with different names, '" + vars[0]->name + "' and '" + vars[1]->name + "'",
        "assign the same name at the end of both branches");
  Type type = vars[0]->type;
  GraphVar var = make<const GraphVarNode>(vars[0]->name, type, false);
  auto value = placed(make<GraphIfNode>(condition, branches[0], branches[1], type), where);
  emit(seq, placed(make<VarBindingNode>(var, value), where));
  bind(var->name, Value::of(var));
  seq.lastName = var->name, seq.lastIsBinding = true;
  return true;
}

bool Parser::relaxNested(SeqState& seq) {
  std::string kind;
  bool isPrivate = false, pure = true, sTir = false;
  if (!decorators(kind, isPrivate, pure, sTir) || !expect("def")) return false;
  Token name = peek();
  if (!expectKind(TokenKind::kName, "a function name")) return false;
  if (kind != "function") return report(name, "a function inside a graph function is marked @R.function");
  Nested nested(*this);
  if (!nested.ok) return false;
  GraphExpr f = relaxFunction(std::string(name.text), isPrivate, pure);
  return f && relaxBind(seq, name, Value::of(f), std::nullopt);
}

void Parser::relaxStatement(SeqState& seq) {
  size_t before = pos_;
  if (atKind(TokenKind::kNewline)) return void(take());
  bool ok = false;
  if (at("with"))
    ok = relaxWith(seq);
  else if (at("if"))
    ok = relaxIf(seq);
  else if (at("@"))
    ok = relaxNested(seq);
  else if (at("for") || at("while"))
    report(peek(), "graph functions have no loops", "use R.while_loop over two functions of the module");
  else
    ok = relaxSimple(seq) && endOfLine();
  if (ok) return;
  targets_.clear();
  skipStatement();
  if (pos_ == before) take();
}

bool Parser::relaxParams(Array<GraphVar>& params) {
  if (!expect("(")) return false;
  while (!at(")")) {
    Token name = peek();
    if (!expectKind(TokenKind::kName, "a parameter")) return false;
    Type type;
    if (accept(":")) {
      Token where = peek();
      Value v = expr();
      type = v.ok() ? toType(v, where) : Type();
      if (!type) return false;
    }
    GraphVar v = make<const GraphVarNode>(std::string(name.text), type, false);
    if (auto it = scopes_.back().find(v->name); it != scopes_.back().end() && !it->second.as<VarNode>())
      return report(name, "two parameters are named '" + v->name + "'");
    params.push_back(v);
    bind(v->name, Value::of(v));
    if (!accept(",")) break;
  }
  return expect(")");
}

GraphExpr Parser::relaxFunction(const std::string& name, bool isPrivate, bool pure) {
  Token where = previous();
  SeqState seq;
  SeqState* savedSeq = std::exchange(seq_, &seq);
  Frame* savedFrame = std::exchange(frame_, nullptr);
  Dict savedAttrs = std::exchange(attrs_, nullptr);
  inTir_ = false;
  pushScope();
  Array<GraphVar> params;
  Type result;
  bool symbols = std::exchange(defineSymbols_, true);
  bool ok = relaxParams(params);
  defineSymbols_ = symbols;
  if (ok && accept("->") && !accept("None")) {
    Token at = peek();
    Value v = expr();
    result = v.ok() ? toType(v, at) : Type();
    ok = bool(result);
  }
  ok = ok && suiteStart();
  bool parsed = ok;
  while (ok && !atKind(TokenKind::kDedent) && !atKind(TokenKind::kEnd)) relaxStatement(seq);
  if (ok && atKind(TokenKind::kDedent)) take();
  popScope();
  seq_ = savedSeq, frame_ = savedFrame;
  Dict attrs = std::exchange(attrs_, savedAttrs);
  if (!ok) return nullptr;
  if (!seq.result) {
    if (errors_.empty()) failed(where, "function '" + name + "' returns nothing", "end it with a return");
    return parsed && !errors_.empty() ? GraphExpr(make<const OpRefNode>("faulty"))
                                      : nullptr; // its statements are read
  }
  closePlain(seq);
  SeqExpr body = make<const SeqExprNode>(seq.blocks, seq.result);
  if (isPrivate) attrs = withAttr(attrs, "private", boolImm(true));
  return placed(make<FunctionNode>(params, body, result ? result : body->type, attrs, pure), where);
}

} // namespace bevel::detail
