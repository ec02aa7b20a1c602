// Element by element functions of one tensor, with the dtypes and special values of ONNX.
//
// Floats narrower than 32 bits are computed in fp32 and rounded once. Integers wrap.
#include "ops/common.h"

namespace bevel::ops {

namespace {

// One function: its name, ONNX name, the expression, and a test case.
struct UnaryEntry {
  const char* name;
  const char* onnx; // "" when ONNX has none of exactly this meaning
  const char* doc;
  Elements elements;
  std::function<Expr(const Expr&)> expr;
  const char* test;
  DType result = DType::Void(); // void: that of x
};

auto intrin(Intrin op) {
  return [op](const Expr& x) { return callIntrin(op, x); };
}

// Integers have no fraction: rounding them is the identity.
auto rounding(Intrin op) {
  return [op](const Expr& x) { return x->dtype.isFloat() ? callIntrin(op, x) : x; };
}

Expr signExpr(const Expr& x) {
  Expr zero = constant(x->dtype, 0), one = constant(x->dtype, 1);
  if (x->dtype.isUInt()) return select(eq(x, zero), zero, one);
  Expr s = select(x > zero, one, select(x < zero, constant(x->dtype, -1), x)); // NaN and zeros stay
  return s;
}
Expr reciprocalExpr(const Expr& x) {
  return fdiv(real(x, 1), x);
}
Expr squareExpr(const Expr& x) {
  return x * x;
}

std::vector<UnaryEntry> unaries() {
  return {
      {"negative", "Neg", "-x; integers wrap", Elements::kNumbers, [](const Expr& x) { return negate(x); },
       "float32[2,3]:special"},
      {"abs", "Abs", "|x|; the smallest integer wraps", Elements::kNumbers,
       [](const Expr& x) { return x->dtype.isUInt() ? x : callIntrin(Intrin::kAbs, x); }, "int32[5]:int9"},
      {"sign", "Sign", "-1, 0 or 1; NaN stays", Elements::kNumbers, signExpr, "float32[7]:special"},
      {"exp", "Exp", "e^x", Elements::kFloats, intrin(Intrin::kExp), "float32[4,3]"},
      {"exp2", "", "2^x", Elements::kFloats, intrin(Intrin::kExp2), "float32[4,3]"},
      {"expm1", "", "e^x - 1, exact near zero", Elements::kFloats, intrin(Intrin::kExpm1), "float32[4,3]"},
      {"log", "Log", "natural logarithm", Elements::kFloats, intrin(Intrin::kLog), "float32[5]:pos"},
      {"log2", "", "logarithm to base 2", Elements::kFloats, intrin(Intrin::kLog2), "float32[5]:pos"},
      {"log10", "", "logarithm to base 10", Elements::kFloats, intrin(Intrin::kLog10), "float32[5]:pos"},
      {"log1p", "", "log(1 + x), exact near zero", Elements::kFloats, intrin(Intrin::kLog1p),
       "float32[5]:pos"},
      {"sqrt", "Sqrt", "square root", Elements::kFloats, intrin(Intrin::kSqrt), "float32[5]:pos"},
      {"rsqrt", "", "1 / square root", Elements::kFloats, intrin(Intrin::kRsqrt), "float32[5]:pos"},
      {"reciprocal", "Reciprocal", "1 / x", Elements::kFloats, reciprocalExpr, "float32[5]:nonzero"},
      {"square", "", "x * x", Elements::kNumbers, squareExpr, "float32[5]"},
      {"sin", "Sin", "sine", Elements::kFloats, intrin(Intrin::kSin), "float32[3,5]"},
      {"cos", "Cos", "cosine", Elements::kFloats, intrin(Intrin::kCos), "float32[3,5]"},
      {"tan", "Tan", "tangent", Elements::kFloats, intrin(Intrin::kTan), "float32[3,5]:unit"},
      {"asin", "Asin", "arc sine", Elements::kFloats, intrin(Intrin::kAsin), "float32[3,5]:unit"},
      {"acos", "Acos", "arc cosine", Elements::kFloats, intrin(Intrin::kAcos), "float32[3,5]:unit"},
      {"atan", "Atan", "arc tangent", Elements::kFloats, intrin(Intrin::kAtan), "float32[3,5]"},
      {"sinh", "Sinh", "hyperbolic sine", Elements::kFloats, intrin(Intrin::kSinh), "float32[3,5]"},
      {"cosh", "Cosh", "hyperbolic cosine", Elements::kFloats, intrin(Intrin::kCosh), "float32[3,5]"},
      {"tanh", "Tanh", "hyperbolic tangent", Elements::kFloats, intrin(Intrin::kTanh),
       "float32[3,5]:special"},
      {"asinh", "Asinh", "inverse hyperbolic sine", Elements::kFloats, intrin(Intrin::kAsinh),
       "float32[3,5]"},
      {"acosh", "Acosh", "inverse hyperbolic cosine", Elements::kFloats, intrin(Intrin::kAcosh),
       "float32[3]:pos"},
      {"atanh", "Atanh", "inverse hyperbolic tangent", Elements::kFloats, intrin(Intrin::kAtanh),
       "float32[3]:unit"},
      {"erf", "Erf", "error function", Elements::kFloats, intrin(Intrin::kErf), "float32[3,5]:special"},
      {"sigmoid", "Sigmoid", "1 / (1 + e^-x)", Elements::kFloats, intrin(Intrin::kSigmoid),
       "float32[3,5]:special"},
      {"floor", "Floor", "largest integer not above x", Elements::kNumbers, rounding(Intrin::kFloor),
       "float32[7]"},
      {"ceil", "Ceil", "smallest integer not below x", Elements::kNumbers, rounding(Intrin::kCeil),
       "float32[7]"},
      {"round", "Round", "nearest integer, halves to even", Elements::kNumbers, rounding(Intrin::kNearbyInt),
       "float32[7]"},
      {"trunc", "", "integer part", Elements::kNumbers, rounding(Intrin::kTrunc), "float32[7]"},
      {"logical_not", "Not", "not x", Elements::kBools, [](const Expr& x) { return logicalNot(x); },
       "bool[7]"},
      {"bitwise_not", "BitwiseNot", "all bits inverted", Elements::kInts,
       [](const Expr& x) { return Expr(make<const UnaryNode>(UnaryOp::kBitNot, x)); }, "int32[7]:int9"},
      {"isnan", "IsNaN", "Whether the element is NaN", Elements::kFloats, intrin(Intrin::kIsNan),
       "float32[9]:special", kBool},
      {"isfinite", "", "Neither NaN nor infinite", Elements::kFloats, intrin(Intrin::kIsFinite),
       "float32[9]:special", kBool}};
}

Expr infinite(const OpCall& call, const Expr& x) {
  bool negative = call.i("detect_negative") != 0, positive = call.i("detect_positive") != 0;
  if (negative && positive) return callIntrin(Intrin::kIsInf, x);
  if (positive) return eq(x, real(x, INFINITY));
  if (negative) return eq(x, real(x, -INFINITY));
  return boolImm(false);
}

Result<TeTensors> isinfCompute(const OpCall& call, const TeTensors& in) {
  return TeTensors{mapTensor(in[0], "isinf", [&](Expr x) { return infinite(call, x); }, kBool)};
}

Result<Type> boolInfer(const OpCall& call, InferContext&) {
  return tensorOf(kBool, call.shape(0));
}

} // namespace

void register_unary(OpRegistry& r) {
  for (const UnaryEntry& e : unaries()) {
    auto compute = [expr = e.expr, result = e.result](const OpCall& call,
                                                      const TeTensors& in) -> Result<TeTensors> {
      return TeTensors{mapTensor(in[0], call.op.name, expr, result)};
    };
    Op op = {.name = e.name,
             .doc = fmt::format("{}. {}", e.doc, *e.onnx ? fmt::format("ONNX {}", e.onnx) : "numpy"),
             .inputs = {OpInput("x").of(e.elements)},
             .infer = e.result.isBool() ? boolInfer : sameAsInput,
             .compute = compute,
             .layout = LayoutKind::kAny,
             .tests = {e.test}};
    if (*e.onnx) op.onnx = {{e.onnx}};
    r.add(std::move(op));
  }
  r.add({.name = "isinf",
         .doc = "Whether the element is an infinity of the chosen signs. ONNX IsInf.",
         .inputs = {OpInput("x").of(Elements::kFloats)},
         .attrs = {intAttr("detect_negative", 1), intAttr("detect_positive", 1)},
         .infer = boolInfer,
         .compute = isinfCompute,
         .layout = LayoutKind::kAny,
         .onnx = {{"IsInf"}},
         .tests = {"float32[9]:special", "float32[9]:special detect_negative=0"}});
}

} // namespace bevel::ops
