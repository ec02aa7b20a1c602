// Conversions of elements: astype, clip, power.
#include "ops/common.h"

namespace bevel::ops {

namespace {

// ---- astype

Result<Type> astypeInfer(const OpCall& call, InferContext&) {
  DType t = call.dtypeAttr("dtype");
  if (t.isVoid()) return call.invalid("the dtype is missing");
  if (t.isString() || call.dtype(0).isString()) return call.unsupported("strings cannot be converted");
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

Result<TeTensors> astypeCompute(const OpCall& call, const TeTensors& in) {
  DType t = call.dtypeAttr("dtype");
  bool saturate = call.i("saturate") != 0;
  return TeTensors{te::compute(in[0].shape(), "astype", [&](const Array<Var>& i) {
    Expr x = in[0](exprs(i));
    if (t.code == TypeCode::kFloat4E2M1FN && x->dtype.isFloat()) // has no NaN: gives -0
      return select(callIntrin(Intrin::kIsNan, widen(x)), constantFloat(t, -0.0), castTo(t, widen(x)));
    if (smallFloat(t) && !saturate && x->dtype.isFloat()) return unsaturated(t, widen(x));
    if (t.isInteger() && t.bits < 8 && x->dtype.isFloat()) return castTo(t, castTo(kInt32, x)); // wraps
    return castTo(t, smallFloat(t) && !x->dtype.isFloat() ? castTo(kFloat32, x) : x);
  })};
}

Result<HostTensors> astypeEval(const OpCall& call, const HostTensors& in) {
  DType t = call.dtypeAttr("dtype"), from = in[0]->dtype;
  bool saturate = call.i("saturate") != 0 || !smallFloat(t);
  auto y = TensorObject::zeros(t, in[0]->shape);
  for (int64_t i = 0; i < y->size(); ++i) {
    if (!from.isFloat()) {
      int64_t v = in[0]->asInt(i);
      if (t.isFloat() && from.isUInt() && from.bits == 64)
        y->setDouble(i, double(uint64_t(v)));
      else
        y->setInt(i, v);
      continue;
    }
    double v = in[0]->asDouble(i);
    if (t.isInteger() && t.bits < 8)
      y->setInt(i, in[0]->asInt(i)); // wraps
    else if (t.code == TypeCode::kFloat4E2M1FN)
      y->setDouble(i, std::isnan(v) ? -0.0 : v); // has no NaN
    else if (t.isBool())
      y->setInt(i, v != 0 || std::isnan(v));
    else if (!t.isFloat())
      y->setDouble(i, std::isnan(v) ? 0 : std::trunc(v));
    else if (saturate)
      y->setDouble(i, v);
    else { // one byte formats
      auto* bytes = reinterpret_cast<uint8_t*>(y->mutableBytes());
      if (t.bits == 8)
        bytes[i] = uint8_t(encodeFloat(t, v, false));
      else
        y->setDouble(i, v);
    }
  }
  return HostTensors{y};
}

// ---- clip

Result<Type> clipInfer(const OpCall& call, InferContext&) {
  for (size_t i = 1; i < 3; ++i)
    if (call.has(i) && (call.dtype(i) != call.dtype(0) || call.rank(i) > 1))
      return call.invalid("a bound must be a scalar of the input's dtype");
  if (call.dtype(0).isBool()) return call.invalid("bools cannot be clipped");
  return call.type(0);
}

Expr scalarOf(const te::Tensor& t) {
  return t(t.rank() == 0 ? Array<Expr>{} : Array<Expr>{intImm(0)});
}

Result<TeTensors> clipCompute(const OpCall& call, const TeTensors& in) {
  return TeTensors{te::compute(in[0].shape(), "clip", [&](const Array<Var>& i) {
    Expr x = widen(in[0](exprs(i)));
    if (call.has(1)) {
      Expr low = widen(scalarOf(in[1]));
      x = select(x < low, low, x);
    }
    if (call.has(2)) {
      Expr high = widen(scalarOf(in[2]));
      x = select(x > high, high, x);
    }
    return castTo(in[0].dtype(), x);
  })};
}

Result<HostTensors> clipEval(const OpCall& call, const HostTensors& in) {
  auto y = TensorObject::zeros(in[0]->dtype, in[0]->shape);
  bool isUnsigned = y->dtype.isUInt();
  auto below = [&](int64_t a, int64_t b) { return isUnsigned ? uint64_t(a) < uint64_t(b) : a < b; };
  for (int64_t i = 0; i < y->size(); ++i) {
    if (y->dtype.isFloat()) {
      double x = in[0]->asDouble(i);
      if (call.has(1) && x < in[1]->asDouble(0)) x = in[1]->asDouble(0);
      if (call.has(2) && x > in[2]->asDouble(0)) x = in[2]->asDouble(0);
      y->setDouble(i, x);
      continue;
    }
    int64_t x = in[0]->asInt(i);
    if (call.has(1) && below(x, in[1]->asInt(0))) x = in[1]->asInt(0);
    if (call.has(2) && below(in[2]->asInt(0), x)) x = in[2]->asInt(0);
    y->setInt(i, x);
  }
  return HostTensors{y};
}

// ---- power

Result<Type> powerInfer(const OpCall& call, InferContext& context) {
  for (size_t i = 0; i < 2; ++i)
    if (!call.dtype(i).isFloat() && !call.dtype(i).isInteger())
      return call.unsupported("is not defined on " + call.dtype(i).str());
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

int64_t integerPowerHost(int64_t base, int64_t exponent) {
  if (base == 1) return 1;
  if (base == -1) return exponent % 2 == 0 ? 1 : -1;
  if (exponent < 0 || exponent > 63) return 0;
  uint64_t result = 1, power = uint64_t(base);
  for (uint64_t e = uint64_t(exponent); e; e >>= 1, power *= power)
    if (e & 1) result *= power;
  return int64_t(result);
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

Result<HostTensors> powerEval(const OpCall& call, const HostTensors& in) {
  auto y = TensorObject::zeros(in[0]->dtype, hostShape(call));
  bool exact = in[0]->dtype.isInteger() && in[1]->dtype.isInteger();
  int64_t k = 0;
  forEachIndex(y->shape, [&](const Ints& index) {
    int64_t i = broadcastOffset(in[0]->shape, index), j = broadcastOffset(in[1]->shape, index);
    if (exact)
      y->setInt(k++, integerPowerHost(in[0]->asInt(i), in[1]->asInt(j)));
    else {
      double p = std::pow(in[0]->asDouble(i), in[1]->asDouble(j));
      y->setDouble(k++, y->dtype.isFloat() ? p : std::isnan(p) ? 0 : std::trunc(p));
    }
  });
  return HostTensors{y};
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
       .compute = astypeCompute,
       .eval = astypeEval,
       .layout = LayoutKind::kAny,
       .tests = {"float32[7] dtype=int32", "int64[5]:int9 dtype=float32", "float32[9]:special dtype=bool",
                 "int32[5]:int9 dtype=uint8", "float32[9] dtype=float16", "float32[9] dtype=bfloat16",
                 "float32[9]:special dtype=float8_e5m2 saturate=0", "float32[9]:special dtype=float8_e4m3fn",
                 "float32[33] dtype=float4_e2m1fn", "float4_e2m1fn[7] dtype=float32"}});
  r.add({.name = "clip",
         .doc = "min(max(x, min), max) with optional scalar bounds; a NaN bound is none, NaN elements stay, "
                "min above max gives max. ONNX Clip.",
         .inputs = {"x", {"min", InputKind::kOptional}, {"max", InputKind::kOptional}},
         .infer = clipInfer,
         .compute = clipCompute,
         .eval = clipEval,
         .layout = LayoutKind::kAny,
         .tests = {"float32[9]:special float32[]:unit float32[]:pos", "float32[9] _ float32[]",
                   "int32[5]:int9 int32[]:int9"}});
  r.add({.name = "power",
         .doc = "x to the power y in the dtype of x; exact on integers. ONNX Pow.",
         .inputs = {"x", "y"},
         .infer = powerInfer,
         .compute = powerCompute,
         .eval = powerEval,
         .layout = LayoutKind::kAny,
         .onnx = {{"Pow", 7}},
         .tests = {"float32[5]:pos float32[5]", "int64[9]:int9 int64[9]:idx5", "float32[3]:pos int32[3]:int9",
                   "int32[3]:int9 float32[]:pos"}});
}

} // namespace bevel::ops
