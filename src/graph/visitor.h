// Visiting graph functions: override what matters, the rest is walked in program order.
#pragma once

#include "base/function_ref.h"
#include "ir/graph.h"

namespace bevel {

/// Walks a graph function's blocks, bindings and values in order. The default of every method visits what
/// lies below.
class ExprVisitor {
public:
  virtual ~ExprVisitor() = default;
  virtual void visitFunction(const Function& f);
  virtual void visitSeq(const SeqExpr& e);
  virtual void visitBlock(const BindingBlock& block);
  virtual void visitBinding(const VarBinding& binding);
  virtual void visitMatchCast(const MatchCast& binding);
  /// Dispatches to the methods below.
  virtual void visitExpr(const GraphExpr& e);
  virtual void visitVar(const GraphVar&) {}
  virtual void visitCall(const GraphCall& call);
  virtual void visitIf(const GraphIf& e);
  virtual void visitTuple(const Tuple& e);
  virtual void visitTupleGet(const TupleGet& e);
  /// Constants, shapes, names and everything else without children.
  virtual void visitLeaf(const GraphExpr&) {}
};

/// Calls f(call, binding's variable or null) for every call bound in the function, branches included, in
/// order.
void forEachCall(const Function& function, FunctionRef<void(const GraphCall&, const GraphVar&)> f);

} // namespace bevel
