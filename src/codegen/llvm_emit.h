// Inside of the LLVM emitter: the only header with LLVM types, included by codegen/llvm_*.cc alone.
#pragma once

#include "codegen/llvm.h"

#include <llvm/IR/DIBuilder.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <map>
#include <optional>
#include <unordered_map>

namespace bevel::codegen {

// Fields of bevel_ctx by number; runtime/abi/kernel.h states their offsets.
enum ContextField : unsigned {
  kThreadId = 1,
  kNumThreads = 2,
  kParallelFor = 4,
  kCallPackedField = 5,
  kFail = 6
};

/// Memory that buffers refer to, found by the buffers' data variable.
struct Storage {
  llvm::Value* pointer = nullptr; // in the current function
  int64_t alignment = 1;          // of pointer, bytes
  int scope = -1;                 // index of its alias scope; -1: may overlap anything
  bool invariant = false;         // nobody writes it while the kernel runs
  // Scope "register": one stack slot a vector, which becomes an SSA value.
  bool isRegister = false;
  int lanes = 1;
  std::unordered_map<int64_t, llvm::AllocaInst*> slots;
};

/// Which memory never overlaps: parameters, stack arrays and workspace parts. Decided before emission.
struct AliasClass {
  int region = 0;    // memory of different regions never overlaps
  int64_t begin = 0; // bytes [begin, end) of the region; unknown when end < begin
  int64_t end = -1;
};

/// Emits one kernel and the tasks of its parallel loops into a module.
class KernelEmitter {
public:
  KernelEmitter(llvm::Module& module, const KernelSource& source, const Target& target, bool debugInfo);
  Status run();

private:
  // llvm_function.cc: signature, tasks, statements
  void emitPrologue();
  void declareParameters(llvm::Value* buffers, llvm::Value* dims);
  llvm::Function* makeFunction(const std::string& name, llvm::FunctionType* type, bool external);
  void emitStmt(const Stmt& s);
  void emitFor(const ForNode& loop);
  void emitLoop(const ForNode& loop, llvm::Value* first, llvm::Value* end, bool known);
  void emitParallel(const ForNode& loop);
  struct Capture; // values that a task gets from its kernel
  Capture capture(const ForNode& loop, llvm::Value* min);
  void forkJoin(llvm::Function* task, llvm::Value* env, llvm::Value* count);
  void emitTask(const ForNode& loop, llvm::Function* task, const Capture& captured);
  void emitWhile(const WhileNode& loop);
  void emitIf(const IfNode& branch);
  void emitAlloc(const AllocNode& alloc);
  void emitEvaluate(const Expr& e);
  void emitLetStmt(const LetStmtNode& let);
  llvm::Value* workspacePointer(const AllocNode& alloc);
  void returnUnlessOk(llvm::Value* status);
  void failUnless(llvm::Value* condition, const std::string& message);
  void failWith(const std::string& message);
  llvm::Value* contextField(unsigned field, llvm::Type* type);
  llvm::BasicBlock* newBlock(const char* name);
  bool terminated() const { return builder_.GetInsertBlock()->getTerminator() != nullptr; }

  // llvm_memory.cc: buffers, loads, stores, aliasing
  void classifyMemory();
  void buildScopes();
  Storage* storageOf(const Buffer& buffer, const NodeRef& where);
  llvm::Value* emitLoad(const LoadNode& load);
  void emitStore(const StoreNode& store);
  llvm::Value* emitRegisterAccess(const BufferNode& buffer, Storage& s, const Expr& index,
                                  const NodeRef& where, llvm::Value* stored, llvm::Value* mask);
  llvm::Value* loadLanes(const LoadNode& load, Storage& s, const Expr& index, llvm::Value* mask);
  void storeLanes(const StoreNode& store, Storage& s, const Expr& index, llvm::Value* value,
                  llvm::Value* mask);
  llvm::Value* address(const BufferNode& buffer, const Storage& s, llvm::Value* index);
  llvm::Align accessAlign(const BufferNode& buffer, const Storage& s, const Expr& index);
  void annotate(llvm::Instruction* access, const Storage& s);
  llvm::Value* bufferPointer(const NodeRef& argument);

  // llvm_expr.cc: expressions
  llvm::Value* emit(const Expr& e);
  llvm::Value* emitIndex(const Expr& e); // i64 (or a vector of i64); overflow is excluded by construction
  llvm::Value* indexValue(const Expr& e, bool& plain);
  llvm::Value* emitUnary(const UnaryNode& e);
  llvm::Value* emitBinary(const BinaryNode& e);
  llvm::Value* emitFloatBinary(BinaryOp op, llvm::Value* a, llvm::Value* b, const NodeRef& where);
  llvm::Value* emitIntBinary(BinaryOp op, bool isSigned, llvm::Value* a, llvm::Value* b,
                             const NodeRef& where);
  llvm::Value* emitDivision(BinaryOp op, bool isSigned, llvm::Value* a, llvm::Value* b);
  llvm::Value* emitShift(BinaryOp op, bool isSigned, llvm::Value* a, llvm::Value* b);
  llvm::Value* emitCompare(BinaryOp op, DType operand, llvm::Value* a, llvm::Value* b);
  llvm::Value* emitMinMax(bool isMax, llvm::Value* a, llvm::Value* b);
  llvm::Value* emitShuffle(const ShuffleNode& e);
  llvm::Value* emitIfThenElse(const CallNode& e);
  llvm::Value* withVar(const Var& var, llvm::Value* value, int64_t multiple);

  // llvm_cast.cc: conversions, the small float formats as integers
  llvm::Value* emitCast(DType from, DType to, llvm::Value* value, const NodeRef& where);
  llvm::Value* castToInt(DType from, DType to, llvm::Value* value);
  llvm::Value* widenToFloat(DType from, llvm::Value* value, const NodeRef& where);  // to fp32
  llvm::Value* narrowFromFloat(DType to, llvm::Value* value, const NodeRef& where); // from fp32
  llvm::Value* encodePowerOfTwo(llvm::Value* bits, llvm::Value* magnitude);         // to float8_e8m0
  llvm::Value* roundToOdd(llvm::Value* value); // fp64 to fp32 so that a second rounding is exact

  // llvm_call.cc: intrinsics, calls out
  llvm::Value* emitCall(const CallNode& call);
  llvm::Value* emitMath(const CallNode& call);
  llvm::Value* emitIntCall(const CallNode& call);
  llvm::Value* emitVectorReduce(const CallNode& call);
  llvm::Value* tensorView(const NodeRef& argument);
  llvm::Value* emitExtern(const CallNode& call);
  llvm::Value* emitPacked(const CallNode& call);
  llvm::Value* emitQMultiplyShift(const CallNode& call);
  llvm::Value* perLane(const std::vector<llvm::Value*>& args, llvm::Type* result,
                       llvm::FunctionCallee callee);
  llvm::Value* callUnary(llvm::Intrinsic::ID id, llvm::Value* a) {
    return builder_.CreateUnaryIntrinsic(id, a);
  }

  // Types and constants
  llvm::Type* scalarType(DType t); // in registers: bool is i1, fp16 and narrower floats are integers
  llvm::Type* memoryType(DType t); // in memory: bool is i8
  llvm::Type* withLanes(llvm::Type* element, int lanes);
  llvm::Type* type(DType t) { return withLanes(scalarType(t), t.lanes); }
  llvm::Constant* floatConstant(DType t, double value);
  llvm::Value* splat(llvm::Value* scalar, int lanes);
  llvm::Constant* i64(int64_t v) { return builder_.getInt64(uint64_t(v)); }
  llvm::AllocaInst* entryAlloca(llvm::Type* type, int64_t alignment, const llvm::Twine& name);
  llvm::Constant* text(const std::string& value);
  static int lanesOf(llvm::Value* v);

  // Debug locations
  struct NodeFrame {
    llvm::DISubprogram* callee;
    llvm::DILocation* call;
  };
  void numberLines();
  void beginDebug(llvm::Function* f, const std::string& display);
  void locate(const NodeRef& node);
  llvm::DISubprogram* describe(const std::string& name, llvm::StringRef symbol);
  const NodeFrame& frameOf(const Origin& origin, llvm::DISubprogram* scope);

  /// Records the first reason why the kernel cannot be compiled; gives a value so that emission can go on.
  llvm::Value* refuse(const NodeRef& where, std::string message, llvm::Type* type = nullptr);

  struct VarValue {
    llvm::Value* value;
    int64_t multiple; // the value is a multiple of it
  };
  int64_t knownMultiple(const Expr& e) const;

  llvm::Module& module_;
  llvm::LLVMContext& context_;
  llvm::IRBuilder<> builder_;
  const KernelSource& source_;
  const PrimFuncNode& f_;
  const Target& target_;
  std::optional<Error> error_;

  /// The function being emitted: the kernel, or a task of it, and the values that are visible in it.
  struct Frame {
    llvm::Function* function = nullptr;
    llvm::Value* ctx = nullptr;
    llvm::Value* workspace = nullptr;
    llvm::Value* threadArena = nullptr; // workspace + shared bytes; null where no allocation is per thread
    llvm::Value* threadBytes = nullptr; // bytes per thread
    bool isTask = false;
    std::unordered_map<Var, VarValue, RefHash> vars;
    std::unordered_map<Var, Storage, RefHash> storages;
  };
  Frame frame_;
  int numTasks_ = 0;

  // Aliasing, for the whole kernel
  std::unordered_map<Var, int, RefHash> scopeIds_;
  std::vector<AliasClass> aliasClasses_;
  std::vector<llvm::MDNode*> ownScope_, otherScopes_; // null when the scope excludes nothing
  std::unordered_map<Var, bool, RefHash> written_;
  bool hasOpaqueCalls_ = false;
  bool threadArenaUsed_ = false;

  bool debug_ = false;
  std::optional<llvm::DIBuilder> di_;
  llvm::DIFile* diFile_ = nullptr;
  std::map<std::pair<llvm::DISubprogram*, std::string>, NodeFrame> nodeFrames_;
  std::unordered_map<const Object*, int> lines_; // IR line of each statement in the printed kernel
};

} // namespace bevel::codegen
