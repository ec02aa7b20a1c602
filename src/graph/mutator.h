// Rewriting graph functions: every binding is visited and emitted again through a BlockBuilder, so the result
// is normalised and typed again.
//
//   struct ToFma : ExprMutator { … GraphExpr visitExpr(const GraphExpr& e) override {
//     GraphExpr value = ExprMutator::visitExpr(e);          // operands rewritten
//     const auto* call = value.as<GraphCallNode>();
//     auto mul = call && call->isOp("add") ? lookup(call->args[0]) : nullptr; … return opCall("ewise_fma", {…}); } };
//   Result<Module> m = ToFma(module).mutateModule();
#pragma once

#include "graph/block_builder.h"

#include <unordered_map>

namespace bevel {

class ExprMutator {
public:
  explicit ExprMutator(Module module) : builder(std::move(module)) {}
  virtual ~ExprMutator() = default;

  /// Rewrites every graph function of the module, in order.
  Result<Module> mutateModule();
  /// Rewrites one function; functions that the visit methods add are in builder.module().
  Result<Function> mutateFunction(const Function& f);

protected:
  BlockBuilder builder;

  /// The new value of any expression; null after fault(). By default a variable gives way to its replacement, the
  /// branches of an If are emitted, and the operands of everything else are visited.
  virtual GraphExpr visitExpr(const GraphExpr& e);
  /// One branch of an If, inside its scope; what an override notes of its bindings must end with it.
  virtual Status visitBranch(const SeqExpr& branch, GraphExpr& result);
  /// Visits the value and emits the binding.
  virtual Status visitBinding(const VarBinding& binding);
  /// The binding with its value as visited; override to drop or to replace bindings.
  virtual Status emit(const VarBinding& binding, const GraphExpr& value);
  virtual Status visitMatchCast(const MatchCast& binding);
  virtual Status visitBlock(const BindingBlock& block);
  /// The blocks and the result of a function, branch or loop.
  virtual Status visitSeqBody(const SeqExpr& seq, GraphExpr& result);

  /// Uses of `from` become `to` from now on.
  void replace(const GraphVar& from, GraphExpr to);
  /// What stands for the variable now.
  GraphExpr replacement(const GraphVar& v) const;
  /// Binds the variable. Where the value is a leaf, uses read the leaf itself, and only a variable that is visible
  /// outside of its block stays bound; what leaves the block never becomes a variable that does not.
  Status bindOrReplace(const GraphVar& v, const GraphExpr& value);
  /// What a rewritten variable is bound to (null for parameters), the way to match chains of calls.
  GraphExpr lookup(const GraphExpr& e) const;
  /// Notes a failure; mutateFunction gives the first one.
  GraphExpr fault(Error error);
  /// The failure that was noted.
  tl::unexpected<Error> failure() const;

private:
  GraphExpr visitIf(const GraphIf& e);

  std::unordered_map<GraphVar, GraphExpr, RefHash> map_;
  std::vector<Error> faults_;
};

/// The module with f applied to every call of its graph functions, whose operands have been mapped before.
Result<Module>
mapCalls(const Module& module,
         FunctionRef<Result<GraphExpr>(const GraphCall& call, const Op* op, BlockBuilder& builder)> f);

} // namespace bevel
