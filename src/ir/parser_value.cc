// Conversions between the values of the notation and IR, and arithmetic on them.
#include "ir/parser_impl.h"

#include "ir/evaluate.h"
#include "ir/storage_scope.h"
#include "ir/structural.h"

#include <algorithm>
#include <cmath>

namespace bevel::detail {

std::string Parser::describe(const Value& v) const {
  if (v.tag == Value::kInt) return "the number " + std::to_string(v.number);
  if (v.tag == Value::kBool) return v.number ? "True" : "False";
  if (v.tag == Value::kString) return "the string \"" + v.text + "\"";
  if (v.tag == Value::kPath) return "'" + v.text + "'";
  constexpr std::pair<Value::Tag, const char*> kWords[] = {{Value::kFailed, "a faulty value"},
                                                           {Value::kFloat, "a number"},
                                                           {Value::kNone, "None"},
                                                           {Value::kList, "a list"},
                                                           {Value::kTuple, "a tuple"},
                                                           {Value::kDict, "a dictionary"},
                                                           {Value::kSlice, "a slice"},
                                                           {Value::kModule, "the module"},
                                                           {Value::kLoops, "the head of a loop"}};
  for (const auto& [tag, words] : kWords)
    if (v.tag == tag) return words;
  if (!v.node) return "nothing";
  if (auto* e = v.node.as<ExprNode>()) return "an expression of type " + e->dtype.str();
  if (auto* b = v.node.as<BufferNode>()) return "buffer '" + b->name + "'";
  if (v.node.is<TypeNode>()) return "a type";
  if (v.node.is<GraphExprNode>()) return "a graph value";
  return std::string("a ") + v.node->kindName();
}

/// An expression over operands of that depth.
Value Parser::over(Expr e, int depth, const Token& where) {
  if (depth < 3000) return Value::of(std::move(e), depth + 1);
  return failed(where, "this expression is nested too deeply", "bind parts of it to variables");
}

/// A bare Python constant as an expression of dtype `wanted` (void: int32, float32, bool).
Expr Parser::literal(const Value& v, DType wanted, const Token& where) {
  bool big = v.tag == Value::kInt && v.text == "u";
  if (wanted.isVoid())
    wanted = v.tag == Value::kFloat                           ? kFloat32
             : v.tag == Value::kBool                          ? kBool
             : v.number >= INT32_MIN && v.number <= INT32_MAX ? kInt32
                                                              : kInt64;
  if (v.tag == Value::kBool) {
    if (wanted.isBool()) return constant(wanted, v.number);
    return failed(where,
                  std::string(v.number ? "True" : "False") + " where " + wanted.str() + " is expected"),
           nullptr;
  }
  if (wanted.isFloat()) {
    if (big) return failed(where, "this integer does not fit int64");
    return constantFloat(wanted, v.toDouble());
  }
  if (v.tag == Value::kFloat) {
    return failed(where, "a floating-point number where " + wanted.str() + " is expected",
                  "write an integer, or T.Cast(\"" + wanted.str() + "\", …)");
  }
  if (wanted.isBool() && (v.number == 0 || v.number == 1) && !big) return constant(wanted, v.number);
  if (!wanted.isInteger()) return failed(where, "a number where " + wanted.str() + " is expected");
  bool unsigned64 = wanted.isUInt() && wanted.bits == 64;
  bool fits = unsigned64 ? big || v.number >= 0
                         : !big && v.number >= minValue(wanted) && v.number <= maxValue(wanted);
  if (!fits) return failed(where, "this integer does not fit " + wanted.str());
  return constant(wanted, v.number);
}

Expr Parser::toExpr(const Value& v, const Token& where, DType wanted) {
  if (v.isNumber()) return literal(v, wanted, where);
  if (v.tag == Value::kString) return make<const StringImmNode>(v.text);
  if (v.tag == Value::kFailed) return nullptr;
  if (v.tag == Value::kNode) {
    if (v.fresh && v.node.is<VarNode>()) {
      return failed(where, "this call declares a variable and is no value",
                    "write n = T.int64() on a line of its own");
    }
    if (v.is<ExprNode>()) return v.to<ExprNode>();
    if (auto* r = v.node.as<BufferRegionNode>()) { // A[i, 0:4] as a value: a vector of lanes
      Array<Expr> indices;
      for (size_t i = 0; i < r->region.size(); ++i) {
        auto extent = asConst(r->region[i]->extent);
        bool last = i + 1 == r->region.size();
        if (!extent || *extent < 1 || (!last && *extent != 1) || *extent > 1024)
          return failed(where, "a region of a buffer is not a value here", "index single elements");
        const Expr& min = r->region[i]->min;
        indices.push_back(
            *extent == 1 ? min : Expr(make<const RampNode>(min, constant(min->dtype, 1), int(*extent))));
      }
      return make<const LoadNode>(r->buffer, indices);
    }
    if (auto* p = v.node.as<PrimValueNode>()) return p->value;
  }
  std::string hint;
  if (v.as<BufferNode>()) hint = "index its elements";
  if (v.is<GraphExprNode>()) hint = "graph values are combined by calls such as R.add(x, y)";
  return failed(where, "expected a scalar expression, found " + describe(v), hint);
}

Expr Parser::exprArg(const Args& args, std::string_view key, DType wanted) {
  return toExpr(*args.find(key), args.where(key), wanted);
}

/// Brings a value to a dtype where that loses nothing: bare constants, wider integers, a scalar to all lanes.
Expr Parser::coerce(const Value& v, DType wanted, const Token& where, const char* what) {
  if (v.isNumber()) return literal(v, wanted, where);
  Expr e = toExpr(v, where);
  if (!e || e->dtype == wanted) return e;
  if (e->dtype.lanes == 1 && wanted.lanes > 1 && e->dtype == wanted.scalar())
    return make<const BroadcastNode>(e, wanted.lanes);
  bool widens = e->dtype.code == wanted.code && e->dtype.isInteger() && e->dtype.bits < wanted.bits &&
                e->dtype.lanes == wanted.lanes;
  if (widens) return make<const CastNode>(wanted, e);
  return failed(
      where, "type mismatch: " + std::string(what) + " is " + e->dtype.str() + ", expected " + wanted.str(),
      "convert it with T.Cast(\"" + wanted.str() + "\", …)");
}

/// Brings two operands to one dtype: a scalar is broadcast to lanes, the narrower integer widens.
bool Parser::meet(Expr& a, Expr& b, const Token& where) {
  if (a->dtype == b->dtype) return true;
  if (a->dtype.scalar() == b->dtype.scalar() && (a->dtype.lanes == 1 || b->dtype.lanes == 1)) {
    if (a->dtype.lanes == 1)
      a = make<const BroadcastNode>(a, b->dtype.lanes);
    else
      b = make<const BroadcastNode>(b, a->dtype.lanes);
    return true;
  }
  DType ta = a->dtype, tb = b->dtype;
  if (ta.code == tb.code && ta.isInteger() && ta.lanes == tb.lanes) {
    Expr& narrow = ta.bits < tb.bits ? a : b;
    DType wide = ta.bits < tb.bits ? tb : ta;
    auto* imm = narrow.as<IntImmNode>();
    narrow = imm ? constant(wide, imm->value) : Expr(make<const CastNode>(wide, narrow));
    return true;
  }
  return failed(where, "type mismatch: " + ta.str() + " and " + tb.str(),
                "convert one side with T.Cast(dtype, …)");
}

bool Parser::toExprs(const Value& a, const Value& b, Expr& x, Expr& y, const Token& where) {
  if (!a.ok() || !b.ok()) return false;
  if (!a.isNumber()) x = toExpr(a, where);
  if (!b.isNumber()) y = toExpr(b, where);
  if ((!a.isNumber() && !x) || (!b.isNumber() && !y)) return false;
  if (a.isNumber()) x = literal(a, y ? y->dtype : DType::Void(), where);
  if (b.isNumber()) y = x ? literal(b, x->dtype, where) : Expr();
  return x && y && meet(x, y, where);
}

Value Parser::makeBinary(BinaryOp op, const Value& a, const Value& b, const Token& where) {
  Expr x, y;
  if (!toExprs(a, b, x, y, where)) return Value();
  DType t = x->dtype;
  bool logical = op == BinaryOp::kAnd || op == BinaryOp::kOr;
  bool bits = op >= BinaryOp::kBitAnd && op <= BinaryOp::kShr;
  bool number = t.isInteger() || t.isFloat();
  bool equality = op == BinaryOp::kEq || op == BinaryOp::kNe;
  bool shift = op == BinaryOp::kShl || op == BinaryOp::kShr;
  if (logical && !t.isBool())
    return failed(where, "'and' and 'or' combine bool, not " + t.str(), "compare the value first");
  if (bits && !t.isInteger() && (shift || !t.isBool()))
    return failed(where, "this operator combines integers, not " + t.str());
  if (!logical && !bits && !number &&
      !(t.isBool() && (equality || op == BinaryOp::kMin || op == BinaryOp::kMax)) &&
      !(t.isHandle() && equality))
    return failed(where, "this operator does not combine values of type " + t.str());
  return over(placed(make<BinaryNode>(op, x, y), where), std::max(a.depth, b.depth), where);
}

Value Parser::foldNumbers(BinaryOp op, bool trueDivision, const Value& a, const Value& b,
                          const Token& where) {
  if (a.text == "u" || b.text == "u") return failed(where, "this integer does not fit int64");
  bool real = a.tag == Value::kFloat || b.tag == Value::kFloat;
  bool logical = op == BinaryOp::kAnd || op == BinaryOp::kOr;
  if (logical && (a.tag != Value::kBool || b.tag != Value::kBool))
    return failed(where, "'and' and 'or' combine bool");
  bool divides = op >= BinaryOp::kDiv && op <= BinaryOp::kFloorMod;
  if (divides && b.toDouble() == 0) return failed(where, "division by zero");
  if (real && op >= BinaryOp::kAnd) return failed(where, "this operator combines integers");
  if (real || trueDivision) {
    double r = evaluateFloat(op, a.toDouble(), b.toDouble());
    return isComparison(op) ? Value::boolean(r != 0) : Value::floating(r);
  }
  auto r = exactInt(op, a.number, b.number, logical ? kBool : kInt64);
  if (!r) return failed(where, "this constant does not fit int64");
  return isComparison(op) || logical ? Value::boolean(*r != 0) : Value::integer(*r);
}

/// What an operator of the notation gives; kDiv is `/`.
Value Parser::applyBinary(BinaryOp op, const Value& a, const Value& b, const Token& where) {
  if (!a.ok() || !b.ok()) return Value();
  if (a.isNumber() && b.isNumber()) return foldNumbers(op, op == BinaryOp::kDiv, a, b, where);
  if (a.tag == Value::kString && b.tag == Value::kString) {
    if (op == BinaryOp::kAdd) return Value::string(a.text + b.text);
    if (op == BinaryOp::kEq || op == BinaryOp::kNe)
      return Value::boolean((a.text == b.text) == (op == BinaryOp::kEq));
  }
  auto isGraph = [](const Value& v) { return v.is<GraphExprNode>() && !v.node.is<PrimValueNode>(); };
  if (seq_ && (isGraph(a) || isGraph(b))) { // x + y on graph values
    static constexpr const char* kNames[] = {"add", "subtract", "multiply", "divide"};
    bool operands = (isGraph(a) || a.isNumber()) && (isGraph(b) || b.isNumber());
    if (op > BinaryOp::kDiv || !operands)
      return failed(where, "this operator does not combine graph values",
                    "call an operator, such as R.add(x, R.const(1, \"float32\"))");
    GraphExpr x = graphArg(a, where), y = graphArg(b, where);
    return x && y ? finishCall(make<const OpRefNode>(kNames[int(op)]), {x, y}, nullptr, {}) : Value();
  }
  Value v = makeBinary(op, a, b, where);
  if (op == BinaryOp::kDiv && v.ok() && !v.as<ExprNode>()->dtype.isFloat())
    return failed(where, "'/' divides floating-point numbers, not " + v.as<ExprNode>()->dtype.str(),
                  "use '//' (rounds down) or T.truncdiv (rounds to zero)");
  return v;
}

/// a ** b: T.pow of floats; a product for an integer with a small constant exponent.
Value Parser::power(const Value& a, const Value& b, const Token& where) {
  if (!a.ok() || !b.ok()) return Value();
  bool whole = a.tag == Value::kInt && b.tag == Value::kInt && b.number >= 0;
  if (a.isNumber() && b.isNumber() && !whole) return Value::floating(std::pow(a.toDouble(), b.toDouble()));
  Expr x = whole          ? Expr()
           : a.isNumber() ? toExpr(a, where, b.as<ExprNode>() ? b.as<ExprNode>()->dtype : DType::Void())
                          : toExpr(a, where);
  if (!whole && !x) return Value();
  if (x && x->dtype.isFloat()) {
    Expr y;
    if (!toExprs(Value::of(x, a.depth), b, x, y, where)) return Value();
    auto power = placed(make<CallNode>(x->dtype, Intrin::kPow, Array<NodeRef>{x, y}), where);
    return over(power, std::max(a.depth, b.depth), where);
  }
  bool small = b.tag == Value::kInt && b.number >= 0 && b.number <= (whole ? 64 : 16);
  if (!small)
    return failed(where, "'**' of an integer takes a small constant exponent",
                  "multiply, or convert to float");
  Value product = Value::integer(1);
  for (int64_t i = 0; i < b.number && product.ok(); ++i)
    product = i ? applyBinary(BinaryOp::kMul, product, a, where) : a;
  return product;
}

/// Without an operator: +x.
Value Parser::applyUnary(std::optional<UnaryOp> op, const Value& a, const Token& where) {
  if (!a.ok()) return Value();
  bool logical = op == UnaryOp::kNot, bits = op == UnaryOp::kBitNot;
  if (a.isNumber()) {
    if (logical)
      return a.tag == Value::kBool ? Value::boolean(!a.number) : failed(where, "'not' takes a bool");
    if (!op) return a;
    if (bits) return a.tag == Value::kInt ? Value::integer(~a.number) : failed(where, "'~' takes an integer");
    if (a.tag == Value::kFloat) return Value::floating(-a.real);
    bool least = a.number == INT64_MIN, big = a.text == "u"; // 2^63 wraps to the smallest integer
    if (least != big) return failed(where, "this integer does not fit int64");
    return Value::integer(least ? a.number : -a.number);
  }
  Expr x = toExpr(a, where);
  if (!x) return Value();
  DType t = x->dtype;
  if (logical && !t.isBool()) return failed(where, "'not' takes a bool, not " + t.str());
  if (bits && !t.isInteger() && !t.isBool()) return failed(where, "'~' takes an integer, not " + t.str());
  if (op == UnaryOp::kNeg && !t.isInteger() && !t.isFloat())
    return failed(where, "'-' takes a number, not " + t.str());
  if (!op) return a;
  return over(placed(make<UnaryNode>(*op, x), where), a.depth, where);
}

/// An attribute's value: integers are int64, floats float64.
NodeRef Parser::attrNode(const Value& v, const Token& where) {
  switch (v.tag) {
  case Value::kInt:
    return literal(v, kInt64, where);
  case Value::kFloat:
    return constantFloat(DType::Float(64), v.real);
  case Value::kBool:
    return boolImm(v.number != 0);
  case Value::kString:
    return str(v.text);
  case Value::kNode:
    return v.node;
  case Value::kList:
  case Value::kTuple: {
    Array<NodeRef> items;
    for (const Value& item : v.items) {
      items.push_back(attrNode(item, where));
      if (!items.back() && item.tag != Value::kNone) return nullptr;
    }
    return list(items);
  }
  case Value::kDict:
    return attrDict(v, where);
  case Value::kPath:
    if (auto dtype = DType::parse(std::string_view(v.text).substr(std::min<size_t>(2, v.text.size()))))
      return make<const DTypeImmNode>(*dtype);
    [[fallthrough]];
  default:
    if (v.ok() && v.tag != Value::kNone) failed(where, describe(v) + " cannot be an attribute");
    return nullptr;
  }
}

Dict Parser::attrDict(const Value& v, const Token& where) {
  if (v.tag != Value::kDict) return failed(where, "expected a dictionary, found " + describe(v));
  std::vector<std::pair<std::string, NodeRef>> entries;
  for (size_t i = 0; i < v.keys.size(); ++i) {
    NodeRef node = attrNode(v.items[i], where);
    if (!node && v.items[i].tag != Value::kNone) return nullptr;
    entries.emplace_back(v.keys[i], node);
  }
  return dict(std::move(entries));
}

/// The entries of both; those of b replace those of a.
Dict Parser::merged(const Dict& a, const Dict& b) {
  std::vector<std::pair<std::string, NodeRef>> entries;
  for (const Dict& d : {a, b})
    for (size_t i = 0; d && i < d->keys.size(); ++i) entries.emplace_back(d->keys[i], d->values[i]);
  return dict(std::move(entries));
}

/// A dictionary that may be left out.
bool Parser::dictArg(const Args& args, std::string_view key, Dict& out) {
  const Value* v = args.given(key);
  return !v || (out = attrDict(*v, args.where(key)));
}

static std::optional<int64_t> constantOf(const Value& v) {
  if ((v.tag == Value::kInt && v.text.empty()) || v.tag == Value::kBool) return v.number;
  if (auto* imm = v.as<IntImmNode>()) return imm->value;
  return std::nullopt;
}

static std::optional<std::string> textOf(const Value& v) {
  if (v.tag == Value::kString) return v.text;
  if (auto* imm = v.as<StringImmNode>()) return imm->value;
  return std::nullopt;
}

/// Whether an argument is a constant of the type that the row of its form names; None stands for one left out.
bool Parser::hasType(const Value& v, std::string_view type, const Token& where) {
  if (type.empty() || v.tag == Value::kNone) return true;
  if (type == "dtype") return dtypeOf(v, where).has_value();
  if (type == "int")
    return constantOf(v) || failed(where, "expected an integer constant, found " + describe(v));
  auto text = textOf(v);
  if (!text) return failed(where, "expected a string, found " + describe(v));
  Status scope = type == "scope" ? checkScope(*text) : Status();
  return scope || failed(where, scope.error().message, scope.error().hint);
}

int64_t Parser::intArg(const Args& args, std::string_view key, int64_t otherwise) {
  const Value* v = args.given(key);
  return v ? *constantOf(*v) : otherwise;
}

std::string Parser::stringArg(const Args& args, std::string_view key, std::string otherwise) {
  const Value* v = args.given(key);
  return v ? *textOf(*v) : otherwise;
}

std::optional<DType> Parser::dtypeOf(const Value& v, const Token& where) {
  std::string text = v.tag == Value::kString                      ? v.text
                     : v.tag == Value::kPath && v.text.size() > 2 ? v.text.substr(2)
                                                                  : "";
  if (auto* imm = v.as<DTypeImmNode>()) return imm->value;
  if (auto dtype = DType::parse(text)) return dtype;
  return failed(where,
                text.empty() ? "expected a dtype, found " + describe(v) : "unknown dtype '" + text + "'",
                didYouMean(text, {"float16", "float32", "float64", "bfloat16", "int8", "int16", "int32",
                                  "int64", "uint8", "uint16", "uint32", "uint64", "bool", "handle"}));
}

DType Parser::dtypeArg(const Args& args, std::string_view key, DType otherwise) {
  const Value* v = args.given(key);
  return v ? *dtypeOf(*v, args.where(key)) : otherwise;
}

bool Parser::exprList(const Value& v, Array<Expr>& out, const Token& where, DType wanted) {
  return collect(v.parts(), out, [&](const Value& item) { return toExpr(item, where, wanted); });
}

BufferRegion Parser::toRegion(const Value& v, const Token& where) {
  if (auto* load = v.as<LoadNode>(); load && !load->predicate) {
    Array<Range> ranges;
    for (const Expr& i : load->indices) {
      if (i->dtype.isVector()) return failed(where, "a region's bounds are scalars");
      ranges.push_back(range(i, constant(i->dtype, 1)));
    }
    return make<const BufferRegionNode>(load->buffer, ranges);
  }
  if (v.is<BufferRegionNode>()) return v.to<BufferRegionNode>();
  if (v.is<BufferNode>()) return fullRegion(v.to<BufferNode>());
  return failed(where, "expected a region such as A[i, 0:16], found " + describe(v));
}

/// [start, stop) as minimum and extent, so that printing the range gives the same text again.
Range Parser::rangeOf(const Value& start, const Value& stop, const Token& where, DType wanted) {
  Expr s, e;
  if (start.isNumber() && stop.isNumber())
    s = literal(start, wanted, where), e = literal(stop, wanted, where);
  else if (!toExprs(start, stop, s, e, where))
    return nullptr;
  if (!s || !e || !meet(s, e, where)) return nullptr;
  if (!s->dtype.isInteger() || s->dtype.isVector())
    return failed(where, "the bounds of a range are integers, not " + s->dtype.str());
  if (isConst(s, 0)) return range(s, e);
  auto* a = s.as<IntImmNode>();
  auto* b = e.as<IntImmNode>();
  int64_t extent = 0;
  if (a && b) {
    if (__builtin_sub_overflow(b->value, a->value, &extent) || extent < minValue(s->dtype) ||
        extent > maxValue(s->dtype))
      return failed(where, "the extent of this range does not fit " + s->dtype.str());
    return range(s, make<const IntImmNode>(s->dtype, extent));
  }
  if (auto* sum = e.as<BinaryNode>(); sum && sum->op == BinaryOp::kAdd && same(sum->a, s))
    return range(s, sum->b);
  return range(s, make<const BinaryNode>(BinaryOp::kSub, e, s));
}

} // namespace bevel::detail
