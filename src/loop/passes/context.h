// A rewriter that knows, at every place of a program, the ranges of loops and axes, lets, and the conditions
// that hold.
#pragma once

#include "arith/analyzer.h"
#include "ir/effects.h"
#include "ir/storage_scope.h"
#include "ir/structural.h"
#include "loop/regions.h"

namespace bevel {

/// A function with another body, which does nothing where it is null.
PrimFunc withBody(const PrimFunc& f, Stmt body);

/// Subclasses override visit() and call ContextRewriter::visit for the default, which enters scopes.
class ContextRewriter : public Rewriter {
public:
  explicit ContextRewriter(const PrimFunc& f) {
    memoise = false;
    bindDims(f, analyzer);
  }
  PrimFunc run(const PrimFunc& f) { return withBody(f, (*this)(f->body)); }

protected:
  Analyzer analyzer;
  std::vector<For> loops; // around the current place, outermost first

  NodeRef visit(const NodeRef& node) override;

private:
  NodeRef unlessEmpty(NodeRef s);
  NodeRef visitFor(const For& loop);
  NodeRef visitIf(const If& s);
  NodeRef visitRealize(const BlockRealize& r);
  NodeRef visitIfThenElse(const Call& c);
  template <class L> NodeRef visitLet(const Ref<const L>& let);
  template <class T> Ref<const T> under(const Expr& condition, const Ref<const T>& node);
};

/// True when e has no effect (loads are allowed).
bool isPure(const Expr& e);
/// e divides an integer by what may be zero.
bool mayTrap(const Expr& e);
/// An integer division or remainder.
inline bool dividesInteger(const BinaryNode& b) {
  return b.op >= BinaryOp::kDiv && b.op <= BinaryOp::kFloorMod && b.dtype.isInteger();
}
/// Conjuncts of a condition, `likely` stripped.
std::vector<Expr> conjuncts(const Expr& condition);
Expr conjunction(const std::vector<Expr>& parts); // true when empty
/// The statement or a no-op for null.
Stmt orNoOp(const Stmt& s);
/// The stores and evaluations in it, each once however often it runs.
int64_t countStatements(const NodeRef& s);
bool isLikely(const NodeRef& condition);
/// T.likely stripped from a condition.
Expr stripLikely(const Expr& e);

} // namespace bevel
