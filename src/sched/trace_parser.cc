// Reads schedule scripts. One recursive-descent parser serves traces (whose handles are numbered as they are
// bound) and scripts that run on a schedule while they are read.

#include "base/near_name.h"
#include "sched/schedule.h"
#include "sched/trace_lexer.h"

#include <charconv>
#include <unordered_map>

namespace bevel {

namespace {

using Token = ScriptToken;
constexpr int kMaxDepth = 64; // of nested values and calls

/// What becomes of a call: its result, given the names on the left (empty: not bound; `asList`: one name for
/// a list).
class CallSink {
public:
  virtual ~CallSink() = default;
  virtual Result<StepValue> call(const Ref<StepNode>& step, const std::vector<std::string>& names,
                                 bool asList) = 0;
};

class ScriptParser {
public:
  ScriptParser(std::vector<Token> tokens, std::string file, CallSink& sink)
      : tokens_(std::move(tokens)), file_(std::move(file)), sink_(sink) {}

  Status run() {
    while (peek().kind != Token::Kind::kEnd) {
      if (peek().kind == Token::Kind::kNewline)
        next();
      else
        BEVEL_CHECK(line());
    }
    return {};
  }

private:
  const Token& peek(size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  const Token& next() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool take(std::string_view punct) {
    if (!peek().is(punct)) return false;
    next();
    return true;
  }
  Error error(const std::string& message, const Token& token) const {
    return Error(ErrorCode::kInvalid, message).in(file_, token.span);
  }
  Error unexpected(const char* wanted) const {
    const Token& t = peek();
    std::string got = t.kind == Token::Kind::kEnd || t.kind == Token::Kind::kNewline ? "the end of the line"
                                                                                     : "'" + t.text + "'";
    return error(std::string("expected ") + wanted + ", got " + got, t);
  }
  Status expect(const char* punct) {
    if (!take(punct)) return fail(unexpected(("'" + std::string(punct) + "'").c_str()));
    return {};
  }
  Error located(Error e, const Token& token) const {
    return e.span.line > 0 ? std::move(e) : std::move(e).in(file_, token.span);
  }

  /// `a, b = call` or `a = call` or `call`; Python's file furniture is skipped.
  Status line() {
    const std::string& first = peek().text;
    if (peek().kind == Token::Kind::kName &&
        (first == "from" || first == "import" || first == "def" || first == "return")) {
      while (peek().kind != Token::Kind::kNewline && peek().kind != Token::Kind::kEnd) next();
      return {};
    }
    std::vector<std::string> names;
    bool tuple = false;
    size_t start = at_;
    bool parens = take("(") || take("[");
    while (peek().kind == Token::Kind::kName &&
           (peek(1).is(",") || peek(1).is("=") || (parens && (peek(1).is(")") || peek(1).is("]"))))) {
      names.push_back(next().text);
      if (take(",")) tuple = true;
    }
    if (parens && !take(")")) take("]");
    if (names.empty() || !take("=")) {
      at_ = start;
      names.clear();
    }
    const Token& where = peek();
    BEVEL_TRY(StepValue result, bound(names, tuple || parens));
    BEVEL_CHECK(bind(names, tuple || parens, result, where));
    if (peek().kind != Token::Kind::kNewline && peek().kind != Token::Kind::kEnd)
      return fail(unexpected("the end of the line"));
    return {};
  }

  /// The right side of a binding: a call with those names, or any value.
  Result<StepValue> bound(const std::vector<std::string>& names, bool tuple) {
    if (isCall()) {
      BEVEL_TRY(StepValue v, call(names, !tuple && !names.empty()));
      return subscripts(std::move(v));
    }
    if (names.empty()) return fail(unexpected("a schedule step"));
    return value();
  }

  Status bind(const std::vector<std::string>& names, bool tuple, const StepValue& v, const Token& where) {
    if (names.empty()) return {};
    if (!tuple) {
      values_[names[0]] = v;
      return {};
    }
    if (v.kind != StepValue::Kind::kList || v.items.size() != names.size()) {
      size_t n = v.kind == StepValue::Kind::kList ? v.items.size() : 1;
      return fail(
          error(std::to_string(names.size()) + " names for " + std::to_string(n) + " results", where));
    }
    for (size_t i = 0; i < names.size(); ++i) values_[names[i]] = v.items[i];
    return {};
  }

  Error unknownStep(const Token& name) const {
    std::vector<std::string> names;
    for (const StepInfo* step : allSteps()) names.push_back(step->name);
    return error("there is no schedule step " + name.text, name).help(didYouMean(name.text, names));
  }

  bool isCall() const {
    return peek().kind == Token::Kind::kName && peek(1).is(".") && peek(2).kind == Token::Kind::kName &&
           peek(3).is("(");
  }

  Result<StepValue> call(const std::vector<std::string>& names, bool asList) {
    next(); // the schedule's name
    next();
    const Token& name = next();
    const StepInfo* info = findStep(name.text);
    if (!info) return fail(unknownStep(name));
    next();
    std::vector<StepValue> args;
    std::vector<std::pair<std::string, StepValue>> named;
    while (!peek().is(")")) {
      if (peek().kind == Token::Kind::kName && peek(1).is("=")) {
        std::string key = next().text;
        next();
        BEVEL_TRY(StepValue v, value());
        named.emplace_back(std::move(key), std::move(v));
      } else {
        bool star = take("*");
        BEVEL_TRY(StepValue v, value());
        if (star && v.kind == StepValue::Kind::kList)
          args.insert(args.end(), v.items.begin(), v.items.end());
        else
          args.push_back(std::move(v));
      }
      if (!take(",") && !peek().is(")")) return fail(unexpected("',' or ')'"));
    }
    next();
    Ref<StepNode> step = info->create();
    if (Status s = bindArguments(*step, args, named); !s) return fail(located(std::move(s.error()), name));
    auto result = sink_.call(step, names, asList);
    if (!result) return fail(located(std::move(result.error()), name));
    return result;
  }

  Result<StepValue> subscripts(StepValue v) {
    while (peek().is("[")) {
      const Token& where = next();
      bool negative = take("-");
      if (peek().kind != Token::Kind::kInt) return fail(unexpected("an index"));
      BEVEL_TRY(StepValue index, number(negative));
      BEVEL_CHECK(expect("]"));
      if (v.kind != StepValue::Kind::kList) return fail(error("only lists have elements", where));
      int64_t n = int64_t(v.items.size()), i = index.integer < 0 ? index.integer + n : index.integer;
      if (i < 0 || i >= n)
        return fail(
            error("index " + std::to_string(index.integer) + " of a list of " + std::to_string(n), where));
      StepValue item = v.items[size_t(i)];
      v = std::move(item);
    }
    return v;
  }

  Result<StepValue> number(bool negative) {
    const Token& t = next();
    if (t.kind == Token::Kind::kFloat) {
      double v = 0;
      const char* end = t.text.data() + t.text.size();
      auto [stop, failed] = std::from_chars(t.text.data(), end, v);
      if (failed == std::errc::result_out_of_range) return fail(error("the number does not fit float64", t));
      if (failed != std::errc() || stop != end) return fail(error("'" + t.text + "' is not a number", t));
      return StepValue::ofFloat(negative ? -v : v);
    }
    std::string digits = (negative ? "-" : "") + t.text;
    int64_t v = 0;
    if (std::from_chars(digits.data(), digits.data() + digits.size(), v).ec != std::errc())
      return fail(error("the number does not fit 64 bits", t));
    return StepValue::ofInt(v);
  }

  Result<StepValue> value() {
    if (++depth_ > kMaxDepth) return fail(error("values are nested too deeply", peek()));
    auto v = valueAtDepth();
    --depth_;
    return v;
  }

  Result<StepValue> valueAtDepth() {
    const Token& t = peek();
    if (take("-")) {
      if (peek().kind != Token::Kind::kInt && peek().kind != Token::Kind::kFloat)
        return fail(unexpected("a number"));
      return number(true);
    }
    switch (t.kind) {
    case Token::Kind::kInt:
    case Token::Kind::kFloat:
      return number(false);
    case Token::Kind::kString:
      return StepValue::ofString(next().text);
    case Token::Kind::kName:
      return nameValue();
    default:
      break;
    }
    if (t.is("[") || t.is("(")) return listValue();
    if (t.is("{")) return dictValue();
    return fail(unexpected("a value"));
  }

  Result<StepValue> nameValue() {
    const Token& t = peek();
    if (isCall()) {
      BEVEL_TRY(StepValue v, call({}, true));
      return subscripts(std::move(v));
    }
    next();
    if (t.text == "None") return StepValue::none();
    if (t.text == "True") return StepValue::ofBool(true);
    if (t.text == "False") return StepValue::ofBool(false);
    if (t.text == "lambda") return lambda();
    if (t.text == "float" && take("(")) {
      std::string kind = next().text;
      BEVEL_CHECK(expect(")"));
      double inf = __builtin_inf();
      return StepValue::ofFloat(kind == "inf" ? inf : kind == "-inf" ? -inf : __builtin_nan(""));
    }
    auto it = values_.find(t.text);
    if (it == values_.end()) return fail(error("'" + t.text + "' is not defined", t));
    return subscripts(it->second);
  }

  Result<StepValue> listValue() {
    bool tuple = next().is("(");
    const char* close = tuple ? ")" : "]";
    std::vector<StepValue> items;
    while (!peek().is(close)) {
      bool star = take("*");
      BEVEL_TRY(StepValue v, value());
      if (star && v.kind == StepValue::Kind::kList)
        items.insert(items.end(), v.items.begin(), v.items.end());
      else
        items.push_back(std::move(v));
      if (!take(",") && !peek().is(close)) return fail(unexpected(tuple ? "',' or ')'" : "',' or ']'"));
    }
    next();
    return StepValue::ofList(std::move(items));
  }

  Result<StepValue> dictValue() {
    next();
    StepValue out;
    out.kind = StepValue::Kind::kDict;
    while (!peek().is("}")) {
      if (peek().kind != Token::Kind::kString) return fail(unexpected("a string"));
      out.keys.push_back(next().text);
      BEVEL_CHECK(expect(":"));
      BEVEL_TRY(StepValue v, value());
      out.items.push_back(std::move(v));
      if (!take(",") && !peek().is("}")) return fail(unexpected("',' or '}'"));
    }
    next();
    return out;
  }

  /// lambda i, j: (i // 4, j, i % 4)
  Result<StepValue> lambda() {
    lambdaVars_.clear();
    IndexMap map;
    while (!peek().is(":")) {
      if (peek().kind != Token::Kind::kName) return fail(unexpected("a name"));
      map.initial.push_back(var(next().text));
      lambdaVars_[map.initial.back()->name] = map.initial.back();
      if (!take(",") && !peek().is(":")) return fail(unexpected("',' or ':'"));
    }
    next();
    size_t start = at_;
    if (peek().is("(") || peek().is("[")) {
      const char* close = next().is("(") ? ")" : "]";
      bool tuple = false;
      while (!peek().is(close)) {
        BEVEL_TRY(Expr e, sum());
        map.final.push_back(e);
        if (take(","))
          tuple = true;
        else if (!peek().is(close))
          return fail(unexpected("',' or a closing bracket"));
      }
      next();
      const Token& after = peek();
      bool ends = after.is(",") || after.is(")") || after.kind == Token::Kind::kNewline ||
                  after.kind == Token::Kind::kEnd;
      if (tuple || map.final.size() != 1 || ends) return StepValue::ofMap(std::move(map));
      map.final = {}; // `(i + 1) * 2`: the parenthesis belonged to the expression
      at_ = start;
    }
    BEVEL_TRY(Expr e, sum());
    map.final.push_back(e);
    return StepValue::ofMap(std::move(map));
  }

  Result<Expr> sum() {
    if (++depth_ > kMaxDepth) return fail(error("the expression is nested too deeply", peek()));
    BEVEL_TRY(Expr e, product());
    while (peek().is("+") || peek().is("-")) {
      bool plus = next().is("+");
      BEVEL_TRY(Expr b, product());
      e = plus ? e + b : e - b;
    }
    --depth_;
    return e;
  }

  Result<Expr> product() {
    BEVEL_TRY(Expr e, atom());
    while (peek().is("*") || peek().is("//") || peek().is("%")) {
      const Token& op = next();
      BEVEL_TRY(Expr b, atom());
      if (!op.is("*") && isConst(b, 0)) return fail(error("division by zero", op));
      e = op.is("*") ? e * b : op.is("//") ? floordiv(e, b) : floormod(e, b);
    }
    return e;
  }

  /// T.int64(3), T.min(i, 4), T.floordiv(i, 4) and the like, as expressions print.
  Result<Expr> intrinsic() {
    next();
    const Token& name = next();
    BEVEL_CHECK(expect("("));
    BEVEL_TRY(Expr a, sum());
    if (name.text == "int64" || name.text == "int32") {
      BEVEL_CHECK(expect(")"));
      return a;
    }
    BEVEL_CHECK(expect(","));
    BEVEL_TRY(Expr b, sum());
    BEVEL_CHECK(expect(")"));
    if (name.text == "min") return min(a, b);
    if (name.text == "max") return max(a, b);
    bool divides = name.text == "floordiv" || name.text == "floormod";
    if (divides && !isConst(b, 0)) return name.text == "floordiv" ? floordiv(a, b) : floormod(a, b);
    return fail(error("T." + name.text + " is not known in an index map", name));
  }

  Result<Expr> atom() {
    const Token& t = peek();
    if (take("-")) {
      if (peek().is("-")) return fail(unexpected("a number, an index or '('"));
      BEVEL_TRY(Expr e, atom());
      return negate(e);
    }
    if (take("(")) {
      BEVEL_TRY(Expr e, sum());
      BEVEL_CHECK(expect(")"));
      return e;
    }
    if (t.kind == Token::Kind::kInt) {
      BEVEL_TRY(StepValue v, number(false));
      return intImm(v.integer);
    }
    if (t.kind != Token::Kind::kName) return fail(unexpected("an index expression"));
    next();
    if (t.text == "T" && peek().is(".")) return intrinsic();
    auto it = lambdaVars_.find(t.text);
    if (it == lambdaVars_.end()) return fail(error("'" + t.text + "' is not an index of the map", t));
    return Expr(it->second);
  }

  std::vector<Token> tokens_;
  std::string file_;
  CallSink& sink_;
  size_t at_ = 0;
  int depth_ = 0;
  std::unordered_map<std::string, StepValue> values_;
  std::unordered_map<std::string, Var> lambdaVars_;
};

/// Numbers the handles as the names on the left bind them.
class TraceSink : public CallSink {
public:
  Trace trace;
  Result<StepValue> call(const Ref<StepNode>& step, const std::vector<std::string>& names,
                         bool asList) override {
    StepValue result = StepValue::none();
    if (step->info->hasResult()) {
      const StepField& out = step->info->fields.back();
      if (out.isList && asList)
        return fail(Error(ErrorCode::kInvalid, std::string(step->info->name) +
                                                   " gives a list: its length is not known before it runs")
                        .help("bind each result: `a, b = sch." + std::string(step->info->name) + "(…)`"));
      std::vector<StepValue> handles;
      size_t n = out.isList ? names.size() : 1;
      for (size_t i = 0; i < n; ++i) {
        handles.push_back(StepValue::ofRV({out.handleKind, int32_t(trace.names.size())}));
        trace.names.push_back(i < names.size() ? names[i] : "");
      }
      result = out.isList ? StepValue::ofList(std::move(handles)) : handles[0];
      BEVEL_CHECK(out.set(step->data(), result));
    }
    trace.steps.push_back(step);
    return result;
  }
};

class RunSink : public CallSink {
public:
  explicit RunSink(Schedule& s) : schedule(s) {}
  Schedule& schedule;
  Result<StepValue> call(const Ref<StepNode>& step, const std::vector<std::string>& names,
                         bool asList) override {
    BEVEL_CHECK(schedule.execute(step));
    if (!asList || !step->info->fields.back().isList) schedule.setHandleNames(step->outputs(), names);
    return step->info->hasResult() ? step->get(step->info->fields.back()) : StepValue::none();
  }
};

} // namespace

Result<Trace> Trace::parse(std::string_view text, std::string file) {
  BEVEL_TRY(std::vector<Token> tokens, scanScript(text, file));
  TraceSink sink;
  BEVEL_CHECK(ScriptParser(std::move(tokens), std::move(file), sink).run());
  return std::move(sink.trace);
}

Status runScript(Schedule& schedule, std::string_view text, std::string file) {
  BEVEL_TRY(std::vector<Token> tokens, scanScript(text, file));
  Schedule before = schedule;
  RunSink sink(schedule);
  Status done = ScriptParser(std::move(tokens), std::move(file), sink).run();
  if (!done) schedule = std::move(before);
  return done;
}

} // namespace bevel
