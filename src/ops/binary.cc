// Element by element functions of two tensors with numpy broadcasting: arithmetic, comparisons, logic, bits.
//
// Integer arithmetic wraps. Integer division truncates towards zero; x / 0 is 0 and the smallest value / -1
// wraps, so no input can trap. NaN propagates through maximum and minimum.
#include "ops/common.h"

namespace bevel::ops {

namespace {

using Values = const std::vector<Expr>&;

struct BinaryEntry {
  const char* name;
  const char* onnx;
  const char* doc;
  bool compare; // gives bool
  Expr (*expr)(const Expr&, const Expr&);
  double (*real)(double, double);              // null: not on floats
  int64_t (*integer)(int64_t, int64_t, DType); // null: not on integers
  bool (*ordered)(double, double);             // comparisons on floats
  std::vector<const char*> tests;
};

// ---- integers that cannot trap

// a op b for b other than 0 and -1; `zero` where b is 0, `minusOne` where it is -1.
Expr guarded(BinaryOp op, const Expr& a, const Expr& b, const Expr& zero, const Expr& minusOne) {
  Expr isZero = eq(b, constant(b->dtype, 0));
  if (b->dtype.isUInt()) return select(isZero, zero, binary(op, a, select(isZero, constant(b->dtype, 1), b)));
  Expr isMinus = eq(b, constant(b->dtype, -1));
  Expr safe = select(logicalOr(isZero, isMinus), constant(b->dtype, 1), b);
  return select(isZero, zero, select(isMinus, minusOne, binary(op, a, safe)));
}

Expr divideExpr(const Expr& a, const Expr& b) {
  if (a->dtype.isFloat()) return fdiv(a, b);
  return guarded(BinaryOp::kDiv, a, b, constant(a->dtype, 0), negate(a));
}
Expr floorDivideExpr(const Expr& a, const Expr& b) {
  if (a->dtype.isFloat()) return callIntrin(Intrin::kFloor, fdiv(a, b));
  BinaryOp op = a->dtype.isUInt() ? BinaryOp::kDiv : BinaryOp::kFloorDiv;
  return guarded(op, a, b, constant(a->dtype, 0), negate(a));
}
// Remainder with the sign of the divisor, a zero's included.
Expr floorModExpr(const Expr& a, const Expr& b) {
  Expr zero = constant(a->dtype, 0);
  if (a->dtype.isFloat()) {
    Expr r = bevel::call(Intrin::kFmod, {a, b});
    Expr other = ne(castTo(kInt32, r < zero), castTo(kInt32, b < zero));
    return select(eq(r, zero), select(b < zero, real(b, -0.0), zero), select(other, r + b, r));
  }
  BinaryOp op = a->dtype.isUInt() ? BinaryOp::kMod : BinaryOp::kFloorMod;
  return guarded(op, a, b, zero, zero);
}
// Remainder with the sign of the dividend.
Expr truncModExpr(const Expr& a, const Expr& b) {
  if (a->dtype.isFloat()) return bevel::call(Intrin::kFmod, {a, b});
  return guarded(BinaryOp::kMod, a, b, constant(a->dtype, 0), constant(a->dtype, 0));
}

uint64_t maskOf(DType t) {
  return t.bits >= 64 ? ~uint64_t(0) : (uint64_t(1) << t.bits) - 1;
}
uint64_t asUnsigned(int64_t x, DType t) {
  return uint64_t(x) & maskOf(t);
}

int64_t truncDiv(int64_t a, int64_t b, DType t) {
  if (b == 0) return 0;
  if (t.isUInt()) return int64_t(asUnsigned(a, t) / asUnsigned(b, t));
  return b == -1 ? int64_t(0 - uint64_t(a)) : a / b;
}
int64_t floorDiv(int64_t a, int64_t b, DType t) {
  if (b == 0) return 0;
  return t.isUInt() ? truncDiv(a, b, t) : floorDivide(a, b);
}
int64_t truncMod(int64_t a, int64_t b, DType t) {
  if (b == 0 || (b == -1 && !t.isUInt())) return 0;
  return t.isUInt() ? int64_t(asUnsigned(a, t) % asUnsigned(b, t)) : a % b;
}
int64_t floorMod(int64_t a, int64_t b, DType t) {
  if (b == 0) return 0;
  return t.isUInt() ? truncMod(a, b, t) : floorModulo(a, b);
}
double floorModReal(double a, double b) {
  double r = std::fmod(a, b);
  return r == 0 ? std::copysign(r, b) : (r < 0) != (b < 0) ? r + b : r;
}

bool lessInt(int64_t a, int64_t b, DType t) {
  return t.isUInt() ? asUnsigned(a, t) < asUnsigned(b, t) : a < b;
}
double maxReal(double a, double b) {
  return std::isnan(a) ? a : std::isnan(b) ? b : a > b ? a : b;
}
double minReal(double a, double b) {
  return std::isnan(a) ? a : std::isnan(b) ? b : a < b ? a : b;
}

template <BinaryOp op> Expr plain(const Expr& a, const Expr& b) {
  return binary(op, a, b);
}
Expr logicalXorExpr(const Expr& a, const Expr& b) {
  return ne(castTo(DType::Int(8), a), castTo(DType::Int(8), b));
}
// Shifts by the width or more (negative ones count as such) give 0, or the sign for right shifts of signed
// integers.
template <BinaryOp op> Expr shiftExpr(const Expr& a, const Expr& b) {
  if (op == BinaryOp::kShr && a->dtype.isInt()) {
    Expr last = constant(b->dtype, b->dtype.bits - 1);
    return binary(op, a, select(logicalOr(b<constant(b->dtype, 0), b> last), last, b));
  }
  Expr width = constant(b->dtype, a->dtype.bits);
  Expr inside = b->dtype.isUInt() ? b < width : logicalAnd(b < width, b >= constant(b->dtype, 0));
  return select(inside, binary(op, a, select(inside, b, constant(b->dtype, 0))), constant(a->dtype, 0));
}
template <bool left> int64_t shiftInt(int64_t a, int64_t b, DType t) {
  if (!left && t.isInt()) return a >> (b < 0 || b >= t.bits ? t.bits - 1 : b);
  if (b < 0 || b >= t.bits) return 0;
  if (left) return int64_t(uint64_t(a) << b);
  return t.isUInt() ? int64_t(asUnsigned(a, t) >> b) : a >> b;
}

Expr bothFloat(Intrin op, const Expr& a, const Expr& b) {
  return bevel::call(op, {a, b});
}

const std::vector<BinaryEntry>& table() {
  static const std::vector<BinaryEntry> entries = {
#include "ops/binary_table.inc"
  };
  return entries;
}

const BinaryEntry& entryOf(const OpCall& call) {
  for (const BinaryEntry& e : table())
    if (call.op.name == e.name) return e;
  BEVEL_ASSERT(false, "a binary operator of the table");
}

Result<Type> binaryInfer(const OpCall& call, InferContext& context) {
  const BinaryEntry& e = entryOf(call);
  DType t = call.dtype(0);
  bool ok = t.isFloat()     ? e.real || e.ordered
            : t.isInteger() ? e.integer != nullptr
                            : t.isBool() && e.compare;
  if (!ok) return call.unsupported(fmt::format("is not defined on {}", t.str()));
  return e.compare ? compareInfer(call, context) : broadcastInfer(call, context);
}

Result<TeTensors> binaryCompute(const OpCall& call, const TeTensors& in) {
  const BinaryEntry& e = entryOf(call);
  bool flags = in[0].dtype().isBool();
  auto f = [&](Values v) {
    return flags ? e.expr(castTo(DType::Int(8), v[0]), castTo(DType::Int(8), v[1])) : e.expr(v[0], v[1]);
  };
  return TeTensors{
      zipTensors({in[0], in[1]}, resultShape(call), e.name, f, e.compare ? kBool : in[0].dtype())};
}

Result<HostTensors> binaryEval(const OpCall& call, const HostTensors& in) {
  const BinaryEntry& e = entryOf(call);
  const TensorObject &a = *in[0], &b = *in[1];
  auto y = TensorObject::zeros(e.compare ? kBool : a.dtype, broadcastDims(a.shape, b.shape));
  int64_t k = 0;
  forEachIndex(y->shape, [&](const Ints& index) {
    int64_t i = broadcastOffset(a.shape, index), j = broadcastOffset(b.shape, index);
    if (!a.dtype.isFloat())
      y->setInt(k, e.integer(a.asInt(i), b.asInt(j), a.dtype));
    else if (e.compare)
      y->setInt(k, e.ordered(a.asDouble(i), b.asDouble(j)));
    else
      y->setDouble(k, e.real(a.asDouble(i), b.asDouble(j)));
    ++k;
  });
  return HostTensors{y};
}

// ---- logic

Result<Type> logicInfer(const OpCall& call, InferContext& context) {
  if (!call.dtype(0).isBool()) return call.invalid("bool tensors are expected");
  return broadcastInfer(call, context);
}
template <int which> Result<TeTensors> logicCompute(const OpCall& call, const TeTensors& in) {
  return TeTensors{zipTensors({in[0], in[1]}, resultShape(call), call.op.name, [](Values v) {
    return which == 0   ? logicalAnd(v[0], v[1])
           : which == 1 ? logicalOr(v[0], v[1])
                        : logicalXorExpr(v[0], v[1]);
  })};
}
template <int which> Result<HostTensors> logicEval(const OpCall&, const HostTensors& in) {
  auto y = TensorObject::zeros(kBool, broadcastDims(in[0]->shape, in[1]->shape));
  int64_t k = 0;
  forEachIndex(y->shape, [&](const Ints& index) {
    bool a = in[0]->asInt(broadcastOffset(in[0]->shape, index)),
         b = in[1]->asInt(broadcastOffset(in[1]->shape, index));
    y->setInt(k++, which == 0 ? a && b : which == 1 ? a || b : a != b);
  });
  return HostTensors{y};
}

} // namespace

void register_binary(OpRegistry& r) {
  for (const BinaryEntry& e : table()) {
    Op op = {.name = e.name,
             .doc = fmt::format("{}, with numpy broadcasting. {}", e.doc,
                                *e.onnx ? fmt::format("ONNX {}", e.onnx) : "ONNX, numpy"),
             .inputs = {"a", "b"},
             .infer = binaryInfer,
             .compute = binaryCompute,
             .eval = binaryEval,
             .layout = LayoutKind::kAny};
    if (*e.onnx) op.onnx = {{e.onnx, 7}};
    for (const char* t : e.tests) op.tests.push_back(t);
    r.add(std::move(op));
  }
  auto logic = [&](const char* name, const char* onnx, ComputeFn compute, EvalFn eval) {
    r.add({.name = name,
           .doc = fmt::format("{} of bools, with numpy broadcasting. ONNX {}", onnx, onnx),
           .inputs = {"a", "b"},
           .infer = logicInfer,
           .compute = compute,
           .eval = eval,
           .layout = LayoutKind::kAny,
           .onnx = {{onnx, 7}},
           .tests = {"bool[2,3] bool[3]"}});
  };
  logic("logical_and", "And", logicCompute<0>, logicEval<0>);
  logic("logical_or", "Or", logicCompute<1>, logicEval<1>);
  logic("logical_xor", "Xor", logicCompute<2>, logicEval<2>);
}

} // namespace bevel::ops
