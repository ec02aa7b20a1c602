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
  std::unordered_map<std::string, Value> values;
  std::unordered_map<Value, GraphExpr, RefHash> materialised;
  std::unordered_map<Value, Array<Expr>, RefHash> bound; // ints read from run-time tensors
  std::vector<Expr> checked;                             // conditions that the run has checked
};

/// Attributes and opset versions of the function being inlined (or of the model).
struct Frame {
  const Frame* caller = nullptr;
  const NodeProto* call = nullptr; // the node that calls the function
  const FunctionProto* function = nullptr;
  std::map<std::string, int64_t> opsets;
  std::string origin; // prefix of node names
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
  GraphExpr x(size_t i);
  Array<GraphExpr> all();
  const TensorTypeNode& tensor(size_t i) const;
  const Array<Expr>& shape(size_t i) const { return tensor(i).shape; }
  size_t rank(size_t i) const { return shape(i).size(); }
  DType dtype(size_t i) const { return tensor(i).dtype; }
  /// The elements of an integer vector or scalar as expressions; those that only the run knows are bound to fresh
  /// variables.
  Result<Array<Expr>> ints(size_t i);
  /// The same when they are constants.
  std::optional<std::vector<int64_t>> constInts(size_t i) const;
  /// The constant tensor of an input, or null.
  Tensor constant(size_t i) const;
  /// A known constant scalar.
  std::optional<double> scalar(size_t i) const;
  /// Fails unless inputs first … last-1 are present tensors.
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
  std::vector<int64_t> attrInts(std::string_view name) const;
  std::vector<double> attrFloats(std::string_view name) const;

  // Emission. Calls whose arguments are small constants are evaluated at once.
  Result<GraphExpr> emit(const std::string& op, Array<GraphExpr> args, Dict attrs = nullptr);
  Result<GraphExpr> emit(const std::string& op, Array<GraphExpr> args,
                         std::vector<std::pair<std::string, NodeRef>> attrs) {
    return emit(op, std::move(args), dict(std::move(attrs)));
  }
  /// emit, as the only result.
  Result<Values> one(const std::string& op, Array<GraphExpr> args,
                     std::vector<std::pair<std::string, NodeRef>> attrs = {});
  /// The fields of a tuple-valued call as results.
  Result<Values> fields(const GraphExpr& tuple);
  Value value(GraphExpr e);
  static GraphExpr shapeArg(const Array<Expr>& values) { return make<const ShapeExprNode>(values); }
  /// A scalar or 1-D constant of a dtype.
  static GraphExpr scalarConstant(DType dtype, double value);
  Result<GraphExpr> castTo(const GraphExpr& e, DType dtype);
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
  ConvertFn convert; // empty: imports one to one again
  std::string domain = "";
  std::vector<OpInput> inputs = {}; // checked before `convert` runs: how many there are, ranks, element types
};
/// Adds a converter of a program's own; a second one of the same operator and version is refused.
Status addConversion(Conversion conversion);
/// The converter of an operator at an opset version, null when there is none. Operators that import one to
/// one are found in the operator registry.
const Conversion* findConversion(const std::string& domain, const std::string& op, int64_t opset);
const Op* findDirect(const std::string& domain, const std::string& op, int64_t opset);

/// An operator that imports one to one: the same inputs, attributes of the same names.
Result<Values> convertDirect(Node& node, const Op& op);

/// Elements of results known as expressions, when the node only moves or combines known ints. Nothing
/// otherwise.
Result<std::optional<Values>> trackInts(Node& node);
/// A value with known elements and no graph expression yet.
Value knownInts(Array<Expr> ints, std::vector<int64_t> shape, DType dtype = kInt64);

} // namespace bevel::onnx
