// Emission of a kernel's frame and statements. A parallel loop becomes a task function of its own:
//
//   for i in T.parallel(n): body      →      env = {captured values};
//                                            one thread: status = task(ctx, env, 0, n)
//                                            otherwise:  status = ctx->parallel_for(ctx, task, env, n)
//                                            if (status) return status
#include "codegen/llvm_emit.h"

#include "ir/build.h"
#include "ir/storage_scope.h"
#include "ir/structural.h"
#include "loop/kernel_signature.h"

#include <llvm/IR/MDBuilder.h>

namespace bevel::codegen {

using llvm::BasicBlock;
using llvm::Value;

namespace {
constexpr int64_t kMaxStackBytes = 256 << 10; // of one array; task threads have stacks of a few MB
static_assert(offsetof(bevel_ctx, thread_id) == 4 && offsetof(bevel_ctx, num_threads) == 8 &&
              offsetof(bevel_ctx, parallel_for) == 16 && offsetof(bevel_ctx, call_packed) == 24 &&
              offsetof(bevel_ctx, fail) == 32);
} // namespace

KernelEmitter::KernelEmitter(llvm::Module& module, const KernelSource& source, const Target& target,
                             bool debugInfo)
    : module_(module), context_(module.getContext()), builder_(context_), source_(source),
      f_(*source.function), target_(target), debug_(debugInfo) {
  llvm::FastMathFlags flags;
  if (attrInt(f_.attrs, "fast_math")) {
    flags.setFast(); // but masks of finite models hold infinities, and must work
    flags.setNoNaNs(false);
    flags.setNoInfs(false);
  } else if (!attrInt(f_.attrs, "no_contract"))
    flags.setAllowContract(true);
  builder_.setFastMathFlags(flags);
}

Value* KernelEmitter::refuse(const NodeRef& where, std::string message, llvm::Type* type) {
  if (!error_)
    error_ = Error(ErrorCode::kUnsupported, "kernel " + source_.name + ": " + std::move(message)).at(where);
  return llvm::PoisonValue::get(type ? type : builder_.getInt64Ty());
}

llvm::Function* KernelEmitter::makeFunction(const std::string& name, llvm::FunctionType* type,
                                            bool external) {
  auto linkage = external ? llvm::Function::ExternalLinkage : llvm::Function::InternalLinkage;
  auto* f = llvm::Function::Create(type, linkage, name, module_);
  std::string features;
  for (const std::string& feature : target_.features) features += (features.empty() ? "" : ",") + feature;
  f->addFnAttr("target-cpu", target_.cpu);
  if (!target_.tune.empty()) f->addFnAttr("tune-cpu", target_.tune);
  if (!features.empty()) f->addFnAttr("target-features", features);
  f->addFnAttr("prefer-vector-width", std::to_string(target_.limits.vectorBits));
  f->addFnAttr("min-legal-vector-width", std::to_string(target_.limits.vectorBits));
  f->addFnAttr("no-trapping-math", "true");
  f->addFnAttr(llvm::Attribute::NoUnwind);
  f->setUWTableKind(llvm::UWTableKind::Default);
  return f;
}

Status KernelEmitter::run() {
  if (f_.params.size() != f_.buffers.size())
    return fail(ErrorCode::kInternal, source_.name + ": malformed parameters");
  classifyMemory();
  buildScopes();
  llvm::Type* ptr = builder_.getPtrTy();
  auto* type = llvm::FunctionType::get(builder_.getInt32Ty(), {ptr, ptr, ptr, ptr}, false);
  frame_.function = makeFunction(source_.name, type, true);
  for (unsigned i = 0; i < 4; ++i) frame_.function->addParamAttr(i, llvm::Attribute::NoUndef);
  frame_.ctx = frame_.function->getArg(0);
  frame_.workspace = frame_.function->getArg(3);
  builder_.SetInsertPoint(BasicBlock::Create(context_, "entry", frame_.function));
  if (debug_) beginDebug(frame_.function, source_.name);
  locate(source_.function);
  emitPrologue();
  emitStmt(f_.body);
  if (!terminated()) builder_.CreateRet(builder_.getInt32(BEVEL_OK));
  if (di_) di_->finalize();
  if (error_) return fail(std::move(*error_));
  return {};
}

void KernelEmitter::emitPrologue() {
  declareParameters(frame_.function->getArg(1), frame_.function->getArg(2));
  if (!threadArenaUsed_) return;
  // Where the threads' parts begin and how far they are apart; both are expressions over the dims.
  frame_.threadArena =
      builder_.CreatePtrAdd(frame_.workspace, emitIndex(workspaceBytes(source_.function)), "threads");
  frame_.threadBytes = emitIndex(workspacePerThreadBytes(source_.function));
}

void KernelEmitter::declareParameters(Value* buffers, Value* dims) {
  auto invariant = [&](llvm::LoadInst* load) {
    load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
    return load;
  };
  int64_t index = 0;
  for (size_t position : kernelBuffers(source_.function)) {
    const Var& data = f_.buffers[position] ? f_.buffers[position]->data : f_.params[position];
    Value* slot = builder_.CreateConstInBoundsGEP1_64(builder_.getPtrTy(), buffers, uint64_t(index++));
    Value* pointer = invariant(builder_.CreateLoad(builder_.getPtrTy(), slot, data->name));
    Storage s;
    s.pointer = pointer;
    // Callers pass any memory (views, NumPy arrays): only the element's own alignment is certain.
    s.alignment = 1;
    auto scope = scopeIds_.find(data);
    s.scope = scope == scopeIds_.end() ? -1 : scope->second;
    s.invariant = !written_.contains(data) && !hasOpaqueCalls_ && !attrInt(f_.attrs, "may_alias");
    frame_.storages[data] = s;
    if (f_.params[position] != data) frame_.storages[f_.params[position]] = s;
  }
  index = 0;
  for (const Var& v : kernelDims(source_.function)) {
    Value* slot = builder_.CreateConstInBoundsGEP1_64(builder_.getInt64Ty(), dims, uint64_t(index++));
    Value* raw = invariant(builder_.CreateLoad(builder_.getInt64Ty(), slot, v->name));
    if (v->dtype.isFloat()) {
      Value* asDouble = builder_.CreateBitCast(raw, builder_.getDoubleTy());
      frame_.vars[v] = {emitCast(DType::Float(64), v->dtype, asDouble, v), 1};
    } else {
      frame_.vars[v] = {emitCast(kInt64, v->dtype, raw, v), 1};
    }
  }
}

BasicBlock* KernelEmitter::newBlock(const char* name) {
  return BasicBlock::Create(context_, name, frame_.function);
}

void KernelEmitter::emitStmt(const Stmt& s) {
  locate(s);
  switch (s->kind) {
  case Kind::kSeq:
    for (const Stmt& child : cast<SeqNode>(s)->stmts) emitStmt(child);
    return;
  case Kind::kStore:
    return emitStore(*cast<StoreNode>(s));
  case Kind::kFor:
    return emitFor(*cast<ForNode>(s));
  case Kind::kWhile:
    return emitWhile(*cast<WhileNode>(s));
  case Kind::kIf:
    return emitIf(*cast<IfNode>(s));
  case Kind::kAlloc:
    return emitAlloc(*cast<AllocNode>(s));
  case Kind::kDeclBuffer:
    return emitStmt(cast<DeclBufferNode>(s)->body);
  case Kind::kAttrStmt:
    return emitStmt(cast<AttrStmtNode>(s)->body);
  case Kind::kLetStmt:
    return emitLetStmt(*cast<LetStmtNode>(s));
  case Kind::kEvaluate:
    return emitEvaluate(cast<EvaluateNode>(s)->value);
  case Kind::kAssert:
    return failUnless(emit(cast<AssertNode>(s)->condition), cast<AssertNode>(s)->message);
  default:
    refuse(s, std::string(s->kindName()) + " statement in a lowered function");
  }
}

void KernelEmitter::emitLetStmt(const LetStmtNode& let) {
  if (let.var->dtype.isHandle()) { // a pointer with a name: buffers may be declared over it
    frame_.storages[let.var].pointer = emit(let.value);
  } else {
    frame_.vars[let.var] = {emit(let.value), knownMultiple(let.value)};
  }
  emitStmt(let.body);
}

void KernelEmitter::emitFor(const ForNode& loop) {
  if (loop.forKind == ForKind::kVectorized || loop.forKind == ForKind::kThreadBinding) {
    refuse(NodeRef(&loop), std::string(kForKindNames[int(loop.forKind)]) + " loop in a lowered function");
    return;
  }
  std::optional<int64_t> extent = asConst(loop.extent);
  if (extent && *extent <= 0) return;
  if (loop.forKind == ForKind::kParallel && !frame_.isTask && extent != 1) return emitParallel(loop);
  Value* min = emit(loop.min);
  Value* count = emitCast(loop.extent->dtype, loop.var->dtype, emit(loop.extent), NodeRef(&loop));
  min = emitCast(loop.min->dtype, loop.var->dtype, min, NodeRef(&loop));
  emitLoop(loop, min, builder_.CreateNSWAdd(min, count, "end"), extent.has_value());
}

/// A bottom-tested loop over [first, end); `known`: it runs at least once.
void KernelEmitter::emitLoop(const ForNode& loop, Value* first, Value* end, bool known) {
  if (known && asConst(loop.extent) == 1) {
    frame_.vars[loop.var] = {first, knownMultiple(loop.min)};
    return emitStmt(loop.body);
  }
  BasicBlock* body = newBlock("loop");
  BasicBlock* exit = newBlock("loop.end");
  if (known)
    builder_.CreateBr(body);
  else
    builder_.CreateCondBr(builder_.CreateICmpSLT(first, end), body, exit);
  BasicBlock* before = builder_.GetInsertBlock();
  builder_.SetInsertPoint(body);
  llvm::PHINode* iv = builder_.CreatePHI(first->getType(), 2, loop.var->name);
  iv->addIncoming(first, before);
  frame_.vars[loop.var] = {iv, 1};
  emitStmt(loop.body);
  locate(NodeRef(&loop));
  Value* next = builder_.CreateNSWAdd(iv, llvm::ConstantInt::get(iv->getType(), 1));
  iv->addIncoming(next, builder_.GetInsertBlock());
  builder_.CreateCondBr(builder_.CreateICmpSLT(next, end), body, exit);
  builder_.SetInsertPoint(exit);
}

/// The environment of a task: what the body uses from outside, in order of first use, then the frame's own
/// pointers.
struct KernelEmitter::Capture {
  std::vector<std::pair<Var, bool>> vars; // variable, whether it is the data of a buffer
  std::vector<Value*> values;             // of vars; then loop minimum, workspace, threads' arena and bytes
  llvm::StructType* type = nullptr;
};

KernelEmitter::Capture KernelEmitter::capture(const ForNode& loop, Value* min) {
  Capture c;
  for (const NodeRef& free : freeVars(NodeRef(&loop))) {
    if (!free.is<VarNode>()) continue;
    Var v = cast<VarNode>(free);
    auto storage = frame_.storages.find(v);
    bool isData = storage != frame_.storages.end();
    if (isData && storage->second.isRegister) {
      refuse(NodeRef(&loop), "register buffer " + v->name + " is used across a parallel loop");
      continue;
    }
    if (!isData && !frame_.vars.contains(v)) continue;
    c.vars.emplace_back(v, isData);
    c.values.push_back(isData ? storage->second.pointer : frame_.vars.at(v).value);
  }
  for (Value* extra : {min, frame_.workspace, frame_.threadArena, frame_.threadBytes})
    c.values.push_back(extra ? extra : llvm::ConstantPointerNull::get(builder_.getPtrTy()));
  std::vector<llvm::Type*> fields;
  for (Value* v : c.values) fields.push_back(v->getType());
  c.type = llvm::StructType::get(context_, fields);
  return c;
}

void KernelEmitter::emitParallel(const ForNode& loop) {
  NodeRef node(&loop);
  Value* min = emitCast(loop.min->dtype, loop.var->dtype, emit(loop.min), node);
  Value* count = emitCast(loop.extent->dtype, kInt64, emit(loop.extent), node);
  Capture captured = capture(loop, min);
  llvm::AllocaInst* env = entryAlloca(captured.type, 16, "env");
  for (unsigned i = 0; i < captured.values.size(); ++i)
    if (!llvm::isa<llvm::Constant>(captured.values[i]))
      builder_.CreateStore(captured.values[i], builder_.CreateStructGEP(captured.type, env, i));
  llvm::Type *ptr = builder_.getPtrTy(), *index = builder_.getInt64Ty();
  auto* type = llvm::FunctionType::get(builder_.getInt32Ty(), {ptr, ptr, index, index}, false);
  auto* task = makeFunction(source_.name + "_parallel" + std::to_string(numTasks_++), type, false);
  if (asConst(loop.extent)) {
    forkJoin(task, env, count);
  } else {
    BasicBlock *some = newBlock("some"), *done = newBlock("done");
    builder_.CreateCondBr(builder_.CreateICmpSGT(count, i64(0)), some, done);
    builder_.SetInsertPoint(some);
    forkJoin(task, env, count);
    builder_.CreateBr(done);
    builder_.SetInsertPoint(done);
  }
  auto point = builder_.saveIP();
  auto location = builder_.getCurrentDebugLocation();
  Frame outer = frame_;
  emitTask(loop, task, captured);
  frame_ = std::move(outer);
  builder_.restoreIP(point);
  builder_.SetCurrentDebugLocation(location);
}

void KernelEmitter::forkJoin(llvm::Function* task, Value* env, Value* count) {
  llvm::Type *ptr = builder_.getPtrTy(), *i32 = builder_.getInt32Ty();
  BasicBlock *one = newBlock("inline"), *many = newBlock("fork"), *join = newBlock("join");
  Value* alone = builder_.CreateICmpEQ(contextField(kNumThreads, i32), builder_.getInt32(1));
  builder_.CreateCondBr(alone, one, many);
  builder_.SetInsertPoint(one);
  Value* statusOne = builder_.CreateCall(task, {frame_.ctx, env, i64(0), count});
  builder_.CreateBr(join);
  builder_.SetInsertPoint(many);
  auto* forkType = llvm::FunctionType::get(i32, {ptr, ptr, ptr, builder_.getInt64Ty()}, false);
  Value* statusMany =
      builder_.CreateCall(forkType, contextField(kParallelFor, ptr), {frame_.ctx, task, env, count});
  builder_.CreateBr(join);
  builder_.SetInsertPoint(join);
  auto* status = builder_.CreatePHI(i32, 2, "status");
  status->addIncoming(statusOne, one);
  status->addIncoming(statusMany, many);
  returnUnlessOk(status);
}

void KernelEmitter::returnUnlessOk(Value* status) {
  BasicBlock *failed = newBlock("failed"), *ok = newBlock("ok");
  Value* isOk = builder_.CreateICmpEQ(status, builder_.getInt32(BEVEL_OK));
  builder_.CreateCondBr(isOk, ok, failed, llvm::MDBuilder(context_).createBranchWeights(1000, 1));
  builder_.SetInsertPoint(failed);
  builder_.CreateRet(status);
  builder_.SetInsertPoint(ok);
}

/// int32_t task(ctx, env, begin, end): iterations [begin, end) counted from the loop's minimum.
void KernelEmitter::emitTask(const ForNode& loop, llvm::Function* task, const Capture& captured) {
  NodeRef node(&loop);
  frame_.function = task;
  frame_.ctx = task->getArg(0);
  frame_.isTask = true;
  builder_.SetInsertPoint(BasicBlock::Create(context_, "entry", task));
  if (debug_) beginDebug(task, source_.name + " (parallel " + loop.var->name + ")");
  locate(node);
  std::vector<Value*> inner = captured.values;
  for (unsigned i = 0; i < inner.size(); ++i) {
    if (llvm::isa<llvm::Constant>(inner[i])) continue;
    Value* field = builder_.CreateStructGEP(captured.type, task->getArg(1), i);
    auto* load = builder_.CreateLoad(inner[i]->getType(), field);
    load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
    inner[i] = load;
  }
  size_t n = captured.vars.size();
  for (size_t i = 0; i < n; ++i) {
    const auto& [v, isData] = captured.vars[i];
    if (isData)
      frame_.storages[v].pointer = inner[i];
    else
      frame_.vars[v].value = inner[i];
  }
  Value* min = inner[n];
  frame_.workspace = inner[n + 1];
  if (frame_.threadArena) frame_.threadArena = inner[n + 2], frame_.threadBytes = inner[n + 3];
  auto bound = [&](unsigned argument) {
    Value* offset = emitCast(kInt64, loop.var->dtype, task->getArg(argument), node);
    return builder_.CreateNSWAdd(min, offset);
  };
  emitLoop(loop, bound(2), bound(3), false);
  if (!terminated()) builder_.CreateRet(builder_.getInt32(BEVEL_OK));
}

void KernelEmitter::emitWhile(const WhileNode& loop) {
  BasicBlock *head = newBlock("while"), *body = newBlock("while.body"), *exit = newBlock("while.end");
  builder_.CreateBr(head);
  builder_.SetInsertPoint(head);
  builder_.CreateCondBr(emit(loop.condition), body, exit);
  builder_.SetInsertPoint(body);
  emitStmt(loop.body);
  builder_.CreateBr(head);
  builder_.SetInsertPoint(exit);
}

void KernelEmitter::emitIf(const IfNode& branch) {
  if (branch.condition->dtype.isVector()) {
    refuse(NodeRef(&branch), "a vector as the condition of an if");
    return;
  }
  BasicBlock *yes = newBlock("then"), *exit = newBlock("endif");
  BasicBlock* no = branch.elseBody ? newBlock("else") : exit;
  builder_.CreateCondBr(emit(branch.condition), yes, no);
  builder_.SetInsertPoint(yes);
  emitStmt(branch.thenBody);
  builder_.CreateBr(exit);
  if (branch.elseBody) {
    builder_.SetInsertPoint(no);
    emitStmt(branch.elseBody);
    builder_.CreateBr(exit);
  }
  builder_.SetInsertPoint(exit);
}

void KernelEmitter::emitAlloc(const AllocNode& alloc) {
  const BufferNode& b = *alloc.buffer;
  Storage s;
  auto scope = scopeIds_.find(b.data);
  s.scope = scope == scopeIds_.end() ? -1 : scope->second;
  auto shape = constDims(b.shape);
  int64_t count = 1;
  for (int64_t d : shape.value_or(std::vector<int64_t>{})) count *= d;
  if (inRegisters(b.scope, target_.kind())) {
    s.isRegister = true;
    s.lanes = int(attrInt(alloc.annotations, "lanes", 1));
  } else if (attr(alloc.annotations, "workspace_offset")) {
    s.pointer = workspacePointer(alloc);
    s.alignment = 64;
  } else if (shape && count >= 0 && b.dtype.bytesFor(count) <= kMaxStackBytes) {
    s.alignment = std::max<int64_t>(16, std::min<int64_t>(64, b.alignment));
    auto* array = llvm::ArrayType::get(memoryType(b.dtype.scalar()), uint64_t(count * b.dtype.lanes));
    s.pointer = entryAlloca(array, s.alignment, b.name);
  } else {
    refuse(NodeRef(&alloc), "buffer " + b.name + " of scope \"" + b.scope +
                                "\" has no place in the workspace and does not fit the stack");
    return;
  }
  frame_.storages[b.data] = std::move(s);
  emitStmt(alloc.body);
}

Value* KernelEmitter::workspacePointer(const AllocNode& alloc) {
  Value* offset = emitIndex(cast<ExprNode>(attr(alloc.annotations, "workspace_offset")));
  if (!attrInt(alloc.annotations, "per_thread"))
    return builder_.CreatePtrAdd(frame_.workspace, offset, alloc.buffer->name);
  Value* thread = builder_.CreateZExt(contextField(kThreadId, builder_.getInt32Ty()), builder_.getInt64Ty());
  Value* mine = builder_.CreateNSWMul(thread, frame_.threadBytes);
  return builder_.CreatePtrAdd(frame_.threadArena, builder_.CreateNSWAdd(mine, offset), alloc.buffer->name);
}

void KernelEmitter::emitEvaluate(const Expr& e) {
  const CallNode* call = e.as<CallNode>();
  if (call && (call->op == Intrin::kRet || call->op == Intrin::kThreadReturn)) {
    Value* status = builder_.getInt32(BEVEL_OK);
    if (!call->args.empty()) status = emitCast(call->arg(0)->dtype, kInt32, emit(call->arg(0)), e);
    builder_.CreateRet(status);
    builder_.SetInsertPoint(newBlock("unreachable"));
    return;
  }
  if (call && call->op == Intrin::kFail) {
    const StringImmNode* message = call->args.empty() ? nullptr : call->args[0].as<StringImmNode>();
    failWith(message ? message->value : "the kernel failed");
    builder_.SetInsertPoint(newBlock("unreachable"));
    return;
  }
  if (!e.is<IntImmNode>()) emit(e);
}

Value* KernelEmitter::contextField(unsigned field, llvm::Type* type) {
  llvm::Type *i32 = builder_.getInt32Ty(), *ptr = builder_.getPtrTy();
  auto* layout = llvm::StructType::get(context_, {i32, i32, i32, i32, ptr, ptr, ptr, ptr});
  auto* load = builder_.CreateLoad(type, builder_.CreateStructGEP(layout, frame_.ctx, field));
  load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
  return load;
}

void KernelEmitter::failUnless(Value* condition, const std::string& message) {
  BasicBlock *bad = newBlock("assert.failed"), *ok = newBlock("assert.ok");
  builder_.CreateCondBr(condition, ok, bad, llvm::MDBuilder(context_).createBranchWeights(1000, 1));
  builder_.SetInsertPoint(bad);
  failWith(message);
  builder_.SetInsertPoint(ok);
}

void KernelEmitter::failWith(const std::string& message) {
  llvm::Type* ptr = builder_.getPtrTy();
  auto* type = llvm::FunctionType::get(builder_.getVoidTy(), {ptr, ptr}, false);
  builder_.CreateCall(type, contextField(kFail, ptr), {frame_.ctx, text(message)})->setCannotMerge();
  builder_.CreateRet(builder_.getInt32(BEVEL_ERROR_REFUSED));
}

} // namespace bevel::codegen
