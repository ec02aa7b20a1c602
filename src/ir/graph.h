// Graph functions: values, bindings, calls, and functions of both kinds.
#pragma once

#include "base/function_ref.h"
#include "base/result.h"
#include "ir/stmt.h"
#include "ir/type.h"

namespace bevel {

/// A graph value. `type` is filled by the BlockBuilder (never null in a well-formed function).
class GraphExprNode : public Node {
public:
  Type type;
  explicit GraphExprNode(Kind k, Type t = nullptr) : Node(k), type(std::move(t)) {}
  static bool classof(const Node* n) { return n->kind >= Kind::kGraphVar && n->kind <= Kind::kPrimFunc; }
};
using GraphExpr = Ref<const GraphExprNode>;

/// A graph variable; identity is the object. `dataflow`: visible only inside its dataflow block.
class GraphVarNode : public GraphExprNode {
public:
  std::string name;
  bool dataflow;
  GraphVarNode(std::string n, Type t, bool df = false)
      : GraphExprNode(kKind, std::move(t)), name(std::move(n)), dataflow(df) {}
  NODE(GraphVar) FIELDS(NAME(name), USE(type), USE(dataflow))
};

/// Name of a function of the module. Compared by name.
class GlobalVarNode : public GraphExprNode {
public:
  std::string name;
  explicit GlobalVarNode(std::string n, Type t = nullptr)
      : GraphExprNode(kKind, std::move(t)), name(std::move(n)) {}
  NODE(GlobalVar) FIELDS(USE(name))
};

class ConstantNode : public GraphExprNode {
public:
  Tensor value;
  std::string name;                                    // of the weight in the model, for people; may be empty
  explicit ConstantNode(Tensor v, std::string n = ""); // its type follows from the value
  NODE(Constant) FIELDS(USE(value), NAME(name))
};

/// R.shape([...]): int64 expressions over symbolic dimensions.
class ShapeExprNode : public GraphExprNode {
public:
  Array<Expr> values;
  explicit ShapeExprNode(Array<Expr> v);
  NODE(ShapeExpr) FIELDS(USE(values))
};

class TupleNode : public GraphExprNode {
public:
  Array<GraphExpr> items;
  explicit TupleNode(Array<GraphExpr> i);
  NODE(Tuple) FIELDS(USE(items))
};

class TupleGetNode : public GraphExprNode {
public:
  GraphExpr tuple;
  int64_t index;
  TupleGetNode(GraphExpr t, int64_t i);
  NODE(TupleGet) FIELDS(USE(tuple), USE(index))
};

/// A scalar expression as a graph value (R.prim_value).
class PrimValueNode : public GraphExprNode {
public:
  Expr value; // may be a StringImm (R.str)
  explicit PrimValueNode(Expr v);
  NODE(PrimValue) FIELDS(USE(value))
};

class DTypeImmNode : public GraphExprNode {
public:
  DType value;
  explicit DTypeImmNode(DType v) : GraphExprNode(kKind), value(v) {}
  NODE(DTypeImm) FIELDS(USE(value))
};

/// An operator by name, without prefix: "add", "nn.conv2d", "call_tir", "call_dps_packed".
class OpRefNode : public GraphExprNode {
public:
  std::string name;
  explicit OpRefNode(std::string n) : GraphExprNode(kKind), name(std::move(n)) {}
  NODE(OpRef) FIELDS(USE(name))
};

/// A packed function by its registered name.
class ExternFuncNode : public GraphExprNode {
public:
  std::string name;
  explicit ExternFuncNode(std::string n) : GraphExprNode(kKind), name(std::move(n)) {}
  NODE(ExternFunc) FIELDS(USE(name))
};

/// op(args, attrs). `op` is an OpRef, GlobalVar, ExternFunc or GraphVar of function type. `typeArgs`: the
/// result types that call_tir, call_dps_packed and packed calls state. Conventions: call_tir: args =
/// {GlobalVar, Tuple of tensors, optional ShapeExpr of extra scalars}; call_dps_packed: {ExternFunc, Tuple};
/// call_packed: op is the ExternFunc itself; while_loop: {GlobalVar condition, GlobalVar body, Tuple initial
/// state}: state = body(*state) while condition(*state), giving the final state; both functions take the
/// state's fields, and body returns a tuple of the same types.
class GraphCallNode : public GraphExprNode {
public:
  GraphExpr op;
  Array<GraphExpr> args;
  Dict attrs; // may be null
  Array<Type> typeArgs;
  GraphCallNode(GraphExpr o, Array<GraphExpr> a, Dict k = nullptr, Array<Type> t = {}, Type result = nullptr)
      : GraphExprNode(kKind, std::move(result)), op(std::move(o)), args(std::move(a)), attrs(std::move(k)),
        typeArgs(std::move(t)) {}
  /// The operator's name when op is an OpRef, else "".
  const std::string& opName() const;
  bool isOp(std::string_view name) const { return opName() == name; }
  NODE(GraphCall) FIELDS(USE(op), USE(args), USE(attrs), USE(typeArgs))
};

/// var = value.
class VarBindingNode : public Node {
public:
  GraphExpr value;
  GraphVar var;
  VarBindingNode(GraphVar x, GraphExpr v) : Node(kKind), value(std::move(v)), var(std::move(x)) {}
  NODE(VarBinding) FIELDS(USE(value), DEF(var))
};

/// var = R.match_cast(value, type): checked at run time; binds the symbolic dimensions of `type` not bound
/// before.
class MatchCastNode : public Node {
public:
  GraphExpr value;
  Type pattern; // free Vars in it are bound
  GraphVar var;
  MatchCastNode(GraphVar x, GraphExpr v, Type t)
      : Node(kKind), value(std::move(v)), pattern(std::move(t)), var(std::move(x)) {}
  NODE(MatchCast) FIELDS(USE(value), DEF(pattern), DEF(var))
};

/// The variable that a VarBinding or MatchCast binds; null for other nodes.
GraphVar boundVar(const NodeRef& binding);

/// Bindings in order (VarBinding or MatchCast). A dataflow block is pure and has no control flow.
class BindingBlockNode : public Node {
public:
  bool dataflow;
  Array<NodeRef> bindings;
  BindingBlockNode(Array<NodeRef> b, bool df) : Node(kKind), dataflow(df), bindings(std::move(b)) {}
  NODE(BindingBlock) FIELDS(USE(dataflow), USE(bindings))
};

/// Blocks, then the result. The body of every function and branch.
class SeqExprNode : public GraphExprNode {
public:
  Array<BindingBlock> blocks;
  GraphExpr body; // a leaf (variable, constant, shape, tuple of leaves)
  SeqExprNode(Array<BindingBlock> b, GraphExpr e)
      : GraphExprNode(kKind, e->type), blocks(std::move(b)), body(std::move(e)) {}
  NODE(SeqExpr) FIELDS(USE(blocks), USE(body))
};

/// Both branches give values of one type; `condition` is a scalar bool tensor (or a one-element one).
class GraphIfNode : public GraphExprNode {
public:
  GraphExpr condition;
  SeqExpr thenBranch, elseBranch;
  GraphIfNode(GraphExpr c, SeqExpr t, SeqExpr e, Type result)
      : GraphExprNode(kKind, std::move(result)), condition(std::move(c)), thenBranch(std::move(t)),
        elseBranch(std::move(e)) {}
  NODE(GraphIf) FIELDS(USE(condition), USE(thenBranch), USE(elseBranch))
};

/// A graph function. Its parameters bind the symbolic dimensions of their types. Attributes used by us:
/// "Primitive" (1: a fused group), "target" (string), "global_symbol", "num_input" (inputs before
/// parameters).
class FunctionNode : public GraphExprNode {
public:
  Array<GraphVar> params;
  SeqExpr body;
  Type result;
  bool pure;
  Dict attrs; // may be null
  FunctionNode(Array<GraphVar> p, SeqExpr b, Type r, Dict a = nullptr, bool isPure = true);
  NODE(Function) FIELDS(DEF(params), USE(result), USE(pure), USE(attrs), USE(body))
};

/// A tensor program. params are handles (with a buffer at the same index) or scalars (null buffer). Outputs
/// are the parameters its attribute "num_outputs" counts from the end (default: those it writes).
class PrimFuncNode : public GraphExprNode {
public:
  Array<Var> params;
  Array<Buffer> buffers; // parallel to params
  DType result;          // void
  Dict attrs;            // may be null
  Stmt body;             // before lowering: a root block realize
  PrimFuncNode(Array<Var> p, Array<Buffer> b, Stmt s, Dict a = nullptr)
      : GraphExprNode(kKind), params(std::move(p)), buffers(std::move(b)), attrs(std::move(a)),
        body(std::move(s)) {}
  NODE(PrimFunc) FIELDS(DEF(params), DEF(buffers), USE(result), USE(attrs), USE(body))
};

/// All functions of a program, by name, in order of definition.
class ModuleNode : public Node {
public:
  Array<GlobalVar> names;
  Array<GraphExpr> functions; // Function or PrimFunc, parallel to names
  Dict attrs;                 // may be null
  ModuleNode() : Node(kKind) {}
  /// The function of that name, or null.
  GraphExpr find(std::string_view name) const;
  NODE(Module) FIELDS(USE(names), USE(functions), USE(attrs))
};

/// A copy of the module with the function added, or replaced in its place.
Module withFunction(const Module& module, const std::string& name, GraphExpr function);
Module withoutFunction(const Module& module, std::string_view name);
/// The module with each graph function replaced by what f makes of it. f gets the module as changed so far.
Result<Module> mapFunctions(const Module& module,
                            FunctionRef<Result<Function>(const Module& soFar, const Function& f)> f);
/// `base` or base_1, base_2, …: a name that the module does not have.
std::string freshName(const Module& module, const std::string& base);

} // namespace bevel
