// Schedule scripts: lines, bindings, calls and index maps. The rest is the grammar of expressions.
#include "ir/parser_impl.h"

namespace bevel::detail {

Status Parser::script(ScriptHandler handler) {
  script_ = &handler;
  bool ok = start();
  while (ok && !atKind(TokenKind::kEnd)) {
    bool skipped = atKind(TokenKind::kNewline) || atKind(TokenKind::kIndent) || atKind(TokenKind::kDedent);
    if (skipped)
      take();
    else
      ok = scriptLine();
  }
  if (ok) return {};
  return fail(firstError());
}

/// `a, b = call`, `a = call` or `call`.
bool Parser::scriptLine() {
  if (at("from") || at("import") || at("def") || at("return")) {
    while (!atKind(TokenKind::kNewline) && !atKind(TokenKind::kEnd)) take();
    return true;
  }
  if (atKind(TokenKind::kName) && !peek(1).is("=") && !peek(1).is(",") && !peek(1).is("."))
    if (std::string_view advice = adviceFor(peek().text, true); !advice.empty()) {
      Token word = take();
      return failedHabit(word, std::string(advice)).ok();
    }
  std::vector<std::string> names;
  size_t begin = pos_;
  bool brackets = accept("(") || accept("["), isTuple = brackets;
  auto namesFollow = [&] {
    const Token& after = peek(1);
    return atKind(TokenKind::kName) &&
           (after.is(",") || after.is("=") || (brackets && (after.is(")") || after.is("]"))));
  };
  while (namesFollow()) {
    names.emplace_back(take().text);
    isTuple |= accept(",");
  }
  if (brackets && !accept(")")) accept("]");
  if (at("*")) return failed(peek(), "a name takes one result", "give each result a name");
  if (names.empty() || !accept("=")) pos_ = begin, names.clear(), isTuple = false;
  Token where = peek();
  if (names.empty() && atKind(TokenKind::kName) && peek(1).text.ends_with('=') && peek(1).text.size() > 1)
    return failed(peek(1), "names do not change", "give the new value a name of its own");
  bool isCall = atKind(TokenKind::kName) && peek(1).is(".");
  if (names.empty() && !isCall) return failed(where, "expected a schedule step, got " + found(where));
  if (isCall) scriptNames_ = names;
  scriptList_ = !isCall || (!isTuple && !names.empty());
  Value v = expr();
  if (!v.ok()) return false;
  if (!atKind(TokenKind::kNewline) && !atKind(TokenKind::kEnd))
    return failed(peek(), "expected the end of the line, got " + found(peek()));
  return bindScript(names, isTuple, v, where);
}

bool Parser::bindScript(const std::vector<std::string>& names, bool isTuple, const Value& v,
                        const Token& where) {
  if (!names.empty() && !isTuple) return bind(names[0], v), true;
  size_t n = v.isSequence() ? v.items.size() : 1;
  if (!names.empty() && (!v.isSequence() || n != names.size()))
    return failed(where, std::to_string(names.size()) + " names for " + std::to_string(n) + " results");
  for (size_t i = 0; i < names.size(); ++i) bind(names[i], v.items[i]);
  return true;
}

Value Parser::scriptCall(Args& args) {
  if (isScriptMark(std::string_view(args.name).substr(4))) return Value::done();
  ScriptCall call{args.name.substr(4), {}, {}, std::move(scriptNames_), scriptList_};
  auto node = [&](const Value& v, const Token& where, NodeRef& out) {
    out = attrNode(v, where);
    return out || v.tag == Value::kNone;
  };
  for (size_t i = 0; i < args.pos.size(); ++i)
    if (!node(args.pos[i], args.posAt[i], call.args.emplace_back())) return Value();
  for (size_t i = 0; i < args.kw.size(); ++i)
    if (!node(args.kw[i].second, args.kwAt[i], call.named.emplace_back(args.kw[i].first, nullptr).second))
      return Value();
  Result<NodeRef> result = (*script_)(call);
  if (result) return capturedValue(*result);
  Failed failure = failed(args.at, result.error().message);
  Error& placed = errors_.back();
  Error error = std::move(result.error());
  if (error.span.line <= 0) error.file = placed.file, error.span = placed.span, error.source = placed.source;
  placed = std::move(error);
  return failure;
}

/// lambda i, j: (i // 4, j, i % 4)
Value Parser::scriptLambda() {
  Nested nested(*this);
  Array<Var> params;
  Array<Expr> values;
  Value body;
  Token where = peek();
  if (!nested.ok || !lambda(params, body, [](size_t) { return kInt64; }) ||
      !exprList(body, values, where, kInt64))
    return Value();
  return Value::of(make<const LambdaNode>(params, values));
}

/// `*list` in a script: its items.
bool Parser::unpack(std::vector<Value>& items, std::vector<Token>* places) {
  Token where = take();
  if (!script_ && !expanding_) return failed(where, "'*' unpacking is not supported", "list the items");
  Value v = expr();
  if (!v.ok()) return false;
  if (!v.isSequence()) return failed(where, "only lists can be unpacked");
  for (const Value& item : v.items) {
    items.push_back(item);
    if (places) places->push_back(where);
  }
  return true;
}

} // namespace bevel::detail
