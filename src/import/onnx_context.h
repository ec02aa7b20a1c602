// What converters of ONNX nodes see: values, attributes, and ways to emit.
//
// A value is a graph expression, or a small integer tensor whose elements are known as expressions over the
// model's symbolic dimensions ("ints"), or both. Chains such as Shape → Gather → Mul → Concat → Reshape stay
// ints and never become run-time operators; they are materialised as tensors only where an operator needs
// them as data.
#pragma once

#include "graph/block_builder.h"
#include "graph/shape_util.h"
#include "import/onnx.h"
#include "import/onnx_proto.h"
#include "import/onnx_tensor.h"

#include <fmt/format.h>
#include <functional>
#include <unordered_map>

namespace bevel::onnx {

class Importer;

class ValueObject : public Object {
public:
  Type type;      // tensor type, or an object type
  GraphExpr expr; // null: only ints
  bool known = false;
  Array<Expr> ints;    // when known: elements in row-major order
  bool poison = false; // of a node that failed
};
using Value = Ref<const ValueObject>; // null: absent
using Values = std::vector<Value>;

/// Names visible at a place of a graph.
struct Scope {
  Scope* parent = nullptr;
  std::unordered_map<std::string, Value> values = {};
  std::unordered_map<Value, GraphExpr, RefHash> materialised = {};
  std::unordered_map<Value, Array<Expr>, RefHash> bound = {}; // ints read from run-time tensors
  std::vector<Expr> checked = {};                             // conditions that the run has checked
};

/// Attributes and opset versions of the function being inlined (or of the model).
struct Frame {
  const Frame* caller = nullptr;
  const NodeProto* call = nullptr; // the node that calls the function
  const FunctionProto* function = nullptr;
  std::map<std::string, int64_t> opsets;
  std::string origin; // prefix of node names
};

using Ints = std::vector<int64_t>;

/// An attribute of an operator that a converter emits.
struct Attr {
  std::string name;
  NodeRef value; // null: left out
  Attr(std::string n, NodeRef v) : name(std::move(n)), value(std::move(v)) {}
  template <std::integral T> Attr(std::string n, T v) : Attr(std::move(n), intImm(int64_t(v))) {}
  Attr(std::string n, double v) : Attr(std::move(n), constantFloat(DType::Float(64), v)) {}
  Attr(std::string n, const Ints& v) : Attr(std::move(n), intList(v)) {}
  Attr(std::string n, DType v) : Attr(std::move(n), make<const DTypeImmNode>(v)) {}
  Attr(std::string n, const std::string& v) : Attr(std::move(n), str(v)) {}
};
using Attrs = std::vector<Attr>;

class Node;

/// A term of the formula that a converter emits: a graph expression, or the error of the first step that failed.
/// A step on a failed term gives the same error, so that a converter reads as its formula and returns the last
/// term. C++ leaves open which operand of an operator is computed first: at most one of them may emit.
class Term {
public:
  Term(Node& node, Result<GraphExpr> e) : node_(&node), e_(std::move(e)) {}
  template <class T>
    requires std::is_convertible_v<T, GraphExpr>
  Term(T&& e) : e_(GraphExpr(std::forward<T>(e))) {}
  Term(const Array<Expr>& shape) : e_(make<const ShapeExprNode>(shape)) {}
  /// A number of the type of the last tensor beside it (int64 where there is none).
  Term(double number) : e_(GraphExpr()), number_(number) {}

  explicit operator bool() const { return e_.has_value(); }
  Error& error() { return e_.error(); }
  /// Of a term that did not fail.
  GraphExpr& operator*() {
    BEVEL_ASSERT(e_.has_value(), "the expression of a term that failed");
    return *e_;
  }
  operator Result<GraphExpr>() const { return e_; }
  operator Result<Values>() const;

  Term apply(const std::string& op, Attrs attrs = {}) const;
  Term cast(DType dtype) const;
  Term reshape(const Array<Expr>& shape) const;
  /// Its only element.
  Term scalar() const;
  Term permute(const Ints& axes) const;
  Term unsqueeze(const Ints& axes) const;
  Term squeeze(const Ints& axes) const;
  Term broadcast(const Array<Expr>& shape) const;
  /// Elements [begin, end) on one axis.
  Term slice(int64_t axis, const Expr& begin, const Expr& end) const;
  /// Result of `sum`, `max` … over axes (nothing: all).
  Term reduce(const std::string& op, const std::optional<Ints>& axes = {}, bool keep = false) const;

  friend Term operator+(const Term& a, const Term& b) { return binary("add", a, b); }
  friend Term operator-(const Term& a, const Term& b) { return binary("subtract", a, b); }
  friend Term operator*(const Term& a, const Term& b) { return binary("multiply", a, b); }
  friend Term operator/(const Term& a, const Term& b) { return binary("divide", a, b); }
  friend Term operator<(const Term& a, const Term& b) { return binary("less", a, b); }
  friend Term operator<=(const Term& a, const Term& b) { return binary("less_equal", a, b); }
  friend Term operator>=(const Term& a, const Term& b) { return binary("greater_equal", a, b); }
  static Term binary(const char* op, const Term& a, const Term& b);

private:
  friend class Node;
  Node* node_ = nullptr;
  Result<GraphExpr> e_;
  std::optional<double> number_ = {};
};

struct Terms {
  std::vector<Term> items;
  Terms(std::initializer_list<Term> terms) : items(terms) {}
  Terms(const Array<GraphExpr>& terms) : items(terms.begin(), terms.end()) {}
};

/// One node during conversion.
class Node {
public:
  Node(Importer& importer, const NodeProto& proto, std::string name, int64_t opset);
  const NodeProto& proto;
  const std::string name;
  const int64_t opset; // version of the node's domain

  // Inputs.
  size_t size() const { return inputs.size(); }
  bool has(size_t i) const { return i < inputs.size() && inputs[i]; }
  const Value& in(size_t i) const { return inputs[i]; }
  /// The input as a typed leaf; the empty tuple when absent.
  Term x(size_t i);
  Array<GraphExpr> all();
  const TensorTypeNode& tensor(size_t i) const;
  const Array<Expr>& shape(size_t i) const { return tensor(i).shape; }
  size_t rank(size_t i) const { return shape(i).size(); }
  DType dtype(size_t i) const { return tensor(i).dtype; }
  /// The elements of an integer vector or scalar as expressions; those that only the run knows are bound to fresh
  /// variables.
  Result<Array<Expr>> ints(size_t i);
  Result<Array<Expr>> ints(Term e);
  /// The same when they are constants.
  std::optional<std::vector<int64_t>> constInts(size_t i) const;
  /// The constant tensor of an input, or null.
  Tensor constant(size_t i) const;
  /// A known constant scalar.
  std::optional<double> scalar(size_t i) const;
  /// Fails unless the first `count` inputs are present tensors of known shape.
  Status require(size_t count) const;
  /// A condition on known ints that the node needs: proved, refused with `what` when it is false, else checked
  /// by the run.
  Status check(const Expr& condition, const char* what);

  // Attributes.
  const AttributeProto* attr(std::string_view name) const;
  bool hasAttr(std::string_view name) const { return attr(name) != nullptr; }
  int64_t attrInt(std::string_view name, int64_t otherwise) const;
  double attrFloat(std::string_view name, double otherwise) const;
  std::string attrStr(std::string_view name, const std::string& otherwise) const;
  Ints attrInts(std::string_view name) const;
  std::vector<double> attrFloats(std::string_view name) const;
  /// The element type that an attribute names; `otherwise` where it is absent.
  Result<DType> attrType(std::string_view name, DType otherwise) const;

  // Emission. Calls whose arguments are small constants are evaluated at once.
  Term emit(const std::string& op, const Terms& args, Attrs attrs = {});
  Result<Values> results(const Terms& terms);
  /// The fields of a tuple-valued call as results.
  Result<Values> fields(Term tuple);
  Value value(GraphExpr e);
  static GraphExpr shapeArg(const Array<Expr>& values) { return make<const ShapeExprNode>(values); }
  /// A scalar or 1-D constant of a dtype.
  static GraphExpr scalarConstant(DType dtype, double value);
  BlockBuilder& builder();
  Analyzer& analyzer();
  Importer& importer;

  tl::unexpected<Error> invalid(std::string message) const {
    return fail(ErrorCode::kInvalid, std::move(message));
  }
  tl::unexpected<Error> unsupported(std::string message) const {
    return fail(ErrorCode::kUnsupported, std::move(message));
  }
  Values inputs;
};

inline DType dtypeOfExpr(const GraphExpr& e) {
  return e->type.as<TensorTypeNode>()->dtype;
}
inline const Array<Expr>& shapeOfExpr(const GraphExpr& e) {
  return e->type.as<TensorTypeNode>()->shape;
}

using ConvertFn = std::function<Result<Values>(Node&)>;
/// One meaning of an ONNX operator: from opset `since` until the next row of the same operator.
struct Conversion {
  std::string op;
  int since;
  ConvertFn convert;   // empty: imports one to one again
  size_t required = 0; // so many inputs are present tensors of known shape
  std::string domain = "";
  std::vector<OpInput> inputs = {}; // checked before `convert` runs: how many there are, ranks, element types
};
/// Adds a converter of a program's own; a second one of the same operator and version is refused.
Status addConversion(Conversion conversion);
/// The converter of an operator at an opset version, null when there is none. Operators that import one to
/// one are found in the operator registry.
const Conversion* findConversion(const std::string& domain, const std::string& op, int64_t opset);
const Op* findDirect(const std::string& domain, const std::string& op, int64_t opset);

/// Converts a node by its row of the table, or one to one: the same inputs, attributes of the same names.
Result<Values> convertNode(Node& node);

/// Elements of results known as expressions, when the node only moves or combines known ints. Nothing
/// otherwise.
Result<std::optional<Values>> trackInts(Node& node);
/// A value with known elements and no graph expression yet.
Value knownInts(Array<Expr> ints, std::vector<int64_t> shape, DType dtype = kInt64);

} // namespace bevel::onnx
