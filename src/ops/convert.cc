// Conversions of elements: astype, clip, power.
#include "ops/common.h"

namespace bevel::ops {

namespace {

// ---- astype

Result<Type> astypeInfer(const OpCall& call, InferContext&) {
  DType t = call.dtypeAttr("dtype");
  if (t.isVoid()) return call.invalid("the dtype is missing");
  if (t.isString()) return call.unsupported("strings cannot be converted");
  return tensorOf(t, call.shape(0));
}

bool smallFloat(DType t) {
  return t.isFloat() && t.bits <= 8;
}

// Overflow without saturation: infinity where the format has one, else NaN.
Expr unsaturated(DType t, const Expr& x) {
  double top = decodeFloat(t, encodeFloat(t, 1e30));
  bool infinite = t.code == TypeCode::kFloat8E5M2;
  // Values up to half a step above the largest are rounded down to it.
  double step = top - decodeFloat(t, encodeFloat(t, top) - 1);
  Expr magnitude = callIntrin(Intrin::kAbs, x);
  Expr beyond = magnitude >= real(x, top + step / 2);
  Expr special = infinite ? select(x > real(x, 0), constantFloat(t, INFINITY), constantFloat(t, -INFINITY))
                          : constantFloat(t, NAN);
  return select(beyond, special, castTo(t, x));
}

Expr astypeElement(const OpCall& call, const TeTensors& in, const Array<Var>& i) {
  DType t = call.dtypeAttr("dtype");
  Expr x = in[0](exprs(i));
  if (t.code == TypeCode::kFloat4E2M1FN && x->dtype.isFloat()) // has no NaN: gives -0
    return select(callIntrin(Intrin::kIsNan, widen(x)), constantFloat(t, -0.0), castTo(t, widen(x)));
  if (smallFloat(t) && call.i("saturate") == 0 && x->dtype.isFloat()) return unsaturated(t, widen(x));
  if (t.isInteger() && t.bits < 8 && x->dtype.isFloat()) return castTo(t, castTo(kInt32, x)); // wraps
  return castTo(t, smallFloat(t) && !x->dtype.isFloat() ? castTo(kFloat32, x) : x);
}

// ---- clip

Result<Type> clipInfer(const OpCall& call, InferContext& context) {
  BEVEL_CHECK(requireSameDType(call, 0, call.size()));
  for (size_t i = 1; i < 3; ++i)
    if (call.has(i) && call.rank(i) == 1)
      BEVEL_CHECK(context.require(eq(call.shape(i)[0], intImm(1)), call, "a bound is not one element"));
  return call.type(0);
}

Expr clipElement(const OpCall& call, const TeTensors& in, const Array<Var>& i) {
  Expr x = widen(in[0](exprs(i)));
  auto bound = [&](size_t k) { return widen(in[k](dims(Ints(in[k].rank(), 0)))); };
  if (call.has(1)) x = select(x < bound(1), bound(1), x);
  if (call.has(2)) x = select(x > bound(2), bound(2), x);
  return castTo(in[0].dtype(), x);
}

// ---- power

Result<Type> powerInfer(const OpCall& call, InferContext& context) {
  BEVEL_TRY(Array<Expr> shape, broadcastShapes(call, context, call.shape(0), call.shape(1)));
  return tensorOf(call.dtype(0), shape);
}

// base^exponent by squaring, wrapping. A negative exponent gives the truncated reciprocal; exponents from 64
// on give 0 except for bases -1, 0 and 1.
Expr integerPower(const Expr& base, const Expr& exponent) {
  DType t = base->dtype;
  Expr one = constant(t, 1), zero = constant(t, 0), e = castTo(kInt64, exponent);
  Expr bits = binary(BinaryOp::kBitAnd, e, intImm(63));
  Expr odd = ne(binary(BinaryOp::kBitAnd, e, intImm(1)), intImm(0));
  std::vector<std::pair<Var, Expr>> lets;
  auto bind = [&](const char* name, Expr value) {
    Var v = var(name, value->dtype);
    lets.emplace_back(v, value);
    return Expr(v);
  };
  Expr result = one, power = base;
  for (int k = 0; k < 6; ++k) {
    Expr set = ne(binary(BinaryOp::kBitAnd, bits, intImm(int64_t(1) << k)), intImm(0));
    result = bind("r", select(set, make<const BinaryNode>(BinaryOp::kMul, result, power), result));
    if (k < 5) power = bind("p", make<const BinaryNode>(BinaryOp::kMul, power, power));
  }
  Expr isOne = eq(base, one);
  Expr unit = t.isUInt() ? isOne : logicalOr(isOne, eq(base, constant(t, -1)));
  Expr unitValue = t.isUInt() ? one : select(logicalOr(isOne, logicalNot(odd)), one, constant(t, -1));
  Expr out = select(unit, unitValue, select(logicalOr(e<intImm(0), e> intImm(63)), zero, result));
  for (size_t k = lets.size(); k-- > 0;) out = make<const LetNode>(lets[k].first, lets[k].second, out);
  return out;
}

Result<TeTensors> powerCompute(const OpCall& call, const TeTensors& in) {
  Array<Expr> shape = resultShape(call);
  DType a = in[0].dtype(), b = in[1].dtype();
  return TeTensors{te::compute(shape, "power", [&](const Array<Var>& i) {
    Expr x = readBroadcast(in[0], shape, i), y = readBroadcast(in[1], shape, i);
    if (a.isInteger() && b.isInteger()) return integerPower(x, y);
    DType t = a.isInteger() ? DType::Float(64) : computeType(a);
    Expr base = castTo(t, x), exponent = castTo(t, y);
    return castTo(a, bevel::call(Intrin::kPow, {base, exponent}));
  })};
}

} // namespace

void register_convert(OpRegistry& r) {
  r.add(
      {.name = "astype",
       .doc = "Elements in another dtype. Floats to integers truncate and saturate, NaN gives 0; integers "
              "wrap (so do floats to 4 and 2 bits);\n"
              "saturate: of the "
              "8-bit floats, else infinity or NaN. ONNX Cast.",
       .inputs = {"x"},
       .attrs = {required(dtypeAttr("dtype")), intAttr("saturate", 1)},
       .infer = astypeInfer,
       .compute = elements("astype", astypeElement),
       .layout = LayoutKind::kAny,
       .tests = {"float32[7] dtype=int32", "int64[5]:int9 dtype=float32", "float32[9]:special dtype=bool",
                 "int32[5]:int9 dtype=uint8", "float32[9] dtype=float16", "float32[9] dtype=bfloat16",
                 "float32[9]:special dtype=float8_e5m2 saturate=0", "float32[9]:special dtype=float8_e4m3fn",
                 "float32[33] dtype=float4_e2m1fn", "float4_e2m1fn[7] dtype=float32"}});
  r.add({.name = "clip",
         .doc = "min(max(x, min), max) with optional scalar bounds; a NaN bound is none, NaN elements stay, "
                "min above max gives max. ONNX Clip.",
         .inputs = {OpInput("x").of(Elements::kNumbers),
                    OpInput("min", InputKind::kOptional).of(Elements::kNumbers).rank(0, 1),
                    OpInput("max", InputKind::kOptional).of(Elements::kNumbers).rank(0, 1)},
         .infer = clipInfer,
         .compute = elements("clip", clipElement),
         .layout = LayoutKind::kAny,
         .tests = {"float32[9]:special float32[]:unit float32[]:pos", "float32[9] _ float32[]",
                   "int32[5]:int9 int32[]:int9"}});
  r.add({.name = "power",
         .doc = "x to the power y in the dtype of x; exact on integers. ONNX Pow.",
         .inputs = {OpInput("x").of(Elements::kNumbers), OpInput("y").of(Elements::kNumbers)},
         .infer = powerInfer,
         .compute = powerCompute,
         .layout = LayoutKind::kAny,
         .onnx = {{"Pow", 7}},
         .tests = {"float32[5]:pos float32[5]", "int64[9]:int9 int64[9]:idx5", "float32[3]:pos int32[3]:int9",
                   "int32[3]:int9 float32[]:pos"}});
}

} // namespace bevel::ops
