// Emits one graph function. Shared by the files of VM emission.
#pragma once

#include "codegen/vm_emit.h"
#include "codegen/vm_shapes.h"

#include "arith/analyzer.h"

#include <map>
#include <unordered_map>

namespace bevel {

/// The tables of the program under construction.
class VmTables {
public:
  VmTables(const Module& module, const Target& target, const std::string& features);
  const Module& module;
  const Target& target;
  VmProgram program;
  std::unordered_map<std::string, uint32_t> functions; // index in the image

  /// The tensor program's place in the kernel table, added when first called.
  Result<uint32_t> kernel(const std::string& name, const PrimFunc& f);
  bool hasKernel(const std::string& name) const { return kernels_.count(name) > 0; }
  uint32_t constant(const Constant& c);

private:
  Result<uint32_t> section(const PrimFunc& f);

  std::unordered_map<std::string, uint32_t> kernels_;
  std::unordered_map<std::string, uint32_t> sections_; // of the image, by the text of their targets
  std::unordered_map<const TensorObject*, uint32_t> constants_;
};

class VmFunction {
public:
  VmFunction(VmTables& tables, FunctionBuilder& out, ShapeSlots& slots, std::string name)
      : tables_(tables), out_(out), slots_(slots), name_(std::move(name)) {}
  Status run(const Function& f);

private:
  using Args = FunctionBuilder::Args;

  // vm_emit.cc: parameters, results, bindings, control flow
  Status declareParams(const Function& f);
  void declareResults(const Function& f);
  Status emitResult(const Function& f);
  Status emitSeq(const SeqExpr& seq);
  Status emitBinding(const VarBinding& b);
  Status emitMatchCast(const MatchCast& m);
  Status emitBranch(const SeqExpr& branch, uint32_t result);
  Status emitIf(const GraphVar& var, const GraphIf& e);
  Status endPoint();
  Status matchTensor(const ImageArg& value, const ImageArg& what, const TensorTypeNode& t, bool late);
  Status matchType(const ImageArg& value, const ImageArg& what, const Type& type);
  Status matchShape(const ImageArg& value, const ShapeTypeNode& t);
  Status matchLater();

  // vm_call.cc: calls and values
  Status emitCall(const GraphVar& var, const GraphCall& call);
  Status emitOp(const GraphVar& var, const GraphCall& call);
  Status emitKernel(const GraphCall& call, const GlobalVar& name, const PrimFunc& f);
  Result<Args> argsOf(const GraphCallNode& call);
  Status emitPacked(const GraphVar& var, const GraphCall& call, const std::string& name);
  Status emitFunctionCall(const GraphVar& var, const GraphCall& call, const GlobalVar& name);
  Status emitWhile(const GraphVar& var, const GraphCall& call);
  Status allocate(const GraphVar& var, const GraphCall& call);
  Result<ImageArg> callFunction(const std::string& name, const Args& args, const std::string& origins);
  Result<ImageArg> arg(const GraphExpr& e);
  Result<ImageArg> scalarArg(const Expr& e);
  Result<uint32_t> inRegister(const GraphExpr& e);
  Status appendDims(Args& args, const Array<Expr>& dims);
  Status appendShape(Args& args, const GraphExpr& shape);
  static std::string originsOf(const Node& n);

  VmTables& tables_;
  FunctionBuilder& out_;
  ShapeSlots& slots_;
  std::string name_;
  std::unordered_map<GraphVar, ImageArg, RefHash> values_;
  std::unordered_map<GraphVar, Tuple, RefHash> tuples_;    // bound to tuples, made only where needed as such
  std::unordered_map<GraphVar, int64_t, RefHash> outputs_; // variables that are results
  struct Later {
    ImageArg value, what;
    TensorType type;
  };
  std::vector<Later> later_; // tensors with dimensions that are expressions
  Analyzer analyzer_;
};

} // namespace bevel
