// Types of graph values: R.Tensor, R.Shape, …, and their dimensions.
#include "ir/parser_impl.h"

namespace bevel::detail {

Type Parser::toType(const Value& v, const Token& where) {
  if (!v.ok()) return nullptr;
  if (v.is<TypeNode>()) return v.to<TypeNode>();
  if (v.tag == Value::kPath) {
    if (v.text == "R.Object") return make<const ObjectTypeNode>();
    if (v.text == "R.Tensor") return make<const TensorTypeNode>(DType::Void(), -1);
    if (v.text == "R.Shape") return make<const ShapeTypeNode>(-1);
    if (v.text == "R.Tuple") return make<const TupleTypeNode>(Array<Type>{});
    if (v.text == "R.Callable") {
      auto f = make<FuncTypeNode>(Array<Type>{}, Type(), false);
      f->opaque = true;
      return f;
    }
    if (v.text.starts_with("T."))
      if (auto dtype = DType::parse(std::string_view(v.text).substr(2)))
        return make<const PrimTypeNode>(*dtype);
  }
  if (v.isSequence()) {
    Array<Type> fields;
    if (!typeList(v, fields, where)) return nullptr;
    return make<const TupleTypeNode>(fields);
  }
  return failed(where, "expected a type such as R.Tensor((2, 3), \"float32\"), found " + describe(v));
}

bool Parser::typeList(const Value& v, Array<Type>& out, const Token& where) {
  return collect(v.parts(), out, [&](const Value& item) { return toType(item, where); });
}

/// A dimension written as a string: "n", "n + 1". Unknown names of parameters are new symbolic dimensions.
Expr Parser::parseDimension(const std::string& text, const Token& where) {
  Value v = evaluate(text, where, [&] { return expr(); });
  if (!v.ok()) return nullptr;
  if (v.tag == Value::kString) return failed(where, "malformed dimension");
  return dimension(v, where);
}

Value Parser::evaluate(std::string_view text, const Token& at, FunctionRef<Value()> f) {
  Token where = at;
  auto tokens = tokenize(text);
  if (!tokens) return failed(where, tokens.error().message);
  for (Token& t : *tokens) t.line = where.line, t.column = where.column, t.endColumn = where.endColumn;
  Saved outer(tokens_, std::move(*tokens));
  Saved place(pos_, 0);
  Value v = f();
  if (v.ok() && !atKind(TokenKind::kNewline) && !atKind(TokenKind::kEnd))
    return failed(where, "malformed dimension");
  return v;
}

Expr Parser::dimension(const Value& v, const Token& where, bool signs) {
  if (v.tag == Value::kString) return parseDimension(v.text, where);
  Expr e = toExpr(v, where, kInt64);
  if (!e) return nullptr;
  if (!e->dtype.isInteger() || e->dtype.isVector())
    return failed(where, "a dimension is an integer, not " + e->dtype.str());
  if (auto c = asConst(e); c && *c < 0 && !signs) return failed(where, "a dimension is negative");
  return e;
}

bool Parser::dimensions(const Value& v, Array<Expr>& out, const Token& where, bool signs) {
  if (auto* s = v.as<ShapeExprNode>()) return out = s->values, true;
  if (!v.isSequence())
    return failed(where, "expected the dimensions, found " + describe(v), "write them as a tuple: (n, 128)");
  return collect(v.items, out, [&](const Value& item) { return dimension(item, where, signs); });
}

Value Parser::rTensor(Args& args) {
  Array<Expr> shape;
  const Value* s = args.given("shape");
  bool onlyDType = s && s->tag == Value::kString && args.pos.size() == 1; // R.Tensor("float32", ndim=2)
  bool known = s && !onlyDType;
  if (known && !dimensions(*s, shape, args.where("shape"))) return Value();
  auto dtype = onlyDType ? dtypeOf(*s, args.where("shape")) : dtypeArg(args, "dtype");
  const Value* device = args.find("vdevice");
  auto ndim = intArg(args, "ndim", -1);
  const Value* place = args.given("placement");
  if (!dtype) return Value();
  Placement placement;
  if (place) {
    placement = place->to<PlacementNode>();
    if (!placement) return failed(args.at, "placement= takes R.placement(device=…, scope=…, sharding=…)");
  } else if (device && device->tag == Value::kString)
    placement = make<const PlacementNode>(device->text, "", "");
  if (known) {
    if (ndim >= 0 && size_t(ndim) != shape.size())
      return failed(args.at, "ndim differs from the number of dimensions");
    return Value::of(make<const TensorTypeNode>(*dtype, shape, placement));
  }
  if (ndim < -1) return failed(args.at, "ndim is not negative");
  return Value::of(make<const TensorTypeNode>(*dtype, ndim, placement));
}

Value Parser::rPlacement(Args& args) {
  return Value::of(make<const PlacementNode>(stringArg(args, "device"), stringArg(args, "scope"),
                                             stringArg(args, "sharding")));
}

Value Parser::rShape(Args& args) {
  const Value* values = args.given("values");
  auto ndim = intArg(args, "ndim", -1);
  if (!values)
    return ndim < -1 ? failed(args.at, "ndim is not negative") : Value::of(make<const ShapeTypeNode>(ndim));
  Array<Expr> shape;
  if (!dimensions(*values, shape, args.where("values"))) return Value();
  return Value::of(make<const ShapeTypeNode>(shape));
}

/// R.Tuple is the type; of values it is the tuple.
Value Parser::rTuple(Args& args) {
  for (const Value& v : args.pos)
    if (v.is<GraphExprNode>()) return rTupleExpr(args);
  Array<Type> fields;
  bool oneList = args.pos.size() == 1 && args.pos[0].isSequence();
  if (oneList ? !typeList(args.pos[0], fields, args.posAt[0]) : !rest(args, fields, &Parser::toType))
    return Value();
  return Value::of(make<const TupleTypeNode>(fields));
}

Value Parser::rPrim(Args& args) {
  auto dtype = dtypeArg(args, "dtype");
  const Value* v = args.given("value");
  Expr e;
  if (v) {
    e = v->tag == Value::kString ? parseDimension(v->text, args.at) : toExpr(*v, args.at, kInt64);
    if (!e) return Value();
  }
  if (dtype.isVoid() && !e) return failed(args.at, "R.Prim needs a dtype or value=");
  return Value::of(make<const PrimTypeNode>(dtype.isVoid() ? e->dtype : dtype, e));
}

Value Parser::rObject(Args& args) {
  Array<Type> params;
  if (!rest(args, params, &Parser::toType)) return Value();
  return Value::of(make<const ObjectTypeNode>(stringArg(args, "name"), params));
}

Value Parser::rCallable(Args& args) {
  const Value *params = args.given("params"), *result = args.given("ret");
  Array<Type> types;
  Type ret;
  if (params && !typeList(*params, types, args.at)) return Value();
  if (result && !(ret = toType(*result, args.at))) return Value();
  auto f = make<FuncTypeNode>(types, ret, intArg(args, "purity", 1) != 0);
  f->opaque = !params;
  return Value::of(f);
}

} // namespace bevel::detail
