// Algorithms over any node, driven by the field table: visiting, mapping, substitution, free variables,
// equality, hash. Recursion depth follows the IR's depth: run on a large stack (base/stack.h) for deep
// programs.
#pragma once

#include "base/function_ref.h"
#include "ir/graph.h"

#include <optional>
#include <unordered_map>
#include <unordered_set>

namespace bevel {

/// Nodes whose identity is the object: scalar and graph variables.
inline bool isVariable(const Node& n) {
  return n.kind == Kind::kVar || n.kind == Kind::kGraphVar;
}
/// Whether a DEF child of this parent also binds the variables of its shape or type that nothing has bound
/// yet.
inline bool bindsPattern(Kind parent) {
  return parent == Kind::kPrimFunc || parent == Kind::kMatchBuffer || parent == Kind::kFunction ||
         parent == Kind::kMatchCast;
}

/// Calls f(child, role) for every direct child (list items one by one, nulls skipped), in field order. The
/// `type` of graph expressions is visited only where the kind lists it.
void forEachChild(const NodeRef& node, FunctionRef<void(const NodeRef&, Role)> f);

/// Visits all nodes under root once each (shared nodes are visited once), parents before children; f returns
/// false to skip the children.
void walk(const NodeRef& root, FunctionRef<bool(const NodeRef&)> f);
/// Whether some node under root, root included, fulfils the predicate.
bool anyNode(const NodeRef& root, FunctionRef<bool(const NodeRef&)> pred);
/// Some node of kind T; expressions are not searched for statements.
template <class T, class Pred> bool anyNode(const NodeRef& root, Pred pred) {
  bool found = false;
  walk(root, [&](const NodeRef& n) {
    const auto* node = n.as<T>();
    found = found || (node && pred(*node));
    return !found && !(std::is_base_of_v<StmtNode, T> && n.is<ExprNode>());
  });
  return found;
}
/// Children before parents.
void postWalk(const NodeRef& root, FunctionRef<void(const NodeRef&)> f);

/// The node with its direct children replaced by f(child); the same object when none changed. Null items that
/// f returns for children of a list of statements or bindings are dropped. `dtype`s of rebuilt expressions
/// follow their operands.
NodeRef mapChildren(const NodeRef& node, FunctionRef<NodeRef(const NodeRef&)> f);

/// Rewrites bottom-up with memoisation by identity: children first, then f on the rebuilt node (f returns the
/// node itself to keep it). Definitions are visited as well as uses, so a replaced Var or Buffer is replaced
/// at both.
NodeRef rewrite(const NodeRef& root, FunctionRef<NodeRef(const NodeRef&)> f);
/// The same, top-down control: f(node, recurse) decides; recurse(child) continues below.
class Rewriter {
public:
  virtual ~Rewriter() = default;
  NodeRef operator()(const NodeRef& node); // memoised
  template <class T> Ref<const T> operator()(const Ref<const T>& node) {
    return cast<T>((*this)(NodeRef(node)));
  }

protected:
  /// Default: mapChildren with this rewriter.
  virtual NodeRef visit(const NodeRef& node);
  NodeRef visitChildren(const NodeRef& node);
  bool memoise = true; // off for rewriters whose result depends on context

private:
  std::unordered_map<NodeRef, NodeRef, RefHash> memo_;
};

using VarMap = std::unordered_map<Var, Expr, RefHash>;
using BufferMap = std::unordered_map<Var, Buffer, RefHash>; // keyed by data variable
/// Replaces free uses of variables. Values must not be captured: bound variables are unique in a function.
NodeRef substitute(const NodeRef& node, const VarMap& map);
template <class T> Ref<const T> substitute(const Ref<const T>& node, const VarMap& map) {
  return cast<T>(substitute(NodeRef(node), map));
}
/// Replaces buffers at uses and definitions.
NodeRef replaceBuffers(const NodeRef& node, const BufferMap& map);
template <class T> Ref<const T> replaceBuffers(const Ref<const T>& node, const BufferMap& map) {
  return cast<T>(replaceBuffers(NodeRef(node), map));
}
/// What a Load or a Store says of the element: nothing for other nodes.
struct ElementAccess {
  const Buffer& buffer;
  const Array<Expr>& indices;
  const Expr& predicate;
};
std::optional<ElementAccess> elementAccess(const NodeRef& node);
/// The Load or Store at another place.
NodeRef withAccess(const NodeRef& access, const Buffer& buffer, const Array<Expr>& indices);

/// The field "body" of a statement, where most kinds hold the one below them; null for the others.
const Stmt* bodyOf(const NodeRef& s);
Stmt withBody(const Stmt& s, Stmt body);
/// The If with other parts: of a lost first branch the negation stays, without both branches nothing (null).
Stmt withBranches(const If& s, const Expr& condition, const Stmt& thenBody, const Stmt& elseBody);

/// Copies with every bound variable, loop, buffer and graph variable fresh (same names).
NodeRef freshen(const NodeRef& node);
template <class T> Ref<const T> freshen(const Ref<const T>& node) {
  return cast<T>(freshen(NodeRef(node)));
}

/// Vars (scalar, graph, buffer data) used but not bound under node, in order of first use.
std::vector<NodeRef> freeVars(const NodeRef& node);
bool usesVar(const NodeRef& node, const NodeRef& var);
bool usesAnyVar(const NodeRef& node, FunctionRef<bool(const VarNode*)> pred);

/// Equality up to renaming of bound variables. `mapFree`: free variables may also be renamed (one to one).
bool structuralEqual(const NodeRef& a, const NodeRef& b, bool mapFree = false);
uint64_t structuralHash(const NodeRef& node, bool mapFree = false);
/// Where two nodes first differ: a path such as "functions[0].body.stmts[1].extent: 16 against 32"; "" when
/// equal.
std::string firstDifference(const NodeRef& a, const NodeRef& b, bool mapFree = false);
/// Same expression up to structure (no renaming): the usual comparison inside passes.
inline bool same(const NodeRef& a, const NodeRef& b) {
  return a == b || structuralEqual(a, b);
}
struct StructuralHasher {
  size_t operator()(const NodeRef& n) const { return structuralHash(n); }
};
struct StructuralEq {
  bool operator()(const NodeRef& a, const NodeRef& b) const { return structuralEqual(a, b); }
};

/// Merged origin of two nodes (sorted union of node names).
Origin mergeOrigins(const Origin& a, const Origin& b);
/// Sets the origin of a fresh or copied node. T may be a base (Stmt, Expr): the copy is of the node's own
/// kind.
template <class T> Ref<const T> withOrigin(const Ref<const T>& node, Origin origin) {
  if (!origin || node->origin == origin) return node;
  Node* copy = kindInfo(*node).clone(*node);
  copy->origin = std::move(origin);
  return Ref<const T>(static_cast<const T*>(copy));
}

} // namespace bevel
