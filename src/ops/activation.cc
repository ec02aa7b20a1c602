// Activation functions, on floats (relu on integers too). NaN stays NaN.
#include "ops/common.h"

namespace bevel::ops {

namespace {

Expr positive(const Expr& x) {
  return max(x, constant(x->dtype, 0));
}
Expr softplusExpr(const Expr& x) {
  Expr tail = callIntrin(Intrin::kLog1p, callIntrin(Intrin::kExp, negate(callIntrin(Intrin::kAbs, x))));
  return positive(x) + tail;
}
Expr atMost(const Expr& x, double lo, double hi) {
  return min(max(x, real(x, lo)), real(x, hi));
}

// One activation; p holds its attributes in order.
struct Activation {
  const char* name;
  const char* onnx;
  const char* doc;
  std::vector<OpAttr> attrs;
  Expr (*expr)(const Expr& x, const double* p);
};

Expr geluExpr(const Expr& x, const double*) {
  return real(x, 0.5) * x * (real(x, 1) + callIntrin(Intrin::kErf, x * real(x, M_SQRT1_2)));
}
Expr geluTanhExpr(const Expr& x, const double*) {
  Expr inner = real(x, 0.7978845608028654) * (x + real(x, 0.044715) * (x * x * x));
  return real(x, 0.5) * x * (real(x, 1) + callIntrin(Intrin::kTanh, inner));
}

const std::vector<Activation>& activations() {
  static const std::vector<Activation> table = {
#include "ops/activation_table.inc"
  };
  return table;
}

Result<TeTensors> activationCompute(const Activation& a, const OpCall& call, const TeTensors& in) {
  std::vector<double> p;
  for (const OpAttr& attr : a.attrs) p.push_back(call.f(attr.name));
  bool integer = in[0].dtype().isInteger();
  return TeTensors{mapTensor(in[0], a.name + 3, [&](Expr x) {
    return a.expr(integer ? castTo(DType::Float(64), x) : x, p.data());
  })};
}

Result<TeTensors> reluCompute(const OpCall&, const TeTensors& in) {
  return TeTensors{mapTensor(in[0], "relu", [](Expr x) { return positive(x); })};
}

// prelu: x where x >= 0, else slope * x; slope broadcasts to x in one direction.
Result<Type> preluInfer(const OpCall& call, InferContext& context) {
  BEVEL_CHECK(requireSameDType(call, 0, 2));
  if (call.rank(1) > call.rank(0)) return call.invalid("the slope has more dimensions than the input");
  BEVEL_CHECK(broadcastShapes(call, context, call.shape(0), call.shape(1)));
  return call.type(0);
}
Result<TeTensors> preluCompute(const OpCall&, const TeTensors& in) {
  return TeTensors{zipTensors({in[0], in[1]}, in[0].shape(), "prelu", [](const std::vector<Expr>& v) {
    return select(v[0] < constant(v[0]->dtype, 0), v[1] * v[0], v[0]);
  })};
}

} // namespace

void register_activation(OpRegistry& r) {
  r.add({.name = "nn.relu",
         .doc = "max(x, 0); NaN stays. ONNX Relu.",
         .inputs = {OpInput("x").of(Elements::kNumbers)},
         .infer = sameAsInput,
         .compute = reluCompute,
         .layout = LayoutKind::kAny,
         .onnx = {{"Relu"}},
         .tests = {"float32[3,5]:special", "int32[5]:int9"}});
  for (const Activation& a : activations()) {
    Op op = {.name = a.name,
             .doc = fmt::format("{}. {}", a.doc, *a.onnx ? fmt::format("ONNX {}", a.onnx) : "ONNX"),
             .inputs = {OpInput("x").of(a.name == std::string_view("nn.shrink") ? Elements::kNumbers
                                                                                : Elements::kFloats)},
             .attrs = a.attrs,
             .infer = sameAsInput,
             .compute = std::bind_front(activationCompute, std::cref(a)),
             .layout = LayoutKind::kAny,
             .tests = {"float32[3,5]", "float32[9]:special"}};
    if (*a.onnx) op.onnx = {{a.onnx}};
    r.add(std::move(op));
  }
  r.add({.name = "nn.prelu",
         .doc = "x where x >= 0, else slope * x; the slope broadcasts to x from the last axis. ONNX PRelu.",
         .inputs = {OpInput("x").of(Elements::kNumbers), OpInput("slope").of(Elements::kNumbers)},
         .infer = preluInfer,
         .compute = preluCompute,
         .tests = {"float32[2,3,4] float32[4]", "float32[2,3,4] float32[3,1]"}});
}

} // namespace bevel::ops
