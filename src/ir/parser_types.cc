// Types of graph values: R.Tensor, R.Shape, …, and their dimensions.
#include "ir/parser_impl.h"

namespace bevel::detail {

const std::vector<Parser::Named>& Parser::typeHandlers() {
  static const std::vector<Named> table = {
      {"R.Tensor", &Parser::rTensor},      {"R.Shape", &Parser::rShape},   {"R.Tuple", &Parser::rTuple},
      {"R.Prim", &Parser::rPrim},          {"R.Object", &Parser::rObject}, {"R.Callable", &Parser::rCallable},
      {"R.placement", &Parser::rPlacement}};
  return table;
}

Type Parser::toType(const Value& v, const Token& where) {
  if (!v.ok()) return nullptr;
  if (v.tag == Value::kNode && v.node.is<TypeNode>()) return cast<TypeNode>(v.node);
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
  failed(where, "expected a type such as R.Tensor((2, 3), \"float32\"), found " + describe(v));
  return nullptr;
}

bool Parser::typeList(const Value& v, Array<Type>& out, const Token& where) {
  if (!v.isSequence()) {
    Type t = toType(v, where);
    out.push_back(t);
    return bool(t);
  }
  for (const Value& item : v.items) {
    Type t = toType(item, where);
    if (!t) return false;
    out.push_back(t);
  }
  return true;
}

/// A dimension written as a string: "n", "n + 1". Unknown names of parameters are new symbolic dimensions.
Expr Parser::parseDimension(const std::string& text, const Token& where) {
  auto tokens = tokenize(text);
  if (!tokens) return failed(where, tokens.error().message), nullptr;
  for (Token& t : *tokens) t.line = where.line, t.column = where.column, t.endColumn = where.endColumn;
  std::vector<Token> saved = std::exchange(tokens_, std::move(*tokens));
  size_t savedPos = std::exchange(pos_, 0);
  Value v = expr();
  Expr e = v.ok() && v.tag != Value::kString ? dimension(v, where)
           : v.ok()                          ? (failed(where, "malformed dimension"), nullptr)
                                             : Expr();
  if (e && !atKind(TokenKind::kNewline) && !atKind(TokenKind::kEnd))
    failed(where, "malformed dimension"), e = nullptr;
  tokens_ = std::move(saved);
  pos_ = std::min(savedPos, tokens_.size() - 1);
  return e;
}

Expr Parser::dimension(const Value& v, const Token& where, bool signs) {
  if (v.tag == Value::kString) return parseDimension(v.text, where);
  Expr e = toExpr(v, where, kInt64);
  if (!e) return nullptr;
  if (!e->dtype.isInteger() || e->dtype.isVector())
    return failed(where, "a dimension is an integer, not " + e->dtype.str()), nullptr;
  if (auto c = asConst(e); c && *c < 0 && !signs) return failed(where, "a dimension is negative"), nullptr;
  return e;
}

bool Parser::dimensions(const Value& v, Array<Expr>& out, const Token& where, bool signs) {
  if (auto* s = v.as<ShapeExprNode>()) return out = s->values, true;
  if (!v.isSequence())
    return report(where, "expected the dimensions, found " + describe(v), "write them as a tuple: (n, 128)");
  for (const Value& item : v.items) {
    Expr e = dimension(item, where, signs);
    if (!e) return false;
    out.push_back(e);
  }
  return true;
}

Value Parser::rTensor(Args& args) {
  Array<Expr> shape;
  bool known = false;
  const Value* s = args.find(0, "shape");
  if (s && s->tag == Value::kString && args.pos.size() == 1)
    args.pos.insert(args.pos.begin(), Value::none()), args.posAt.insert(args.posAt.begin(), args.at),
        s = nullptr; // R.Tensor("float32", ndim=2)
  if (s && s->tag != Value::kNone) {
    if (!dimensions(*s, shape, args.where(0, "shape"))) return Value();
    known = true;
  }
  auto dtype = dtypeArg(args, 1, "dtype", DType::Void());
  const Value* device = args.find(2, "vdevice");
  auto ndim = intArg(args, 3, "ndim", -1);
  const Value* place = args.find(Args::kKeywordOnly, "placement");
  if (!dtype || !ndim || !finish(args)) return Value();
  Placement placement;
  if (place && place->tag != Value::kNone) {
    if (!place->as<PlacementNode>())
      return failed(args.at, "placement= takes R.placement(device=…, scope=…, sharding=…)");
    placement = cast<PlacementNode>(place->node);
  } else if (device && device->tag == Value::kString)
    placement = make<const PlacementNode>(device->text, "", "");
  if (known) {
    if (*ndim >= 0 && size_t(*ndim) != shape.size())
      return failed(args.at, "ndim differs from the number of dimensions");
    return Value::of(make<const TensorTypeNode>(*dtype, shape, placement));
  }
  if (*ndim < -1) return failed(args.at, "ndim is not negative");
  return Value::of(make<const TensorTypeNode>(*dtype, *ndim, placement));
}

Value Parser::rPlacement(Args& args) {
  auto device = stringArg(args, 0, "device", ""), scope = stringArg(args, 1, "scope", ""),
       sharding = stringArg(args, 2, "sharding", "");
  if (!device || !scope || !sharding || !finish(args)) return Value();
  return Value::of(make<const PlacementNode>(*device, *scope, *sharding));
}

Value Parser::rShape(Args& args) {
  const Value* values = args.find(0, "values");
  auto ndim = intArg(args, 1, "ndim", -1);
  if (!ndim || !finish(args)) return Value();
  if (!values || values->tag == Value::kNone)
    return *ndim < -1 ? failed(args.at, "ndim is not negative") : Value::of(make<const ShapeTypeNode>(*ndim));
  Array<Expr> shape;
  if (!dimensions(*values, shape, args.where(0, "values"))) return Value();
  return Value::of(make<const ShapeTypeNode>(shape));
}

Value Parser::rTuple(Args& args) {
  Array<Type> fields;
  args.taken = args.pos.size();
  bool values = false; // R.Tuple is the type; of values it is the tuple
  for (const Value& v : args.pos) values |= v.tag == Value::kNode && v.node.is<GraphExprNode>();
  if (values) return rTupleExpr(args);
  for (size_t i = 0; i < args.pos.size(); ++i)
    if (args.pos.size() == 1 && args.pos[0].isSequence() ? !typeList(args.pos[0], fields, args.posAt[i])
                                                         : false)
      return Value();
    else if (!(args.pos.size() == 1 && args.pos[0].isSequence())) {
      Type t = toType(args.pos[i], args.posAt[i]);
      if (!t) return Value();
      fields.push_back(t);
    }
  return finish(args) ? Value::of(make<const TupleTypeNode>(fields)) : Value();
}

Value Parser::rPrim(Args& args) {
  auto dtype = dtypeArg(args, 0, "dtype", DType::Void());
  const Value* v = args.find(1, "value");
  Expr e;
  if (v && v->tag != Value::kNone) {
    e = v->tag == Value::kString ? parseDimension(v->text, args.at) : toExpr(*v, args.at, kInt64);
    if (!e) return Value();
  }
  if (!dtype || !finish(args)) return Value();
  if (dtype->isVoid() && !e) return failed(args.at, "R.Prim needs a dtype or value=");
  return Value::of(make<const PrimTypeNode>(dtype->isVoid() ? e->dtype : *dtype, e));
}

Value Parser::rObject(Args& args) {
  auto name = stringArg(args, 0, "name", "");
  Array<Type> params;
  for (size_t i = 1; i < args.pos.size(); ++i) {
    Type t = toType(args.pos[i], args.posAt[i]);
    if (!t) return Value();
    params.push_back(t);
  }
  args.taken = args.pos.size();
  if (!name || !finish(args)) return Value();
  return Value::of(make<const ObjectTypeNode>(*name, params));
}

Value Parser::rCallable(Args& args) {
  const Value* params = args.find(0, "params");
  const Value* result = args.find(1, "ret");
  auto pure = intArg(args, 2, "purity", 1);
  if (!pure || !finish(args)) return Value();
  Array<Type> types;
  Type ret;
  bool opaque = !params || params->tag == Value::kNone;
  if (!opaque && !typeList(*params, types, args.at)) return Value();
  if (result && result->tag != Value::kNone && !(ret = toType(*result, args.at))) return Value();
  auto f = make<FuncTypeNode>(types, ret, *pure != 0);
  f->opaque = opaque;
  return Value::of(f);
}

} // namespace bevel::detail
