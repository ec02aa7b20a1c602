// Emission of intrinsic calls: machine forms where there are, polynomials from loop/vector_math.h, C library
// calls lane by lane for the rest, calls out of the kernel.
#include "codegen/llvm_emit.h"
#include "codegen/vm_image.h"

#include "ir/build.h"
#include "loop/vector_math.h"

#include <llvm/IR/Intrinsics.h>

namespace bevel::codegen {

using llvm::Value;

namespace {

/// The LLVM intrinsic with the same meaning, for float operands.
llvm::Intrinsic::ID floatIntrinsic(Intrin op) {
  switch (op) {
  case Intrin::kSqrt:
    return llvm::Intrinsic::sqrt;
  case Intrin::kFloor:
    return llvm::Intrinsic::floor;
  case Intrin::kCeil:
    return llvm::Intrinsic::ceil;
  case Intrin::kTrunc:
    return llvm::Intrinsic::trunc;
  case Intrin::kRound:
    return llvm::Intrinsic::round;
  case Intrin::kNearbyInt:
    return llvm::Intrinsic::nearbyint;
  case Intrin::kFabs:
  case Intrin::kAbs:
    return llvm::Intrinsic::fabs;
  case Intrin::kCopySign:
    return llvm::Intrinsic::copysign;
  case Intrin::kFma:
    return llvm::Intrinsic::fma;
  default:
    return llvm::Intrinsic::not_intrinsic;
  }
}

} // namespace

Value* KernelEmitter::emitCall(const CallNode& call) {
  NodeRef where(&call);
  switch (call.op) {
  case Intrin::kIfThenElse:
    return emitIfThenElse(call);
  case Intrin::kLikely:
    return emit(call.arg(0));
  case Intrin::kAssume:
    return builder_.CreateAssumption(emit(call.arg(0)));
  case Intrin::kUndef:
    return llvm::Constant::getNullValue(type(call.dtype));
  case Intrin::kTypeAnnotation:
    return llvm::Constant::getNullValue(type(call.dtype));
  case Intrin::kStorageSync:
    return i64(0); // one thread runs a kernel's part
  case Intrin::kVectorReduceAdd:
  case Intrin::kVectorReduceMul:
  case Intrin::kVectorReduceMin:
  case Intrin::kVectorReduceMax:
    return emitVectorReduce(call);
  case Intrin::kAddressOf:
    return bufferPointer(call.args[0]);
  case Intrin::kAccessPtr: {
    DType element = cast<ExprNode>(call.args[0])->dtype;
    return builder_.CreateGEP(memoryType(element.scalar()), bufferPointer(call.args[1]),
                              emitIndex(call.arg(2)));
  }
  case Intrin::kPrefetch: {
    auto constant = [&](size_t i, int64_t otherwise) {
      return builder_.getInt32(
          uint32_t(call.args.size() > i ? asConst(call.arg(i)).value_or(otherwise) : otherwise));
    };
    return builder_.CreateIntrinsic(llvm::Intrinsic::prefetch, {builder_.getPtrTy()},
                                    {emit(call.arg(0)), constant(1, 0), constant(2, 3), constant(3, 1)});
  }
  case Intrin::kCallExtern:
  case Intrin::kCallPureExtern:
  case Intrin::kCallLlvmIntrin:
  case Intrin::kCallLlvmPureIntrin:
    return emitExtern(call);
  case Intrin::kCallPacked:
    return emitPacked(call);
  default:
    break;
  }
  return call.op <= Intrin::kSaturatingRound
             ? emitMath(call)
             : refuse(where, std::string("T.") + intrinInfo(call.op).name + " on a CPU", type(call.dtype));
}

Value* KernelEmitter::emitMath(const CallNode& call) {
  NodeRef where(&call);
  DType operand = call.arg(0)->dtype;
  if (call.op == Intrin::kReinterpret) {
    Value* v = emit(call.arg(0));
    if (operand == call.dtype) return v;
    if (operand.isBool()) v = builder_.CreateZExt(v, type(DType::UInt(8, operand.lanes))); // a byte of 0 or 1
    if (call.dtype.isBool()) return builder_.CreateIsNotNull(v);
    return builder_.CreateBitOrPointerCast(v, type(call.dtype));
  }
  if (!operand.isFloat()) return emitIntCall(call);
  if (Expr expanded = expandIntrinsic(Call(&call))) return emit(expanded);
  std::vector<Value*> args;
  for (size_t i = 0; i < call.args.size(); ++i) args.push_back(emit(call.arg(i)));
  if (auto id = floatIntrinsic(call.op)) return builder_.CreateIntrinsic(id, {args[0]->getType()}, args);
  Value* x = args[0];
  llvm::Constant* infinity = llvm::ConstantFP::getInfinity(x->getType());
  llvm::Constant* one = floatConstant(operand, 1);
  switch (call.op) {
  case Intrin::kRsqrt:
    return builder_.CreateFDiv(one, callUnary(llvm::Intrinsic::sqrt, x));
  case Intrin::kSigmoid: {
    Expr e = make<const CallNode>(operand, Intrin::kExp, Array<NodeRef>{negate(call.arg(0))});
    return builder_.CreateFDiv(one, builder_.CreateFAdd(one, emit(e)));
  }
  case Intrin::kIsNan:
    return builder_.CreateFCmpUNO(x, x);
  case Intrin::kIsInf:
    return builder_.CreateFCmpOEQ(callUnary(llvm::Intrinsic::fabs, x), infinity);
  case Intrin::kIsFinite:
    return builder_.CreateFCmpOLT(callUnary(llvm::Intrinsic::fabs, x), infinity);
  case Intrin::kSaturatingRound:
    return emitCast(operand, call.dtype, callUnary(llvm::Intrinsic::nearbyint, x), where);
  case Intrin::kLdExp: {
    Value* n = emitCast(call.arg(1)->dtype, kInt32.withLanes(operand.lanes), args[1], where);
    auto* scalar =
        llvm::FunctionType::get(scalarType(operand), {scalarType(operand), builder_.getInt32Ty()}, false);
    auto callee = module_.getOrInsertFunction(operand.bits == 32 ? "ldexpf" : "ldexp", scalar);
    return perLane({x, n}, x->getType(), callee);
  }
  default:
    break;
  }
  const char* name = intrinInfo(call.op).library;
  if (!name)
    return refuse(where, std::string("T.") + intrinInfo(call.op).name + " on " + operand.str(),
                  type(call.dtype));
  std::vector<llvm::Type*> parameters(args.size(), scalarType(operand));
  auto* scalar = llvm::FunctionType::get(scalarType(operand), parameters, false);
  llvm::FunctionCallee callee =
      module_.getOrInsertFunction(std::string(name) + (operand.bits == 32 ? "f" : ""), scalar);
  llvm::cast<llvm::Function>(callee.getCallee())->setDoesNotThrow();
  llvm::cast<llvm::Function>(callee.getCallee())->setDoesNotAccessMemory();
  return perLane(args, x->getType(), callee);
}

/// callee on every lane of the arguments.
Value* KernelEmitter::perLane(const std::vector<Value*>& args, llvm::Type* result,
                              llvm::FunctionCallee callee) {
  int lanes = lanesOf(args[0]);
  if (lanes == 1) return builder_.CreateCall(callee, args);
  Value* out = llvm::PoisonValue::get(result);
  for (int i = 0; i < lanes; ++i) {
    std::vector<Value*> lane;
    for (Value* a : args) lane.push_back(builder_.CreateExtractElement(a, uint64_t(i)));
    out = builder_.CreateInsertElement(out, builder_.CreateCall(callee, lane), uint64_t(i));
  }
  return out;
}

Value* KernelEmitter::emitIntCall(const CallNode& call) {
  NodeRef where(&call);
  DType operand = call.arg(0)->dtype;
  Value* x = emit(call.arg(0));
  llvm::Type* t = x->getType();
  auto convert = [&](Value* v) { return emitCast(operand, call.dtype, v, where); };
  switch (call.op) {
  case Intrin::kAbs:
  case Intrin::kFabs:
    return operand.isInt() ? builder_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, x, builder_.getFalse()) : x;
  case Intrin::kFloor:
  case Intrin::kCeil:
  case Intrin::kTrunc:
  case Intrin::kRound:
  case Intrin::kNearbyInt:
    return x;
  case Intrin::kSaturatingRound:
    return convert(x);
  case Intrin::kIsNan:
  case Intrin::kIsInf:
    return llvm::Constant::getNullValue(type(call.dtype));
  case Intrin::kIsFinite:
    return llvm::Constant::getAllOnesValue(type(call.dtype));
  case Intrin::kPopcount:
    return convert(callUnary(llvm::Intrinsic::ctpop, x));
  case Intrin::kClz:
    return convert(builder_.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, x, builder_.getFalse()));
  case Intrin::kFastExp2Int: {
    Value* biased = builder_.CreateAdd(x, llvm::ConstantInt::get(t, 127));
    return builder_.CreateBitCast(builder_.CreateShl(biased, llvm::ConstantInt::get(t, 23)),
                                  type(call.dtype));
  }
  case Intrin::kMulHigh: {
    unsigned bits = t->getScalarSizeInBits();
    llvm::Type* wide = withLanes(builder_.getIntNTy(bits * 2), lanesOf(x));
    Value* y = emit(call.arg(1));
    Value* product = builder_.CreateMul(builder_.CreateIntCast(x, wide, operand.isInt()),
                                        builder_.CreateIntCast(y, wide, operand.isInt()));
    return builder_.CreateTrunc(builder_.CreateLShr(product, llvm::ConstantInt::get(wide, bits)), t);
  }
  case Intrin::kQMultiplyShift:
    return emitQMultiplyShift(call);
  default:
    return refuse(where, std::string("T.") + intrinInfo(call.op).name + " on " + operand.str(),
                  type(call.dtype));
  }
}

/// round(x * y * 2^-(q + s)) for a fixed-point factor y with q fractional bits, halves up; a negative s
/// shifts x left first.
Value* KernelEmitter::emitQMultiplyShift(const CallNode& call) {
  std::optional<int64_t> q = asConst(call.arg(2)), s = asConst(call.arg(3));
  auto isShift = [](const std::optional<int64_t>& v) { return v && *v >= -62 && *v <= 62; };
  if (!isShift(q) || !isShift(s) || *q + std::max<int64_t>(*s, 0) < 1 || *q + std::abs(*s) > 62)
    return refuse(NodeRef(&call), "q_multiply_shift with shifts that are not small constants",
                  type(call.dtype));
  DType wide = kInt64.withLanes(call.dtype.lanes);
  auto c = [&](int64_t v) { return llvm::ConstantInt::get(type(wide), uint64_t(v)); };
  Value* x = emitCast(call.arg(0)->dtype, wide, emit(call.arg(0)), NodeRef(&call));
  Value* y = emitCast(call.arg(1)->dtype, wide, emit(call.arg(1)), NodeRef(&call));
  if (*s < 0) x = builder_.CreateShl(x, c(-*s));
  int64_t shift = *q + std::max<int64_t>(*s, 0);
  Value* rounded = builder_.CreateAdd(builder_.CreateMul(x, y), c(int64_t(1) << (shift - 1)));
  return emitCast(wide, call.dtype, builder_.CreateAShr(rounded, c(shift)), NodeRef(&call));
}

/// Halves the vector until one lane is left. Float sums are reassociated this way; minima and maxima keep
/// NaN.
Value* KernelEmitter::emitVectorReduce(const CallNode& call) {
  DType element = call.arg(0)->dtype.scalar();
  Value* v = emit(call.arg(0));
  static constexpr BinaryOp kOps[] = {BinaryOp::kAdd, BinaryOp::kMul, BinaryOp::kMin, BinaryOp::kMax};
  BinaryOp op = kOps[int(call.op) - int(Intrin::kVectorReduceAdd)];
  auto combine = [&](Value* a, Value* b) {
    return element.isFloat() ? emitFloatBinary(op, a, b, NodeRef(&call))
                             : emitIntBinary(op, element.isInt(), a, b, NodeRef(&call));
  };
  std::vector<Value*> odd; // lanes left over where a half is not whole
  for (int lanes = lanesOf(v); lanes > 1; lanes /= 2) {
    if (lanes % 2) odd.push_back(builder_.CreateExtractElement(v, uint64_t(lanes - 1)));
    std::vector<int> low, high;
    for (int i = 0; i < lanes / 2; ++i) low.push_back(i), high.push_back(i + lanes / 2);
    v = combine(builder_.CreateShuffleVector(v, low), builder_.CreateShuffleVector(v, high));
  }
  if (lanesOf(v) == 1 && v->getType()->isVectorTy()) v = builder_.CreateExtractElement(v, uint64_t(0));
  for (Value* x : odd) v = combine(v, x);
  return emitCast(element, call.dtype, v, NodeRef(&call));
}

/// A C function or LLVM intrinsic by name. bool travels as one byte.
Value* KernelEmitter::emitExtern(const CallNode& call) {
  const StringImmNode* name = call.args.empty() ? nullptr : call.args[0].as<StringImmNode>();
  if (!name) return refuse(NodeRef(&call), "a call without the name of a function", type(call.dtype));
  bool isIntrinsic = call.op == Intrin::kCallLlvmIntrin || call.op == Intrin::kCallLlvmPureIntrin;
  std::vector<Value*> args;
  std::vector<llvm::Type*> types;
  std::vector<std::pair<unsigned, bool>> narrow; // argument, signed: extended to an int by the C ABI
  for (size_t i = 1; i < call.args.size(); ++i) {
    bool isBuffer = call.args[i].is<BufferNode>();
    Value* v = isBuffer ? bufferPointer(call.args[i]) : emit(call.arg(i));
    DType t = isBuffer ? DType::Handle() : call.arg(i)->dtype;
    if (!isIntrinsic && t.isBool()) v = builder_.CreateZExt(v, withLanes(builder_.getInt8Ty(), t.lanes));
    if (!isIntrinsic && t.lanes == 1 && t.bits < 32 && !t.isFloat())
      narrow.emplace_back(unsigned(args.size()), t.isInt());
    args.push_back(v);
    types.push_back(v->getType());
  }
  bool boolResult = !isIntrinsic && call.dtype.isBool();
  llvm::Type* result = call.dtype.isVoid() ? builder_.getVoidTy()
                       : boolResult        ? withLanes(builder_.getInt8Ty(), call.dtype.lanes)
                                           : type(call.dtype);
  auto* functionType = llvm::FunctionType::get(result, types, false);
  llvm::FunctionCallee callee = module_.getOrInsertFunction(name->value, functionType);
  auto* declared = llvm::dyn_cast<llvm::Function>(callee.getCallee());
  if (!declared || declared->getFunctionType() != functionType || !declared->isDeclaration())
    return refuse(NodeRef(&call), "function " + name->value + " is called with other types elsewhere",
                  type(call.dtype));
  if (intrinInfo(call.op).effect == Effect::kPure) declared->setDoesNotAccessMemory();
  llvm::CallInst* made = builder_.CreateCall(callee, args);
  for (auto [i, isSigned] : narrow)
    made->addParamAttr(i, isSigned ? llvm::Attribute::SExt : llvm::Attribute::ZExt);
  if (boolResult) return builder_.CreateICmpNE(made, llvm::Constant::getNullValue(result));
  return made;
}

/// A DLTensor on the stack that describes memory for a packed function.
Value* KernelEmitter::tensorView(const NodeRef& argument) {
  llvm::Type *ptr = builder_.getPtrTy(), *i32 = builder_.getInt32Ty(), *i64Type = builder_.getInt64Ty();
  const auto* buffer = argument.as<BufferNode>();
  const auto* access = argument.as<CallNode>();
  DType element = buffer ? buffer->dtype : cast<ExprNode>(access->args[0])->dtype;
  std::vector<Value*> shape;
  if (buffer)
    for (const Expr& d : buffer->shape) shape.push_back(emitIndex(d));
  else
    shape.push_back(emitIndex(access->arg(3)));
  Value* data = buffer ? bufferPointer(argument) : emitCall(*access);
  auto* dims = entryAlloca(llvm::ArrayType::get(i64Type, std::max<size_t>(1, shape.size())), 8, "dims");
  for (size_t i = 0; i < shape.size(); ++i)
    builder_.CreateStore(shape[i], builder_.CreateConstGEP1_64(i64Type, dims, i));
  // {data, device type, device id, ndim, dtype, shape, strides, byte offset}
  auto* layout = llvm::StructType::get(context_, {ptr, i32, i32, i32, i32, ptr, ptr, i64Type});
  auto* view = entryAlloca(layout, 8, "view");
  Value* fields[] = {data,
                     builder_.getInt32(kDLCPU),
                     builder_.getInt32(0),
                     builder_.getInt32(uint32_t(shape.size())),
                     builder_.getInt32(imageDtypeOf(element)),
                     dims,
                     llvm::ConstantPointerNull::get(builder_.getPtrTy()),
                     i64(0)};
  for (unsigned i = 0; i < std::size(fields); ++i)
    builder_.CreateStore(fields[i], builder_.CreateStructGEP(layout, view, i));
  return view;
}

/// ctx->call_packed(ctx, name, values, count, &result). A failing function ends the kernel with its status.
Value* KernelEmitter::emitPacked(const CallNode& call) {
  llvm::Type *ptr = builder_.getPtrTy(), *i32 = builder_.getInt32Ty(), *i64Type = builder_.getInt64Ty();
  const StringImmNode* name = call.args.empty() ? nullptr : call.args[0].as<StringImmNode>();
  if (!name) return refuse(NodeRef(&call), "a packed call without the name of a function", type(call.dtype));
  auto* cell = llvm::StructType::get(context_, {i32, i32, i64Type});
  size_t count = call.args.size() - 1;
  auto* cells = entryAlloca(llvm::ArrayType::get(cell, std::max<size_t>(1, count)), 8, "args");
  for (size_t i = 0; i < count; ++i) {
    const NodeRef& argument = call.args[i + 1];
    const auto* access = argument.as<CallNode>();
    int kind = BEVEL_INT;
    Value* payload = nullptr;
    if (argument.is<BufferNode>() || (access && access->op == Intrin::kAccessPtr)) {
      kind = BEVEL_VIEW;
      payload = builder_.CreatePtrToInt(tensorView(argument), i64Type);
    } else if (Expr e = cast<ExprNode>(argument); e->dtype.isFloat()) {
      kind = BEVEL_FLOAT;
      payload = builder_.CreateBitCast(emitCast(e->dtype, DType::Float(64), emit(e), e), i64Type);
    } else if (e->dtype.isInteger() || e->dtype.isBool()) {
      payload = emitCast(e->dtype, kInt64, emit(e), e);
    } else {
      return refuse(e, "an argument of a packed call that is neither a number nor a buffer",
                    type(call.dtype));
    }
    Value* at = builder_.CreateConstGEP1_64(cell, cells, i);
    builder_.CreateStore(builder_.getInt32(uint32_t(kind)), builder_.CreateStructGEP(cell, at, 0));
    builder_.CreateStore(builder_.getInt32(0), builder_.CreateStructGEP(cell, at, 1));
    builder_.CreateStore(payload, builder_.CreateStructGEP(cell, at, 2));
  }
  Value* result = llvm::ConstantPointerNull::get(builder_.getPtrTy());
  if (!call.dtype.isVoid()) {
    result = entryAlloca(cell, 8, "result");
    builder_.CreateStore(llvm::ConstantAggregateZero::get(cell), result);
  }
  auto* calleeType = llvm::FunctionType::get(i32, {ptr, ptr, ptr, i32, ptr}, false);
  Value* status =
      builder_.CreateCall(calleeType, contextField(kCallPackedField, ptr),
                          {frame_.ctx, text(name->value), cells, builder_.getInt32(uint32_t(count)), result});
  returnUnlessOk(status);
  if (call.dtype.isVoid()) return i64(0);
  Value* raw = builder_.CreateLoad(i64Type, builder_.CreateStructGEP(cell, result, 2));
  if (!call.dtype.isFloat()) return emitCast(kInt64, call.dtype, raw, NodeRef(&call));
  return emitCast(DType::Float(64), call.dtype, builder_.CreateBitCast(raw, builder_.getDoubleTy()),
                  NodeRef(&call));
}

} // namespace bevel::codegen
