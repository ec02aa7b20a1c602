// Types of graph values ("struct info" in the field's older words).
#pragma once

#include "ir/expr.h"

namespace bevel {

class TypeNode : public Node {
public:
  using Node::Node;
  static bool classof(const Node* n) { return n->kind >= Kind::kPrimType && n->kind <= Kind::kObjectType; }
};
using Type = Ref<const TypeNode>;

/// A scalar; `value` when it is known as an expression (R.Prim).
class PrimTypeNode : public TypeNode {
public:
  DType dtype;
  Expr value; // may be null
  explicit PrimTypeNode(DType t, Expr v = nullptr) : TypeNode(kKind), dtype(t), value(std::move(v)) {}
  NODE(PrimType) FIELDS(USE(dtype), USE(value))
};

/// A shape as a value (R.Shape). ndim -1: unknown rank.
class ShapeTypeNode : public TypeNode {
public:
  int64_t ndim;
  bool known; // values holds the dimensions
  Array<Expr> values;
  explicit ShapeTypeNode(int64_t n) : TypeNode(kKind), ndim(n), known(false) {}
  explicit ShapeTypeNode(Array<Expr> v)
      : TypeNode(kKind), ndim(int64_t(v.size())), known(true), values(std::move(v)) {}
  NODE(ShapeType) FIELDS(USE(ndim), USE(known), USE(values))
};

/// Where a value lives: device and memory scope, and how it is sharded over a mesh. All may be empty.
class PlacementNode : public Node {
public:
  std::string device; // "cpu", "cuda:0", …
  std::string scope;  // "global", …
  std::string sharding;
  PlacementNode(std::string d, std::string s, std::string sh)
      : Node(kKind), device(std::move(d)), scope(std::move(s)), sharding(std::move(sh)) {}
  NODE(Placement) FIELDS(USE(device), USE(scope), USE(sharding))
};

/// R.Tensor. Dimensions are int64 expressions; symbolic dimensions are Vars.
class TensorTypeNode : public TypeNode {
public:
  DType dtype;  // void: unknown
  int64_t ndim; // -1: unknown rank
  bool known;   // shape holds the dimensions
  Array<Expr> shape;
  Placement placement; // null: the function's target
  TensorTypeNode(DType t, Array<Expr> s, Placement p = nullptr)
      : TypeNode(kKind), dtype(t), ndim(int64_t(s.size())), known(true), shape(std::move(s)),
        placement(std::move(p)) {}
  TensorTypeNode(DType t, int64_t n, Placement p = nullptr)
      : TypeNode(kKind), dtype(t), ndim(n), known(n == 0), placement(std::move(p)) {}
  NODE(TensorType) FIELDS(USE(dtype), USE(ndim), USE(known), USE(shape), USE(placement))
};

class TupleTypeNode : public TypeNode {
public:
  Array<Type> fields_;
  explicit TupleTypeNode(Array<Type> f) : TypeNode(kKind), fields_(std::move(f)) {}
  NODE(TupleType) FIELDS(USE(fields_))
};

/// R.Callable. Symbolic dimensions of params are bound by them.
class FuncTypeNode : public TypeNode {
public:
  bool opaque; // parameters unknown: any arguments
  Array<Type> params;
  Type result;
  bool pure;
  FuncTypeNode(Array<Type> p, Type r, bool isPure)
      : TypeNode(kKind), opaque(false), params(std::move(p)), result(std::move(r)), pure(isPure) {}
  NODE(FuncType) FIELDS(USE(opaque), USE(params), USE(result), USE(pure))
};

/// Any run-time object: sequences, optionals, strings, storages. `name` says which ("sequence", "optional",
/// "" any).
class ObjectTypeNode : public TypeNode {
public:
  std::string name;
  Array<Type> params; // element type of a sequence or optional
  explicit ObjectTypeNode(std::string n = "", Array<Type> p = {})
      : TypeNode(kKind), name(std::move(n)), params(std::move(p)) {}
  NODE(ObjectType) FIELDS(USE(name), USE(params))
};

} // namespace bevel
