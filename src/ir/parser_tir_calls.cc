// Calls of `T.` functions that are expressions.
#include "ir/parser_impl.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace bevel::detail {

const std::vector<Parser::Named>& Parser::tirHandlers() {
  static const std::vector<Named> table = {{"T.Select", &Parser::tSelect},
                                           {"T.Cast", &Parser::tCast},
                                           {"T.cast", &Parser::tCastOld},
                                           {"T.Ramp", &Parser::tRamp},
                                           {"T.ramp", &Parser::tRamp},
                                           {"T.Broadcast", &Parser::tBroadcast},
                                           {"T.broadcast", &Parser::tBroadcast},
                                           {"T.Shuffle", &Parser::tShuffle},
                                           {"T.min", &Parser::tMin},
                                           {"T.max", &Parser::tMax},
                                           {"T.truncdiv", &Parser::tTruncDiv},
                                           {"T.truncmod", &Parser::tTruncMod},
                                           {"T.div", &Parser::tTruncDiv},
                                           {"T.Div", &Parser::tTruncDiv},
                                           {"T.floordiv", &Parser::tFloorDiv},
                                           {"T.floormod", &Parser::tFloorMod},
                                           {"T.FloorDiv", &Parser::tFloorDiv},
                                           {"T.FloorMod", &Parser::tFloorMod},
                                           {"T.ceildiv", &Parser::tCeilDiv},
                                           {"T.shift_left", &Parser::tShiftLeft},
                                           {"T.shift_right", &Parser::tShiftRight},
                                           {"T.bitwise_and", &Parser::tBitAnd},
                                           {"T.bitwise_or", &Parser::tBitOr},
                                           {"T.bitwise_xor", &Parser::tBitXor},
                                           {"T.bitwise_not", &Parser::tBitNot},
                                           {"T.And", &Parser::tAnd},
                                           {"T.Or", &Parser::tOr},
                                           {"T.all", &Parser::tAnd},
                                           {"T.any", &Parser::tOr},
                                           {"T.Not", &Parser::tNot},
                                           {"T.Range", &Parser::tRange},
                                           {"T.region", &Parser::tRegion},
                                           {"T.handle", &Parser::tHandle},
                                           {"T.var", &Parser::tVar},
                                           {"T.Var", &Parser::tVar},
                                           {"T.infinity", &Parser::tInfinity},
                                           {"T.min_value", &Parser::tMinValue},
                                           {"T.max_value", &Parser::tMaxValue}};
  return table;
}

Value Parser::callTir(Args& args) {
  for (const auto* table : {&tirHandlers(), &tirDeclHandlers()})
    for (const Named& n : *table)
      if (n.name == args.name) return (this->*n.handler)(args);
  std::string_view name = std::string_view(args.name).substr(2);
  if (auto dtype = DType::parse(name)) return dtypeCall(*dtype, args);
  for (int i = 0; i < numIntrins(); ++i)
    if (name == intrinInfo(Intrin(i)).name) return intrinsic(Intrin(i), args);
  std::vector<std::string> candidates = {"T.grid",   "T.serial",         "T.parallel", "T.vectorized",
                                         "T.unroll", "T.thread_binding", "T.sblock",   "T.init"};
  for (const auto* table : {&tirHandlers(), &tirDeclHandlers()})
    for (const Named& n : *table) candidates.emplace_back(n.name);
  for (int i = 0; i < numIntrins(); ++i) candidates.push_back(std::string("T.") + intrinInfo(Intrin(i)).name);
  if (std::find(candidates.begin(), candidates.end(), args.name) != candidates.end())
    return failed(args.at, "'" + args.name + "' has no meaning here");
  return failed(args.at, "unknown function '" + args.name + "'", didYouMean(args.name, candidates));
}

/// T.exp(x), T.call_extern("int32", "f", …): the dtype by the notation table, keywords as attributes.
Value Parser::intrinsic(Intrin op, Args& args) {
  const IntrinInfo& info = intrinInfo(op);
  std::optional<DType> dtype;
  if (args.find(Args::kKeywordOnly, "dtype")) {
    dtype = dtypeArg(args, Args::kKeywordOnly, "dtype", DType::Void());
    if (!dtype) return Value();
  }
  size_t first = 0;
  if (info.rule == DTypeRule::kDTypeFirst && !dtype) {
    if (!need(args, 0, "dtype")) return Value();
    dtype = dtypeOf(args.pos.empty() ? *args.find(0, "dtype") : args.pos[0], args.at);
    if (!dtype) return Value();
    first = 1;
  }
  size_t count = args.pos.size() - std::min(first, args.pos.size());
  if (info.arity >= 0 && count != size_t(info.arity))
    return failed(args.at, args.name + " takes " + std::to_string(info.arity) + " argument" +
                               (info.arity == 1 ? "" : "s") + ", but " + std::to_string(count) +
                               " are given");
  DType shared; // of the arguments that bare numbers follow
  if (info.adapts >= 0)
    for (size_t i = first + size_t(info.adapts); i < args.pos.size() && shared.isVoid(); ++i)
      if (auto* e = args.pos[i].as<ExprNode>()) shared = e->dtype;
  Array<NodeRef> values;
  int depth = 1;
  for (size_t i = first; i < args.pos.size(); ++i) {
    const Value& v = args.pos[i];
    depth = std::max(depth, v.depth + 1);
    bool asIs = v.tag == Value::kNode &&
                (v.node.is<BufferNode>() || v.node.is<BufferRegionNode>() || v.node.is<GlobalVarNode>() ||
                 v.node.is<IterVarNode>() || v.node.is<ListNode>());
    bool adapts = info.adapts >= 0 && int(i - first) >= info.adapts;
    NodeRef node = asIs             ? v.node
                   : v.isSequence() ? attrNode(v, args.posAt[i])
                                    : NodeRef(toExpr(v, args.posAt[i], adapts ? shared : DType::Void()));
    if (!node) return Value();
    values.push_back(node);
  }
  args.taken = args.pos.size();
  if (op == Intrin::kIfThenElse) {
    Expr c = coerce(args.pos[first], kBool, args.at, "the condition");
    auto *x = values[1].as<ExprNode>(), *y = values[2].as<ExprNode>();
    if (!c || !x || !y) return c ? failed(args.at, "both sides are scalar expressions") : Value();
    Expr a = Expr(x), b = Expr(y);
    if (!meet(a, b, args.at)) return Value();
    values = {c, a, b};
  }
  bool typed =
      info.rule == DTypeRule::kSame || info.rule == DTypeRule::kBoolLanes || info.rule == DTypeRule::kLane;
  if (typed && (values.empty() || !values[0].is<ExprNode>() || values[0].is<StringImmNode>()))
    return failed(args.at, args.name + " takes a scalar expression");
  std::vector<std::pair<std::string, NodeRef>> attrs;
  bool any = false;
  args.takenKeywords.resize(args.kw.size());
  Dict whole;
  for (size_t k = 0; k < args.kw.size(); ++k) {
    if (args.takenKeywords[k]) continue;
    args.takenKeywords[k] = any = true;
    NodeRef node = args.kw[k].first == "attrs" ? NodeRef(attrDict(args.kw[k].second, args.kwAt[k]))
                                               : attrNode(args.kw[k].second, args.kwAt[k]);
    if (!node) return Value();
    if (args.kw[k].first == "attrs")
      whole = cast<DictNode>(node);
    else
      attrs.emplace_back(args.kw[k].first, node);
  }
  if (tooDeep(depth, args.at)) return Value();
  DType result = dtype ? *dtype : impliedDType(op, values);
  Dict keywords = whole ? whole : any ? dict(std::move(attrs)) : Dict();
  return Value::of(placed(make<CallNode>(result, op, values, keywords), args.at), depth);
}

/// T.int64(): a new symbol; T.int64(3), T.float32("nan"): a constant; T.int64(x): a conversion.
Value Parser::dtypeCall(DType dtype, Args& args) {
  args.find(Args::kKeywordOnly, "is_size_var");
  if (args.pos.empty()) {
    if (!finish(args)) return Value();
    std::string name = targetName("v");
    if (const Value* known = lookup(name))
      if (auto* v = known->as<VarNode>(); v && undeclared_.contains(v) && v->dtype == dtype) {
        undeclared_.erase(v);
        Value same = *known;
        same.fresh = true;
        return same;
      }
    return Value::declared(var(name, dtype));
  }
  const Value* v = args.find(0, "expr");
  if (!finish(args)) return Value();
  if (v->tag == Value::kString && dtype.isFloat()) {
    double value = v->text == "inf"    ? HUGE_VAL
                   : v->text == "-inf" ? -HUGE_VAL
                                       : std::numeric_limits<double>::quiet_NaN();
    if (v->text != "inf" && v->text != "-inf" && v->text != "nan")
      return failed(args.at, "expected \"inf\", \"-inf\" or \"nan\"");
    return Value::of(constantFloat(dtype, value));
  }
  if (v->isNumber()) {
    if (v->tag == Value::kBool && !dtype.isBool()) return Value::of(constant(dtype, v->number));
    return Value::of(literal(*v, dtype, args.at));
  }
  Expr e = toExpr(*v, args.at);
  if (!e) return Value();
  if (e->dtype == dtype) return Value::of(e, v->depth);
  if (e->dtype.lanes != dtype.lanes || e->dtype.isString() || e->dtype.isHandle())
    return failed(args.at, "cannot convert " + e->dtype.str() + " to " + dtype.str());
  return Value::of(make<const CastNode>(dtype, e), v->depth + 1);
}

Value Parser::callBinary(BinaryOp op, Args& args) {
  if (args.pos.size() < 2) return failed(args.at, args.name + " takes two arguments");
  bool many = op == BinaryOp::kAnd || op == BinaryOp::kOr || op == BinaryOp::kMin || op == BinaryOp::kMax;
  args.taken = many ? args.pos.size() : 2;
  if (args.find(Args::kKeywordOnly, "span") || !finish(args)) return Value();
  Value result = args.pos[0];
  for (size_t i = 1; i < args.pos.size() && result.ok(); ++i) {
    bool bothBare = result.isNumber() && args.pos[i].isNumber();
    Value left =
        bothBare
            ? Value::of(literal(result,
                                result.tag == Value::kInt && args.pos[i].tag == Value::kFloat ? kFloat32
                                                                                              : DType::Void(),
                                args.at))
            : result;
    if (!left.ok()) return left;
    result = makeBinary(op, left, args.pos[i], args.at);
  }
  return result;
}

Value Parser::tMin(Args& a) {
  return callBinary(BinaryOp::kMin, a);
}
Value Parser::tMax(Args& a) {
  return callBinary(BinaryOp::kMax, a);
}
Value Parser::tTruncDiv(Args& a) {
  return callBinary(BinaryOp::kDiv, a);
}
Value Parser::tTruncMod(Args& a) {
  return callBinary(BinaryOp::kMod, a);
}
Value Parser::tFloorDiv(Args& a) {
  return callBinary(BinaryOp::kFloorDiv, a);
}
Value Parser::tFloorMod(Args& a) {
  return callBinary(BinaryOp::kFloorMod, a);
}
Value Parser::tShiftLeft(Args& a) {
  return callBinary(BinaryOp::kShl, a);
}
Value Parser::tShiftRight(Args& a) {
  return callBinary(BinaryOp::kShr, a);
}
Value Parser::tBitAnd(Args& a) {
  return callBinary(BinaryOp::kBitAnd, a);
}
Value Parser::tBitOr(Args& a) {
  return callBinary(BinaryOp::kBitOr, a);
}
Value Parser::tBitXor(Args& a) {
  return callBinary(BinaryOp::kBitXor, a);
}
Value Parser::tAnd(Args& a) {
  return callBinary(BinaryOp::kAnd, a);
}
Value Parser::tOr(Args& a) {
  return callBinary(BinaryOp::kOr, a);
}

Value Parser::tNot(Args& args) {
  if (!need(args, 0, "a")) return Value();
  Value v = *args.find(0, "a");
  return finish(args) ? applyUnary("not", v, args.at) : Value();
}
Value Parser::tBitNot(Args& args) {
  if (!need(args, 0, "a")) return Value();
  Value v = *args.find(0, "a");
  return finish(args) ? applyUnary("~", v, args.at) : Value();
}

/// T.ceildiv(a, b) = (a + b - 1) // b
Value Parser::tCeilDiv(Args& args) {
  if (!need(args, 0, "a") || !need(args, 1, "b")) return Value();
  Value a = *args.find(0, "a"), b = *args.find(1, "b");
  if (!finish(args)) return Value();
  Value sum = applyBinary("-", applyBinary("+", a, b, args.at), Value::integer(1), args.at);
  return applyBinary("//", sum, b, args.at);
}

Value Parser::tSelect(Args& args) {
  if (!need(args, 0, "condition") || !need(args, 1, "true_value") || !need(args, 2, "false_value"))
    return Value();
  const Value &c = *args.find(0, "condition"), &a = *args.find(1, "true_value"),
              &b = *args.find(2, "false_value");
  Expr x, y;
  if (!finish(args) || !toExprs(a, b, x, y, args.at)) return Value();
  Expr condition = toExpr(c, args.where(0, "condition"), kBool);
  if (!condition) return Value();
  DType t = condition->dtype;
  if (!t.isBool() || (t.lanes != 1 && t.lanes != x->dtype.lanes))
    return failed(args.at, "the condition of T.Select is a bool, not " + t.str());
  int depth = std::max({a.depth, b.depth, c.depth}) + 1;
  return tooDeep(depth, args.at) ? Value() : Value::of(make<const SelectNode>(condition, x, y), depth);
}

Value Parser::tCast(Args& args) {
  if (!need(args, 0, "dtype") || !need(args, 1, "value")) return Value();
  auto dtype = dtypeArg(args, 0, "dtype", DType::Void());
  const Value* v = args.find(1, "value");
  Expr e = dtype ? toExpr(*v, args.where(1, "value")) : Expr();
  if (!e || !finish(args)) return Value();
  if (e->dtype.lanes != dtype->lanes || e->dtype.isString())
    return failed(args.at, "cannot convert " + e->dtype.str() + " to " + dtype->str());
  return tooDeep(v->depth + 1, args.at) ? Value()
                                        : Value::of(placed(make<CastNode>(*dtype, e), args.at), v->depth + 1);
}

/// Older order: T.cast(value, "float32").
Value Parser::tCastOld(Args& args) {
  if (args.pos.size() == 2) std::swap(args.pos[0], args.pos[1]), std::swap(args.posAt[0], args.posAt[1]);
  return tCast(args);
}

Value Parser::tRamp(Args& args) {
  Expr base = exprArg(args, 0, "base"), stride;
  if (base && need(args, 1, "stride"))
    stride = coerce(*args.find(1, "stride"), base->dtype, args.where(1, "stride"), "the stride");
  auto lanes = stride ? intArg(args, 2, "lanes", 0) : std::nullopt;
  if (!lanes || !finish(args)) return Value();
  if (!base->dtype.isInteger() || base->dtype.isVector())
    return failed(args.at, "T.Ramp starts at a scalar integer, not " + base->dtype.str());
  if (*lanes < 2 || *lanes > 65535) return failed(args.at, "T.Ramp has 2 to 65535 lanes");
  return Value::of(make<const RampNode>(base, stride, int(*lanes)),
                   args.pos.empty() ? 2 : args.pos[0].depth + 1);
}

Value Parser::tBroadcast(Args& args) {
  Expr value = exprArg(args, 0, "value");
  auto lanes = value ? intArg(args, 1, "lanes", 0) : std::nullopt;
  if (!lanes || !finish(args)) return Value();
  if (value->dtype.isVector() || value->dtype.isString() || value->dtype.isVoid())
    return failed(args.at, "T.Broadcast repeats a scalar");
  if (*lanes < 2 || *lanes > 65535) return failed(args.at, "T.Broadcast has 2 to 65535 lanes");
  return Value::of(make<const BroadcastNode>(value, int(*lanes)),
                   args.pos.empty() ? 2 : args.pos[0].depth + 1);
}

Value Parser::tShuffle(Args& args) {
  if (!need(args, 0, "vectors") || !need(args, 1, "indices")) return Value();
  Array<Expr> vectors, indices;
  const Value &v = *args.find(0, "vectors"), &i = *args.find(1, "indices");
  if (!finish(args) || !exprList(v, vectors, args.at) || !exprList(i, indices, args.at)) return Value();
  if (vectors.empty() || indices.empty()) return failed(args.at, "T.Shuffle takes vectors and indices");
  int64_t total = 0;
  for (const Expr& e : vectors) {
    total += e->dtype.lanes;
    if (e->dtype.scalar() != vectors[0]->dtype.scalar())
      return failed(args.at, "the vectors of T.Shuffle have one type");
  }
  for (const Expr& e : indices)
    if (auto c = asConst(e); !c || *c < 0 || *c >= total || e->dtype.isVector())
      return failed(args.at, "an index of T.Shuffle is a constant below " + std::to_string(total));
  return Value::of(make<const ShuffleNode>(vectors, indices), 8);
}

Value Parser::tRange(Args& args) {
  if (!need(args, 0, "start") || !need(args, 1, "stop")) return Value();
  Range r = rangeOf(*args.find(0, "start"), *args.find(1, "stop"), args.at);
  return finish(args) ? Value::of(r) : Value();
}

Value Parser::tRegion(Args& args) {
  BufferRegion r;
  if (!need(args, 0, "region") || !toRegion(*args.find(0, "region"), r, args.at) || !finish(args))
    return Value();
  return Value::of(r);
}

/// T.handle(), T.handle("float32", "shared"): a pointer, as a type or a new symbol.
Value Parser::tHandle(Args& args) {
  auto pointee = dtypeArg(args, 0, "dtype", DType::Void());
  auto scope = stringArg(args, 1, "storage_scope", "");
  if (!pointee || !scope || !finish(args)) return Value();
  auto v = make<VarNode>(targetName("handle"), DType::Handle());
  v->pointee = *pointee, v->scope = *scope == "global" ? "" : *scope;
  return Value::declared(Var(v));
}

Value Parser::tVar(Args& args) {
  bool named = args.pos.size() == 2; // T.Var("n", "int64")
  auto dtype = dtypeArg(args, named ? 1 : 0, "dtype", kInt32);
  args.taken = args.pos.size();
  if (!dtype || !finish(args)) return Value();
  return Value::declared(var(targetName("v"), *dtype));
}

Value Parser::tInfinity(Args& args) {
  auto dtype = dtypeArg(args, 0, "dtype", kFloat32);
  if (!dtype || !finish(args)) return Value();
  return dtype->isFloat() ? Value::of(constantFloat(*dtype, HUGE_VAL))
                          : failed(args.at, dtype->str() + " has no infinity");
}
Value Parser::tMinValue(Args& args) {
  auto dtype = dtypeArg(args, 0, "dtype", kFloat32);
  if (!dtype || !finish(args)) return Value();
  if (!dtype->isFloat())
    return dtype->isInteger() ? Value::of(constant(*dtype, minValue(*dtype)))
                              : failed(args.at, dtype->str() + " has no smallest value");
  if (dtype->isIeee(64)) return Value::of(constantFloat(*dtype, -std::numeric_limits<double>::max()));
  return Value::of(constantFloat(
      *dtype, decodeFloat(*dtype, encodeFloat(*dtype,
                                              dtype->isIeee(32)   ? -double(std::numeric_limits<float>::max())
                                              : dtype->isIeee(16) ? -65504.0
                                                                  : -3.3895313892515355e38,
                                              true))));
}
Value Parser::tMaxValue(Args& args) {
  auto dtype = dtypeArg(args, 0, "dtype", kFloat32);
  if (dtype && dtype->isInteger())
    return finish(args) ? Value::of(constant(*dtype, maxValue(*dtype))) : Value();
  Value least = tMinValue(args);
  auto* f = least.as<FloatImmNode>();
  return f ? Value::of(constantFloat(f->dtype, -f->value)) : least;
}

} // namespace bevel::detail
