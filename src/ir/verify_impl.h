// The verifier's state, shared by the verify_*.cc files.
#pragma once

#include "ir/verify.h"

#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>

namespace bevel::detail {

class Verifier {
public:
  explicit Verifier(size_t limit) : limit_(limit) {}
  void module(const ModuleNode& m);
  void function(const NodeRef& f, const std::string& name);
  std::vector<Error> take() { return std::move(errors_); }

private:
  bool full() const { return errors_.size() >= limit_; }
  void error(const RefBase& node, std::string message, std::string hint = "");

  // Scopes: what is visible now, in order, and what has ever been bound in the function.
  void define(const NodeRef& v, const char* what);
  bool visible(const Object* v) const { return visible_.contains(v); }
  size_t mark() const { return order_.size(); }
  void leave(size_t mark);
  void bindFree(const NodeRef& pattern); // variables of a pattern that nothing has bound yet
  void scalars(const NodeRef& node);     // every scalar in it is well formed and in scope

  // verify_expr.cc
  void expr(const Expr& e, const RefBase& parent);
  void computes(const Expr& e, DType computed);
  void let(const LetNode& n, const Expr& e);
  void sameType(const Var& v, const Expr& value, const NodeRef& node);
  void select(const SelectNode& n, const Expr& e);
  void binary(const BinaryNode& n);
  void call(const CallNode& n);
  void load(const LoadNode& n);
  void indices(const Buffer& b, const Array<Expr>& list, const RefBase& node);
  void region(const BufferRegionNode& r);
  void condition(const Expr& e, const RefBase& parent, const char* what);
  void bufferUse(const Buffer& b, const RefBase& node);
  void bufferLayout(const Buffer& b, const RefBase& node);
  void variable(const VarNode& v);

  // verify_stmt.cc
  void primFunc(const PrimFuncNode& f);
  void stmt(const Stmt& s, const RefBase& parent);
  void statement(const Stmt& s);
  void forLoop(const ForNode& n);
  void realize(const BlockRealizeNode& n);
  void block(const BlockNode& b);
  void store(const StoreNode& n);
  void defineBuffer(const Buffer& b, const RefBase& node);
  void bindLayout(const Buffer& b, const RefBase& node);

  // verify_graph.cc
  void graphFunction(const FunctionNode& f);
  void sequence(const SeqExprNode& s, const RefBase& parent);
  void bindingBlock(const BindingBlockNode& b);
  void binding(const NodeRef& b, bool dataflow);
  void value(const GraphExpr& e, const RefBase& parent);
  void leafValue(const GraphExpr& e, const RefBase& parent);
  void graphCall(const GraphCallNode& n);
  void callTir(const GraphCallNode& n);
  void moduleHas(const GlobalVarNode& g, const NodeRef& node);
  void packedName(const GraphExpr& callee, const NodeRef& node);
  void graphIf(const GraphIfNode& n);
  void typed(const GraphVarNode& v);

  size_t limit_;
  std::vector<Error> errors_;
  std::string function_;
  const ModuleNode* module_ = nullptr;
  Origin place_; // of the statement or binding at hand, for nodes without one
  std::unordered_set<const Object*> visible_, ever_;
  std::vector<const Object*> order_;
  std::unordered_set<std::string> blocks_;
  std::unordered_map<const Object*, int> loopLevel_; // of loop variables: blocks around
  int level_ = 0;                                    // blocks around
  int isolation_ = 0;                                // loops of a lower level are hidden by a block with axes
  bool inDataflow_ = false;
};

} // namespace bevel::detail
