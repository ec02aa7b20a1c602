// Entry points, tokens, errors, names and the module level of the parser.
#include "ir/parser_impl.h"

#include "base/stack.h"
#include "ir/printer.h"
#include "ir/structural.h"

#include <algorithm>

namespace bevel {

Result<Module> parseModule(std::string_view text, const ParseOptions& options) {
  return onLargeStack([&] { return detail::Parser(text, options).module(); });
}
Result<NodeRef> parseFunction(std::string_view text, const ParseOptions& options) {
  return onLargeStack([&] { return detail::Parser(text, options).function(); });
}
Result<NodeRef> parseExpression(std::string_view text, const ParseOptions& options) {
  return onLargeStack([&] { return detail::Parser(text, options).expression(); });
}
Result<Module> parseModule(std::string_view text, std::string file) {
  ParseOptions options;
  options.file = std::move(file);
  return parseModule(text, options);
}
Result<NodeRef> parseFunction(std::string_view text, std::string file) {
  ParseOptions options;
  options.file = std::move(file);
  return parseFunction(text, options);
}

Status parseScript(std::string_view text, const std::string& file, ScriptHandler handler) {
  ParseOptions options;
  options.file = file;
  return onLargeStack([&] { return detail::Parser(text, options).script(handler); });
}

Status checkRoundTrip(const NodeRef& node) {
  ParseOptions parse;
  PrintOptions printOptions;
  printOptions.constants = &parse.constants;
  std::string text = print(node, printOptions);
  auto differs = [&](const std::string& what) {
    return fail(
        Error(ErrorCode::kInternal, "the text form is not exact: " + what).note("of the text\n" + text));
  };
  Result<NodeRef> again;
  if (node.is<ModuleNode>())
    again = parseModule(text, parse).map([](const Module& m) { return NodeRef(m); });
  else
    again = parseFunction(text, parse);
  if (!again) return differs(again.error().str());
  if (!structuralEqual(node, *again)) return differs(firstDifference(node, *again));
  if (structuralHash(node) != structuralHash(*again)) return differs("equal, but hashed differently");
  if (std::string second = print(*again); second != text) return differs("printed again as\n" + second);
  return {};
}

namespace detail {
namespace {

constexpr size_t kMaxErrors = 20;

} // namespace

Value capturedValue(const NodeRef& node) {
  if (!node) return Value::none();
  if (auto* i = node.as<IntImmNode>())
    return i->dtype.isBool() ? Value::boolean(i->value != 0) : Value::integer(i->value);
  if (auto* f = node.as<FloatImmNode>()) return Value::floating(f->value);
  if (auto* s = node.as<StringImmNode>()) return Value::string(s->value);
  if (auto* l = node.as<ListNode>()) {
    Value v{.tag = Value::kList};
    for (const NodeRef& item : l->items) v.items.push_back(capturedValue(item));
    return v;
  }
  return Value::of(node);
}

Failed Parser::failed(const Token& where, std::string message, std::string hint) {
  if (errors_.size() >= kMaxErrors) { // enough: give up on the rest
    pos_ = tokens_.empty() ? 0 : tokens_.size() - 1;
    return {};
  }
  Error e(ErrorCode::kInvalid, std::move(message));
  e.file = options_.file;
  e.span = {where.line > 0 ? where.line + options_.firstLine - 1 : 0, where.column, where.endColumn};
  e.hint = std::move(hint);
  size_t begin = 0;
  for (int line = 1; line < where.line && begin != std::string_view::npos; ++line) {
    begin = text_.find('\n', begin);
    if (begin != std::string_view::npos) ++begin;
  }
  if (where.line > 0 && begin < text_.size()) {
    e.source = std::string(text_.substr(begin, std::min(text_.find('\n', begin), text_.size()) - begin));
    if (!e.source.empty() && e.source.back() == '\r') e.source.pop_back();
    std::replace(e.source.begin(), e.source.end(), '\t', ' ');
  }
  errors_.push_back(std::move(e));
  return {};
}

Error Parser::firstError() {
  if (errors_.empty()) failed(peek(), "this text cannot be read");
  if (options_.errors) *options_.errors = errors_;
  Error first = errors_.front();
  for (size_t i = 1; i < errors_.size(); ++i) {
    Error other = errors_[i];
    other.source.clear(), other.hint.clear();
    first.notes.push_back("also " + other.str());
  }
  return first;
}

std::string Parser::found(const Token& t) {
  return t.kind == TokenKind::kNewline                                  ? "the end of the line"
         : t.kind == TokenKind::kEnd                                    ? "the end of the text"
         : t.kind == TokenKind::kIndent || t.kind == TokenKind::kDedent ? "other indentation"
                                                                        : "'" + std::string(t.text) + "'";
}

bool Parser::expect(std::string_view text) {
  if (accept(text)) return true;
  return failed(peek(), "expected '" + std::string(text) + "', found " + found(peek()));
}

bool Parser::expectKind(TokenKind kind, const char* what) {
  if (atKind(kind)) return take(), true;
  return failed(peek(), std::string("expected ") + what);
}

bool Parser::start() {
  auto tokens = tokenize(text_);
  if (!tokens) {
    const Error& e = tokens.error();
    Token where{.line = e.span.line, .column = e.span.column, .endColumn = e.span.endColumn};
    return failed(where, e.message, e.hint);
  }
  tokens_ = std::move(*tokens);
  scopes_.emplace_back();
  aliases_ = {{"T", "T"},         {"R", "R"},        {"I", "I"}, {"tvm", "tvm"}, {"metadata", "metadata"},
              {"range", "range"}, {"float", "float"}};
  return true;
}

Origin Parser::originAt(const Token& t) {
  if (!options_.origins || t.line <= 0) return nullptr;
  auto origin = make<OriginObject>();
  origin->file = options_.file;
  origin->span = {t.line + options_.firstLine - 1, t.column, t.endColumn};
  return origin;
}

/// Goes to the next `text` at this depth; false at `orElse`, at a bracket that closes or at the end of the line before.
bool Parser::skipTo(std::string_view text, std::string_view orElse) {
  for (int depth = 0; !atKind(TokenKind::kNewline) && !atKind(TokenKind::kEnd); take()) {
    if (depth == 0 && (at(text) || at(orElse))) return at(text);
    if (depth == 0 && at("lambda")) // its commas are its own
      while (!at(":") && peek(1).kind != TokenKind::kEnd) take();
    depth += at("(") || at("[") || at("{");
    depth -= at(")") || at("]") || at("}");
    if (depth < 0) return false;
  }
  return false;
}

/// Skips the rest of a faulty statement, with the suite that it may have.
void Parser::skipStatement() {
  while (!atKind(TokenKind::kNewline) && !atKind(TokenKind::kEnd)) take();
  if (atKind(TokenKind::kNewline)) take();
  if (atKind(TokenKind::kIndent)) skipSuite();
  if (at("else") || at("elif")) skipStatement(); // of the faulty `if`
}

void Parser::skipSuite() {
  int depth = 0;
  do {
    if (atKind(TokenKind::kIndent)) ++depth;
    if (atKind(TokenKind::kDedent)) --depth;
    if (atKind(TokenKind::kEnd)) return;
    take();
  } while (depth > 0);
}

void Parser::bind(const std::string& name, Value value) {
  value.fresh = false;
  scopes_.back()[name] = std::move(value);
}

const Value* Parser::lookup(std::string_view name) const {
  std::string key(name);
  for (size_t i = scopes_.size(); i-- > 0;)
    if (auto it = scopes_[i].find(key); it != scopes_[i].end()) return &it->second;
  return nullptr;
}

Value Parser::nameValue(const Token& t) {
  if (script_ && at(".") && !aliases_.contains(std::string(t.text))) return Value::path("sch");
  if (const Value* v = lookup(t.text)) return *v;
  std::string name(t.text);
  if (auto it = aliases_.find(name); it != aliases_.end()) return Value::path(it->second);
  for (const auto& [key, node] : options_.captures)
    if (key == name) return capturedValue(node);
  if (name == "cls" || (!className_.empty() && name == className_)) return {.tag = Value::kModule};
  if (defineSymbols_) {
    Var v = var(name, kInt64);
    scopes_[scopes_.size() - 1][name] = Value::of(v);
    undeclared_.insert(v);
    return Value::of(v);
  }
  for (const std::string& f : functionNames_)
    if (f == name) return Value::of(globalVar(name));
  if (options_.bareForms && at("(")) return Value::path("T." + name);
  if (std::string_view advice = adviceFor(name, script_); !advice.empty())
    return failedHabit(t, std::string(advice));
  std::vector<std::string> candidates = functionNames_;
  for (const auto& scope : scopes_)
    for (const auto& entry : scope) candidates.push_back(entry.first);
  for (const auto& entry : options_.captures) candidates.push_back(entry.first);
  if (script_) return failed(t, "'" + name + "' is not defined");
  return failed(t, "undefined variable '" + name + "'", didYouMean(name, candidates));
}

/// A word of Python that is not part of the notation; np.exp names the function of T that stands for it.
Value Parser::failedHabit(const Token& word, std::string advice) {
  std::string name(word.text);
  if (at(".") && peek(1).kind == TokenKind::kName) {
    std::string function(peek(1).text), form = "T." + function;
    name += "." + function;
    if (findForm(form) || intrinOf(function)) advice = "use " + form;
  }
  return failed(word, "'" + name + "' is not part of " + (script_ ? "schedule scripts" : "the notation"),
                std::move(advice));
}

/// N = 16 outside functions: another name for a number, a string or a list.
bool Parser::constantDef() {
  Assignment a = assignment();
  if (!a.value.ok()) return false;
  std::vector<Value> values = {a.value};
  if (a.targets.size() > 1 && a.value.isSequence()) values = a.value.items;
  bool plain = std::ranges::all_of(
      values, [](const Value& v) { return v.isNumber() || v.isSequence() || v.tag == Value::kString; });
  if (!plain || values.size() != a.targets.size())
    return failed(a.where, "a name outside functions stands for a number, a string or a list");
  for (size_t i = 0; i < values.size(); ++i) bind(std::string(a.targets[i].text), std::move(values[i]));
  return endOfLine();
}

GlobalVar Parser::globalVar(const std::string& name) {
  auto& g = globals_[name];
  if (!g) g = make<const GlobalVarNode>(name);
  return g;
}

/// `from tvm.script import ir as I, tirx as T` and `import …`: only the names matter.
void Parser::importLine() {
  auto canonical = [](std::string_view name) -> std::string {
    if (name == "ir") return "I";
    if (name == "tir" || name == "tirx" || name == "s_tir") return "T";
    if (name == "relax") return "R";
    return "";
  };
  take();
  std::string last;
  for (; !atKind(TokenKind::kNewline) && !atKind(TokenKind::kEnd); take()) {
    if (at("as")) {
      std::string target = canonical(last);
      if (!target.empty() && peek(1).kind == TokenKind::kName) aliases_[std::string(peek(1).text)] = target;
    } else if (atKind(TokenKind::kName))
      last = std::string(peek().text);
  }
}

void Parser::imports() {
  while (atKind(TokenKind::kNewline) || atKind(TokenKind::kString) || at("from") || at("import")) {
    if (at("from") || at("import"))
      importLine();
    else
      take();
  }
}

std::optional<Parser::Decorators> Parser::decorators() {
  Decorators d;
  while (accept("@")) {
    Token where = peek();
    do {
      if (!atKind(TokenKind::kName)) return failed(peek(), "expected the name of a decorator");
      d.kind = std::string(take().text);
    } while (accept("."));
    const std::string& last = d.kind;
    if (last == "macro" || last == "inline")
      return failed(where, "macros are not supported", "write the statements in place");
    if (last != "prim_func" && last != "function" && last != "ir_module")
      return failed(where, "unknown decorator '" + last + "'",
                    "use @I.ir_module, @T.prim_func or @R.function");
    Args args;
    args.name = "@" + last, args.at = where;
    if (at("(") && (!arguments(args).ok() ||
                    !bindArguments(args, "= private? pure? s_tir? check_well_formed? persistent?")))
      return std::nullopt;
    for (auto [key, flag] : {std::pair("private", &d.isPrivate), {"pure", &d.pure}, {"s_tir", &d.sTir}}) {
      const Value* v = args.find(key);
      if (v && v->tag != Value::kBool) return failed(args.where(key), "expected True or False");
      if (v) *flag = v->number != 0;
    }
    if (!expectKind(TokenKind::kNewline, "the end of the line")) return std::nullopt;
    while (atKind(TokenKind::kNewline)) take();
  }
  return d;
}

/// Names of the module's functions, which may be used before they are defined.
void Parser::findFunctions() {
  int depth = 0, classDepth = -1;
  for (size_t i = 0; i + 1 < tokens_.size(); ++i) {
    const Token& t = tokens_[i];
    if (t.kind == TokenKind::kIndent) ++depth;
    if (t.kind == TokenKind::kDedent) --depth;
    if (t.is("class")) classDepth = depth + 1, className_ = std::string(tokens_[i + 1].text);
    bool member =
        t.is("def") && tokens_[i + 1].kind == TokenKind::kName && (depth == 0 || depth == classDepth);
    if (member) functionNames_.emplace_back(tokens_[i + 1].text);
  }
}

bool Parser::functionDef() {
  Token where = peek();
  auto marks = decorators();
  if (!marks) return false;
  if (!accept("def")) return failed(peek(), "expected a function ('def')");
  Token nameToken = peek();
  if (!expectKind(TokenKind::kName, "a function name")) return false;
  std::string name(nameToken.text);
  if (marks->kind != "prim_func" && marks->kind != "function")
    return failed(where, "function '" + name + "' has no decorator",
                  "mark it @T.prim_func (a tensor program) or @R.function (a graph function)");
  for (const auto& f : functions_)
    if (f.first == name) return failed(nameToken, "function '" + name + "' is defined twice");
  GraphExpr f = marks->kind == "prim_func" ? primFunc(*marks) : relaxFunction(name, *marks);
  if (!f) return false;
  functions_.emplace_back(name, f);
  return true;
}

bool Parser::moduleStatement() {
  if (at("@") || at("def")) return functionDef();
  if (!assignTargets().empty()) return constantDef();
  if (accept("pass") || atKind(TokenKind::kString)) {
    if (atKind(TokenKind::kString)) take();
    return endOfLine();
  }
  Token where = peek();
  Value callee = atKind(TokenKind::kName) ? postfix() : Value();
  if (!callee.ok()) return errors_.empty() ? failed(where, "expected a function of the module") : Failed();
  return endOfLine();
}

bool Parser::moduleClass() {
  take();
  if (!expectKind(TokenKind::kName, "the name of the module")) return false;
  if (accept("(") && !expect(")")) return false;
  return suite([&] { return moduleStatement(); });
}

Result<Module> Parser::module() {
  if (!start()) return fail(firstError());
  imports();
  findFunctions();
  knownFunctions_ = true;
  bool any = false;
  while (!atKind(TokenKind::kEnd)) {
    size_t before = pos_;
    imports();
    if (atKind(TokenKind::kEnd)) break;
    bool constantLine = !assignTargets().empty(); // not yet a module
    any |= !constantLine;
    size_t mark = pos_;
    bool ok = decorators().has_value();
    if (ok && constantLine)
      ok = constantDef();
    else if (ok && at("class"))
      ok = moduleClass();
    else if (ok && at("def"))
      pos_ = mark, ok = functionDef();
    else if (ok)
      ok = failed(peek(), "expected a module class or a function");
    if (!ok) skipStatement();
    while (atKind(TokenKind::kDedent) || atKind(TokenKind::kNewline)) take();
    if (pos_ == before) take();
  }
  if (!any && errors_.empty())
    failed(peek(), "the text holds no module", "begin with @I.ir_module and a class");
  if (!errors_.empty()) return fail(firstError());
  auto m = make<ModuleNode>();
  for (auto& [name, f] : functions_) {
    m->names.push_back(globalVar(name));
    m->functions.push_back(f);
  }
  m->attrs = moduleAttrs_;
  return Module(m);
}

Result<NodeRef> Parser::function() {
  if (!start()) return fail(firstError());
  imports();
  findFunctions();
  className_ = "Module";
  while (!assignTargets().empty() && constantDef()) imports();
  if (functionDef()) imports();
  if (errors_.empty() && !atKind(TokenKind::kEnd)) failed(peek(), "expected one function and nothing else");
  if (!errors_.empty() || functions_.empty()) return fail(firstError());
  return NodeRef(functions_[0].second);
}

Result<NodeRef> Parser::expression() {
  if (!start()) return fail(firstError());
  Token where = peek();
  Value v = expr();
  if (v.ok() && !atKind(TokenKind::kNewline) && !atKind(TokenKind::kEnd))
    failed(peek(), "expected the end of the expression");
  NodeRef node;
  if (errors_.empty())
    node = v.tag == Value::kNode                     ? v.node
           : v.isSequence() || v.tag == Value::kDict ? attrNode(v, where)
                                                     : NodeRef(toExpr(v, where));
  if (!errors_.empty() || !node) return fail(firstError());
  return node;
}

} // namespace detail
} // namespace bevel
