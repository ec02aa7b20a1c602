// Scalar expressions: index arithmetic and element values of tensor programs, and shape arithmetic of graphs.
#pragma once

#include "ir/node.h"

namespace bevel {

class ExprNode : public Node {
public:
  DType dtype;
  ExprNode(Kind k, DType t) : Node(k), dtype(t) {}
  static bool classof(const Node* n) { return n->kind <= Kind::kReduce; }
};
using Expr = Ref<const ExprNode>;

/// A variable; its identity is the object. Pointers to buffers have dtype handle with the pointee's type and
/// scope.
class VarNode : public ExprNode {
public:
  std::string name;
  DType pointee;     // for handles that point to elements
  std::string scope; // for such handles: storage scope, "" is global
  VarNode(std::string n, DType t) : ExprNode(kKind, t), name(std::move(n)) {}
  NODE(Var) FIELDS(NAME(name), USE(dtype), USE(pointee), USE(scope))
};

/// An integer or bool constant, sign-extended (uint64 above 2^63-1 wraps).
class IntImmNode : public ExprNode {
public:
  int64_t value;
  IntImmNode(DType t, int64_t v) : ExprNode(kKind, t), value(v) {}
  NODE(IntImm) FIELDS(USE(dtype), USE(value))
};

class FloatImmNode : public ExprNode {
public:
  double value;
  FloatImmNode(DType t, double v) : ExprNode(kKind, t), value(v) {}
  NODE(FloatImm) FIELDS(USE(dtype), USE(value))
};

class StringImmNode : public ExprNode {
public:
  std::string value;
  explicit StringImmNode(std::string v) : ExprNode(kKind, DType::String()), value(std::move(v)) {}
  NODE(StringImm) FIELDS(USE(value))
};

enum class UnaryOp : uint8_t { kNeg, kNot, kBitNot };
extern const char* const kUnaryNames[];

class UnaryNode : public ExprNode {
public:
  UnaryOp op;
  Expr a;
  UnaryNode(UnaryOp o, Expr x) : ExprNode(kKind, x->dtype), op(o), a(std::move(x)) {}
  NODE(Unary) FIELDS(ENUM(op, kUnaryNames), USE(a))
};

/// kDiv and kMod truncate towards zero on integers; kFloorDiv and kFloorMod round towards minus infinity.
/// Division by zero is undefined in the IR and defined by the operators that emit it. Integer arithmetic of
/// index types does not overflow (whoever builds an index proves it or chooses a wider type); element
/// arithmetic wraps. kMin and kMax propagate NaN. kAnd and kOr evaluate both sides.
enum class BinaryOp : uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMod,
  kFloorDiv,
  kFloorMod,
  kMin,
  kMax,
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kAnd,
  kOr,
  kBitAnd,
  kBitOr,
  kBitXor,
  kShl,
  kShr,
};
extern const char* const kBinaryNames[];
inline bool isComparison(BinaryOp op) {
  return op >= BinaryOp::kEq && op <= BinaryOp::kGe;
}

/// Both operands have the same dtype; comparisons give bool of the same lanes.
class BinaryNode : public ExprNode {
public:
  BinaryOp op;
  Expr a, b;
  BinaryNode(BinaryOp o, Expr x, Expr y)
      : ExprNode(kKind, isComparison(o) ? DType::Bool(x->dtype.lanes) : x->dtype), op(o), a(std::move(x)),
        b(std::move(y)) {}
  NODE(Binary) FIELDS(ENUM(op, kBinaryNames), USE(a), USE(b))
};

/// condition ? a : b, element by element; both sides are evaluated and must be safe. See Intrin::kIfThenElse
/// for the form that evaluates one side only.
class SelectNode : public ExprNode {
public:
  Expr condition, a, b;
  SelectNode(Expr c, Expr x, Expr y)
      : ExprNode(kKind, x->dtype), condition(std::move(c)), a(std::move(x)), b(std::move(y)) {}
  NODE(Select) FIELDS(USE(condition), USE(a), USE(b))
};

/// Value conversion: float to int truncates (and saturates, NaN gives 0), int to narrower int wraps, to bool
/// is != 0.
class CastNode : public ExprNode {
public:
  Expr value;
  CastNode(DType t, Expr v) : ExprNode(kKind, t), value(std::move(v)) {}
  NODE(Cast) FIELDS(USE(dtype), USE(value))
};

/// buffer[indices]. The last index may be a vector (Ramp): then the value is a vector. `predicate` (may be
/// null): a bool vector; lanes where it is false read nothing and give 0.
class LoadNode : public ExprNode {
public:
  Buffer buffer;
  Array<Expr> indices;
  Expr predicate;
  LoadNode(Buffer b, Array<Expr> i, Expr p = nullptr);
  NODE(Load) FIELDS(USE(dtype), USE(buffer), USE(indices), USE(predicate))
};

/// [base, base + stride, …], `lanes` elements.
class RampNode : public ExprNode {
public:
  Expr base, stride;
  RampNode(Expr b, Expr s, int lanes)
      : ExprNode(kKind, b->dtype.withLanes(lanes)), base(std::move(b)), stride(std::move(s)) {}
  NODE(Ramp) FIELDS(USE(dtype), USE(base), USE(stride))
};

class BroadcastNode : public ExprNode {
public:
  Expr value;
  BroadcastNode(Expr v, int lanes) : ExprNode(kKind, v->dtype.withLanes(lanes)), value(std::move(v)) {}
  NODE(Broadcast) FIELDS(USE(dtype), USE(value))
};

/// Lanes of the concatenated vectors, picked by constant indices.
class ShuffleNode : public ExprNode {
public:
  Array<Expr> vectors, indices;
  ShuffleNode(Array<Expr> v, Array<Expr> i)
      : ExprNode(kKind, v[0]->dtype.withLanes(int(i.size()))), vectors(std::move(v)), indices(std::move(i)) {}
  NODE(Shuffle) FIELDS(USE(vectors), USE(indices))
};

/// let var = value in body.
class LetNode : public ExprNode {
public:
  Expr value;
  Var var;
  Expr body;
  LetNode(Var x, Expr v, Expr b)
      : ExprNode(kKind, b->dtype), value(std::move(v)), var(std::move(x)), body(std::move(b)) {}
  NODE(Let) FIELDS(USE(value), DEF(var), USE(body))
};

/// What evaluating a call may do, beyond giving a value.
enum class Effect : uint8_t { kPure, kReads, kWrites, kSynchronises, kOpaque };

/// Scalar intrinsics, from intrinsics.def.
enum class Intrin : uint8_t {
#define INTRIN(id, ...) k##id,
#include "ir/intrinsics.def"
#undef INTRIN
};
extern const char* const kIntrinNames[];
/// The dtype that a call has unless it says otherwise; see intrinsics.def.
enum class DTypeRule : uint8_t {
  kSame,
  kBoolLanes,
  kDTypeFirst,
  kInt,
  kPointer,
  kNone,
  kSecond,
  kLane,
  kFloat
};
struct IntrinInfo {
  const char* name; // spelling after "T."
  Effect effect;
  int arity; // -1: any number of arguments
  DTypeRule rule;
  int adapts;          // the first argument whose bare numbers take the dtype of the others; -1: none
  const char* library; // C function for fp64 (fp32 adds an f), or null
};
const IntrinInfo& intrinInfo(Intrin op);
int numIntrins();

/// Call of a scalar intrinsic.
class CallNode : public ExprNode {
public:
  Intrin op;
  Array<NodeRef> args; // expressions; Buffers, regions and StringImm where the intrinsic takes them
  Dict attrs;          // keyword arguments, may be null
  CallNode(DType t, Intrin o, Array<NodeRef> a, Dict k = nullptr)
      : ExprNode(kKind, t), op(o), args(std::move(a)), attrs(std::move(k)) {}
  Expr arg(size_t i) const { return cast<ExprNode>(args[i]); }
  NODE(Call) FIELDS(USE(dtype), ENUM(op, kIntrinNames), USE(args), USE(attrs))
};
/// The dtype of a call by the rule of its intrinsic; void where a call states it (kDTypeFirst) or has none.
DType impliedDType(Intrin op, const Array<NodeRef>& args);

/// [min, min + extent).
class RangeNode : public Node {
public:
  Expr min, extent;
  RangeNode(Expr m, Expr e) : Node(kKind), min(std::move(m)), extent(std::move(e)) {}
  NODE(Range) FIELDS(USE(min), USE(extent))
};

enum class IterType : uint8_t { kSpatial, kReduce, kScan, kOpaque };
extern const char* const kIterTypeNames[];

/// An axis of a block or of a tensor expression.
class IterVarNode : public Node {
public:
  Range domain;
  Var var;
  IterType type;
  IterVarNode(Range d, Var v, IterType t) : Node(kKind), domain(std::move(d)), var(std::move(v)), type(t) {}
  NODE(IterVar) FIELDS(USE(domain), DEF(var), ENUM(type, kIterTypeNames))
};

/// A commutative, associative reduction over tuples: result = combine(lhs, rhs), identity its neutral
/// element.
class CombinerNode : public Node {
public:
  Array<Var> lhs, rhs;
  Array<Expr> result, identity;
  CombinerNode(Array<Var> l, Array<Var> r, Array<Expr> res, Array<Expr> id)
      : Node(kKind), lhs(std::move(l)), rhs(std::move(r)), result(std::move(res)), identity(std::move(id)) {}
  NODE(Combiner) FIELDS(DEF(lhs), DEF(rhs), USE(result), USE(identity))
};

/// Reduction inside a tensor expression; component `index` of the tuple of results.
class ReduceNode : public ExprNode {
public:
  Combiner combiner;
  Array<IterVar> axes;
  Array<Expr> source;
  Array<Expr> init; // empty: the identity
  Expr condition;   // null: always
  int64_t index;
  ReduceNode(Combiner c, Array<IterVar> ax, Array<Expr> src, Array<Expr> in, Expr cond, int64_t i)
      : ExprNode(kKind, src[size_t(i)]->dtype), combiner(std::move(c)), axes(std::move(ax)),
        source(std::move(src)), init(std::move(in)), condition(std::move(cond)), index(i) {}
  NODE(Reduce) FIELDS(USE(combiner), DEF(axes), USE(source), USE(init), USE(condition), USE(index))
};

/// A multi-dimensional view of memory. Its identity is `data`: buffers with the same data variable are the
/// same buffer, whatever their shape or scope. Element (i0, i1, …) lies at data[elemOffset + Σ ik *
/// stride_k], in elements; no strides means row-major and dense.
class BufferNode : public Node {
public:
  Var data; // handle
  DType dtype;
  Array<Expr> shape;
  Array<Expr> strides; // empty: dense
  Expr elemOffset;     // null: 0
  std::string name;
  std::string scope = "global";
  int64_t alignment = 64;   // of data, in bytes
  int64_t offsetFactor = 0; // elemOffset is a multiple of it; 0: unknown
  Array<Expr> axisSeparators;
  BufferNode(Var d, DType t, Array<Expr> s, std::string n)
      : Node(kKind), data(std::move(d)), dtype(t), shape(std::move(s)), name(std::move(n)) {}
  size_t rank() const { return shape.size(); }
  bool sameAs(const BufferNode& other) const { return data == other.data; }
  NODE(Buffer)
  FIELDS(USE(data), USE(dtype), USE(shape), USE(strides), USE(elemOffset), NAME(name), USE(scope),
         USE(alignment), USE(offsetFactor), USE(axisSeparators))
};

class BufferRegionNode : public Node {
public:
  Buffer buffer;
  Array<Range> region;
  BufferRegionNode(Buffer b, Array<Range> r) : Node(kKind), buffer(std::move(b)), region(std::move(r)) {}
  NODE(BufferRegion) FIELDS(USE(buffer), USE(region))
};

/// `buffer` is a view of `source` (T.match_buffer inside a block).
class MatchBufferNode : public Node {
public:
  BufferRegion source;
  Buffer buffer;
  MatchBufferNode(Buffer b, BufferRegion s) : Node(kKind), source(std::move(s)), buffer(std::move(b)) {}
  NODE(MatchBuffer) FIELDS(USE(source), DEF(buffer))
};

/// A list of nodes, as an attribute value.
class ListNode : public Node {
public:
  Array<NodeRef> items;
  explicit ListNode(Array<NodeRef> i) : Node(kKind), items(std::move(i)) {}
  NODE(List) FIELDS(USE(items))
};

/// Attributes: keys sorted and unique. Values: IntImm, FloatImm, StringImm, List, Dict, DTypeImm, or any
/// node.
class DictNode : public Node {
public:
  std::vector<std::string> keys;
  Array<NodeRef> values;
  DictNode() : Node(kKind) {}
  NodeRef find(std::string_view key) const;
  NODE(Dict) FIELDS(USE(keys), USE(values))
};

/// A map from indices to indices, `lambda i, j: (i // 16, j, i % 16)`.
class LambdaNode : public Node {
public:
  Array<Var> params;
  Array<Expr> values;
  LambdaNode(Array<Var> p, Array<Expr> v) : Node(kKind), params(std::move(p)), values(std::move(v)) {}
  NODE(Lambda) FIELDS(DEF(params), USE(values))
};

} // namespace bevel
