// The grammar of expressions.
#include "ir/parser_impl.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace bevel::detail {
namespace {

constexpr int kMaxNesting = 500;

std::string withoutUnderscores(std::string_view text) {
  std::string out;
  for (char c : text)
    if (c != '_') out += c;
  return out;
}

} // namespace

Parser::Nested::Nested(Parser& p) : parser(p), ok(++p.nesting_ <= kMaxNesting) {
  if (!ok && (p.errors_.empty() || p.errors_.back().message != "nested too deeply"))
    p.failed(p.peek(), "nested too deeply");
}

/// Operators that bind at least as strongly as `least`, by precedence climbing.
Value Parser::expr(int least) {
  Value left;
  if (at("not") && least <= kPrecNot) {
    Nested nested(*this);
    if (!nested.ok) return Value();
    Token op = take();
    left = applyUnary(UnaryOp::kNot, expr(kPrecNot), op);
  } else
    left = unary();
  bool compared = false;
  while (left.ok() && (atKind(TokenKind::kOperator) || atKind(TokenKind::kName))) {
    Token op = peek();
    const Operator* row = operatorOf(op.text);
    if (!row || row->precedence < least) break;
    if (compared && row->precedence == kPrecCompare)
      return failed(op, "comparisons do not chain here", "write 'a < b and b < c'");
    compared = row->precedence == kPrecCompare;
    take();
    if (!row->op) return failed(op, "operator '" + std::string(op.text) + "' has no meaning here");
    left = applyBinary(*row->op, left, expr(row->precedence + 1), op);
  }
  if (least == kPrecLowest && left.ok() && at("if"))
    return failed(peek(), "conditional expressions are not part of the notation",
                  script_ ? "write the value" : "use T.if_then_else(condition, a, b) or T.Select");
  return left;
}

Value Parser::unary() {
  Token op = peek();
  if (!op.is("-") && !op.is("+") && !op.is("~")) return postfix();
  Nested nested(*this);
  if (!nested.ok) return Value();
  take();
  std::optional<UnaryOp> code;
  if (!op.is("+")) code = op.is("-") ? UnaryOp::kNeg : UnaryOp::kBitNot;
  return applyUnary(code, unary(), op);
}

Value Parser::postfix() {
  Nested nested(*this);
  if (!nested.ok) return Value();
  Token where = peek();
  Value v = atom();
  while (v.ok()) {
    if (at("("))
      v = call(std::move(v), where);
    else if (at("[")) {
      Token open = take();
      v = subscript(std::move(v), open);
    } else if (at(".")) {
      take();
      v = attribute(v, where);
    } else
      break;
  }
  if (!v.ok() || !at("**")) return v;
  Token op = take();
  return power(v, unary(), op);
}

Value Parser::number() {
  Token t = take();
  std::string text = withoutUnderscores(t.text);
  const char* end = text.data() + text.size();
  if (t.kind == TokenKind::kFloat) {
    double value = 0;
    auto [p, ec] = std::from_chars(text.data(), end, value);
    if (ec == std::errc::result_out_of_range)
      value = text.find("e-") == std::string::npos && text.find("E-") == std::string::npos ? HUGE_VAL : 0.0;
    else if (ec != std::errc() || p != end)
      return failed(t, "malformed number");
    return Value::floating(value);
  }
  int base = 10;
  size_t skip = 0;
  if (text.size() > 2 && text[0] == '0') {
    char c = char(text[1] | 0x20);
    base = c == 'x' ? 16 : c == 'b' ? 2 : c == 'o' ? 8 : 10;
    skip = base == 10 ? 0 : 2;
  }
  uint64_t value = 0;
  auto [p, ec] = std::from_chars(text.data() + skip, end, value, base);
  if (ec == std::errc::result_out_of_range) return failed(t, "this integer does not fit 64 bits");
  if (ec != std::errc() || p != end) return failed(t, "malformed number");
  Value v = Value::integer(int64_t(value));
  if (value > uint64_t(INT64_MAX)) v.text = "u"; // only an unsigned 64-bit constant or -2^63
  return v;
}

Value Parser::bracketed(std::string_view close, Value::Tag tag) {
  Value v;
  v.tag = tag;
  bool trailing = false;
  while (!at(close)) {
    if (at("*")) {
      if (!unpack(v.items, nullptr)) return Value();
      trailing = accept(",");
      if (!trailing) break;
      continue;
    }
    size_t begin = pos_;
    Value item = expr();
    if (!item.ok()) pos_ = begin;
    if (!item.ok() && skipTo("for")) {
      errors_.pop_back(); // the items of a comprehension: names that its loop binds
      break;
    }
    if (!item.ok()) return item;
    constexpr int64_t kMost = 1 << 18; // names for lists of lists multiply
    if ((v.count += item.count) > kMost)
      return failed(peek(), fmt::format("a list of more than {} values", kMost));
    v.items.push_back(std::move(item));
    trailing = accept(",");
    if (!trailing) break;
  }
  if (at("for")) return failed(peek(), "comprehensions are not part of the notation", "list the items");
  if (!expect(close)) return Value();
  bool parentheses = tag == Value::kTuple && v.items.size() == 1 && !trailing;
  return parentheses ? Value(std::move(v.items[0])) : v;
}

Value Parser::dictionary() {
  Value v{.tag = Value::kDict};
  while (!at("}")) {
    Token keyAt = peek();
    Value key = expr();
    if (!key.ok()) return key;
    if (key.tag != Value::kString) return failed(keyAt, "keys are strings here");
    if (!expect(":")) return Value();
    Value value = expr();
    if (!value.ok()) return value;
    v.keys.push_back(key.text);
    v.items.push_back(std::move(value));
    if (!accept(",")) break;
  }
  if (!expect("}")) return Value();
  return v;
}

Value Parser::atom() {
  const Token& t = peek();
  switch (t.kind) {
  case TokenKind::kInt:
  case TokenKind::kFloat:
    return number();
  case TokenKind::kString: {
    std::string text;
    while (atKind(TokenKind::kString)) { // adjacent strings are one
      auto part = stringValue(peek().text);
      if (!part) return failed(peek(), "malformed escape in a string");
      text += *part;
      take();
    }
    return Value::string(std::move(text));
  }
  case TokenKind::kName:
    if (accept("True")) return Value::boolean(true);
    if (accept("False")) return Value::boolean(false);
    if (accept("None")) return Value::none();
    if (at("lambda")) return script_ ? scriptLambda() : failed(t, "a lambda has no meaning here");
    return nameValue(take());
  case TokenKind::kOperator:
    if (accept("(")) return bracketed(")", Value::kTuple);
    if (accept("[")) return bracketed("]", Value::kList);
    if (accept("{")) return dictionary();
    break;
  default:
    break;
  }
  if (t.kind == TokenKind::kNewline || t.kind == TokenKind::kEnd)
    return failed(t, "expected an expression before the end of the line");
  return failed(t, "expected an expression, found '" + std::string(t.text) + "'");
}

Value Parser::arguments(Args& args) {
  take(); // (
  while (!at(")")) {
    Token where = peek();
    if (at("*") || at("**")) {
      if (!unpack(args.pos, &args.posAt)) return Value();
      if (!accept(",")) break;
      continue;
    }
    bool keyword = atKind(TokenKind::kName) && peek(1).is("=");
    if (keyword) take(), take();
    Value v = expr();
    if (!v.ok()) return v;
    where.endColumn = previous().line == where.line ? previous().endColumn : where.endColumn;
    if (keyword) {
      for (const auto& k : args.kw)
        if (k.first == where.text)
          return failed(where, "keyword '" + std::string(where.text) + "' is given twice");
      args.kw.emplace_back(std::string(where.text), std::move(v));
      args.kwAt.push_back(where);
    } else {
      if (!args.kw.empty()) return failed(where, "positional argument after a keyword");
      args.pos.push_back(std::move(v));
      args.posAt.push_back(where);
    }
    if (!accept(",")) break;
  }
  if (!expect(")")) return Value();
  return Value::none();
}

Value Parser::call(Value callee, const Token& start) {
  Token where = start;
  if (previous().line == where.line) where.endColumn = previous().endColumn;
  bool isPath = callee.tag == Value::kPath;
  const Form* form = isPath ? findForm(callee.text) : nullptr;
  Args args;
  args.name = callee.text;
  args.at = script_ ? previous() : where; // the step's name
  bool read = false;
  if (form && form->arguments.starts_with('&'))
    read = argumentPlaces(args);
  else {
    Saved symbols(defineSymbols_, defineSymbols_ || (isPath && callee.text == "R.Callable")); // of its own
    Saved names(scriptNames_, {}); // not for calls among the arguments
    Saved asList(scriptList_, true);
    read = arguments(args).ok();
  }
  if (!read) return Value();
  if (!callee.items.empty()) { // a method
    args.self = std::move(callee.items[0]);
    if (auto* b = args.self.as<BufferNode>()) args.name = b->name + args.name.substr(args.name.find('.'));
  }
  if (isPath && script_ && callee.text.starts_with("sch.")) return scriptCall(args);
  if (form) {
    args.code = form->code;
    char place = form->arguments.empty() ? ' ' : form->arguments[0];
    if ((place == ';' || place == ':') && !inPlace(args, place == ':')) return Value();
    if (!bindArguments(args, form->arguments)) return Value();
    Value result = (this->*form->handler)(args);
    if (args.end) pos_ = args.end;
    return result;
  }
  if (isPath) return callUnlisted(args);
  if (!callee.is<GraphExprNode>()) return failed(where, describe(callee) + " cannot be called");
  if (!bindArguments(args, "* out_sinfo|out_ty|sinfo_args|ty_args? **")) return Value();
  return callValue(callee.to<GraphExprNode>(), args);
}

Value Parser::subscriptItem() {
  if (accept("...")) return failed(previous(), "'...' is not supported", "list the indices");
  Value start = Value::none();
  if (!at(":")) {
    start = expr();
    if (!start.ok() || !at(":")) return start;
  }
  take(); // :
  Value slice{.tag = Value::kSlice};
  Value stop = Value::none();
  if (!at(",") && !at("]") && !at(":")) {
    stop = expr();
    if (!stop.ok()) return stop;
  }
  if (at(":")) return failed(peek(), "slices with a step are not supported");
  slice.items = {std::move(start), std::move(stop)};
  return slice;
}

Value Parser::subscript(Value base, const Token& where) {
  std::vector<Value> items;
  while (!at("]")) {
    Value item = subscriptItem();
    if (!item.ok()) return item;
    items.push_back(std::move(item));
    if (!accept(",")) break;
  }
  if (!expect("]")) return Value();
  if (base.tag == Value::kPath && base.text == "T.Buffer") { // older: T.Buffer[(128, 128), "float32"]
    Args args;
    args.name = base.text, args.at = where;
    args.pos = std::move(items), args.posAt.assign(args.pos.size(), where);
    return bindArguments(args, findForm(base.text)->arguments) ? tBuffer(args) : Value();
  }
  if (items.size() == 1 && items[0].tag == Value::kTuple)
    items = std::vector<Value>(items[0].items); // A[()], A[(i, j)]
  if (base.as<BufferNode>()) return indexBuffer(cast<BufferNode>(base.node), std::move(items), where);
  if (base.tag == Value::kPath && base.text == "T.let" && items.size() == 1)
    return items[0]; // the annotation T.let[T.int32]
  if (items.size() != 1) return failed(where, "expected one index");
  if (base.tag == Value::kPath && base.text.starts_with("metadata")) {
    if (items[0].tag == Value::kString) return Value::path("metadata[]");
    if (items[0].tag == Value::kInt) {
      uint64_t i = uint64_t(items[0].number);
      if (i >= options_.constants.size())
        return failed(where,
                      "the text refers to constant " + std::to_string(items[0].number) + ", but " +
                          std::to_string(options_.constants.size()) + " are given",
                      "read the module together with its .safetensors file");
      return Value::of(options_.constants[i]);
    }
  }
  if (items[0].tag == Value::kSlice && base.isSequence()) return sliceOf(base, items[0], where);
  if (items[0].tag == Value::kInt && base.isSequence()) {
    int64_t i = items[0].number, n = int64_t(base.items.size());
    if (i < 0) i += n;
    if (i < 0 || i >= n)
      return failed(where, fmt::format("index {} is outside a list of {}", items[0].number, n));
    Value item = base.items[size_t(i)];
    return item;
  }
  if (base.is<GraphExprNode>() && items[0].tag == Value::kInt) {
    if (items[0].number < 0) return failed(where, "a tuple's index is not negative");
    const auto* type = base.as<GraphExprNode>()->type.as<TupleTypeNode>();
    if (type && size_t(items[0].number) >= type->fields_.size())
      return failed(where, "index " + std::to_string(items[0].number) + " is outside a tuple of " +
                               std::to_string(type->fields_.size()));
    return Value::of(make<const TupleGetNode>(flatten(cast<GraphExprNode>(base.node)), items[0].number),
                     base.depth + 1);
  }
  return failed(where, describe(base) + " cannot be indexed");
}

/// A part of a list: loops[-2:].
Value Parser::sliceOf(const Value& base, const Value& slice, const Token& where) {
  int64_t n = int64_t(base.items.size()), bounds[2] = {0, n};
  for (size_t k = 0; k < 2; ++k) {
    const Value& bound = slice.items[k];
    if (bound.tag != Value::kNone && bound.tag != Value::kInt)
      return failed(where, "the bounds of a part of a list are numbers, not " + describe(bound));
    if (bound.tag == Value::kInt)
      bounds[k] = std::clamp(bound.number < 0 ? bound.number + n : bound.number, int64_t(0), n);
  }
  Value out;
  out.tag = base.tag;
  if (bounds[0] < bounds[1]) out.items = {base.items.begin() + bounds[0], base.items.begin() + bounds[1]};
  return out;
}

/// Indices or slices of a buffer: a Load, or a BufferRegion when one of them is a slice.
Value Parser::indexBuffer(const Buffer& b, std::vector<Value> items, const Token& where) {
  if (items.size() != b->rank())
    return failed(where, "buffer '" + b->name + "' has " + std::to_string(b->rank()) + " dimensions, but " +
                             std::to_string(items.size()) + " indices are given");
  bool region = false;
  for (const Value& item : items) region |= item.tag == Value::kSlice;
  Array<Expr> indices;
  Array<Range> ranges;
  int depth = 1;
  for (size_t i = 0; i < items.size(); ++i) {
    DType wanted = b->shape[i]->dtype;
    depth = std::max(depth, items[i].depth);
    if (items[i].tag == Value::kSlice) {
      Value start = items[i].items[0], stop = items[i].items[1];
      if (start.tag == Value::kNone) start = Value::integer(0);
      if (stop.tag == Value::kNone) stop = Value::of(b->shape[i]);
      Range r = rangeOf(start, stop, where, wanted);
      if (!r) return Value();
      ranges.push_back(r);
      continue;
    }
    Expr e = toExpr(items[i], where, items[i].isNumber() ? wanted : DType::Void());
    if (!e) return Value();
    if (!e->dtype.isInteger()) return failed(where, "an index is an integer, not " + e->dtype.str());
    if (region)
      ranges.push_back(range(e, make<const IntImmNode>(e->dtype.scalar(), 1)));
    else {
      if (e->dtype.isVector() && i + 1 != items.size())
        return failed(where, "only the last index may be a vector");
      indices.push_back(e);
    }
  }
  if (region) return Value::of(make<const BufferRegionNode>(b, ranges), depth + 1);
  return over(placed(make<LoadNode>(b, indices), where), depth, where);
}

Value Parser::attribute(const Value& base, const Token& where) {
  Token name = peek();
  if (!expectKind(TokenKind::kName, "a name after '.'")) return Value();
  std::string text(name.text);
  if (base.tag == Value::kPath) return Value::path(base.text + "." + text);
  if (base.tag == Value::kModule) {
    bool known = !knownFunctions_;
    for (const std::string& f : functionNames_) known |= f == text;
    if (!known)
      return failed(name, "the module has no function '" + text + "'", didYouMean(text, functionNames_));
    return Value::of(globalVar(text));
  }
  if (base.as<BufferNode>()) return bufferAttribute(cast<BufferNode>(base.node), name);
  if (base.is<ExprNode>()) {
    if (text == "dtype") return Value::string(base.as<ExprNode>()->dtype.str());
    if (findForm("Expr." + text)) return {.tag = Value::kPath, .text = "Expr." + text, .items = {base}};
  }
  return failed(where, describe(base) + " has no attribute '" + text + "'");
}

Value Parser::bufferAttribute(const Buffer& b, const Token& name) {
  std::string text(name.text);
  if (text == "data") return Value::of(b->data);
  if (text == "shape") return Value::listOf(b->shape);
  if (text == "strides") return Value::listOf(b->strides);
  if (text == "elem_offset")
    return Value::of(b->elemOffset ? b->elemOffset
                                   : intImm(0, b->shape.empty() ? kInt32 : b->shape[0]->dtype));
  if (text == "dtype") return Value::string(b->dtype.str());
  if (findForm("Buffer." + text))
    return {.tag = Value::kPath, .text = "Buffer." + text, .items = {Value::of(b)}};
  return failed(name, "buffers have no attribute '" + text + "'",
                didYouMean(text, {"data", "shape", "strides", "elem_offset", "dtype", "access_ptr", "vload",
                                  "vstore", "scope"}));
}

} // namespace bevel::detail
