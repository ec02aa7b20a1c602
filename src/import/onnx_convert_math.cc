// Arithmetic whose meaning changed between versions, variadic operators, casts, products, quantised products.
#include "import/onnx_helpers.h"

namespace bevel::onnx {

namespace {

// ---- old broadcasting (before opset 7): attribute axis says where the second operand's axes lie

Result<Values> legacyBinary(Node& n) {
  const Op* op = findDirect("", n.proto.opType, 7);
  Term b = n.x(1);
  if (n.attrInt("broadcast", 0) && n.hasAttr("axis") && n.rank(1) > 0) {
    BEVEL_TRY(int64_t axis, axisOf(n, n.attrInt("axis", 0), n.rank(0)));
    int64_t behind = int64_t(n.rank(0)) - axis;
    if (behind < int64_t(n.rank(1))) return n.invalid("the axis does not fit the operands");
    b = b.unsqueeze(upTo(int64_t(n.rank(1)), behind));
  }
  return n.emit(op->name, {n.x(0), b});
}

Result<Values> variadic(const char* op, Node& n) {
  BEVEL_CHECK(n.require(n.size()));
  Term e = n.x(0);
  for (size_t i = 1; i < n.size(); ++i) e = Term::binary(op, e, n.x(i));
  return e;
}
Result<Values> meanNode(Node& n) {
  BEVEL_TRY(Values total, variadic("add", n));
  return Term(n, total[0]->expr) / double(n.size());
}

Result<Values> equal(Node& n) {
  return n.emit(n.dtype(0).isString() ? "text.equal" : "equal", {n.x(0), n.x(1)});
}

Result<Values> mod(Node& n) {
  return n.emit(n.attrInt("fmod", 0) ? "mod" : "floor_mod", {n.x(0), n.x(1)});
}
Result<Values> bitShift(Node& n) {
  std::string direction = n.attrStr("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") return n.invalid("the direction must be LEFT or RIGHT");
  return n.emit(direction == "LEFT" ? "left_shift" : "right_shift", n.all());
}

// x^2, x^0.5 and the like are products and roots; everything else is power.
Result<Values> pow(Node& n) {
  auto e = n.scalar(1);
  Term x = n.x(0);
  bool keepsShape = e && n.rank(1) <= n.rank(0);
  if (keepsShape && *e == 2) return x * x;
  if (keepsShape && *e == 1) return Values{n.in(0)};
  if (keepsShape && *e == 3 && n.dtype(0).isFloat()) return x * x * x;
  return n.emit("power", {x, n.x(1)});
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

// Strings are read as numbers, and numbers are written as strings.
Result<Values> castInput(Node& n, DType to) {
  if (to == n.dtype(0)) return Values{n.in(0)};
  if (to.isString()) return n.x(0).apply("text.from_number");
  if (n.dtype(0).isString()) return n.x(0).apply("text.to_number", {{"dtype", to}});
  if (to.code == TypeCode::kFloat8E8M0FNU) return n.unsupported("rounding to float8_e8m0");
  return n.x(0).apply("astype", {{"dtype", to}, {"saturate", n.attrInt("saturate", 1)}});
}
Result<Values> castNode(Node& n) {
  auto t = n.opset < 6 ? namedType(n.attrStr("to", "")) : dtypeOf(int32_t(n.attrInt("to", 0)));
  if (!t) return n.unsupported("the target type");
  return castInput(n, *t);
}
Result<Values> castLike(Node& n) {
  return castInput(n, n.dtype(1));
}

Result<Values> clip1(Node& n) {
  auto bound = [&](const char* name) {
    return n.hasAttr(name) ? Node::scalarConstant(n.dtype(0), n.attrFloat(name, 0)) : absent();
  };
  return n.emit("clip", {n.x(0), bound("min"), bound("max")});
}
Result<Values> clip11(Node& n) {
  if (!n.has(1) && !n.has(2)) return Values{n.in(0)};
  return n.emit("clip", {n.x(0), n.x(1), n.x(2)});
}

Result<Values> gelu(Node& n) {
  return n.x(0).apply(n.attrStr("approximate", "none") == "tanh" ? "nn.gelu_tanh" : "nn.gelu");
}

// Before opset 7 a slope of several values is one a channel.
Result<Values> prelu(Node& n) {
  Term slope = n.x(1);
  if (n.opset < 7 && n.rank(1) == 1 && !isConst(n.shape(1)[0], 1))
    slope = slope.unsqueeze(upTo(1, int64_t(n.rank(0)) - 1));
  return n.emit("nn.prelu", {n.x(0), slope});
}

// a * sigmoid(alpha * a) * b
Result<Values> swiglu(Node& n) {
  Term a = n.x(0);
  return a * (a * n.attrFloat("alpha", 1)).apply("sigmoid") * n.x(1);
}

// ---- products

Result<Values> gemm(Node& n) {
  if (n.rank(0) != 2 || n.rank(1) != 2) return n.invalid("matrices are expected");
  Term a = n.x(0), b = n.x(1), c = n.x(2);
  if (n.attrInt("transA", 0)) a = a.permute({1, 0});
  if (n.attrInt("transB", 0)) b = b.permute({1, 0});
  Term y = n.emit("matmul", {a, b});
  double alpha = n.attrFloat("alpha", 1), beta = n.attrFloat("beta", 1);
  if (alpha != 1) y = y * alpha;
  if (!n.has(2) || beta == 0) return y;
  if (n.opset < 7 && n.attrInt("broadcast", 0) == 0 && n.rank(2) != 2)
    return n.invalid("the third matrix needs broadcast");
  if (beta != 1) c = c * beta;
  return y + c;
}

Result<Values> matMulInteger(Node& n) {
  Term a = centred(n, 0, 2, int64_t(n.rank(0)) - 2);
  return n.emit("matmul", {a, centred(n, 1, 3, int64_t(n.rank(1)) - 1)});
}

Result<Values> qlinearMatMul(Node& n) { // a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero
  Term a = centred(n, 0, 2, int64_t(n.rank(0)) - 2);
  Term acc = n.emit("matmul", {a, centred(n, 3, 5, int64_t(n.rank(3)) - 1)});
  Term sa = n.x(1).cast(kFloat32), sb = n.x(4).cast(kFloat32), sy = n.x(6).cast(kFloat32);
  if (n.rank(1) == 1 && !isConst(n.shape(1)[0], 1)) sa = sa.unsqueeze({1});
  return requantized(n, acc, sa * sb / sy, 7);
}

// ---- quantisation

// A scale or zero point in a form that broadcasts to the data: scalar, one value along `axis`, or blocks
// along it.
Term alongAxis(Node& n, size_t input, int64_t axis, int64_t block) {
  size_t rank = n.rank(0);
  Term s = n.x(input);
  const Array<Expr>& from = n.shape(input);
  bool vector = from.size() == 1, single = vector && isConst(from[0], 1);
  if (from.empty() || (single && rank != 1)) return s.scalar();
  if (single) return s;
  auto a = axisOf(n, axis, rank);
  if (!a) return {n, fail(a.error())};
  if (block > 0 && from.size() != rank)
    return {n, n.invalid("scales and zero points of blocks have as many dimensions as the data")};
  if (block > 0) { // repeat each value `block` times along the axis, then cut
    Array<Expr> wide, merged = from;
    for (size_t d = 0; d < from.size(); ++d) {
      wide.push_back(from[d]);
      if (int64_t(d) == *a) wide.push_back(intImm(block));
    }
    merged.set(size_t(*a), n.analyzer().simplify(from[size_t(*a)] * block));
    Term repeated = s.unsqueeze({*a + 1}).broadcast(wide).reshape(merged);
    return repeated.slice(*a, intImm(0), n.shape(0)[size_t(*a)]);
  }
  return vector ? s.unsqueeze(upTo(1, int64_t(rank) - *a)) : s;
}

int64_t quantizedAxis(Node& n) {
  return n.rank(0) <= 1 && !n.hasAttr("axis") ? -1 : n.attrInt("axis", 1);
}
DType quantizedType(Node& n, DType otherwise) {
  return dtypeOf(int32_t(n.attrInt("output_dtype", 0))).value_or(otherwise);
}

Result<Values> dequantize(Node& n) {
  int64_t axis = n.rank(0) == 0 ? 0 : quantizedAxis(n), block = n.attrInt("block_size", 0);
  Term scale = alongAxis(n, 1, axis, block).cast(kFloat32);
  Term x = n.x(0).cast(n.dtype(0).isFloat() ? kFloat32 : kInt32);
  if (n.has(2) && !n.dtype(0).isFloat()) x = x - alongAxis(n, 2, axis, block).cast(kInt32);
  return (x.cast(kFloat32) * scale).cast(quantizedType(n, n.dtype(1)));
}

Result<Values> quantize(Node& n) {
  int64_t axis = quantizedAxis(n), block = n.attrInt("block_size", 0);
  DType t = quantizedType(n, n.has(2) ? n.dtype(2) : DType::UInt(8));
  Term scale = alongAxis(n, 1, axis, block).cast(kFloat32);
  Term x = n.x(0).cast(kFloat32) / scale;
  if (t.isFloat()) return x.apply("astype", {{"dtype", t}, {"saturate", n.attrInt("saturate", 1)}});
  x = x.apply("round");
  if (n.has(2)) x = x + alongAxis(n, 2, axis, block).cast(kFloat32);
  return saturated(n, x, t);
}

Result<Values> dynamicQuantize(Node& n) {
  Term x = n.x(0);
  DType byte = DType::UInt(8);
  Term low = x.reduce("min"), high = x.reduce("max");
  low = n.emit("minimum", {low, 0});
  high = n.emit("maximum", {high, 0});
  Term span = high - low;
  Term scale = span / 255;
  Term flat = n.emit("equal", {span, 0}); // all zeros: scale 1, as onnxruntime
  scale = where(n, flat, 1, scale);
  Term point = n.emit("clip", {(low.apply("negative") / scale).apply("round"), 0, 255});
  Term y = n.emit("clip", {(x / scale).apply("round") + point, 0, 255}).cast(byte);
  return n.results({y, scale, point.cast(byte)});
}

// ---- softmax family

// Before opset 13 the input is seen as a matrix, split at the axis.
Array<Expr> asMatrix(Node& n, int64_t axis) {
  return {product(n.analyzer(), n.shape(0), 0, size_t(axis)),
          product(n.analyzer(), n.shape(0), size_t(axis))};
}

Result<Values> softmaxOver(const char* op, Node& n) {
  if (n.opset >= 13) return n.x(0).apply(op, {{"axis", n.attrInt("axis", -1)}});
  int64_t axis = n.attrInt("axis", 1), rank = int64_t(n.rank(0));
  if (axis < -rank || axis > rank || rank == 0) return n.invalid("the axis is out of range");
  if (axis < 0) axis += rank;
  if (axis == rank - 1) return n.x(0).apply(op, {{"axis", -1}});
  return n.x(0).reshape(asMatrix(n, axis)).apply(op, {{"axis", -1}}).reshape(n.shape(0));
}

// One at the first largest element, else zero.
Result<Values> hardmax(Node& n) {
  int64_t rank = int64_t(n.rank(0)), axis = n.attrInt("axis", n.opset >= 13 ? -1 : 1);
  Term x = n.x(0);
  Array<Expr> shape = n.shape(0);
  bool flat = n.opset < 13 && axis != rank - 1 && axis != -1;
  if (flat) {
    if (axis < 0 || axis > rank) return n.invalid("the axis is out of range");
    shape = asMatrix(n, axis);
    x = x.reshape(shape);
    axis = 1;
  }
  BEVEL_TRY(int64_t a, axisOf(n, axis, shape.size()));
  Term at = x.apply("argmax", {{"axis", a}, {"keepdims", 0}});
  auto values = TensorObject::of(n.dtype(0), {2}, std::vector<double>{0, 1});
  Term y = n.emit("one_hot", {at, make<const ConstantNode>(Tensor(values)), Array<Expr>{shape[size_t(a)]}},
                  {{"axis", a}});
  return flat ? y.reshape(n.shape(0)) : y;
}

} // namespace

Term centred(Node& n, size_t x, size_t zero, int64_t axis) {
  Term e = n.x(x).cast(kInt32);
  if (!n.has(zero)) return e;
  Term z = n.x(zero).cast(kInt32);
  if (n.rank(zero) == 1 && !isConst(n.shape(zero)[0], 1)) z = z.unsqueeze(upTo(1, int64_t(n.rank(x)) - axis));
  return e - z;
}

Term saturated(Node& n, const Term& e, DType t) {
  return n.emit("clip", {e, double(minValue(t)), double(maxValue(t))}).cast(t);
}

Term requantized(Node& n, const Term& sum, const Term& factor, size_t zero) {
  Term y = (sum.cast(kFloat32) * factor).apply("round");
  return saturated(n, y + n.x(zero).cast(kFloat32), n.dtype(zero));
}

std::vector<Conversion> mathConversions() {
  std::vector<Conversion> rows = {{"Max", 1, std::bind_front(variadic, "maximum"), 1},
                                  {"Min", 1, std::bind_front(variadic, "minimum"), 1},
                                  {"Sum", 1, std::bind_front(variadic, "add"), 1},
                                  {"Mean", 1, meanNode, 1},
                                  {"Mod", 10, mod, 2},
                                  {"BitShift", 11, bitShift},
                                  {"Pow", 7, pow, 2},
                                  {"Cast", 1, castNode, 1},
                                  {"CastLike", 15, castLike, 2},
                                  {"Clip", 1, clip1, 1},
                                  {"Clip", 11, clip11, 1},
                                  {"Gelu", 20, gelu, 1},
                                  {"Gemm", 1, gemm, 2},
                                  {"MatMulInteger", 10, matMulInteger, 2},
                                  {"QLinearMatMul", 10, qlinearMatMul, 8},
                                  {"DequantizeLinear", 10, dequantize, 2},
                                  {"QuantizeLinear", 10, quantize, 2},
                                  {"DynamicQuantizeLinear", 11, dynamicQuantize, 1},
                                  {"Softmax", 1, std::bind_front(softmaxOver, "nn.softmax"), 1},
                                  {"LogSoftmax", 1, std::bind_front(softmaxOver, "nn.log_softmax"), 1},
                                  {"Hardmax", 1, hardmax, 1},
                                  {"PRelu", 1, prelu, 2},
                                  {"PRelu", 7, prelu, 2},
                                  {"SwiGLU", 28, swiglu, 2}};
  for (const char* op : {"Add", "Sub", "Mul", "Div", "And", "Or", "Xor", "Equal", "Less", "Greater", "Pow"})
    rows.push_back({op, 1, legacyBinary, 2});
  for (const char* op : {"Add", "Sub", "Mul", "Div", "And", "Or", "Xor", "Equal", "Less", "Greater"})
    rows.push_back({op, 7, nullptr});
  rows.push_back({"Equal", 19, equal, 2});
  return rows;
}

} // namespace bevel::onnx
