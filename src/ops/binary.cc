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
  bool compare; // gives bool, of any elements
  Elements elements;
  std::function<Expr(const Expr&, const Expr&)> expr;
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

auto plain(BinaryOp op) {
  return [op](const Expr& a, const Expr& b) { return binary(op, a, b); };
}
Expr logicalXorExpr(const Expr& a, const Expr& b) {
  return ne(castTo(DType::Int(8), a), castTo(DType::Int(8), b));
}
// Shifts by the width or more (negative ones count as such) give 0, or the sign for right shifts of signed
// integers.
Expr shiftExpr(BinaryOp op, const Expr& a, const Expr& b) {
  if (op == BinaryOp::kShr && a->dtype.isInt()) {
    Expr last = constant(b->dtype, b->dtype.bits - 1);
    return binary(op, a, select(logicalOr(b<constant(b->dtype, 0), b> last), last, b));
  }
  Expr width = constant(b->dtype, a->dtype.bits);
  Expr inside = b->dtype.isUInt() ? b < width : logicalAnd(b < width, b >= constant(b->dtype, 0));
  return select(inside, binary(op, a, select(inside, b, constant(b->dtype, 0))), constant(a->dtype, 0));
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

Result<TeTensors> binaryCompute(const BinaryEntry& e, const OpCall& call, const TeTensors& in) {
  bool flags = e.compare && in[0].dtype().isBool();
  auto f = [&](Values v) {
    return flags ? e.expr(castTo(DType::Int(8), v[0]), castTo(DType::Int(8), v[1])) : e.expr(v[0], v[1]);
  };
  return TeTensors{
      zipTensors({in[0], in[1]}, resultShape(call), e.name, f, e.compare ? kBool : in[0].dtype())};
}

} // namespace

void register_binary(OpRegistry& r) {
  for (const BinaryEntry& e : table()) {
    Op op = {.name = e.name,
             .doc = fmt::format("{}, with numpy broadcasting. {}", e.doc,
                                *e.onnx ? fmt::format("ONNX {}", e.onnx) : "ONNX, numpy"),
             .inputs = {OpInput("a").of(e.elements), OpInput("b").of(e.elements)},
             .infer = e.compare ? compareInfer : broadcastInfer,
             .compute = std::bind_front(binaryCompute, std::cref(e)),
             .layout = LayoutKind::kAny};
    if (*e.onnx) op.onnx = {{e.onnx, 7}};
    for (const char* t : e.tests) op.tests.push_back(t);
    r.add(std::move(op));
  }
}

} // namespace bevel::ops
