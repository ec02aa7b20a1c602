// Calls that bind names inside their parentheses, and methods of buffers.
#include "ir/parser_impl.h"

#include "ir/structural.h"

namespace bevel::detail {

std::optional<size_t> findInside(const std::vector<Token>& tokens, size_t i, std::string_view text,
                                 bool last) {
  int depth = 0;
  std::optional<size_t> found;
  for (; i < tokens.size() && depth >= 0; ++i) {
    const Token& t = tokens[i];
    if (depth == 0 && t.is(text)) {
      found = i;
      if (!last) return found;
    }
    if (t.is("(") || t.is("[") || t.is("{")) ++depth;
    if (t.is(")") || t.is("]") || t.is("}")) --depth;
    if (t.kind == TokenKind::kEnd) break;
  }
  return found;
}

Value Parser::letForm(const Token& where) {
  take();
  Token name = peek();
  if (!expectKind(TokenKind::kName, "a variable name: T.let(x, value, body)") || !expect(",")) return Value();
  Token valueAt = peek();
  Value value = expr();
  if (!value.ok() || !expect(",")) return Value();
  Expr v = toExpr(value, valueAt);
  if (!v) return Value();
  Var x = var(std::string(name.text), v->dtype);
  pushScope();
  bind(x->name, Value::of(x));
  Token bodyAt = peek();
  Value body = expr();
  popScope();
  if (!body.ok() || !expect(")")) return Value();
  Expr b = toExpr(body, bodyAt);
  int depth = std::max(value.depth, body.depth) + 1;
  if (!b || tooDeep(depth, where)) return Value();
  return Value::of(make<const LetNode>(x, v, b), depth);
}

Value Parser::letWhereForm(const Token& where) {
  take();
  size_t begin = pos_;
  auto clause = findInside(tokens_, pos_, "where", false);
  if (!clause || !tokens_[*clause + 1].is("=")) return failed(where, "T.Let needs where={x: value}");
  pos_ = *clause + 2;
  if (!expect("{")) return Value();
  std::vector<std::pair<Var, Expr>> lets;
  pushScope();
  int depth = 1;
  auto stop = [&] {
    popScope();
    return Value();
  };
  while (!at("}")) {
    Token name = peek();
    if (!expectKind(TokenKind::kName, "a variable name") || !expect(":")) return stop();
    Token valueAt = peek();
    Value value = expr();
    Expr v = value.ok() ? toExpr(value, valueAt) : Expr();
    if (!v) return stop();
    depth = std::max(depth, value.depth);
    Var x = var(std::string(name.text), v->dtype);
    bind(x->name, Value::of(x));
    lets.emplace_back(x, v);
    if (!accept(",")) break;
  }
  if (!expect("}") || !at(")")) return stop();
  size_t end = pos_;
  pos_ = begin;
  Value body = expr();
  Expr b = body.ok() ? toExpr(body, where) : Expr();
  popScope();
  if (!b || !expect(",")) return Value();
  if (pos_ != *clause) return failed(peek(), "T.Let takes a body and where={x: value}");
  pos_ = end;
  take();
  depth = std::max(depth, body.depth) + int(lets.size());
  if (tooDeep(depth, where)) return Value();
  for (size_t i = lets.size(); i-- > 0;) b = make<const LetNode>(lets[i].first, lets[i].second, b);
  return Value::of(b, depth);
}

Value Parser::lambdaForm(const std::vector<Expr>& identity, const Token& where) {
  if (!expect("lambda")) return Value();
  size_t n = identity.size();
  Array<Var> sides[2];
  pushScope();
  auto stop = [&] {
    popScope();
    return Value();
  };
  for (size_t i = 0; i < 2 * n; ++i) {
    Token name = peek();
    if ((i && !expect(",")) || (name = peek(), !expectKind(TokenKind::kName, "a parameter"))) return stop();
    Var v = var(std::string(name.text), identity[i % n]->dtype);
    bind(v->name, Value::of(v));
    sides[i / n].push_back(v);
  }
  if (!expect(":")) return stop();
  Value result = expr();
  Array<Expr> results;
  bool ok = result.ok();
  if (ok && !result.isSequence()) {
    Value one = result;
    result = Value();
    result.tag = Value::kTuple, result.items = {one};
  }
  if (ok && result.items.size() != n)
    ok = report(where, "the combiner gives " + std::to_string(result.items.size()) + " values for " +
                           std::to_string(n) + " identities");
  for (size_t i = 0; ok && i < n; ++i) {
    Expr e = coerce(result.items[i], identity[i]->dtype, where, "the combiner's result");
    ok = bool(e);
    results.push_back(e);
  }
  popScope();
  if (!ok) return Value();
  Array<Expr> ids;
  for (const Expr& e : identity) ids.push_back(e);
  return Value::of(make<const CombinerNode>(sides[0], sides[1], results, ids));
}

/// T.comm_reducer([identity, …], lambda x, y: …), or the lambda first.
Value Parser::combinerForm(const Token& where) {
  take();
  size_t begin = pos_;
  bool lambdaFirst = at("lambda");
  if (lambdaFirst) {
    auto comma = findInside(tokens_, pos_, ",", true);
    if (!comma) return failed(where, "T.comm_reducer takes a lambda and the list of identities");
    pos_ = *comma + 1;
  }
  Value list = expr();
  if (!list.ok()) return list;
  Array<Expr> identity;
  if (!list.isSequence() || !exprList(list, identity, where))
    return failed(where, "expected the list of identities");
  std::vector<Expr> ids(identity.begin(), identity.end());
  if (ids.empty()) return failed(where, "a reduction has at least one identity");
  size_t end = pos_;
  if (lambdaFirst)
    pos_ = begin;
  else if (!expect(","))
    return Value();
  Value combiner = lambdaForm(ids, where);
  if (!combiner.ok()) return combiner;
  if (lambdaFirst) pos_ = end;
  return expect(")") ? combiner : Value();
}

/// T.reduce(combiner, axis=[T.iter_var(k, …)], source=[…], init=[…], condition=…, value_index=0): the axes
/// come first, because they bind names.
Value Parser::reduceForm(const Token& where) {
  take();
  Value combiner = expr();
  if (!combiner.ok() || !expect(",")) return Value();
  if (!combiner.as<CombinerNode>()) return failed(where, "expected T.comm_reducer(…)");
  const auto& c = *combiner.as<CombinerNode>();
  Array<IterVar> axes;
  Array<Expr> source, init;
  Expr condition;
  int64_t index = 0;
  int depth = 1;
  pushScope();
  auto part = [&]() -> bool {
    Token key = peek();
    if (!expectKind(TokenKind::kName, "axis=, source=, init=, condition= or value_index=") || !expect("="))
      return false;
    Value v = expr();
    depth = std::max(depth, v.depth);
    if (!v.ok()) return false;
    if (key.is("axis") && v.isSequence()) {
      for (const Value& item : v.items) {
        if (!item.as<IterVarNode>()) return report(key, "expected a list of T.iter_var(…)");
        axes.push_back(cast<IterVarNode>(item.node));
      }
      return true;
    }
    Array<Expr>* list = key.is("source") ? &source : key.is("init") ? &init : nullptr;
    if (list && v.isSequence()) {
      for (size_t i = 0; i < v.items.size() && i < c.identity.size(); ++i) {
        Expr e = coerce(v.items[i], c.identity[i]->dtype, key, "the operand of a reduction");
        if (!e) return false;
        depth = std::max(depth, v.items[i].depth);
        list->push_back(e);
      }
      return v.items.size() == c.identity.size() || v.items.empty() ||
             report(key, "expected one value for each identity");
    }
    if (key.is("condition")) return bool(condition = coerce(v, kBool, key, "the condition"));
    if (key.is("value_index") && v.tag == Value::kInt) return index = v.number, true;
    return report(key, "unexpected argument '" + std::string(key.text) + "' of T.reduce");
  };
  bool ok = true;
  while (ok && !at(")")) ok = part() && (accept(",") || at(")") || expect(")"));
  popScope();
  if (!ok || !expect(")")) return Value();
  if (source.size() != c.identity.size())
    return failed(where, "T.reduce needs source=[…] with one value for each identity");
  if (index < 0 || size_t(index) >= source.size()) return failed(where, "value_index is outside the results");
  if (tooDeep(depth + 1, where)) return Value();
  return Value::of(make<const ReduceNode>(combiner.node.is<CombinerNode>() ? cast<CombinerNode>(combiner.node)
                                                                           : Combiner(),
                                          axes, source, init, condition, index),
                   depth + 1);
}

/// T.iter_var(k, T.Range(0, 16), "reduce"): binds k in the scope around.
Value Parser::iterVarForm(const Token& where) {
  take();
  Token name = peek();
  if (!expectKind(TokenKind::kName, "a variable name") || !expect(",")) return Value();
  Value domain = expr();
  if (!domain.ok() || !expect(",")) return Value();
  Value kind = expr();
  if (!kind.ok()) return kind;
  if (accept(",") && !at(")") && !expr().ok()) return Value(); // a thread tag
  if (!expect(")")) return Value();
  Range r = domain.as<RangeNode>() ? cast<RangeNode>(domain.node) : Range();
  if (!r) return failed(where, "expected T.Range(start, stop)");
  int type = -1;
  for (int i = 0; i < 4; ++i)
    if (kind.tag == Value::kString && kind.text == kIterTypeNames[i]) type = i;
  if (kind.tag == Value::kString && kind.text == "DataPar") type = 0;
  if (kind.tag == Value::kString && kind.text == "CommReduce") type = 1;
  if (kind.tag == Value::kString && kind.text == "ThreadIndex") type = 3;
  if (type < 0)
    return failed(where, "unknown kind of axis", "use \"spatial\", \"reduce\", \"scan\" or \"opaque\"");
  Var v = var(std::string(name.text), r->extent->dtype);
  bind(v->name, Value::of(v));
  return Value::declared(make<const IterVarNode>(r, v, IterType(type)));
}

/// A.access_ptr("r"), A.vload([i], predicate=p), A.vstore([i], value, predicate=p), A.scope().
Value Parser::bufferMethod(const Buffer& b, const std::string& method, Args& args) {
  args.name = b->name + "." + method;
  std::string_view arguments = method == "scope" ? ""
                               : method == "access_ptr"
                                   ? "access_mask ptr_type? content_lanes? offset? extent?"
                               : method == "vstore" ? "begin|indices value predicate?"
                                                    : "begin|indices dtype? predicate?";
  if (!bindArguments(args, arguments)) return Value();
  if (method == "scope") return Value::string(b->scope);
  if (method == "access_ptr") {
    const Value* mode = args.find("access_mask");
    int64_t mask = 0;
    if (mode && mode->tag == Value::kInt) mask = mode->number;
    if (mode && mode->tag == Value::kString)
      for (char c : mode->text) mask |= c == 'r' ? 1 : c == 'w' ? 2 : 4;
    if (mask < 1 || mask > 3) return failed(args.at, "access_ptr needs \"r\", \"w\" or \"rw\"");
    auto lanes = intArg(args, "content_lanes", 1);
    if (!lanes || *lanes < 1 || *lanes > 1024)
      return lanes ? failed(args.at, "content_lanes is out of range") : Value();
    DType index = b->shape.empty() ? kInt32 : b->shape[0]->dtype;
    Expr offset = args.find("offset") ? exprArg(args, "offset", index) : intImm(0, index);
    Expr extent;
    if (args.given("extent")) {
      extent = exprArg(args, "extent", index);
      if (!extent) return Value();
    } else if (!b->strides.empty())
      extent = b->strides[0] * b->shape[0];
    else {
      extent = intImm(1, index);
      for (const Expr& d : b->shape) extent = extent * d;
    }
    if (!offset) return Value();
    if (!offset->dtype.isInt() || !extent->dtype.isInt() || offset->dtype.isVector())
      return failed(args.at, "offset and extent are integers");
    bool given = args.find("extent");
    if (!given) extent = extent - offset;
    Expr begin = b->elemOffset ? b->elemOffset + offset : offset;
    Expr type = callAs(b->dtype.withLanes(int(*lanes)), Intrin::kTypeAnnotation, {});
    return Value::of(
        callAs(DType::Handle(), Intrin::kAccessPtr, {type, b->data, begin, extent, intImm(mask, kInt32)}),
        64);
  }
  bool isStore = method == "vstore";
  const Value* list = args.find("begin");
  if (!list || !list->isSequence()) return failed(args.at, args.name + " takes a list of indices");
  Value place = indexBuffer(b, list->items, args.at);
  if (!place.ok()) return place;
  if (!place.as<LoadNode>()) return failed(args.at, args.name + " takes indices, not slices");
  const auto& load = *place.as<LoadNode>();
  Expr predicate, value;
  if (isStore) {
    value = coerce(*args.find("value"), load.dtype, args.where("value"), "the stored value");
    if (!value) return Value();
  } else
    (void)dtypeArg(args, "dtype", b->dtype);
  if (const Value* p = args.given("predicate")) {
    predicate =
        coerce(*p, DType::Bool(load.dtype.lanes / b->dtype.lanes), args.where("predicate"), "the predicate");
    if (!predicate) return Value();
  }
  if (!isStore) return Value::of(make<const LoadNode>(b, load.indices, predicate), place.depth + 1);
  if (!frame_) return failed(args.at, "vstore is a statement");
  add(make<StoreNode>(b, value, load.indices, predicate), args.at);
  return Value::done();
}

} // namespace bevel::detail
