// Calls that bind names inside their parentheses, and methods of buffers and scalars.
#include "ir/parser_impl.h"

#include "ir/structural.h"

namespace bevel::detail {

Var Parser::newVar(const Token& name, DType dtype) {
  Var v = var(std::string(name.text), dtype);
  bind(v->name, Value::of(v));
  return v;
}

/// Where the arguments of a call begin; read() reads them in the order that the form needs.
bool Parser::argumentPlaces(Args& args) {
  take(); // (
  while (!at(")")) {
    Token where = peek();
    bool keyword = atKind(TokenKind::kName) && peek(1).is("=");
    if (keyword) take(), take();
    Value place{.tag = Value::kUnread, .number = int64_t(pos_)};
    if (keyword)
      args.kw.emplace_back(std::string(where.text), place), args.kwAt.push_back(where);
    else
      args.pos.push_back(place), args.posAt.push_back(where);
    skipTo(",");
    if (!accept(",")) break;
  }
  args.end = pos_ + 1;
  return expect(")");
}

/// Goes to an argument, which is given.
const Token& Parser::startOf(const Args& args, std::string_view key) {
  pos_ = size_t(args.find(key)->number);
  return peek();
}

bool Parser::argumentEnds() {
  return at(",") || at(")") || failed(peek(), "expected ',' or ')', found " + found(peek()));
}

Value Parser::read(const Args& args, std::string_view key) {
  startOf(args, key);
  Value v = expr();
  return v.ok() && argumentEnds() ? v : Value();
}

std::optional<Token> Parser::readName(const Args& args, std::string_view key) {
  Token name = startOf(args, key);
  if (!expectKind(TokenKind::kName, "a variable name") || !argumentEnds()) return std::nullopt;
  return name;
}

/// T.let(x, value, body)
Value Parser::tLet(Args& args) {
  auto name = readName(args, "var");
  Value value = name ? read(args, "value") : Value();
  Expr v = toExpr(value, args.where("value"));
  if (!v) return Value();
  Scope scope(*this);
  Var x = newVar(*name, v->dtype);
  Value body = read(args, "body");
  Expr b = toExpr(body, args.where("body"));
  return b ? over(make<const LetNode>(x, v, b), std::max(value.depth, body.depth), args.at) : Value();
}

/// T.Let(body, where={x: value})
Value Parser::tLetWhere(Args& args) {
  startOf(args, "where");
  if (!expect("{")) return Value();
  std::vector<std::pair<Var, Expr>> lets;
  Scope scope(*this);
  int depth = 1;
  while (!at("}")) {
    Token name = peek();
    if (!expectKind(TokenKind::kName, "a variable name") || !expect(":")) return Value();
    Token valueAt = peek();
    Value value = expr();
    Expr v = toExpr(value, valueAt);
    if (!v) return Value();
    depth = std::max(depth, value.depth);
    lets.emplace_back(newVar(name, v->dtype), v);
    if (!accept(",")) break;
  }
  if (!expect("}") || !argumentEnds()) return Value();
  Value body = read(args, "expr");
  Expr b = toExpr(body, args.at);
  if (!b) return Value();
  for (size_t i = lets.size(); i-- > 0;) b = make<const LetNode>(lets[i].first, lets[i].second, b);
  return over(b, std::max(depth, body.depth) + int(lets.size()) - 1, args.at);
}

/// `lambda x, y: …`: its parameters, whose dtypes are asked by position, and what it gives.
bool Parser::lambda(Array<Var>& params, Value& result, FunctionRef<DType(size_t)> dtype) {
  Scope scope(*this);
  if (!expect("lambda")) return false;
  while (!at(":")) {
    Token name = peek();
    if (!expectKind(TokenKind::kName, "a parameter")) return false;
    params.push_back(newVar(name, dtype(params.size())));
    if (!accept(",")) break;
  }
  if (!expect(":")) return false;
  result = expr();
  return result.ok();
}

/// T.comm_reducer([identity, …], lambda x, y: …), or the lambda first.
Value Parser::tCommReducer(Args& args) {
  bool lambdaFirst = startOf(args, "combiner").is("lambda");
  Value list = read(args, lambdaFirst ? "identity" : "combiner"), result;
  if (!list.ok()) return list;
  Array<Expr> identity, results;
  if (!list.isSequence() || !exprList(list, identity, args.at))
    return failed(args.at, "expected the list of identities");
  size_t n = identity.size();
  if (n == 0) return failed(args.at, "a reduction has at least one identity");
  Array<Var> params;
  startOf(args, lambdaFirst ? "combiner" : "identity");
  if (!lambda(params, result, [&](size_t i) { return identity[i % n]->dtype; })) return Value();
  if (params.size() != 2 * n)
    return failed(args.at,
                  "the combiner takes " + std::to_string(2 * n) + " parameters, two for each identity");
  if (result.parts().size() != n)
    return failed(args.at, "the combiner gives " + std::to_string(result.parts().size()) + " values for " +
                               std::to_string(n) + " identities");
  for (const Value& v : result.parts()) {
    results.push_back(coerce(v, identity[results.size()]->dtype, args.at, "the combiner's result"));
    if (!results.back()) return Value();
  }
  return Value::of(make<const CombinerNode>(params.slice(0, n), params.slice(n, 2 * n), results, identity));
}

/// T.reduce(combiner, source=[…], init=[…], axis=[T.iter_var(k, …)], condition=…, value_index=0): the axes are
/// read first, because they bind names.
Value Parser::tReduce(Args& args) {
  Value first = read(args, "combiner");
  Combiner combiner = first.to<CombinerNode>();
  if (!combiner) return first.ok() ? failed(args.at, "expected T.comm_reducer(…)") : Failed();
  Scope scope(*this);
  Array<IterVar> axes;
  Array<Expr> lists[2];
  Expr condition;
  int64_t index = 0;
  int depth = 1;
  for (std::string_view key : {"axis", "source", "init", "condition", "value_index"}) {
    if (!args.find(key)) continue;
    const Token& where = args.where(key);
    Value v = read(args, key);
    depth = std::max(depth, v.depth);
    if (!v.ok()) return v;
    if (key == "axis" && v.isSequence()) {
      if (!collect(v.items, axes, [](const Value& item) { return item.to<IterVarNode>(); }))
        return failed(where, "expected a list of T.iter_var(…)");
    } else if ((key == "source" || key == "init") && v.isSequence()) {
      Array<Expr>& list = lists[key == "init"];
      if (!v.items.empty() && v.items.size() != combiner->identity.size())
        return failed(where, "expected one value for each identity");
      auto operand = [&](const Value& item) {
        depth = std::max(depth, item.depth);
        return coerce(item, combiner->identity[list.size()]->dtype, where, "the operand of a reduction");
      };
      if (!collect(v.items, list, operand)) return Value();
    } else if (key == "condition") {
      condition = coerce(v, kBool, where, "the condition");
      if (!condition) return Value();
    } else if (key == "value_index" && v.tag == Value::kInt)
      index = v.number;
    else
      return failed(where, "unexpected argument '" + std::string(key) + "' of T.reduce");
  }
  const auto& [source, init] = lists;
  if (source.size() != combiner->identity.size())
    return failed(args.at, "T.reduce needs source=[…] with one value for each identity");
  if (index < 0 || size_t(index) >= source.size())
    return failed(args.at, "value_index is outside the results");
  return over(make<const ReduceNode>(combiner, axes, source, init, condition, index), depth, args.at);
}

/// T.iter_var(k, T.Range(0, 16), "reduce"): binds k in the scope around.
Value Parser::tIterVar(Args& args) {
  auto name = readName(args, "var");
  Value domain = name ? read(args, "dom") : Value(), kind = domain.ok() ? read(args, "iter_type") : Value();
  if (!kind.ok() || (args.find("thread_tag") && !read(args, "thread_tag").ok())) return Value();
  Range r = domain.to<RangeNode>();
  if (!r) return failed(args.at, "expected T.Range(start, stop)");
  constexpr const char* kOthers[] = {"DataPar", "CommReduce", nullptr, "ThreadIndex"};
  for (int i = 0; i < 4 && kind.tag == Value::kString; ++i)
    if (kind.text == kIterTypeNames[i] || (kOthers[i] && kind.text == kOthers[i]))
      return Value::declared(make<const IterVarNode>(r, newVar(*name, r->extent->dtype), IterType(i)));
  return failed(args.at, "unknown kind of axis", "use \"spatial\", \"reduce\", \"scan\" or \"opaque\"");
}

// ---- methods

/// x.astype("float32")
Value Parser::exprAstype(Args& args) {
  DType dtype = dtypeArg(args, "dtype");
  Expr x = toExpr(args.self, args.at);
  if (!x) return Value();
  return Value::of(make<const CastNode>(dtype.withLanes(x->dtype.lanes), x), args.self.depth + 1);
}

Value Parser::bufferScope(Args& args) {
  return Value::string(args.self.as<BufferNode>()->scope);
}

/// A.access_ptr("r")
Value Parser::bufferAccessPtr(Args& args) {
  const BufferNode* b = args.self.as<BufferNode>();
  const Value& mode = *args.find("access_mask");
  int64_t mask = mode.tag == Value::kInt ? mode.number : 0;
  if (mode.tag == Value::kString)
    for (char c : mode.text) mask |= c == 'r' ? 1 : c == 'w' ? 2 : 4;
  if (mask < 1 || mask > 3) return failed(args.at, "access_ptr needs \"r\", \"w\" or \"rw\"");
  auto lanes = intArg(args, "content_lanes", 1);
  if (lanes < 1 || lanes > 1024) return failed(args.at, "content_lanes is out of range");
  DType index = b->shape.empty() ? kInt32 : b->shape[0]->dtype;
  Expr offset = args.find("offset") ? exprArg(args, "offset", index) : intImm(0, index);
  Expr extent;
  if (args.given("extent"))
    extent = exprArg(args, "extent", index);
  else if (!b->strides.empty())
    extent = b->strides[0] * b->shape[0];
  else {
    extent = intImm(1, index);
    for (const Expr& d : b->shape) extent = extent * d;
  }
  if (!offset || !extent) return Value();
  if (!offset->dtype.isInt() || !extent->dtype.isInt() || offset->dtype.isVector())
    return failed(args.at, "offset and extent are integers");
  if (!args.find("extent")) extent = extent - offset;
  Expr begin = b->elemOffset ? b->elemOffset + offset : offset;
  Expr type = callAs(b->dtype.withLanes(int(lanes)), Intrin::kTypeAnnotation, {});
  return Value::of(
      callAs(DType::Handle(), Intrin::kAccessPtr, {type, b->data, begin, extent, intImm(mask, kInt32)}), 64);
}

/// A.vload([i], predicate=p), A.vstore([i], value, predicate=p)
Value Parser::bufferVector(Args& args) {
  auto b = args.self.to<BufferNode>();
  const Value &list = *args.find("begin"), *stored = args.find("value");
  if (!list.isSequence()) return failed(args.at, args.name + " takes a list of indices");
  Value place = indexBuffer(b, list.items, args.at);
  if (!place.ok()) return place;
  if (!place.is<LoadNode>()) return failed(args.at, args.name + " takes indices, not slices");
  const auto& load = *place.as<LoadNode>();
  Expr predicate, value;
  if (stored && !(value = coerce(*stored, load.dtype, args.where("value"), "the stored value")))
    return Value();
  if (const Value* p = args.given("predicate")) {
    DType lanes = DType::Bool(load.dtype.lanes / b->dtype.lanes);
    predicate = coerce(*p, lanes, args.where("predicate"), "the predicate");
    if (!predicate) return Value();
  }
  if (!stored) return Value::of(make<const LoadNode>(b, load.indices, predicate), place.depth + 1);
  add(make<StoreNode>(b, value, load.indices, predicate), args.at);
  return Value::done();
}

} // namespace bevel::detail
