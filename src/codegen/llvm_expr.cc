// Emission of expressions: arithmetic, comparisons, vectors, indices.
//
// What C leaves undefined is defined here: x / 0 and x % 0 are 0, INT_MIN / -1 wraps, shifts by the width or
// more give 0 (or the sign). Minimum and maximum give NaN when either side is NaN.
#include "codegen/llvm_emit.h"

#include "ir/build.h"

#include <llvm/IR/Intrinsics.h>

#include <numeric>

namespace bevel::codegen {

using llvm::Value;

llvm::Type* KernelEmitter::scalarType(DType t) {
  switch (t.code) {
  case TypeCode::kVoid:
    return builder_.getInt64Ty();
  case TypeCode::kBool:
    return builder_.getInt1Ty();
  case TypeCode::kHandle:
    return builder_.getPtrTy();
  case TypeCode::kFloat:
    if (t.bits == 32) return builder_.getFloatTy();
    if (t.bits == 64) return builder_.getDoubleTy();
    return builder_.getIntNTy(t.bits);
  default:
    return builder_.getIntNTy(t.bits ? t.bits : 8);
  }
}

llvm::Type* KernelEmitter::memoryType(DType t) {
  return t.isBool() ? builder_.getInt8Ty() : scalarType(t);
}

/// lanes 1: the scalar itself; -1: a vector of one lane.
llvm::Type* KernelEmitter::withLanes(llvm::Type* element, int lanes) {
  if (lanes == 1) return element;
  return llvm::FixedVectorType::get(element, unsigned(std::abs(lanes)));
}

int KernelEmitter::lanesOf(Value* v) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(v->getType());
  return vector ? int(vector->getNumElements()) : 1;
}

Value* KernelEmitter::splat(Value* scalar, int lanes) {
  return lanes == 1 ? scalar : builder_.CreateVectorSplat(unsigned(lanes), scalar);
}

llvm::Constant* KernelEmitter::floatConstant(DType t, double value) {
  llvm::Type* scalar = scalarType(t);
  llvm::Constant* c = scalar->isFloatingPointTy()
                          ? llvm::ConstantFP::get(scalar, value)
                          : llvm::ConstantInt::get(scalar, encodeFloat(t.scalar(), value, false));
  return t.lanes == 1 ? c : llvm::ConstantVector::getSplat(llvm::ElementCount::getFixed(t.lanes), c);
}

llvm::AllocaInst* KernelEmitter::entryAlloca(llvm::Type* type, int64_t alignment, const llvm::Twine& name) {
  llvm::BasicBlock& entry = frame_.function->getEntryBlock();
  llvm::IRBuilder<> at(&entry, entry.begin());
  llvm::AllocaInst* a = at.CreateAlloca(type, nullptr, name);
  a->setAlignment(llvm::Align(uint64_t(alignment)));
  return a;
}

llvm::Constant* KernelEmitter::text(const std::string& value) {
  return builder_.CreateGlobalString(value, ".str");
}

Value* KernelEmitter::withVar(const Var& var, Value* value, int64_t multiple) {
  frame_.vars[var] = {value, multiple};
  return value;
}

Value* KernelEmitter::emit(const Expr& e) {
  switch (e->kind) {
  case Kind::kVar: {
    auto it = frame_.vars.find(cast<VarNode>(e));
    if (it != frame_.vars.end()) return it->second.value;
    if (e->dtype.isHandle()) return bufferPointer(e);
    return refuse(e, "variable " + cast<VarNode>(e)->name + " has no value here", type(e->dtype));
  }
  case Kind::kIntImm:
    return llvm::ConstantInt::get(type(e->dtype), uint64_t(cast<IntImmNode>(e)->value), true);
  case Kind::kFloatImm:
    return floatConstant(e->dtype, cast<FloatImmNode>(e)->value);
  case Kind::kStringImm:
    return text(cast<StringImmNode>(e)->value);
  case Kind::kUnary:
    return emitUnary(*cast<UnaryNode>(e));
  case Kind::kBinary:
    return emitBinary(*cast<BinaryNode>(e));
  case Kind::kSelect: {
    const auto& s = *cast<SelectNode>(e);
    Value* condition = emit(s.condition);
    Value* a = emit(s.a);
    return builder_.CreateSelect(condition, a, emit(s.b));
  }
  case Kind::kCast: {
    const auto& c = *cast<CastNode>(e);
    return emitCast(c.value->dtype, c.dtype, emit(c.value), e);
  }
  case Kind::kLoad:
    return emitLoad(*cast<LoadNode>(e));
  case Kind::kRamp: {
    const auto& r = *cast<RampNode>(e);
    int lanes = r.dtype.lanes;
    llvm::Type* scalar = scalarType(r.dtype);
    Value* steps = builder_.CreateStepVector(withLanes(scalar, lanes));
    Value* offsets = builder_.CreateMul(steps, splat(emit(r.stride), lanes));
    return builder_.CreateAdd(splat(emit(r.base), lanes), offsets);
  }
  case Kind::kBroadcast:
    return splat(emit(cast<BroadcastNode>(e)->value), e->dtype.lanes);
  case Kind::kShuffle:
    return emitShuffle(*cast<ShuffleNode>(e));
  case Kind::kLet: {
    const auto& let = *cast<LetNode>(e);
    withVar(let.var, emit(let.value), knownMultiple(let.value));
    return emit(let.body);
  }
  case Kind::kCall:
    return emitCall(*cast<CallNode>(e));
  default:
    return refuse(e, std::string(e->kindName()) + " expression in a lowered function", type(e->dtype));
  }
}

Value* KernelEmitter::emitUnary(const UnaryNode& e) {
  Value* a = emit(e.a);
  if (e.op == UnaryOp::kNeg) return e.dtype.isFloat() ? builder_.CreateFNeg(a) : builder_.CreateNeg(a);
  return builder_.CreateNot(a);
}

Value* KernelEmitter::emitBinary(const BinaryNode& e) {
  Value* a = emit(e.a);
  Value* b = emit(e.b);
  DType operand = e.a->dtype;
  if (lanesOf(a) != lanesOf(b))
    a = splat(a, std::max(lanesOf(a), lanesOf(b)) / lanesOf(a)), b = splat(b, lanesOf(a) / lanesOf(b));
  if (isComparison(e.op)) return emitCompare(e.op, operand, a, b);
  if (e.op == BinaryOp::kAnd) return builder_.CreateAnd(a, b);
  if (e.op == BinaryOp::kOr) return builder_.CreateOr(a, b);
  NodeRef where(&e);
  return operand.isFloat() ? emitFloatBinary(e.op, a, b, where)
                           : emitIntBinary(e.op, operand.isInt(), a, b, where);
}

Value* KernelEmitter::emitCompare(BinaryOp op, DType operand, Value* a, Value* b) {
  using P = llvm::CmpInst::Predicate;
  int i = int(op) - int(BinaryOp::kEq); // Eq, Ne, Lt, Le, Gt, Ge
  static constexpr P kFloat[] = {P::FCMP_OEQ, P::FCMP_UNE, P::FCMP_OLT,
                                 P::FCMP_OLE, P::FCMP_OGT, P::FCMP_OGE};
  static constexpr P kSigned[] = {P::ICMP_EQ, P::ICMP_NE, P::ICMP_SLT, P::ICMP_SLE, P::ICMP_SGT, P::ICMP_SGE};
  static constexpr P kUnsigned[] = {P::ICMP_EQ,  P::ICMP_NE,  P::ICMP_ULT,
                                    P::ICMP_ULE, P::ICMP_UGT, P::ICMP_UGE};
  if (operand.isFloat()) return builder_.CreateFCmp(kFloat[i], a, b);
  return builder_.CreateICmp(operand.isInt() ? kSigned[i] : kUnsigned[i], a, b);
}

/// x86's maxps(a, b) is a > b ? a : b and so gives b when either is NaN; one more compare and select restore
/// a's NaN. With a constant as a (relu, clip) that is not needed.
Value* KernelEmitter::emitMinMax(bool isMax, Value* a, Value* b) {
  if (target_.architecture().maxKeepsNaN)
    return builder_.CreateBinaryIntrinsic(isMax ? llvm::Intrinsic::maximum : llvm::Intrinsic::minimum, a, b);
  if (llvm::isa<llvm::Constant>(b)) std::swap(a, b);
  auto predicate = isMax ? llvm::CmpInst::FCMP_OGT : llvm::CmpInst::FCMP_OLT;
  Value* picked = builder_.CreateSelect(builder_.CreateFCmp(predicate, a, b), a, b);
  if (auto* c = llvm::dyn_cast<llvm::Constant>(a)) {
    if (auto* scalar = llvm::dyn_cast<llvm::ConstantFP>(c->getType()->isVectorTy() ? c->getSplatValue() : c);
        scalar && !scalar->isNaN())
      return picked;
  }
  // The freeze keeps LLVM from joining both selects into one that has no instruction.
  return builder_.CreateSelect(builder_.CreateFCmpUNO(a, a), a, builder_.CreateFreeze(picked));
}

Value* KernelEmitter::emitFloatBinary(BinaryOp op, Value* a, Value* b, const NodeRef& where) {
  switch (op) {
  case BinaryOp::kAdd:
    return builder_.CreateFAdd(a, b);
  case BinaryOp::kSub:
    return builder_.CreateFSub(a, b);
  case BinaryOp::kMul:
    return builder_.CreateFMul(a, b);
  case BinaryOp::kDiv:
    return builder_.CreateFDiv(a, b);
  case BinaryOp::kMod:
    return builder_.CreateFRem(a, b);
  case BinaryOp::kMin:
    return emitMinMax(false, a, b);
  case BinaryOp::kMax:
    return emitMinMax(true, a, b);
  default:
    return refuse(where, std::string(kBinaryNames[int(op)]) + " on floating-point values", a->getType());
  }
}

Value* KernelEmitter::emitIntBinary(BinaryOp op, bool isSigned, Value* a, Value* b, const NodeRef& where) {
  switch (op) {
  case BinaryOp::kAdd:
    return builder_.CreateAdd(a, b);
  case BinaryOp::kSub:
    return builder_.CreateSub(a, b);
  case BinaryOp::kMul:
    return builder_.CreateMul(a, b);
  case BinaryOp::kDiv:
  case BinaryOp::kMod:
  case BinaryOp::kFloorDiv: // of sizes: in programs lower_arithmetic has replaced them
  case BinaryOp::kFloorMod:
    return emitDivision(op, isSigned, a, b);
  case BinaryOp::kMin:
    return builder_.CreateBinaryIntrinsic(isSigned ? llvm::Intrinsic::smin : llvm::Intrinsic::umin, a, b);
  case BinaryOp::kMax:
    return builder_.CreateBinaryIntrinsic(isSigned ? llvm::Intrinsic::smax : llvm::Intrinsic::umax, a, b);
  case BinaryOp::kBitAnd:
    return builder_.CreateAnd(a, b);
  case BinaryOp::kBitOr:
    return builder_.CreateOr(a, b);
  case BinaryOp::kBitXor:
    return builder_.CreateXor(a, b);
  case BinaryOp::kShl:
  case BinaryOp::kShr:
    return emitShift(op, isSigned, a, b);
  default:
    return refuse(where, std::string(kBinaryNames[int(op)]) + " on integers", a->getType());
  }
}

/// Division that never traps. With a constant divisor other than 0 and -1 nothing is added to the machine's
/// division.
Value* KernelEmitter::emitDivision(BinaryOp op, bool isSigned, Value* a, Value* b) {
  llvm::Type* t = a->getType();
  llvm::Constant *zero = llvm::Constant::getNullValue(t), *one = llvm::ConstantInt::get(t, 1);
  llvm::Constant* minusOne = llvm::Constant::getAllOnesValue(t);
  auto* constant = llvm::dyn_cast<llvm::Constant>(b);
  llvm::Constant* scalar = constant && t->isVectorTy() ? constant->getSplatValue() : constant;
  bool safe = scalar && llvm::isa<llvm::ConstantInt>(scalar) && !scalar->isNullValue() &&
              !(isSigned && scalar->isAllOnesValue());
  Value *isZero = nullptr, *isMinusOne = nullptr, *divisor = b;
  if (!safe) {
    isZero = builder_.CreateICmpEQ(b, zero);
    Value* special = isZero;
    if (isSigned) {
      isMinusOne = builder_.CreateICmpEQ(b, minusOne);
      special = builder_.CreateOr(special, isMinusOne);
    }
    divisor = builder_.CreateSelect(special, one, b);
  }
  Value* quotient = isSigned ? builder_.CreateSDiv(a, divisor) : builder_.CreateUDiv(a, divisor);
  if (isMinusOne) quotient = builder_.CreateSelect(isMinusOne, builder_.CreateNeg(a), quotient);
  Value* remainder = builder_.CreateSub(a, builder_.CreateMul(quotient, b)); // 0 for -1 by wrapping
  bool wantsQuotient = op == BinaryOp::kDiv || op == BinaryOp::kFloorDiv;
  Value* result = wantsQuotient ? quotient : remainder;
  if (isSigned && (op == BinaryOp::kFloorDiv || op == BinaryOp::kFloorMod)) {
    // Rounded towards zero but wanted towards minus infinity: one less when the remainder's sign is not the
    // divisor's.
    Value* differ = builder_.CreateICmpSLT(builder_.CreateXor(remainder, b), zero);
    Value* adjust = builder_.CreateAnd(builder_.CreateICmpNE(remainder, zero), differ);
    Value* adjusted = wantsQuotient ? builder_.CreateSub(quotient, one) : builder_.CreateAdd(remainder, b);
    result = builder_.CreateSelect(adjust, adjusted, result);
  }
  return isZero ? builder_.CreateSelect(isZero, zero, result) : result;
}

/// Shifts by the width or more (negative amounts count as huge) leave 0, or the sign.
Value* KernelEmitter::emitShift(BinaryOp op, bool isSigned, Value* a, Value* b) {
  llvm::Type* t = a->getType();
  unsigned width = t->getScalarSizeInBits();
  llvm::Constant *limit = llvm::ConstantInt::get(t, width), *last = llvm::ConstantInt::get(t, width - 1);
  Value* amount = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, b, last);
  if (op == BinaryOp::kShr && isSigned) return builder_.CreateAShr(a, amount);
  Value* shifted = op == BinaryOp::kShl ? builder_.CreateShl(a, amount) : builder_.CreateLShr(a, amount);
  return builder_.CreateSelect(builder_.CreateICmpULT(b, limit), shifted, llvm::Constant::getNullValue(t));
}

Value* KernelEmitter::emitShuffle(const ShuffleNode& e) {
  std::vector<Value*> vectors;
  for (const Expr& v : e.vectors) vectors.push_back(emit(v));
  std::vector<int> pick;
  for (const Expr& i : e.indices) {
    std::optional<int64_t> at = asConst(i);
    if (!at || *at < 0)
      return refuse(NodeRef(&e), "a shuffle with an index that is not constant", type(e.dtype));
    pick.push_back(int(*at));
  }
  bool uniform = lanesOf(vectors[0]) > 1;
  for (Value* v : vectors) uniform &= v->getType() == vectors[0]->getType();
  if (uniform && vectors.size() <= 2 && pick.size() > 1)
    return vectors.size() == 1 ? builder_.CreateShuffleVector(vectors[0], pick)
                               : builder_.CreateShuffleVector(vectors[0], vectors[1], pick);
  std::vector<std::pair<Value*, int>> source;
  for (Value* v : vectors)
    for (int i = 0; i < lanesOf(v); ++i) source.emplace_back(v, i);
  auto laneAt = [&](int i) {
    auto [v, lane] = source[size_t(i)];
    return lanesOf(v) == 1 ? v : builder_.CreateExtractElement(v, uint64_t(lane));
  };
  for (int i : pick)
    if (i >= int(source.size()))
      return refuse(NodeRef(&e), "a shuffle index beyond the last lane", type(e.dtype));
  if (pick.size() == 1) return laneAt(pick[0]);
  Value* result = llvm::PoisonValue::get(type(e.dtype));
  for (size_t i = 0; i < pick.size(); ++i)
    result = builder_.CreateInsertElement(result, laneAt(pick[i]), uint64_t(i));
  return result;
}

/// One side is evaluated. Sides that are constants or variables become a select.
Value* KernelEmitter::emitIfThenElse(const CallNode& e) {
  Expr a = e.arg(1), b = e.arg(2);
  auto trivial = [](const Expr& x) { return x.is<IntImmNode>() || x.is<FloatImmNode>() || x.is<VarNode>(); };
  Value* condition = emit(e.arg(0));
  if (trivial(a) && trivial(b)) return builder_.CreateSelect(condition, emit(a), emit(b));
  if (lanesOf(condition) > 1)
    return refuse(NodeRef(&e), "if_then_else with a vector condition", type(e.dtype));
  llvm::BasicBlock *yes = newBlock("if.yes"), *no = newBlock("if.no"), *join = newBlock("if.join");
  builder_.CreateCondBr(condition, yes, no);
  builder_.SetInsertPoint(yes);
  Value* va = emit(a);
  llvm::BasicBlock* endA = builder_.GetInsertBlock();
  builder_.CreateBr(join);
  builder_.SetInsertPoint(no);
  Value* vb = emit(b);
  llvm::BasicBlock* endB = builder_.GetInsertBlock();
  builder_.CreateBr(join);
  builder_.SetInsertPoint(join);
  llvm::PHINode* phi = builder_.CreatePHI(va->getType(), 2);
  phi->addIncoming(va, endA);
  phi->addIncoming(vb, endB);
  return phi;
}

/// A number that divides the value for certain: lets loads and stores use the alignment they have.
int64_t KernelEmitter::knownMultiple(const Expr& e) const {
  constexpr int64_t kLarge = int64_t(1) << 20;
  if (auto c = asConst(e)) return *c == 0 ? kLarge : std::min(kLarge, *c & -*c);
  if (e.is<VarNode>()) {
    auto it = frame_.vars.find(cast<VarNode>(e));
    return it == frame_.vars.end() ? 1 : it->second.multiple;
  }
  if (const auto* c = e.as<CastNode>())
    return c->value->dtype.isInteger() && c->dtype.isInteger() ? knownMultiple(c->value) : 1;
  const auto* b = e.as<BinaryNode>();
  if (!b || !e->dtype.isInteger()) return 1;
  if (b->op == BinaryOp::kAdd || b->op == BinaryOp::kSub)
    return std::gcd(knownMultiple(b->a), knownMultiple(b->b));
  if (b->op == BinaryOp::kMul) return std::min(kLarge, knownMultiple(b->a) * knownMultiple(b->b));
  if (b->op == BinaryOp::kShl) {
    auto n = asConst(b->b);
    return n && *n >= 0 && *n <= 20 ? std::min(kLarge, knownMultiple(b->a) << *n) : 1;
  }
  return 1;
}

/// Index arithmetic does not overflow (whoever builds it proves that), which lets LLVM simplify addresses.
/// `plain` is cleared where a loaded value takes part: that is element arithmetic and may wrap.
Value* KernelEmitter::indexValue(const Expr& e, bool& plain) {
  const auto* b = e.as<BinaryNode>();
  bool affine = b && (b->op == BinaryOp::kAdd || b->op == BinaryOp::kSub || b->op == BinaryOp::kMul) &&
                e->dtype.isInt();
  if (!affine) {
    plain = e.is<VarNode>() || e.is<IntImmNode>() || e.is<BinaryNode>();
    return emit(e);
  }
  bool plainA = true, plainB = true;
  Value* x = indexValue(b->a, plainA);
  Value* y = indexValue(b->b, plainB);
  if (lanesOf(x) != lanesOf(y))
    x = splat(x, e->dtype.lanes / lanesOf(x)), y = splat(y, e->dtype.lanes / lanesOf(y));
  plain = plainA && plainB;
  if (b->op == BinaryOp::kAdd) return builder_.CreateAdd(x, y, "", false, plain);
  if (b->op == BinaryOp::kSub) return builder_.CreateSub(x, y, "", false, plain);
  return builder_.CreateMul(x, y, "", false, plain);
}

Value* KernelEmitter::emitIndex(const Expr& e) {
  bool plain = true;
  Value* v = indexValue(e, plain);
  return emitCast(e->dtype, kInt64.withLanes(e->dtype.lanes), v, e);
}

} // namespace bevel::codegen
