// Arithmetic whose meaning changed between versions, variadic operators, casts, products, quantised products.
#include "import/onnx_helpers.h"

#include <cmath>

namespace bevel::onnx {

namespace {

// ---- old broadcasting (before opset 7): attribute axis says where the second operand's axes lie

Result<Values> legacyBinary(Node& n) {
  BEVEL_CHECK(n.require(2));
  const Op* op = findDirect("", n.proto.opType, 7);
  GraphExpr b = n.x(1);
  if (n.attrInt("broadcast", 0) && n.hasAttr("axis") && rankOf(b) > 0) {
    BEVEL_TRY(int64_t axis, axisOf(n, n.attrInt("axis", 0), n.rank(0)));
    Ints tail;
    for (int64_t d = axis + int64_t(rankOf(b)); d < int64_t(n.rank(0)); ++d) tail.push_back(d - axis);
    if (axis + int64_t(rankOf(b)) > int64_t(n.rank(0)))
      return n.invalid("the axis does not fit the operands");
    BEVEL_TRY(b, unsqueeze(n, b, tail));
  }
  return n.one(op->name, {n.x(0), b});
}

Result<Values> variadic(const char* op, Node& n) {
  BEVEL_CHECK(n.require(std::max<size_t>(n.size(), 1)));
  GraphExpr e = n.x(0);
  for (size_t i = 1; i < n.size(); ++i) {
    BEVEL_TRY(e, binaryOp(n, op, e, n.x(i)));
  }
  return Values{n.value(e)};
}
Result<Values> meanNode(Node& n) {
  BEVEL_TRY(Values total, variadic("add", n));
  return n.one("divide", {total[0]->expr, Node::scalarConstant(n.dtype(0), double(n.size()))});
}

Result<Values> equal(Node& n) {
  BEVEL_CHECK(n.require(2));
  return n.one(n.dtype(0).isString() ? "text.equal" : "equal", {n.x(0), n.x(1)});
}

Result<Values> mod(Node& n) {
  BEVEL_CHECK(n.require(2));
  bool fmod = n.attrInt("fmod", 0) != 0;
  return n.one(fmod ? "mod" : "floor_mod", {n.x(0), n.x(1)});
}
Result<Values> bitShift(Node& n) {
  std::string direction = n.attrStr("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") return n.invalid("the direction must be LEFT or RIGHT");
  return n.one(direction == "LEFT" ? "left_shift" : "right_shift", n.all());
}

// x^2, x^0.5 and the like are products and roots; everything else is power.
Result<Values> pow(Node& n) {
  BEVEL_CHECK(n.require(2));
  auto e = n.scalar(1);
  bool keepsShape = e && n.rank(1) <= n.rank(0);
  if (keepsShape && *e == 2) return n.one("multiply", {n.x(0), n.x(0)});
  if (keepsShape && *e == 1) return Values{n.in(0)};
  if (keepsShape && *e == 3 && n.dtype(0).isFloat()) {
    BEVEL_TRY(GraphExpr square, binaryOp(n, "multiply", n.x(0), n.x(0)));
    return n.one("multiply", {square, n.x(0)});
  }
  return n.one("power", {n.x(0), n.x(1)});
}

// ---- casts

std::optional<DType> namedType(const std::string& name) {
  static const std::map<std::string, int32_t> names = {
      {"FLOAT", datatype::kFloat},   {"DOUBLE", datatype::kDouble}, {"INT32", datatype::kInt32},
      {"INT64", datatype::kInt64},   {"INT8", datatype::kInt8},     {"UINT8", datatype::kUint8},
      {"INT16", datatype::kInt16},   {"UINT16", datatype::kUint16}, {"UINT32", datatype::kUint32},
      {"UINT64", datatype::kUint64}, {"BOOL", datatype::kBoolType}, {"FLOAT16", datatype::kFloat16}};
  auto it = names.find(name);
  return it == names.end() ? std::nullopt : dtypeOf(it->second);
}

// Strings read as numbers, numbers written as strings.
Result<Values> castText(Node& n, DType to) {
  if (n.dtype(0) == to) return Values{n.in(0)};
  return to.isString() ? n.one("text.from_number", {n.x(0)})
                       : n.one("text.to_number", {n.x(0)}, {{"dtype", dtypeNode(to)}});
}

Result<Values> castNode(Node& n) {
  BEVEL_CHECK(n.require(1));
  auto t = n.opset < 6 ? namedType(n.attrStr("to", "")) : dtypeOf(int32_t(n.attrInt("to", 0)));
  if (!t) return n.unsupported("the target type");
  if (t->isString() || n.dtype(0).isString()) return castText(n, *t);
  if (t->code == TypeCode::kFloat8E8M0FNU) return n.unsupported("rounding to float8_e8m0");
  if (*t == n.dtype(0)) return Values{n.in(0)};
  return n.one("astype", {n.x(0)},
               {{"dtype", dtypeNode(*t)}, {"saturate", intImm(n.attrInt("saturate", 1))}});
}
Result<Values> castLike(Node& n) {
  BEVEL_CHECK(n.require(2));
  if (n.dtype(1) == n.dtype(0)) return Values{n.in(0)};
  if (n.dtype(0).isString() || n.dtype(1).isString()) return castText(n, n.dtype(1));
  if (n.dtype(1).code == TypeCode::kFloat8E8M0FNU) return n.unsupported("rounding to float8_e8m0");
  return n.one("astype", {n.x(0)},
               {{"dtype", dtypeNode(n.dtype(1))}, {"saturate", intImm(n.attrInt("saturate", 1))}});
}

Result<Values> clip1(Node& n) {
  BEVEL_CHECK(n.require(1));
  auto bound = [&](const char* name) {
    return n.hasAttr(name) ? Node::scalarConstant(n.dtype(0), n.attrFloat(name, 0)) : absent();
  };
  return n.one("clip", {n.x(0), bound("min"), bound("max")});
}
Result<Values> clip11(Node& n) {
  BEVEL_CHECK(n.require(1));
  if (!n.has(1) && !n.has(2)) return Values{n.in(0)};
  return n.one("clip", {n.x(0), n.x(1), n.x(2)});
}

Result<Values> gelu(Node& n) {
  BEVEL_CHECK(n.require(1));
  return n.one(n.attrStr("approximate", "none") == "tanh" ? "nn.gelu_tanh" : "nn.gelu", {n.x(0)});
}

// Before opset 7 a slope of several values is one a channel.
Result<Values> prelu1(Node& n) {
  BEVEL_CHECK(n.require(2));
  GraphExpr slope = n.x(1);
  Ints tail;
  for (size_t d = 2; d < n.rank(0); ++d) tail.push_back(int64_t(d) - 1);
  if (n.rank(1) == 1 && !isConst(n.shape(1)[0], 1)) {
    BEVEL_TRY(slope, unsqueeze(n, slope, tail));
  }
  return n.one("nn.prelu", {n.x(0), slope});
}
Result<Values> prelu7(Node& n) {
  BEVEL_CHECK(n.require(2));
  return n.one("nn.prelu", {n.x(0), n.x(1)});
}

// a * sigmoid(alpha * a) * b
Result<Values> swiglu(Node& n) {
  BEVEL_CHECK(n.require(2));
  BEVEL_TRY(GraphExpr gate,
            binaryOp(n, "multiply", n.x(0), Node::scalarConstant(n.dtype(0), n.attrFloat("alpha", 1))));
  BEVEL_TRY(gate, unaryOp(n, "sigmoid", gate));
  BEVEL_TRY(gate, binaryOp(n, "multiply", n.x(0), gate));
  return n.one("multiply", {gate, n.x(1)});
}

// ---- products

Result<Values> gemm(Node& n) {
  BEVEL_CHECK(n.require(2));
  if (n.rank(0) != 2 || n.rank(1) != 2) return n.invalid("matrices are expected");
  GraphExpr a = n.x(0), b = n.x(1);
  if (n.attrInt("transA", 0)) {
    BEVEL_TRY(a, permute(n, a, {1, 0}));
  }
  if (n.attrInt("transB", 0)) {
    BEVEL_TRY(b, permute(n, b, {1, 0}));
  }
  BEVEL_TRY(GraphExpr y, binaryOp(n, "matmul", a, b));
  double alpha = n.attrFloat("alpha", 1), beta = n.attrFloat("beta", 1);
  DType t = n.dtype(0);
  if (alpha != 1) {
    BEVEL_TRY(y, binaryOp(n, "multiply", y, Node::scalarConstant(t, alpha)));
  }
  if (!n.has(2) || beta == 0) return Values{n.value(y)};
  GraphExpr c = n.x(2);
  if (n.opset < 7 && n.attrInt("broadcast", 0) == 0 && rankOf(c) != 2)
    return n.invalid("the third matrix needs broadcast");
  if (beta != 1) {
    BEVEL_TRY(c, binaryOp(n, "multiply", c, Node::scalarConstant(t, beta)));
  }
  return n.one("add", {y, c});
}

// x - zero point as int32; a vector zero point belongs to `axis` of x.
Result<GraphExpr> centred(Node& n, size_t x, size_t zero, int64_t axis) {
  BEVEL_TRY(GraphExpr e, n.castTo(n.x(x), kInt32));
  if (!n.has(zero)) return e;
  BEVEL_TRY(GraphExpr z, n.castTo(n.x(zero), kInt32));
  if (rankOf(z) == 1 && !isConst(shapeOfExpr(z)[0], 1)) {
    Ints tail;
    for (int64_t d = axis + 1; d < int64_t(rankOf(e)); ++d) tail.push_back(d - axis);
    BEVEL_TRY(z, unsqueeze(n, z, tail));
  }
  return binaryOp(n, "subtract", e, z);
}

Result<Values> matMulInteger(Node& n) {
  BEVEL_CHECK(n.require(2));
  BEVEL_TRY(GraphExpr a, centred(n, 0, 2, int64_t(n.rank(0)) - 2));
  BEVEL_TRY(GraphExpr b, centred(n, 1, 3, int64_t(n.rank(1)) - 1));
  return n.one("matmul", {a, b});
}

// round(x / scale) + zero, saturated to the type of the zero point.
Result<GraphExpr> requantize(Node& n, const GraphExpr& acc, const GraphExpr& factor, size_t zero) {
  BEVEL_TRY(GraphExpr y, n.castTo(acc, kFloat32));
  BEVEL_TRY(y, binaryOp(n, "multiply", y, factor));
  BEVEL_TRY(y, unaryOp(n, "round", y));
  DType t = n.dtype(zero);
  BEVEL_TRY(GraphExpr z, n.castTo(n.x(zero), kFloat32));
  BEVEL_TRY(y, binaryOp(n, "add", y, z));
  BEVEL_TRY(y, n.emit("clip", {y, Node::scalarConstant(kFloat32, double(minValue(t))),
                               Node::scalarConstant(kFloat32, double(maxValue(t)))}));
  return n.castTo(y, t);
}

Result<Values> qlinearMatMul(Node& n) { // a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero
  BEVEL_CHECK(n.require(8));
  BEVEL_TRY(GraphExpr a, centred(n, 0, 2, int64_t(n.rank(0)) - 2));
  BEVEL_TRY(GraphExpr b, centred(n, 3, 5, int64_t(n.rank(3)) - 1));
  BEVEL_TRY(GraphExpr acc, binaryOp(n, "matmul", a, b));
  BEVEL_TRY(GraphExpr sa, n.castTo(n.x(1), kFloat32));
  BEVEL_TRY(GraphExpr sb, n.castTo(n.x(4), kFloat32));
  BEVEL_TRY(GraphExpr sy, n.castTo(n.x(6), kFloat32));
  if (rankOf(sa) == 1 && !isConst(shapeOfExpr(sa)[0], 1)) {
    BEVEL_TRY(sa, unsqueeze(n, sa, {1}));
  }
  BEVEL_TRY(GraphExpr factor, binaryOp(n, "multiply", sa, sb));
  BEVEL_TRY(factor, binaryOp(n, "divide", factor, sy));
  BEVEL_TRY(GraphExpr y, requantize(n, acc, factor, 7));
  return Values{n.value(y)};
}

// ---- quantisation

// A scale or zero point in a form that broadcasts to the data: scalar, one value along `axis`, or blocks
// along it.
Result<GraphExpr> alongAxis(Node& n, GraphExpr s, int64_t axis, int64_t block) {
  size_t rank = n.rank(0);
  if (rankOf(s) == 0 || (rankOf(s) == 1 && isConst(shapeOfExpr(s)[0], 1) && rank != 1))
    return rankOf(s) == 0 ? Result<GraphExpr>(s) : reshapeTo(n, s, {});
  if (rankOf(s) == 1 && (block == 0 || rank == 1) && isConst(shapeOfExpr(s)[0], 1)) return s;
  BEVEL_TRY(int64_t a, axisOf(n, axis, rank));
  if (block > 0) { // repeat each value `block` times along the axis, then cut
    Array<Expr> from = shapeOfExpr(s), wide, merged = from;
    for (size_t d = 0; d < from.size(); ++d) {
      wide.push_back(from[d]);
      if (int64_t(d) == a) wide.push_back(intImm(block));
    }
    BEVEL_TRY(s, unsqueeze(n, s, {a + 1}));
    BEVEL_TRY(s, n.emit("broadcast_to", {s, Node::shapeArg(wide)}));
    merged.set(size_t(a), n.analyzer().simplify(from[size_t(a)] * block));
    BEVEL_TRY(s, reshapeTo(n, s, merged));
    return sliceAxis(n, s, a, intImm(0), n.shape(0)[size_t(a)]);
  }
  if (rankOf(s) != 1) return s;
  Ints tail;
  for (int64_t d = a + 1; d < int64_t(rank); ++d) tail.push_back(d - a);
  return unsqueeze(n, s, tail);
}

Result<Values> dequantize(Node& n) {
  BEVEL_CHECK(n.require(2));
  int64_t axis = n.rank(0) <= 1 && !n.hasAttr("axis") ? -1 : n.attrInt("axis", 1),
          block = n.attrInt("block_size", 0);
  if (n.rank(0) == 0) axis = 0;
  DType t = n.dtype(1);
  if (int64_t given = n.attrInt("output_dtype", 0)) t = dtypeOf(int32_t(given)).value_or(t);
  BEVEL_TRY(GraphExpr scale, alongAxis(n, n.x(1), axis, block));
  BEVEL_TRY(scale, n.castTo(scale, kFloat32));
  BEVEL_TRY(GraphExpr x, n.castTo(n.x(0), n.dtype(0).isFloat() ? kFloat32 : kInt32));
  if (n.has(2) && !n.dtype(0).isFloat()) {
    BEVEL_TRY(GraphExpr zero, alongAxis(n, n.x(2), axis, block));
    BEVEL_TRY(zero, n.castTo(zero, kInt32));
    BEVEL_TRY(x, binaryOp(n, "subtract", x, zero));
  }
  BEVEL_TRY(x, n.castTo(x, kFloat32));
  BEVEL_TRY(x, binaryOp(n, "multiply", x, scale));
  BEVEL_TRY(x, n.castTo(x, t));
  return Values{n.value(x)};
}

Result<Values> quantize(Node& n) {
  BEVEL_CHECK(n.require(2));
  int64_t axis = n.rank(0) <= 1 && !n.hasAttr("axis") ? -1 : n.attrInt("axis", 1),
          block = n.attrInt("block_size", 0);
  DType t = n.has(2) ? n.dtype(2) : DType::UInt(8);
  if (int64_t given = n.attrInt("output_dtype", 0)) t = dtypeOf(int32_t(given)).value_or(t);
  BEVEL_TRY(GraphExpr scale, alongAxis(n, n.x(1), axis, block));
  BEVEL_TRY(scale, n.castTo(scale, kFloat32));
  BEVEL_TRY(GraphExpr x, n.castTo(n.x(0), kFloat32));
  BEVEL_TRY(x, binaryOp(n, "divide", x, scale));
  if (t.isFloat())
    return n.one("astype", {x}, {{"dtype", dtypeNode(t)}, {"saturate", intImm(n.attrInt("saturate", 1))}});
  BEVEL_TRY(x, unaryOp(n, "round", x));
  if (n.has(2)) {
    BEVEL_TRY(GraphExpr zero, alongAxis(n, n.x(2), axis, block));
    BEVEL_TRY(zero, n.castTo(zero, kFloat32));
    BEVEL_TRY(x, binaryOp(n, "add", x, zero));
  }
  BEVEL_TRY(x, n.emit("clip", {x, Node::scalarConstant(kFloat32, double(minValue(t))),
                               Node::scalarConstant(kFloat32, double(maxValue(t)))}));
  BEVEL_TRY(x, n.castTo(x, t));
  return Values{n.value(x)};
}

Result<Values> dynamicQuantize(Node& n) {
  BEVEL_CHECK(n.require(1));
  GraphExpr x = n.x(0), zero = Node::scalarConstant(kFloat32, 0);
  BEVEL_TRY(GraphExpr low, reduceOver(n, "min", x, std::nullopt, false));
  BEVEL_TRY(GraphExpr high, reduceOver(n, "max", x, std::nullopt, false));
  BEVEL_TRY(low, binaryOp(n, "minimum", low, zero));
  BEVEL_TRY(high, binaryOp(n, "maximum", high, zero));
  BEVEL_TRY(GraphExpr span, binaryOp(n, "subtract", high, low));
  BEVEL_TRY(GraphExpr scale, binaryOp(n, "divide", span, Node::scalarConstant(kFloat32, 255)));
  BEVEL_TRY(GraphExpr flat, binaryOp(n, "equal", span, zero)); // all zeros: scale 1, as onnxruntime
  BEVEL_TRY(scale, n.emit("where", {flat, Node::scalarConstant(kFloat32, 1), scale}));
  BEVEL_TRY(GraphExpr start, unaryOp(n, "negative", low));
  BEVEL_TRY(GraphExpr point, binaryOp(n, "divide", start, scale));
  GraphExpr top = Node::scalarConstant(kFloat32, 255);
  BEVEL_TRY(point, unaryOp(n, "round", point));
  BEVEL_TRY(point, n.emit("clip", {point, zero, top}));
  BEVEL_TRY(GraphExpr y, binaryOp(n, "divide", x, scale));
  BEVEL_TRY(y, unaryOp(n, "round", y));
  BEVEL_TRY(y, binaryOp(n, "add", y, point));
  BEVEL_TRY(y, n.emit("clip", {y, zero, top}));
  BEVEL_TRY(y, n.castTo(y, DType::UInt(8)));
  BEVEL_TRY(GraphExpr zeroPoint, n.castTo(point, DType::UInt(8)));
  return Values{n.value(y), n.value(scale), n.value(zeroPoint)};
}

// ---- softmax family

Result<Values> softmaxOver(const char* op, Node& n) {
  BEVEL_CHECK(n.require(1));
  if (n.opset >= 13) return n.one(op, {n.x(0)}, {{"axis", intImm(n.attrInt("axis", -1))}});
  // Before 13 the input is seen as a matrix, split at axis.
  int64_t axis = n.attrInt("axis", 1), rank = int64_t(n.rank(0));
  if (axis < -rank || axis > rank || rank == 0) return n.invalid("the axis is out of range");
  if (axis < 0) axis += rank;
  if (axis == rank - 1) return n.one(op, {n.x(0)}, {{"axis", intImm(-1)}});
  Array<Expr> two = {product(n.analyzer(), n.shape(0), 0, size_t(axis)),
                     product(n.analyzer(), n.shape(0), size_t(axis))};
  BEVEL_TRY(GraphExpr e, reshapeTo(n, n.x(0), two));
  BEVEL_TRY(e, n.emit(op, {e}, {{"axis", intImm(-1)}}));
  BEVEL_TRY(e, reshapeTo(n, e, n.shape(0)));
  return Values{n.value(e)};
}

// One at the first largest element, else zero.
Result<Values> hardmax(Node& n) {
  BEVEL_CHECK(n.require(1));
  int64_t rank = int64_t(n.rank(0)), axis = n.attrInt("axis", n.opset >= 13 ? -1 : 1);
  GraphExpr x = n.x(0);
  bool flat = n.opset < 13 && axis != rank - 1 && axis != -1;
  if (flat) {
    if (axis < 0 || axis > rank) return n.invalid("the axis is out of range");
    BEVEL_TRY(x, reshapeTo(n, x,
                           {product(n.analyzer(), n.shape(0), 0, size_t(axis)),
                            product(n.analyzer(), n.shape(0), size_t(axis))}));
    axis = 1;
  }
  BEVEL_TRY(int64_t a, axisOf(n, axis, rankOf(x)));
  BEVEL_TRY(GraphExpr at, n.emit("argmax", {x}, {{"axis", intImm(a)}, {"keepdims", intImm(0)}}));
  auto values = TensorObject::of(n.dtype(0), {2}, std::vector<double>{0, 1});
  BEVEL_TRY(GraphExpr y, n.emit("one_hot",
                                {at, make<const ConstantNode>(Tensor(values)),
                                 Node::shapeArg({shapeOfExpr(x)[size_t(a)]})},
                                {{"axis", intImm(a)}}));
  if (flat) {
    BEVEL_TRY(y, reshapeTo(n, y, n.shape(0)));
  }
  return Values{n.value(y)};
}

} // namespace

std::vector<Conversion> mathConversions() {
  std::vector<Conversion> rows = {{"Max", 1, std::bind_front(variadic, "maximum")},
                                  {"Min", 1, std::bind_front(variadic, "minimum")},
                                  {"Sum", 1, std::bind_front(variadic, "add")},
                                  {"Mean", 1, meanNode},
                                  {"Mod", 10, mod},
                                  {"BitShift", 11, bitShift},
                                  {"Pow", 7, pow},
                                  {"Cast", 1, castNode},
                                  {"CastLike", 15, castLike},
                                  {"Clip", 1, clip1},
                                  {"Clip", 11, clip11},
                                  {"Gelu", 20, gelu},
                                  {"Gemm", 1, gemm},
                                  {"MatMulInteger", 10, matMulInteger},
                                  {"QLinearMatMul", 10, qlinearMatMul},
                                  {"DequantizeLinear", 10, dequantize},
                                  {"QuantizeLinear", 10, quantize},
                                  {"DynamicQuantizeLinear", 11, dynamicQuantize},
                                  {"Softmax", 1, std::bind_front(softmaxOver, "nn.softmax")},
                                  {"LogSoftmax", 1, std::bind_front(softmaxOver, "nn.log_softmax")},
                                  {"Hardmax", 1, hardmax},
                                  {"PRelu", 1, prelu1},
                                  {"PRelu", 7, prelu7},
                                  {"SwiGLU", 28, swiglu}};
  for (const char* op : {"Add", "Sub", "Mul", "Div", "And", "Or", "Xor", "Equal", "Less", "Greater", "Pow"})
    rows.push_back({op, 1, legacyBinary});
  for (const char* op : {"Add", "Sub", "Mul", "Div", "And", "Or", "Xor", "Equal", "Less", "Greater"})
    rows.push_back({op, 7, nullptr});
  rows.push_back({"Equal", 19, equal});
  return rows;
}

} // namespace bevel::onnx
