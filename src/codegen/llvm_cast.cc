// Emission of conversions. fp16, bf16 and the 8 and 4 bit floats are integers in registers; their conversions
// are integer arithmetic on whole vectors (or the machine's own for fp16), so no run-time library is needed.
#include "base/tensor.h"
#include "codegen/llvm_emit.h"

#include <llvm/IR/Intrinsics.h>

#include <cmath>

namespace bevel::codegen {

using llvm::Value;

Value* KernelEmitter::emitCast(DType from, DType to, Value* value, const NodeRef& where) {
  from = from.scalar().withLanes(lanesOf(value)), to = to.scalar().withLanes(lanesOf(value));
  if (from == to) return value;
  auto impossible = [](DType t) { return t.isString() || t.code == TypeCode::kComplex || t.isVoid(); };
  if (impossible(from) || impossible(to) || from.isHandle() != to.isHandle())
    return refuse(where, "a conversion from " + from.str() + " to " + to.str(), type(to));
  bool narrowFrom = from.isFloat() && !value->getType()->isFPOrFPVectorTy();
  bool narrowTo = to.isFloat() && !scalarType(to)->isFloatingPointTy();
  DType f32 = kFloat32.withLanes(from.lanes);
  if (narrowFrom) return emitCast(f32, to, widenToFloat(from, value, where), where);
  if (narrowTo) {
    if (from.isIeee(64))
      value = roundToOdd(value);
    else if (!from.isIeee(32) && from.bits > 24) // an integer that fp32 may round: go through fp64
      value = roundToOdd(emitCast(from, DType::Float(64, from.lanes), value, where));
    else
      value = emitCast(from, f32, value, where);
    return narrowFromFloat(to, value, where);
  }
  llvm::Type* target = type(to);
  if (to.isBool())
    return from.isFloat() ? builder_.CreateFCmpUNE(value, llvm::Constant::getNullValue(value->getType()))
                          : builder_.CreateICmpNE(value, llvm::Constant::getNullValue(value->getType()));
  if (from.isFloat() && to.isFloat()) return builder_.CreateFPCast(value, target);
  if (from.isFloat()) return castToInt(from, to, value);
  if (to.isFloat())
    return from.isInt() ? builder_.CreateSIToFP(value, target) : builder_.CreateUIToFP(value, target);
  return builder_.CreateIntCast(value, target, from.isInt());
}

/// Truncates, saturates, NaN gives 0. The intrinsic compares with the bounds and selects; vectors stay
/// vectors.
Value* KernelEmitter::castToInt(DType, DType to, Value* value) {
  auto id = to.isInt() ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
  return builder_.CreateIntrinsic(id, {type(to), value->getType()}, {value});
}

/// fp64 to fp32, inexact results with the last bit set: rounding once more to fewer bits then equals rounding
/// once.
Value* KernelEmitter::roundToOdd(Value* value) {
  int lanes = lanesOf(value);
  llvm::Type* floatType = withLanes(builder_.getFloatTy(), lanes);
  llvm::Type* intType = withLanes(builder_.getInt32Ty(), lanes);
  Value* rounded = builder_.CreateFPTrunc(value, floatType);
  Value* back = builder_.CreateFPExt(rounded, value->getType());
  Value* bits = builder_.CreateBitCast(rounded, intType);
  Value* away =
      builder_.CreateFCmpOGT(callUnary(llvm::Intrinsic::fabs, back), callUnary(llvm::Intrinsic::fabs, value));
  Value* truncated = builder_.CreateSub(bits, builder_.CreateZExt(away, intType));
  Value* odd = builder_.CreateOr(truncated, llvm::ConstantInt::get(intType, 1));
  Value* inexact = builder_.CreateFCmpONE(back, value);
  return builder_.CreateBitCast(builder_.CreateSelect(inexact, odd, bits), floatType);
}

/// bf16: the upper half. fp16: the machine's conversion where there is one. Others, by arithmetic on the
/// bits: exponent and mantissa are moved to their places and multiplied by a power of two, which also makes
/// subnormals right.
Value* KernelEmitter::widenToFloat(DType from, Value* value, const NodeRef& where) {
  int lanes = lanesOf(value);
  llvm::Type* i32 = withLanes(builder_.getInt32Ty(), lanes);
  llvm::Type* f32 = withLanes(builder_.getFloatTy(), lanes);
  auto c = [&](uint64_t v) { return llvm::ConstantInt::get(i32, v); };
  if (from.code == TypeCode::kBFloat)
    return builder_.CreateBitCast(builder_.CreateShl(builder_.CreateZExt(value, i32), c(16)), f32);
  if (from.isIeee(16) && target_.f16c)
    return builder_.CreateFPExt(builder_.CreateBitCast(value, withLanes(builder_.getHalfTy(), lanes)), f32);
  Value* bits = builder_.CreateZExt(value, i32);
  if (from.code == TypeCode::kFloat8E8M0FNU) { // 2^(x - 127); 255 is NaN, 0 is the subnormal 2^-127
    Value* normal = builder_.CreateShl(bits, c(23));
    normal = builder_.CreateSelect(builder_.CreateICmpEQ(bits, c(0)), c(0x00400000), normal);
    return builder_.CreateBitCast(
        builder_.CreateSelect(builder_.CreateICmpEQ(bits, c(255)), c(0x7fc00000), normal), f32);
  }
  std::optional<FloatFormat> format = floatFormat(from);
  if (!format) return refuse(where, "arithmetic on " + from.str(), f32);
  int magnitudeBits = format->magnitudeBits();
  uint64_t magnitudeMask = format->magnitudeMask();
  Value* magnitude = builder_.CreateAnd(bits, c(magnitudeMask));
  Value* sign =
      builder_.CreateShl(builder_.CreateAnd(bits, c(1u << magnitudeBits)), c(uint64_t(31 - magnitudeBits)));
  Value* moved =
      builder_.CreateBitCast(builder_.CreateShl(magnitude, c(uint64_t(23 - format->mantissa))), f32);
  double scale = std::ldexp(1.0, 127 - format->bias);
  Value* scaled = builder_.CreateFMul(moved, floatConstant(kFloat32.withLanes(lanes), scale));
  Value* result = builder_.CreateBitCast(scaled, i32);
  if (format->hasInfinity) { // all ones in the exponent: infinity and NaN keep their mantissa
    Value* special =
        builder_.CreateOr(builder_.CreateShl(magnitude, c(uint64_t(23 - format->mantissa))), c(0x7f800000));
    result = builder_.CreateSelect(builder_.CreateICmpUGE(magnitude, c(format->infinity())), special, result);
  } else if (format->hasNan && !format->negativeZeroIsNan) {
    result = builder_.CreateSelect(builder_.CreateICmpEQ(magnitude, c(magnitudeMask)), c(0x7fc00000), result);
  }
  result = builder_.CreateOr(result, sign);
  if (format->negativeZeroIsNan)
    result =
        builder_.CreateSelect(builder_.CreateICmpEQ(bits, c(1u << magnitudeBits)), c(0x7fc00000), result);
  return builder_.CreateBitCast(result, f32);
}

/// Rounds to nearest even; overflow gives infinity in the 16-bit formats and the largest value in the smaller
/// ones, like encodeFloat in base/tensor.h.
Value* KernelEmitter::narrowFromFloat(DType to, Value* value, const NodeRef& where) {
  int lanes = lanesOf(value);
  llvm::Type* i32 = withLanes(builder_.getInt32Ty(), lanes);
  llvm::Type* result = type(to.withLanes(lanes));
  auto c = [&](uint64_t v) { return llvm::ConstantInt::get(i32, v); };
  if (to.isIeee(16) && target_.f16c)
    return builder_.CreateBitCast(builder_.CreateFPTrunc(value, withLanes(builder_.getHalfTy(), lanes)),
                                  result);
  Value* bits = builder_.CreateBitCast(value, i32);
  Value* magnitude = builder_.CreateAnd(bits, c(0x7fffffff));
  Value* isNan = builder_.CreateICmpUGT(magnitude, c(0x7f800000));
  if (to.code == TypeCode::kBFloat) {
    Value* odd = builder_.CreateAnd(builder_.CreateLShr(bits, c(16)), c(1));
    Value* rounded = builder_.CreateAdd(bits, builder_.CreateAdd(odd, c(0x7fff)));
    Value* nan = builder_.CreateOr(builder_.CreateAnd(bits, c(0x80000000)), c(0x7fc00000));
    return builder_.CreateTrunc(builder_.CreateLShr(builder_.CreateSelect(isNan, nan, rounded), c(16)),
                                result);
  }
  if (to.code == TypeCode::kFloat8E8M0FNU)
    return builder_.CreateTrunc(encodePowerOfTwo(bits, magnitude), result);
  std::optional<FloatFormat> format = floatFormat(to);
  if (!format) return refuse(where, "arithmetic on " + to.str(), result);
  int dropped = 23 - format->mantissa;
  // Normal results: rebias the exponent, add just under half (half when the last kept bit is odd), cut.
  Value* odd = builder_.CreateAnd(builder_.CreateLShr(magnitude, c(uint64_t(dropped))), c(1));
  Value* rebased = builder_.CreateSub(magnitude, c(uint64_t(127 - format->bias) << 23));
  Value* nearHalf = builder_.CreateAdd(odd, c((uint64_t(1) << (dropped - 1)) - 1));
  Value* normal = builder_.CreateLShr(builder_.CreateAdd(rebased, nearHalf), c(uint64_t(dropped)));
  // Subnormal results: adding a power of two whose last place is the smallest subnormal makes the adder
  // round.
  DType f32 = kFloat32.withLanes(lanes);
  llvm::Constant* magic = floatConstant(f32, std::ldexp(1.0, 24 - format->bias - format->mantissa));
  Value* sum = builder_.CreateFAdd(builder_.CreateBitCast(magnitude, type(f32)), magic);
  Value* subnormal = builder_.CreateSub(builder_.CreateBitCast(sum, i32), builder_.CreateBitCast(magic, i32));
  Value* isSubnormal = builder_.CreateICmpULT(magnitude, c(uint64_t(128 - format->bias) << 23));
  Value* code = builder_.CreateSelect(isSubnormal, subnormal, normal);
  uint64_t largest = format->largest();
  code = builder_.CreateSelect(builder_.CreateICmpUGT(code, c(largest)),
                               c(to.bits == 16 ? largest + 1 : largest), code);
  Value* sign =
      builder_.CreateLShr(builder_.CreateAnd(bits, c(0x80000000)), c(uint64_t(31 - format->magnitudeBits())));
  uint64_t quiet =
      format->hasInfinity ? format->infinity() | (1u << (format->mantissa - 1)) : format->magnitudeMask();
  if (format->negativeZeroIsNan) {
    sign = builder_.CreateSelect(builder_.CreateICmpEQ(code, c(0)), c(0), sign);
    code = builder_.CreateSelect(isNan, c(uint64_t(1) << format->magnitudeBits()),
                                 builder_.CreateOr(code, sign));
  } else {
    code = builder_.CreateOr(builder_.CreateSelect(isNan, c(quiet), code), sign);
    if (!format->hasNan) code = builder_.CreateSelect(isNan, c(largest), code);
  }
  return builder_.CreateTrunc(code, result);
}

/// The nearest power of two in the logarithm: the exponent, one more from sqrt(2) on. Not positive gives the
/// smallest.
Value* KernelEmitter::encodePowerOfTwo(Value* bits, Value* magnitude) {
  llvm::Type* i32 = bits->getType();
  auto c = [&](uint64_t v) { return llvm::ConstantInt::get(i32, v); };
  Value* exponent = builder_.CreateLShr(magnitude, c(23));
  Value* mantissa = builder_.CreateAnd(magnitude, c(0x7fffff));
  Value* isSubnormal = builder_.CreateICmpEQ(exponent, c(0)); // compared with sqrt(2) * 2^-127 instead
  Value* threshold = builder_.CreateSelect(isSubnormal, c(0x5a8279), c(0x3504f3));
  Value* up = builder_.CreateZExt(builder_.CreateICmpUGT(mantissa, threshold), i32);
  Value* code =
      builder_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, builder_.CreateAdd(exponent, up), c(254));
  code = builder_.CreateSelect(builder_.CreateICmpSLE(bits, c(0)), c(0), code);
  return builder_.CreateSelect(builder_.CreateICmpUGT(magnitude, c(0x7f800000)), c(255), code);
}

} // namespace bevel::codegen
