// Calls of `T.` functions that are expressions.
#include "ir/evaluate.h"
#include "ir/parser_impl.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace bevel::detail {

/// T.exp(x), T.call_extern("int32", "f", …): the dtype by the notation table, keywords as attributes.
Value Parser::intrinsic(Intrin op, Args& args) {
  const IntrinInfo& info = intrinInfo(op);
  if (!bindArguments(args, "* dtype:dtype? **")) return Value();
  std::optional<DType> dtype;
  if (args.find("dtype")) dtype = dtypeArg(args, "dtype");
  size_t first = 0;
  if (info.rule == DTypeRule::kDTypeFirst && !dtype) {
    if (args.pos.empty()) return failed(args.at, args.name + " needs the argument 'dtype'");
    dtype = dtypeOf(args.pos[0], args.at);
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
    depth = std::max(depth, v.depth);
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
  Dict attrs;
  if (!opAttributes(args, attrs)) return Value();
  DType result = dtype ? *dtype : impliedDType(op, values);
  return over(placed(make<CallNode>(result, op, values, attrs), args.at), depth, args.at);
}

/// T.int64(): a new symbol; T.int64(3), T.float32("nan"): a constant; T.int64(x): a conversion.
Value Parser::dtypeCall(DType dtype, Args& args) {
  if (!bindArguments(args, "expr? = is_size_var?")) return Value();
  const Value* v = args.find("expr");
  if (!v) {
    std::string name = targetName("v");
    if (const Value* known = lookup(name))
      if (auto* v = known->as<VarNode>(); v && undeclared_.contains(Var(v)) && v->dtype == dtype) {
        undeclared_.erase(Var(v));
        Value same = *known;
        same.fresh = true;
        return same;
      }
    return Value::declared(var(name, dtype));
  }
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

/// T.max(a, b, …): bare numbers take the dtype of the others.
Value Parser::binaryCall(Args& args) {
  auto op = BinaryOp(args.code);
  Value result = *args.find("a");
  auto with = [&](const Value& next) {
    DType dtype = result.tag == Value::kInt && next.tag == Value::kFloat ? kFloat32 : DType::Void();
    if (result.isNumber() && next.isNumber()) result = Value::of(literal(result, dtype, args.at));
    if (result.ok()) result = makeBinary(op, result, next, args.at);
  };
  with(*args.find("b"));
  for (size_t i = args.rest; i < args.pos.size(); ++i) with(args.pos[i]);
  return result;
}

Value Parser::unaryCall(Args& args) {
  return applyUnary(UnaryOp(args.code), *args.find("a"), args.at);
}

/// T.ceildiv(a, b) = (a + b - 1) // b
Value Parser::tCeilDiv(Args& args) {
  Value a = *args.find("a"), b = *args.find("b");
  Value sum = applyBinary(BinaryOp::kAdd, a, b, args.at);
  sum = applyBinary(BinaryOp::kSub, sum, Value::integer(1), args.at);
  return applyBinary(BinaryOp::kFloorDiv, sum, b, args.at);
}

Value Parser::tSelect(Args& args) {
  const Value &c = *args.find("condition"), &a = *args.find("true_value"), &b = *args.find("false_value");
  Expr x, y;
  if (!toExprs(a, b, x, y, args.at)) return Value();
  Expr condition = toExpr(c, args.where("condition"), kBool);
  if (!condition) return Value();
  DType t = condition->dtype;
  if (!t.isBool() || (t.lanes != 1 && t.lanes != x->dtype.lanes))
    return failed(args.at, "the condition of T.Select is a bool, not " + t.str());
  return over(make<const SelectNode>(condition, x, y), std::max({a.depth, b.depth, c.depth}), args.at);
}

Value Parser::tCast(Args& args) {
  auto dtype = dtypeArg(args, "dtype");
  const Value* v = args.find("value");
  Expr e = toExpr(*v, args.where("value"));
  if (!e) return Value();
  if (e->dtype.lanes != dtype.lanes || e->dtype.isString())
    return failed(args.at, "cannot convert " + e->dtype.str() + " to " + dtype.str());
  return over(placed(make<CastNode>(dtype, e), args.at), v->depth, args.at);
}

Value Parser::tRamp(Args& args) {
  Expr base = exprArg(args, "base"), stride;
  if (base) stride = coerce(*args.find("stride"), base->dtype, args.where("stride"), "the stride");
  int64_t lanes = intArg(args, "lanes", 0);
  if (!base->dtype.isInteger() || base->dtype.isVector())
    return failed(args.at, "T.Ramp starts at a scalar integer, not " + base->dtype.str());
  if (lanes < 2 || lanes > 65535) return failed(args.at, "T.Ramp has 2 to 65535 lanes");
  return Value::of(make<const RampNode>(base, stride, int(lanes)), args.find("base")->depth + 1);
}

Value Parser::tBroadcast(Args& args) {
  Expr value = exprArg(args, "value");
  int64_t lanes = intArg(args, "lanes", 0);
  if (value->dtype.isVector() || value->dtype.isString() || value->dtype.isVoid())
    return failed(args.at, "T.Broadcast repeats a scalar");
  if (lanes < 2 || lanes > 65535) return failed(args.at, "T.Broadcast has 2 to 65535 lanes");
  return Value::of(make<const BroadcastNode>(value, int(lanes)), args.find("value")->depth + 1);
}

Value Parser::tShuffle(Args& args) {
  Array<Expr> vectors, indices;
  const Value &v = *args.find("vectors"), &i = *args.find("indices");
  if (!exprList(v, vectors, args.at) || !exprList(i, indices, args.at)) return Value();
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
  return Value::of(rangeOf(*args.find("start"), *args.find("stop"), args.at));
}

Value Parser::tRegion(Args& args) {
  return Value::of(toRegion(*args.find("region"), args.at));
}

/// T.handle(), T.handle("float32", "shared"): a pointer, as a type or a new symbol.
Value Parser::tHandle(Args& args) {
  auto pointee = dtypeArg(args, "dtype");
  auto scope = stringArg(args, "storage_scope");
  auto v = make<VarNode>(targetName("handle"), DType::Handle());
  v->pointee = pointee, v->scope = scope == "global" ? "" : scope;
  return Value::declared(Var(v));
}

Value Parser::tVar(Args& args) {
  const Value* v = args.given(args.find("named") ? "named" : "dtype"); // T.Var("n", "int64")
  auto dtype = v ? dtypeOf(*v, args.at) : kInt32;
  return dtype ? Value::declared(var(targetName("v"), *dtype)) : Value();
}

Value Parser::tInfinity(Args& args) {
  auto dtype = dtypeArg(args, "dtype", kFloat32);
  return dtype.isFloat() ? Value::of(constantFloat(dtype, HUGE_VAL))
                         : failed(args.at, dtype.str() + " has no infinity");
}
/// T.max_value(dtype), T.min_value(dtype)
Value Parser::tLimit(Args& args) {
  auto dtype = dtypeArg(args, "dtype", kFloat32);
  bool largest = args.code;
  if (dtype.isInteger()) return Value::of(constant(dtype, largest ? maxValue(dtype) : minValue(dtype)));
  if (!dtype.isFloat()) return failed(args.at, dtype.str() + " has no smallest value");
  double limit = dtype.isIeee(64)   ? std::numeric_limits<double>::max()
                 : dtype.isIeee(32) ? double(std::numeric_limits<float>::max())
                 : dtype.isIeee(16) ? 65504.0
                                    : roundFloat(dtype, 3.3895313892515355e38);
  return Value::of(constantFloat(dtype, largest ? limit : -limit));
}

} // namespace bevel::detail
