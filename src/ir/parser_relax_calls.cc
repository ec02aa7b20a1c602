// Calls of `R.` and `I.` functions: constants, shapes, operators, calls of tensor programs and packed
// functions.
#include "ir/parser_impl.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace bevel::detail {
namespace {

/// Attributes as the operator declares them: None is left out, one number may stand for a list.
Dict asDeclared(const OpSignature& signature, const Dict& given) {
  std::vector<std::pair<std::string, NodeRef>> out;
  for (size_t k = 0; k < given->keys.size(); ++k) {
    NodeRef value = given->values[k];
    for (const OpSignature::Attr& a : signature.attrs)
      if (a.list && a.name == given->keys[k] && (value.is<IntImmNode>() || value.is<FloatImmNode>()))
        value = list({value});
    if (value) out.emplace_back(given->keys[k], value);
  }
  return out.empty() ? Dict() : dict(std::move(out));
}

} // namespace

Value Parser::floatCall(Args& args) {
  auto text = stringArg(args, "x");
  if (text == "nan") return Value::floating(std::numeric_limits<double>::quiet_NaN());
  if (text == "inf" || text == "-inf") return Value::floating(text == "inf" ? HUGE_VAL : -HUGE_VAL);
  return failed(args.at, "expected float(\"nan\"), float(\"inf\") or float(\"-inf\")");
}

Value Parser::moduleAttrs(Args& args) {
  moduleAttrs_ = attrDict(*args.find("attrs"), args.at);
  return moduleAttrs_ ? Value::done() : Value();
}

/// Virtual devices: placements name their device themselves.
Value Parser::moduleGlobalInfos(Args&) {
  return Value::done();
}

/// Which arguments are values and which attributes; inputs that are left out are null.
bool Parser::operands(const OpSignature& signature, Args& args, std::vector<const Value*>& values,
                      std::vector<std::pair<std::string, NodeRef>>& attrs) {
  size_t inputs = signature.inputs.size();
  for (size_t i = args.rest; i < args.pos.size(); ++i) {
    const Value& v = args.pos[i];
    size_t place = i - args.rest;
    bool spread = signature.variadic && place + 1 == inputs && v.isSequence();
    if (spread) { // a tuple in place of any number of values
      for (const Value& item : v.items) values.push_back(&item);
      continue;
    }
    bool isValue = place < inputs || (signature.variadic && values.size() == place);
    if (isValue) {
      values.push_back(&v);
      continue;
    }
    if (place - inputs >= signature.attrs.size())
      return failed(args.posAt[i], args.name + " has no argument here");
    NodeRef node = attrNode(v, args.posAt[i]);
    if (!node && v.tag != Value::kNone) return false;
    attrs.emplace_back(signature.attrs[place - inputs].name, node);
  }
  for (size_t k = 0; k < args.kw.size(); ++k) {
    auto it = std::find(signature.inputs.begin(), signature.inputs.end(), args.kw[k].first);
    if (args.takenKeywords[k] || it == signature.inputs.end()) continue;
    size_t i = size_t(it - signature.inputs.begin());
    if (i < values.size() && values[i])
      return failed(args.kwAt[k], args.name + ": '" + args.kw[k].first + "' is given twice");
    if (values.size() <= i) values.resize(i + 1, nullptr);
    values[i] = &args.kw[k].second, args.takenKeywords[k] = true;
  }
  return true;
}

Value Parser::relaxOp(const std::string& op, Args& args) {
  bool exact = args.rest > 0; // R.call_op names the operator first
  if (!exact && !bindArguments(args, "* out_sinfo|out_ty|sinfo_args|ty_args? **")) return Value();
  if (!exact)
    if (auto v = spelled(op, args)) return *v;
  auto signature = options_.signatureOf ? options_.signatureOf(op) : std::nullopt;
  std::vector<const Value*> given;
  std::vector<std::pair<std::string, NodeRef>> attrs;
  if (signature && !operands(*signature, args, given, attrs)) return Value();
  for (size_t i = args.rest; i < args.pos.size() && !signature; ++i) given.push_back(&args.pos[i]);
  Array<GraphExpr> values;
  for (const Value* v : given) {
    bool absent = !v || (signature && v->tag == Value::kNone);
    values.push_back(absent ? GraphExpr(make<const TupleNode>(Array<GraphExpr>{})) : graphArg(*v, args.at));
    if (!values.back()) return Value();
  }
  Array<Type> types;
  Dict keywords;
  if (!outTypes(args, types) || !opAttributes(args, keywords)) return Value();
  for (auto& [key, value] : attrs) keywords = withAttr(keywords, key, value);
  if (signature && keywords) keywords = asDeclared(*signature, keywords);
  return finishCall(make<const OpRefNode>(op), values, keywords, types);
}

Value Parser::finishCall(GraphExpr op, Array<GraphExpr> values, Dict attrs, Array<Type> typeArgs) {
  Type result;
  if (!typeArgs.empty())
    result = typeArgs.size() == 1 ? typeArgs[0] : Type(make<const TupleTypeNode>(typeArgs));
  return Value::of(make<const GraphCallNode>(std::move(op), std::move(values), std::move(attrs),
                                             std::move(typeArgs), result));
}

/// A value as an argument: nested calls get a variable, numbers and scalars become R.prim_value, tuples of
/// numbers shapes.
GraphExpr Parser::graphArg(const Value& v, const Token& where) {
  auto prim = [](const Expr& e) { return e ? make<const PrimValueNode>(e) : GraphExpr(); };
  if (!v.ok()) return nullptr;
  if (v.is<GraphExprNode>()) return flatten(v.to<GraphExprNode>());
  if (v.is<ExprNode>() || v.tag == Value::kString) return prim(toExpr(v, where));
  if (v.isNumber()) {
    DType plain = v.tag == Value::kInt ? kInt64 : v.tag == Value::kFloat ? DType::Float(64) : kBool;
    return prim(literal(v, plain, where));
  }
  if (v.isSequence()) {
    bool scalars = !v.items.empty() || v.tag == Value::kList;
    for (const Value& item : v.items) scalars &= item.tag == Value::kInt || item.as<ExprNode>();
    if (scalars) {
      Array<Expr> dims;
      if (!dimensions(v, dims, where, true)) return nullptr;
      return make<const ShapeExprNode>(dims);
    }
    return tupleArg(v, where);
  }
  return failed(where, "expected a graph value, found " + describe(v),
                v.tag == Value::kNone ? "leave the argument out" : "");
}

GraphExpr Parser::tupleArg(const Value& v, const Token& where) {
  Array<GraphExpr> items;
  bool ok = collect(v.items, items, [&](const Value& item) { return graphArg(item, where); });
  return ok ? make<const TupleNode>(items) : GraphExpr();
}

/// The result types that a call states: out_sinfo= (or out_ty=, sinfo_args=, ty_args=).
bool Parser::outTypes(Args& args, Array<Type>& out) {
  const Value* found = args.given("out_sinfo");
  return !found || typeList(*found, out, args.at);
}

bool Parser::opAttributes(Args& args, Dict& out) {
  std::vector<std::pair<std::string, NodeRef>> entries;
  for (size_t k = 0; k < args.kw.size(); ++k) {
    if (args.takenKeywords[k]) continue;
    args.takenKeywords[k] = true;
    const auto& [key, value] = args.kw[k];
    if (key == "attrs") {
      out = attrDict(value, args.kwAt[k]);
      if (!out) return false;
      continue;
    }
    NodeRef node = attrNode(value, args.kwAt[k]);
    if (!node && value.tag != Value::kNone) return false;
    entries.emplace_back(key, node);
  }
  if (!entries.empty()) out = merged(out, dict(std::move(entries)));
  return true;
}

// ---- leaves

bool Parser::constItems(const Value& v, std::vector<int64_t>& shape, std::vector<const Value*>& items,
                        size_t axis, const Token& where) {
  if (!v.isSequence()) {
    if (axis != shape.size()) return failed(where, "the lists of a constant have different depths");
    items.push_back(&v);
    return true;
  }
  bool firstVisit = items.empty() && axis == shape.size();
  if (firstVisit) shape.push_back(int64_t(v.items.size()));
  if (axis >= shape.size() || shape[axis] != int64_t(v.items.size()))
    return failed(where, "the lists of a constant have different lengths");
  for (const Value& item : v.items)
    if (!constItems(item, shape, items, axis + 1, where)) return false;
  return true;
}

Value Parser::rConst(Args& args) {
  Value value = *args.find("value");
  auto dtype = dtypeArg(args, "dtype");
  const Value* shapeArg = args.find("shape");
  if (auto* c = value.as<ConstantNode>()) {
    if (!dtype.isVoid() && c->value->dtype != dtype)
      return failed(args.at, "the constant holds " + c->value->dtype.str() + ", not " + dtype.str());
    return value;
  }
  std::vector<int64_t> shape;
  std::vector<const Value*> items;
  if (!constItems(value, shape, items, 0, args.at)) return Value();
  if (dtype.isVoid()) {
    dtype = kInt32;
    for (const Value* v : items) {
      if (v->tag == Value::kFloat) dtype = kFloat32;
      if (v->tag == Value::kBool) dtype = kBool;
      if (v->tag == Value::kString) dtype = DType::String();
    }
  }
  if (shapeArg && shapeArg->isSequence()) {
    shape.clear();
    for (const Value& d : shapeArg->items) {
      if (d.tag != Value::kInt || d.number < 0)
        return failed(args.at, "the shape of a constant is a tuple of numbers");
      shape.push_back(d.number);
    }
  }
  auto count = elementCount(shape);
  if (!count || size_t(*count) != items.size())
    return failed(args.at, "the shape of this constant does not fit its values");
  if (dtype.lanes != 1 || dtype.isHandle() || dtype.isVoid() || dtype.code == TypeCode::kComplex)
    return failed(args.at, "a constant cannot hold " + dtype.str());
  if (dtype.isString()) {
    std::vector<std::string> strings;
    for (const Value* v : items) {
      if (v->tag != Value::kString) return failed(args.at, "expected strings");
      strings.push_back(v->text);
    }
    return Value::of(make<const ConstantNode>(TensorObject::ofStrings(shape, strings)));
  }
  auto t = TensorObject::zeros(dtype, shape);
  for (size_t i = 0; i < items.size(); ++i) {
    if (!items[i]->isNumber()) return failed(args.at, "expected numbers, found " + describe(*items[i]));
    if (dtype.isFloat()) { // rounds, overflow as the format defines
      t->setDouble(int64_t(i), items[i]->toDouble());
      continue;
    }
    Expr e = items[i]->tag == Value::kBool && !dtype.isBool() ? Expr(constant(dtype, items[i]->number))
                                                              : literal(*items[i], dtype, args.at);
    if (!e) return Value();
    t->setInt(int64_t(i), asConst(e).value_or(0));
  }
  return Value::of(make<const ConstantNode>(t));
}

Value Parser::rShapeExpr(Args& args) {
  Array<Expr> dims;
  if (!dimensions(*args.find("values"), dims, args.where("values"), true)) return Value();
  return Value::of(make<const ShapeExprNode>(dims));
}

Value Parser::rPrimValue(Args& args) {
  Value v = *args.find("value");
  if (v.as<PrimValueNode>()) return v;
  if (!v.isNumber() && v.tag != Value::kString && !v.is<ExprNode>())
    return failed(args.at, "R.prim_value takes a scalar expression, not " + describe(v));
  return Value::of(graphArg(v, args.at));
}

Value Parser::rStr(Args& args) {
  return Value::of(make<const PrimValueNode>(Expr(make<const StringImmNode>(stringArg(args, "value")))));
}

Value Parser::rDType(Args& args) {
  return Value::of(make<const DTypeImmNode>(dtypeArg(args, "value")));
}

/// R.op(name), R.ExternFunc(name)
Value Parser::namedFunction(Args& args) {
  auto name = stringArg(args, "name");
  return Value::of(args.code ? GraphExpr(make<const ExternFuncNode>(name)) : make<const OpRefNode>(name));
}

Value Parser::rTupleExpr(Args& args) {
  Array<GraphExpr> items;
  return rest(args, items, &Parser::graphArg) ? Value::of(make<const TupleNode>(items)) : Value();
}

Value Parser::rTupleGet(Args& args) {
  GraphExpr tuple = graphArg(*args.find("tuple"), args.at);
  int64_t index = intArg(args, "index", 0);
  if (!tuple) return Value();
  if (index < 0) return failed(args.at, "a tuple's index is not negative");
  return Value::of(make<const TupleGetNode>(tuple, index));
}

// ---- calls

/// R.call_tir(cls.f, (x, w), out_sinfo=T, tir_vars=R.shape([n])); the name as a string means that function of
/// the module, else a packed function; older: the result as a shape with dtype=.
Value Parser::callTirLike(Args& args) {
  bool dps = args.code == 1;
  const Value& func = *args.find("func");
  GraphExpr callee;
  if (func.tag == Value::kString &&
      std::find(functionNames_.begin(), functionNames_.end(), func.text) != functionNames_.end())
    callee = globalVar(func.text), dps = false; // a tensor program of the module, by its name
  else if (func.tag == Value::kString)
    callee = make<const ExternFuncNode>(func.text), dps = true;
  else if (func.tag == Value::kNode && (func.node.is<GlobalVarNode>() || func.node.is<ExternFuncNode>()))
    callee = cast<GraphExprNode>(func.node), dps = dps || func.node.is<ExternFuncNode>();
  else
    return failed(args.where("func"),
                  "expected a function of the module or the name of a packed function, found " +
                      describe(func));
  const Value& list = *args.find("args");
  GraphExpr values;
  values = list.isSequence() ? tupleArg(list, args.where("args")) : graphArg(list, args.where("args"));
  if (!values) return Value();
  bool isTuple = values.is<TupleNode>() || values->type.is<TupleTypeNode>();
  if (!isTuple) values = make<const TupleNode>(Array<GraphExpr>{values});
  Array<Type> types;
  const Value* third = args.find("out_sinfo");
  bool isShape = third && third->isSequence();
  if (isShape)
    for (const Value& d : third->items) isShape &= d.tag == Value::kInt || d.as<ExprNode>();
  if (isShape) { // (n, m), dtype="float32"
    Array<Expr> dims;
    auto dtype = dtypeArg(args, "dtype", kFloat32);
    if (!dimensions(*third, dims, args.where("out_sinfo"))) return Value();
    types.push_back(make<const TensorTypeNode>(dtype, dims));
  } else if (!outTypes(args, types))
    return Value();
  if (types.empty())
    return failed(args.at, args.name + " states the type of its result",
                  "add out_sinfo=R.Tensor((n, m), dtype=\"float32\")");
  Array<GraphExpr> operands = {callee, values};
  if (const Value* vars = args.given("tir_vars")) {
    Array<Expr> dims;
    GraphExpr shape = vars->to<GraphExprNode>();
    if (!shape && dimensions(*vars, dims, args.at)) shape = make<const ShapeExprNode>(dims);
    if (!shape) return Value();
    operands.push_back(shape);
  }
  Dict attrs;
  if (!opAttributes(args, attrs)) return Value();
  return finishCall(make<const OpRefNode>(dps ? "call_dps_packed" : "call_tir"), operands, attrs, types);
}

Value Parser::rCallPacked(Args& args) {
  return callValue(make<const ExternFuncNode>(stringArg(args, "func")), args);
}

/// A call whose arguments are all values, with result types and attributes.
Value Parser::callValue(GraphExpr callee, Args& args) {
  Array<GraphExpr> values;
  Array<Type> types;
  Dict attrs;
  if (!rest(args, values, &Parser::graphArg) || !outTypes(args, types) || !opAttributes(args, attrs))
    return Value();
  return finishCall(std::move(callee), values, attrs, types);
}

/// R.call_op("any name", …): operators whose name is no Python name.
Value Parser::rCallOp(Args& args) {
  return relaxOp(stringArg(args, "name"), args);
}

Value Parser::rMatchCast(Args& args) {
  GraphExpr e = graphArg(*args.find("value"), args.at);
  Type t = e ? toType(*args.find("type"), args.at) : Type();
  if (!t) return Value();
  Value v = Value::of(e);
  v.tag = Value::kMatchCast;
  v.items.push_back(Value::of(t));
  return v;
}

Value Parser::rFuncAttr(Args& args) {
  if (!seq_) return failed(args.at, args.name + " belongs into a graph function");
  return mergeAttrs(attrs_, args);
}

Value Parser::rFuncRet(Args& args) {
  if (!seq_) return failed(args.at, args.name + " belongs into a graph function");
  return relaxReturn(*args.find("value"), args.at) ? Value::done() : Value();
}

/// The head of `with R.dataflow():` or R.bindings().
Value Parser::bindingBlock(Args& args) {
  return {.tag = Value::kBindings, .number = args.code};
}

/// Which variables leave the dataflow block; found ahead of its statements (findOutputs), checked here.
Value Parser::rOutput(Args& args) {
  if (!seq_ || !seq_->dataflow) return failed(args.at, "R.output belongs into a dataflow block");
  for (size_t i = 0; i < args.pos.size(); ++i) {
    auto v = args.pos[i].to<GraphVarNode>();
    if (!v)
      return failed(args.posAt[i], "R.output lists variables of the block, found " + describe(args.pos[i]));
    bool local = std::ranges::any_of(*seq_->open, [&](const NodeRef& b) { return boundVar(b) == v; });
    if (!local) return failed(args.posAt[i], "'" + v->name + "' is not bound in this dataflow block");
  }
  return Value::done();
}

} // namespace bevel::detail
