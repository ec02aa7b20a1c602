// Rewriting graph functions: every binding is visited and emitted again through a BlockBuilder, so the result
// is normalised and typed again.
//
//   struct ToFma : ExprMutator { … GraphExpr visitCall(const GraphCall& c) override {
//     auto call = cast<GraphCallNode>(ExprMutator::visitCall(c));          // arguments rewritten
//     auto mul = call->isOp("add") ? lookup(call->args[0]) : nullptr; … return opCall("ewise_fma", {…}); } };
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

  /// Each returns the new value; calls inside it are bound by the builder. The default rewrites what lies
  /// below.
  virtual GraphExpr visitExpr(const GraphExpr& e);
  virtual GraphExpr visitVar(const GraphVar& v); // the variable's replacement
  virtual GraphExpr visitCall(const GraphCall& call);
  virtual GraphExpr visitIf(const GraphIf& e);
  /// One branch of an If, inside its scope; what an override notes of its bindings must end with it.
  virtual Status visitBranch(const SeqExpr& branch, GraphExpr& result);
  virtual GraphExpr visitTuple(const Tuple& e);
  virtual GraphExpr visitTupleGet(const TupleGet& e);
  virtual GraphExpr visitLeaf(const GraphExpr& e) { return e; }
  /// Emits one binding; override to drop or to replace bindings.
  virtual Status visitBinding(const VarBinding& binding);
  virtual Status visitMatchCast(const MatchCast& binding);
  virtual Status visitBlock(const BindingBlock& block);

  /// Uses of `from` become `to` from now on.
  void replace(const GraphVar& from, GraphExpr to);
  /// What a rewritten variable is bound to (null for parameters), the way to match chains of calls.
  GraphExpr lookup(const GraphExpr& e) const;
  /// Notes a failure; mutateFunction gives the first one.
  GraphExpr fault(Error error);

  /// The blocks and the result of a function, branch or loop.
  virtual Status visitSeqBody(const SeqExpr& seq, GraphExpr& result);

private:
  std::unordered_map<GraphVar, GraphExpr, RefHash> map_;
  std::vector<Error> faults_;
};

} // namespace bevel
