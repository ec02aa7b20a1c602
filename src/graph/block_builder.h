// Builds graph functions of a module binding by binding, in A-normal form with every type inferred.
//
//   BlockBuilder bb;
//   bb.beginFunction("main", {x});
//   bb.beginDataflow();
//   auto lv = bb.emit(opCall("add", {x, y}));           // lv: R.Tensor(...) = R.add(x, y)
//   auto gv = bb.emitOutput(*lv);                       // visible behind the dataflow block
//   bb.endDataflow();
//   bb.emitFuncOutput(*gv);
//   Module m = bb.module();
#pragma once

#include "arith/analyzer.h"
#include "graph/infer.h"

#include <memory>
#include <unordered_set>

namespace bevel {

class BlockBuilder {
public:
  explicit BlockBuilder(Module module = nullptr);
  BlockBuilder(const BlockBuilder&) = delete;
  BlockBuilder& operator=(const BlockBuilder&) = delete;

  /// Functions. They may nest (the inner is complete before the outer goes on). The name is made unique in
  /// the module; emitFuncOutput returns it. Symbolic dimensions in the types of params are bound by them.
  void beginFunction(std::string name, Array<GraphVar> params, Dict attrs = nullptr, bool pure = true);
  Result<GlobalVar> emitFuncOutput(const GraphExpr& result);
  /// Drops the function under construction (after an error).
  void abandonFunction();
  /// Adds a finished function; an equal PrimFunc that exists is reused.
  GlobalVar addFunction(const GraphExpr& function, const std::string& nameHint);
  void updateFunction(const GlobalVar& name, GraphExpr function);
  void removeFunction(const GlobalVar& name);

  /// A dataflow block inside a function: bindings outside see only what emitOutput made.
  void beginDataflow();
  void endDataflow();
  bool inDataflow() { return frame().dataflow; }

  /// Binds the expression to a fresh variable. Nested calls are bound first; types are inferred; dimensions
  /// that only the run knows are bound by a match_cast (the variable returned is then the cast one).
  Result<GraphVar> emit(const GraphExpr& value, const std::string& nameHint = "");
  /// The same, visible outside the dataflow block.
  Result<GraphVar> emitOutput(const GraphExpr& value, const std::string& nameHint = "");
  /// Binds a variable that exists already, for mutators that keep names and identities.
  Status emitBinding(const GraphVar& variable, const GraphExpr& value);
  /// The expression as a leaf (variable, constant, shape, tuple of leaves …), with everything below it bound.
  Result<GraphExpr> normalize(const GraphExpr& value);
  /// value as `type`, checked at run time; binds the symbolic dimensions of `type` that are new.
  GraphVar matchCast(const GraphExpr& value, const Type& type, const std::string& nameHint = "");
  Status emitMatchCast(const GraphVar& variable, const GraphExpr& value, const Type& pattern);

  /// The run is refused where the condition on dimensions does not hold. Nothing where it uses unbound ones.
  void require(const Expr& condition);

  /// A tensor program made by f from placeholders for `inputs` (tensors), called by call_tir. Equal programs
  /// are shared.
  Result<GraphVar> emitTe(FunctionRef<Result<TeTensors>(const TeTensors&)> f, const Array<GraphExpr>& inputs,
                          const std::string& name);
  /// The call_tir of an op's own compute (see programOf), not yet bound.
  Result<GraphCall> callTir(const GraphCall& opCall, const std::string& name = "");

  /// Branches: beginBranch, emit…, endBranch(result) twice, then emitIf. Types that differ lose what differs.
  void beginBranch();
  Result<SeqExpr> endBranch(const GraphExpr& result);
  Result<GraphVar> emitIf(const GraphExpr& condition, const SeqExpr& thenBranch, const SeqExpr& elseBranch,
                          const std::string& nameHint = "");
  /// while condition(state): state = body(state); both are functions of the module.
  Result<GraphVar> emitWhile(const GlobalVar& condition, const GlobalVar& body, const Array<GraphExpr>& state,
                             const std::string& nameHint = "");

  /// What a variable of this builder is bound to; null for parameters and unknown ones.
  GraphExpr lookupBinding(const GraphVar& variable) const;
  /// Type of any expression whose leaves are typed.
  Result<Type> infer(const GraphExpr& value);

  /// Origin given to what is emitted from now on (null: none).
  void setOrigin(Origin origin) { origin_ = std::move(origin); }
  const Origin& origin() const { return origin_; }
  /// A variable name not yet used in the current function.
  std::string freshVarName(const std::string& hint);
  Analyzer& analyzer() { return scope().analyzer; }
  const Module& module() const { return module_; }

private:
  // A function or a branch under construction.
  struct Frame {
    bool branch = false;
    std::string name = {};
    Array<GraphVar> params = {};
    Dict attrs = nullptr;
    bool pure = true;
    Array<BindingBlock> blocks = {};
    Array<NodeRef> current = {};
    bool dataflow = false;
    std::vector<Var> dims = {}; // symbolic variables bound in this frame
    void closeBlock();
  };
  // What functions share with their branches, and nested functions do not.
  struct Scope {
    std::unordered_set<std::string> names;
    std::unordered_map<std::string, int>
        suffixes; // by base name: the last suffix given; names never get free
    std::unordered_set<Var, RefHash> dims;
    Analyzer analyzer;
  };

  Scope& scope() { return scopes_.empty() ? outside_ : *scopes_.back(); }
  Frame& frame();
  void bindDims(const Type& type);
  NodeRef stamp(const NodeRef& node);
  void bind(const GraphVar& v, const GraphExpr& value);
  void bindCast(const GraphVar& v, const GraphExpr& value, const Type& pattern);
  GraphVar newVar(const std::string& hint, const Type& type, bool output);
  Result<GraphExpr> normalizeParts(const GraphExpr& value);
  Result<GraphVar> emitValue(const GraphExpr& value, const std::string& hint, bool output);
  Result<Type> infer(const GraphExpr& value, InferContext& context);

  Module module_;
  std::vector<Frame> frames_;
  std::vector<std::unique_ptr<Scope>> scopes_;
  std::unordered_map<GraphVar, GraphExpr, RefHash> bindings_;
  std::unordered_multimap<uint64_t, GlobalVar> programs_; // PrimFuncs by structural hash
  std::unordered_map<std::string, int> counters_;         // next suffix of a global name
  Origin origin_;
  Scope outside_; // for inference without a function
};

/// Replaces parameters by constants: by name, or by position for names that are numbers. Bound parameters are
/// removed.
Result<Function> bindParams(const Function& function,
                            const std::vector<std::pair<std::string, Tensor>>& values);
Result<Module> bindParams(const Module& module, const std::string& function,
                          const std::vector<std::pair<std::string, Tensor>>& values);

} // namespace bevel
