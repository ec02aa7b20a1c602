// Element by element functions of one tensor, with the dtypes and special values of ONNX.
//
// Floats narrower than 32 bits are computed in fp32 and rounded once. Integers wrap.
#include "ops/common.h"

namespace bevel::ops {

namespace {

enum class Domain : uint8_t { kFloat, kNumeric, kSigned, kBool, kInteger };

// One function: its name, ONNX name, the expression, and a test case.
struct UnaryEntry {
  const char* name;
  const char* onnx; // "" when ONNX has none of exactly this meaning
  const char* doc;
  Domain domain;
  std::function<Expr(const Expr&)> expr;
  const char* test;
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
      {"negative", "Neg", "-x; integers wrap", Domain::kSigned, [](const Expr& x) { return negate(x); },
       "float32[2,3]:special"},
      {"abs", "Abs", "|x|; the smallest integer wraps", Domain::kNumeric,
       [](const Expr& x) { return x->dtype.isUInt() ? x : callIntrin(Intrin::kAbs, x); }, "int32[5]:int9"},
      {"sign", "Sign", "-1, 0 or 1; NaN stays", Domain::kNumeric, signExpr, "float32[7]:special"},
      {"exp", "Exp", "e^x", Domain::kFloat, intrin(Intrin::kExp), "float32[4,3]"},
      {"exp2", "", "2^x", Domain::kFloat, intrin(Intrin::kExp2), "float32[4,3]"},
      {"expm1", "", "e^x - 1, exact near zero", Domain::kFloat, intrin(Intrin::kExpm1), "float32[4,3]"},
      {"log", "Log", "natural logarithm", Domain::kFloat, intrin(Intrin::kLog), "float32[5]:pos"},
      {"log2", "", "logarithm to base 2", Domain::kFloat, intrin(Intrin::kLog2), "float32[5]:pos"},
      {"log10", "", "logarithm to base 10", Domain::kFloat, intrin(Intrin::kLog10), "float32[5]:pos"},
      {"log1p", "", "log(1 + x), exact near zero", Domain::kFloat, intrin(Intrin::kLog1p), "float32[5]:pos"},
      {"sqrt", "Sqrt", "square root", Domain::kFloat, intrin(Intrin::kSqrt), "float32[5]:pos"},
      {"rsqrt", "", "1 / square root", Domain::kFloat, intrin(Intrin::kRsqrt), "float32[5]:pos"},
      {"reciprocal", "Reciprocal", "1 / x", Domain::kFloat, reciprocalExpr, "float32[5]:nonzero"},
      {"square", "", "x * x", Domain::kNumeric, squareExpr, "float32[5]"},
      {"sin", "Sin", "sine", Domain::kFloat, intrin(Intrin::kSin), "float32[3,5]"},
      {"cos", "Cos", "cosine", Domain::kFloat, intrin(Intrin::kCos), "float32[3,5]"},
      {"tan", "Tan", "tangent", Domain::kFloat, intrin(Intrin::kTan), "float32[3,5]:unit"},
      {"asin", "Asin", "arc sine", Domain::kFloat, intrin(Intrin::kAsin), "float32[3,5]:unit"},
      {"acos", "Acos", "arc cosine", Domain::kFloat, intrin(Intrin::kAcos), "float32[3,5]:unit"},
      {"atan", "Atan", "arc tangent", Domain::kFloat, intrin(Intrin::kAtan), "float32[3,5]"},
      {"sinh", "Sinh", "hyperbolic sine", Domain::kFloat, intrin(Intrin::kSinh), "float32[3,5]"},
      {"cosh", "Cosh", "hyperbolic cosine", Domain::kFloat, intrin(Intrin::kCosh), "float32[3,5]"},
      {"tanh", "Tanh", "hyperbolic tangent", Domain::kFloat, intrin(Intrin::kTanh), "float32[3,5]:special"},
      {"asinh", "Asinh", "inverse hyperbolic sine", Domain::kFloat, intrin(Intrin::kAsinh), "float32[3,5]"},
      {"acosh", "Acosh", "inverse hyperbolic cosine", Domain::kFloat, intrin(Intrin::kAcosh),
       "float32[3]:pos"},
      {"atanh", "Atanh", "inverse hyperbolic tangent", Domain::kFloat, intrin(Intrin::kAtanh),
       "float32[3]:unit"},
      {"erf", "Erf", "error function", Domain::kFloat, intrin(Intrin::kErf), "float32[3,5]:special"},
      {"sigmoid", "Sigmoid", "1 / (1 + e^-x)", Domain::kFloat, intrin(Intrin::kSigmoid),
       "float32[3,5]:special"},
      {"floor", "Floor", "largest integer not above x", Domain::kNumeric, rounding(Intrin::kFloor),
       "float32[7]"},
      {"ceil", "Ceil", "smallest integer not below x", Domain::kNumeric, rounding(Intrin::kCeil),
       "float32[7]"},
      {"round", "Round", "nearest integer, halves to even", Domain::kNumeric, rounding(Intrin::kNearbyInt),
       "float32[7]"},
      {"trunc", "", "integer part", Domain::kNumeric, rounding(Intrin::kTrunc), "float32[7]"},
      {"logical_not", "Not", "not x", Domain::kBool, [](const Expr& x) { return logicalNot(x); }, "bool[7]"},
      {"bitwise_not", "BitwiseNot", "all bits inverted", Domain::kInteger,
       [](const Expr& x) { return Expr(make<const UnaryNode>(UnaryOp::kBitNot, x)); }, "int32[7]:int9"}};
}

bool inDomain(Domain d, DType t) {
  switch (d) {
  case Domain::kFloat:
    return t.isFloat();
  case Domain::kNumeric:
    return t.isFloat() || t.isInteger();
  case Domain::kSigned:
    return t.isFloat() || t.isInt() || t.isUInt();
  case Domain::kBool:
    return t.isBool();
  case Domain::kInteger:
    return t.isInteger();
  }
  return false;
}

// Classification: float in, bool out.
Result<Type> classifyInfer(const OpCall& call, InferContext&) {
  BEVEL_CHECK(requireFloat(call));
  return tensorOf(kBool, call.shape(0));
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

ComputeFn classifies(Intrin op) {
  return [op](const OpCall&, const TeTensors& in) -> Result<TeTensors> {
    return TeTensors{mapTensor(in[0], intrinInfo(op).name, [&](Expr x) { return callIntrin(op, x); }, kBool)};
  };
}

} // namespace

void register_unary(OpRegistry& r) {
  for (const UnaryEntry& e : unaries()) {
    auto infer = [domain = e.domain](const OpCall& call, InferContext&) -> Result<Type> {
      if (inDomain(domain, call.dtype(0))) return call.type(0);
      return call.unsupported(fmt::format("is not defined on {}", call.dtype(0).str()));
    };
    auto compute = [expr = e.expr](const OpCall& call, const TeTensors& in) -> Result<TeTensors> {
      return TeTensors{mapTensor(in[0], call.op.name, expr)};
    };
    Op op = {.name = e.name,
             .doc = fmt::format("{}. {}", e.doc, *e.onnx ? fmt::format("ONNX {}", e.onnx) : "numpy"),
             .inputs = {"x"},
             .infer = infer,
             .compute = compute,
             .layout = LayoutKind::kAny,
             .tests = {e.test}};
    if (*e.onnx) op.onnx = {{e.onnx}};
    r.add(std::move(op));
  }
  r.add({.name = "isnan",
         .doc = "Whether the element is NaN. ONNX IsNaN.",
         .inputs = {"x"},
         .infer = classifyInfer,
         .compute = classifies(Intrin::kIsNan),
         .layout = LayoutKind::kAny,
         .onnx = {{"IsNaN"}},
         .tests = {"float32[9]:special"}});
  r.add({.name = "isfinite",
         .doc = "Neither NaN nor infinite.",
         .inputs = {"x"},
         .infer = classifyInfer,
         .compute = classifies(Intrin::kIsFinite),
         .layout = LayoutKind::kAny,
         .tests = {"float32[9]:special"}});
  r.add({.name = "isinf",
         .doc = "Whether the element is an infinity of the chosen signs. ONNX IsInf.",
         .inputs = {"x"},
         .attrs = {intAttr("detect_negative", 1), intAttr("detect_positive", 1)},
         .infer = classifyInfer,
         .compute = isinfCompute,
         .layout = LayoutKind::kAny,
         .onnx = {{"IsInf"}},
         .tests = {"float32[9]:special", "float32[9]:special detect_negative=0"}});
}

} // namespace bevel::ops
