// Pseudo-random elements. Each follows from its position and the seed alone, so that a run is repeatable on
// any number of threads and targets: a 32-bit mix (the finaliser of MurmurHash3) of both.
#include "ops/common.h"

namespace bevel::ops {

namespace {

Result<Type> uniformInfer(const OpCall& call, InferContext&) {
  if (call.has(1) && (call.rank(1) != 0 || call.dtype(1) != kInt64))
    return call.invalid("the draw must be an int64 scalar");
  DType t = call.dtypeAttr("dtype");
  if (!t.isFloat() || t.bits < 16) return call.unsupported("gives 16, 32 and 64-bit floats");
  return tensorOf(t, call.values(0));
}

constexpr uint32_t kFirst = 0x85ebca6b, kSecond = 0xc2b2ae35, kGolden = 0x9e3779b9;

Expr word(uint32_t v) {
  return constant(DType::UInt(32), int64_t(v));
}
Expr shifted(const Expr& x, int64_t by) {
  return binary(BinaryOp::kShr, x, word(uint32_t(by)));
}
Expr mix(Expr x) {
  x = binary(BinaryOp::kBitXor, x, shifted(x, 16)) * word(kFirst);
  x = binary(BinaryOp::kBitXor, x, shifted(x, 13)) * word(kSecond);
  return binary(BinaryOp::kBitXor, x, shifted(x, 16));
}
uint32_t mixHost(uint32_t x) {
  x = (x ^ x >> 16) * kFirst;
  x = (x ^ x >> 13) * kSecond;
  return x ^ x >> 16;
}

// 24 bits of the mix as a fraction: exact in fp32.
Result<TeTensors> uniformCompute(const OpCall& call, const TeTensors& in) {
  DType t = call.dtypeAttr("dtype");
  const Array<Expr>& shape = call.values(0);
  uint32_t seed = mixHost(uint32_t(call.i("seed")) + kGolden);
  double low = call.f("low"), span = call.f("high") - low;
  return TeTensors{te::compute(shape, "random", [&](const Array<Var>& i) {
    Expr at = intImm(0);
    for (size_t d = 0; d < shape.size(); ++d) at = at * shape[d] + Expr(i[d]);
    Expr start = word(seed);
    if (call.has(1))
      start = mix(binary(BinaryOp::kBitXor, start, castTo(DType::UInt(32), in[1]({})) * word(kGolden)));
    Expr bits = shifted(mix(binary(BinaryOp::kBitXor, castTo(DType::UInt(32), at), start)), 8);
    Expr unit = castTo(kFloat32, bits) * constantFloat(kFloat32, 0x1p-24);
    return castTo(t, unit * constantFloat(kFloat32, span) + constantFloat(kFloat32, low));
  })};
}

} // namespace

void register_random(OpRegistry& r) {
  r.add(
      {.name = "random.uniform",
       .doc =
           "Pseudo-random values in [low, high), the same for the same seed, draw (of a loop: the trip) and "
           "position. ONNX\nRandomUniform.",
       .inputs = {{"shape", InputKind::kShape}, {"draw", InputKind::kOptional}},
       .attrs = {dtypeAttr("dtype", kFloat32), floatAttr("low", 0), floatAttr("high", 1), intAttr("seed", 0)},
       .infer = uniformInfer,
       .compute = uniformCompute,
       .tests = {"shape(3,5)", "shape(4) int64[]:int9 seed=3", "shape(7) seed=9 low=-2.5 high=4.0"}});
}

} // namespace bevel::ops
