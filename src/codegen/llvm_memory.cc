// Emission of loads and stores, and what LLVM is told about aliasing.
//
// Every parameter, stack array and part of the workspace gets an alias scope; an access names its own scope
// and those it cannot overlap. Workspace parts are compared by their byte ranges, since the planner lets
// parts with disjoint lives share bytes.
#include "codegen/llvm_emit.h"

#include "ir/build.h"
#include "ir/storage_scope.h"
#include "ir/structural.h"
#include "loop/kernel_signature.h"

#include <llvm/IR/MDBuilder.h>

#include <numeric>

namespace bevel::codegen {

using llvm::Value;

namespace {

constexpr int64_t kUnknownStride = INT64_MIN;

bool touchesMemoryOpaquely(Intrin op) {
  return op == Intrin::kCallExtern || op == Intrin::kCallPacked || op == Intrin::kCallLlvmIntrin;
}

bool overlap(const AliasClass& a, const AliasClass& b) {
  if (a.region != b.region) return false;
  bool known = a.begin <= a.end && b.begin <= b.end;
  return !known || (a.begin < b.end && b.begin < a.end);
}

std::vector<int> laneMask(int lanes, int first, int step) {
  std::vector<int> mask;
  for (int i = 0; i < lanes; ++i) mask.push_back(first + i * step);
  return mask;
}

} // namespace

/// Finds all memory of the kernel and what is written, before anything is emitted.
void KernelEmitter::classifyMemory() {
  constexpr int kShared = 0, kThread = 1;
  int nextRegion = 2;
  auto add = [&](const Var& data, AliasClass c) {
    scopeIds_[data] = int(aliasClasses_.size());
    aliasClasses_.push_back(c);
  };
  if (!attrInt(f_.attrs, "may_alias"))
    for (size_t p : kernelBuffers(source_.function))
      add(f_.buffers[p] ? f_.buffers[p]->data : f_.params[p], {nextRegion++});
  walk(f_.body, [&](const NodeRef& node) {
    if (const auto* store = node.as<StoreNode>()) written_[store->buffer->data] = true;
    if (const auto* call = node.as<CallNode>()) hasOpaqueCalls_ |= touchesMemoryOpaquely(call->op);
    const auto* alloc = node.as<AllocNode>();
    if (!alloc || inRegisters(alloc->buffer->scope, target_.kind())) return true;
    NodeRef offset = attr(alloc->annotations, "workspace_offset");
    if (!offset) {
      add(alloc->buffer->data, {nextRegion++});
      return true;
    }
    bool perThread = attrInt(alloc->annotations, "per_thread") != 0;
    threadArenaUsed_ |= perThread;
    AliasClass c{perThread ? kThread : kShared};
    auto begin = asConst(cast<ExprNode>(offset));
    auto shape = constDims(alloc->buffer->shape);
    if (begin && shape) {
      int64_t count = std::accumulate(shape->begin(), shape->end(), int64_t(1), std::multiplies<>());
      c.begin = *begin, c.end = *begin + alloc->buffer->dtype.bytesFor(count);
    }
    add(alloc->buffer->data, c);
    return true;
  });
}

void KernelEmitter::buildScopes() {
  constexpr size_t kMaxScopes = 256; // the lists are quadratic
  size_t n = aliasClasses_.size();
  if (n > kMaxScopes) {
    scopeIds_.clear();
    return;
  }
  llvm::MDBuilder md(context_);
  llvm::MDNode* domain = md.createAnonymousAliasScopeDomain(source_.name);
  std::vector<llvm::MDNode*> scopes;
  for (size_t i = 0; i < n; ++i)
    scopes.push_back(md.createAnonymousAliasScope(domain, "m" + std::to_string(i)));
  for (size_t i = 0; i < n; ++i) {
    std::vector<llvm::Metadata*> others;
    for (size_t j = 0; j < n; ++j)
      if (!overlap(aliasClasses_[i], aliasClasses_[j])) others.push_back(scopes[j]);
    ownScope_.push_back(llvm::MDNode::get(context_, {scopes[i]}));
    otherScopes_.push_back(others.empty() ? nullptr : llvm::MDNode::get(context_, others));
  }
}

void KernelEmitter::annotate(llvm::Instruction* access, const Storage& s) {
  if (s.scope >= 0) {
    access->setMetadata(llvm::LLVMContext::MD_alias_scope, ownScope_[size_t(s.scope)]);
    if (llvm::MDNode* others = otherScopes_[size_t(s.scope)])
      access->setMetadata(llvm::LLVMContext::MD_noalias, others);
  }
  if (s.invariant && llvm::isa<llvm::LoadInst>(access))
    access->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
}

Storage* KernelEmitter::storageOf(const Buffer& buffer, const NodeRef& where) {
  auto it = frame_.storages.find(buffer->data);
  if (it == frame_.storages.end()) {
    refuse(where, "buffer " + buffer->name + " has no memory here");
    return nullptr;
  }
  bool flat = buffer->strides.empty() && (!buffer->elemOffset || isConst(buffer->elemOffset, 0));
  if (!flat || buffer->dtype.isVector() || buffer->dtype.bits % 8 != 0 || buffer->dtype.isString()) {
    refuse(where, "buffer " + buffer->name + " is not a dense buffer of whole-byte elements");
    return nullptr;
  }
  return &it->second;
}

Value* KernelEmitter::address(const BufferNode& buffer, const Storage& s, Value* index) {
  return builder_.CreateGEP(memoryType(buffer.dtype), s.pointer, index);
}

llvm::Align KernelEmitter::accessAlign(const BufferNode& buffer, const Storage& s, const Expr& index) {
  int64_t element = buffer.dtype.bits / 8;
  int64_t proven = std::gcd(s.alignment, std::min<int64_t>(knownMultiple(index), 4096) * element);
  int64_t align = std::max(element, std::min<int64_t>(proven, 64));
  return llvm::Align(uint64_t(align & -align)); // elements of 16 bytes and more: the power of two in them
}

Value* KernelEmitter::emitLoad(const LoadNode& load) {
  NodeRef where(&load);
  Storage* s = storageOf(load.buffer, where);
  if (!s || load.indices.size() != 1) return refuse(where, "a load that is not flat", type(load.dtype));
  const Expr& index = load.indices[0];
  Value* mask = load.predicate ? emit(load.predicate) : nullptr;
  if (s->isRegister) return emitRegisterAccess(*load.buffer, *s, index, where, nullptr, mask);
  Value* raw = loadLanes(load, *s, index, mask);
  if (!load.dtype.isBool()) return raw;
  return builder_.CreateICmpNE(raw, llvm::Constant::getNullValue(raw->getType()));
}

Value* KernelEmitter::loadLanes(const LoadNode& load, Storage& s, const Expr& index, Value* mask) {
  const BufferNode& b = *load.buffer;
  llvm::Type* element = memoryType(b.dtype);
  int lanes = index->dtype.lanes;
  llvm::Type* vector = withLanes(element, lanes);
  auto loadAt = [&](llvm::Type* type, Value* at, llvm::Align align) {
    llvm::LoadInst* l = builder_.CreateAlignedLoad(type, address(b, s, at), align);
    annotate(l, s);
    return l;
  };
  const RampNode* ramp = index.as<RampNode>();
  int64_t stride = ramp ? asConst(ramp->stride).value_or(kUnknownStride) : kUnknownStride;
  llvm::Align natural(uint64_t(b.dtype.bits / 8));
  if (lanes == 1) {
    if (!mask) return loadAt(element, emitIndex(index), accessAlign(b, s, index));
    Value* one = builder_.CreateMaskedLoad(withLanes(element, -1), address(b, s, emitIndex(index)), natural,
                                           builder_.CreateVectorSplat(1, mask),
                                           llvm::Constant::getNullValue(withLanes(element, -1)));
    annotate(llvm::cast<llvm::Instruction>(one), s);
    return builder_.CreateExtractElement(one, uint64_t(0));
  }
  if (stride == 1) {
    llvm::Align align = accessAlign(b, s, ramp->base);
    if (!mask) return loadAt(vector, emitIndex(ramp->base), align);
    auto* l = builder_.CreateMaskedLoad(vector, address(b, s, emitIndex(ramp->base)), align, mask,
                                        llvm::Constant::getNullValue(vector));
    annotate(l, s);
    return l;
  }
  if (!mask && (stride == 0 || index.is<BroadcastNode>())) {
    const Expr& one = ramp ? ramp->base : index.as<BroadcastNode>()->value;
    return splat(loadAt(element, emitIndex(one), accessAlign(b, s, one)), lanes);
  }
  if (!mask && stride == -1) {
    Value* first = builder_.CreateNSWSub(emitIndex(ramp->base), i64(lanes - 1));
    return builder_.CreateShuffleVector(loadAt(vector, first, natural), laneMask(lanes, lanes - 1, -1));
  }
  if (!mask && stride == 2) {
    // Two loads that end exactly at the last element needed: lanes 0, 2, … of [base, base + 2*lanes - 1).
    Value* base = emitIndex(ramp->base);
    Value* low = loadAt(vector, base, natural);
    Value* high = loadAt(vector, builder_.CreateNSWAdd(base, i64(lanes - 1)), natural);
    std::vector<int> pick;
    for (int i = 0; i < lanes; ++i) pick.push_back(2 * i < lanes ? 2 * i : 2 * i - (lanes - 1) + lanes);
    return builder_.CreateShuffleVector(low, high, pick);
  }
  bool hardware = target_.avx512 && b.dtype.bits >= 32 && b.dtype.bits <= 64;
  if (mask || (hardware && !ramp)) {
    auto* l = builder_.CreateMaskedGather(vector, address(b, s, emitIndex(index)), natural, mask,
                                          llvm::Constant::getNullValue(vector));
    annotate(l, s);
    return l;
  }
  Value* indices = ramp ? emitIndex(ramp->base) : emitIndex(index);
  Value* step = ramp ? emitIndex(ramp->stride) : nullptr;
  Value* result = llvm::PoisonValue::get(vector);
  for (int i = 0; i < lanes; ++i) {
    Value* at = ramp ? builder_.CreateNSWAdd(indices, builder_.CreateNSWMul(step, i64(i)))
                     : builder_.CreateExtractElement(indices, uint64_t(i));
    Value* one = loadAt(element, at, natural);
    result = builder_.CreateInsertElement(result, one, uint64_t(i));
  }
  return result;
}

void KernelEmitter::emitStore(const StoreNode& store) {
  NodeRef where(&store);
  Storage* s = storageOf(store.buffer, where);
  if (!s || store.indices.size() != 1) {
    refuse(where, "a store that is not flat");
    return;
  }
  const Expr& index = store.indices[0];
  Value* value = emit(store.value);
  Value* mask = store.predicate ? emit(store.predicate) : nullptr;
  if (lanesOf(value) != index->dtype.lanes) {
    if (lanesOf(value) != 1) {
      refuse(where, "a store whose value and index differ in lanes");
      return;
    }
    value = splat(value, index->dtype.lanes);
  }
  if (s->isRegister) {
    emitRegisterAccess(*store.buffer, *s, index, where, value, mask);
    return;
  }
  if (store.buffer->dtype.isBool())
    value = builder_.CreateZExt(value, withLanes(builder_.getInt8Ty(), index->dtype.lanes));
  storeLanes(store, *s, index, value, mask);
}

void KernelEmitter::storeLanes(const StoreNode& store, Storage& s, const Expr& index, Value* value,
                               Value* mask) {
  const BufferNode& b = *store.buffer;
  int lanes = index->dtype.lanes;
  const RampNode* ramp = index.as<RampNode>();
  int64_t stride = ramp ? asConst(ramp->stride).value_or(kUnknownStride) : kUnknownStride;
  llvm::Align natural(uint64_t(b.dtype.bits / 8));
  if (lanes == 1 && mask) {
    value = builder_.CreateVectorSplat(1, value);
    mask = builder_.CreateVectorSplat(1, mask);
  }
  if (lanes == 1 || stride == 1) {
    const Expr& first = lanes == 1 ? index : ramp->base;
    llvm::Align align = accessAlign(b, s, first);
    Value* pointer = address(b, s, emitIndex(first));
    if (mask)
      annotate(builder_.CreateMaskedStore(value, pointer, align, mask), s);
    else
      annotate(builder_.CreateAlignedStore(value, pointer, align), s);
    return;
  }
  Value* indices = emitIndex(index);
  if (mask) {
    annotate(builder_.CreateMaskedScatter(value, address(b, s, indices), natural, mask), s);
    return;
  }
  for (int i = 0; i < lanes; ++i) {
    Value* at = address(b, s, builder_.CreateExtractElement(indices, uint64_t(i)));
    annotate(builder_.CreateAlignedStore(builder_.CreateExtractElement(value, uint64_t(i)), at, natural), s);
  }
}

/// A slot of a register buffer, read (stored is null) or written. Slots are allocas of one vector each, which
/// LLVM turns into SSA values: the index must be constant.
Value* KernelEmitter::emitRegisterAccess(const BufferNode& buffer, Storage& s, const Expr& index,
                                         const NodeRef& where, Value* stored, Value* mask) {
  const RampNode* ramp = index.as<RampNode>();
  std::optional<int64_t> base = asConst(ramp ? ramp->base : index);
  DType accessType = buffer.dtype.withLanes(index->dtype.lanes);
  bool whole = ramp ? index->dtype.lanes == s.lanes && isConst(ramp->stride, 1) : s.lanes == 1;
  bool oneLane = !ramp && !index->dtype.isVector();
  if (!base || *base < 0 || !(whole || oneLane) || (whole && *base % s.lanes != 0))
    return refuse(where,
                  "register buffer " + buffer.name + " is not accessed by whole vectors at constant places",
                  type(accessType));
  llvm::AllocaInst*& slot = s.slots[*base / s.lanes];
  llvm::Type* slotType = type(buffer.dtype.withLanes(s.lanes));
  if (!slot) slot = entryAlloca(slotType, 64, buffer.name + "." + std::to_string(*base / s.lanes));
  int64_t lane = *base % s.lanes;
  if (!stored) {
    Value* value = builder_.CreateAlignedLoad(slotType, slot, llvm::Align(64));
    if (!whole) value = builder_.CreateExtractElement(value, uint64_t(lane));
    return mask ? builder_.CreateSelect(mask, value, llvm::Constant::getNullValue(value->getType())) : value;
  }
  if (!whole || mask) {
    Value* old = builder_.CreateAlignedLoad(slotType, slot, llvm::Align(64));
    if (!whole) stored = builder_.CreateInsertElement(old, stored, uint64_t(lane));
    if (mask) stored = builder_.CreateSelect(mask, stored, old);
  }
  return builder_.CreateAlignedStore(stored, slot, llvm::Align(64));
}

/// The pointer that T.address_of(buffer[i]), T.tvm_access_ptr(…), a buffer or a handle variable stands for.
Value* KernelEmitter::bufferPointer(const NodeRef& argument) {
  if (const auto* load = argument.as<LoadNode>()) {
    Storage* s = storageOf(load->buffer, argument);
    if (!s || s->isRegister || load->indices.size() != 1)
      return refuse(argument, "the address of a value in a register", builder_.getPtrTy());
    const RampNode* ramp = load->indices[0].as<RampNode>();
    return address(*load->buffer, *s, emitIndex(ramp ? ramp->base : load->indices[0]));
  }
  const auto* buffer = argument.as<BufferNode>();
  Var data = buffer ? buffer->data : argument.is<VarNode>() ? cast<VarNode>(argument) : nullptr;
  auto it = data ? frame_.storages.find(data) : frame_.storages.end();
  if (it == frame_.storages.end() || it->second.isRegister)
    return refuse(argument, "this is not the address of memory", builder_.getPtrTy());
  return it->second.pointer;
}

} // namespace bevel::codegen
