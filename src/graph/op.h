// The operator interface: one entry says everything the compiler knows of an operator.
//
// An entry is a plain struct; families of entries are listed in ops/ops.def and put into the registry by
// registerOps() (no static constructors). Users add their own with OpRegistry::add, with the same struct.
//
// Conventions of operator calls (GraphCall whose op is an OpRef):
// - tensors come as args; an absent optional input is the empty tuple R.tuple() (trailing ones may be left
//   out);
// - target shapes, slice bounds and other run-time integers are ShapeExpr args (values may be negative where
//   the op says);
//   whoever has them in a tensor binds them first: tensor_to_shape, then match_cast to R.Shape([vars]);
// - everything else is an attribute; an attribute equal to its default may be left out.
#pragma once

#include "ir/build.h"
#include "loop/te.h"

#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>

namespace bevel {

class Analyzer;
class BlockBuilder;
struct Op;

enum class AttrKind : uint8_t { kInt, kFloat, kString, kInts, kFloats, kDType, kNode };

struct OpAttr {
  std::string name;
  AttrKind kind;
  NodeRef otherwise; // default; null with required == false: absent unless given
  bool required = false;
  std::string doc;
};
OpAttr intAttr(std::string name, int64_t otherwise, std::string doc = "");
OpAttr floatAttr(std::string name, double otherwise, std::string doc = "");
OpAttr strAttr(std::string name, std::string otherwise, std::string doc = "");
/// A list of ints, empty (absent) by default.
OpAttr intsAttr(std::string name, std::string doc = "");
OpAttr floatsAttr(std::string name, std::string doc = "");
OpAttr dtypeAttr(std::string name, DType otherwise = DType::Void(), std::string doc = "");
/// The same attribute without default.
OpAttr required(OpAttr attr);

enum class InputKind : uint8_t {
  kTensor,
  kOptional,      // a tensor or the empty tuple
  kVariadic,      // the last input: any number of tensors, at least one
  kShape,         // a ShapeExpr, or a value of ShapeType with known values
  kOptionalShape, // the same, or the empty tuple
  kAny,
};
/// Element types that a tensor input takes.
enum class Elements : uint8_t {
  kFloats = 1,
  kInts = 2,
  kBools = 4,
  kStrings = 8,
  kNumbers = kFloats | kInts,
  kPlain = kNumbers | kBools, // all that tensor programs compute with
  kAll = kPlain | kStrings,
};
/// What checkCall asks of an input before inference reads its dimensions.
struct OpInput {
  std::string name;
  InputKind kind = InputKind::kTensor;
  Elements elements = Elements::kPlain;
  int minRank = 0, maxRank = 1 << 20;
  OpInput(const char* n, InputKind k = InputKind::kTensor) : name(n), kind(k) {}
  OpInput of(Elements e) const {
    return with([&](OpInput& x) { x.elements = e; });
  }
  OpInput rank(int least, int most) const {
    return with([&](OpInput& x) { x.minRank = least, x.maxRank = most; });
  }
  OpInput rank(int exact) const { return rank(exact, exact); }

private:
  template <class F> OpInput with(F change) const {
    OpInput copy = *this;
    change(copy);
    return copy;
  }
};

/// A call as the functions of its op see it: checked against inputs and attributes, shapes of tensor args
/// known.
class OpCall {
public:
  OpCall(const Op& entry, Array<GraphExpr> a, Dict k, std::vector<Type> types);
  const Op& op;
  Array<GraphExpr> args;
  Dict attrs;

  size_t size() const { return args.size(); }
  /// Argument i is there: within the args and not the empty tuple.
  bool has(size_t i) const;
  const Type& type(size_t i) const { return types_[i]; }
  /// Tensor type of argument i; it must be a tensor (checked for kTensor inputs before).
  const TensorTypeNode& tensor(size_t i) const { return *types_[i].as<TensorTypeNode>(); }
  const Array<Expr>& shape(size_t i) const { return tensor(i).shape; }
  size_t rank(size_t i) const { return shape(i).size(); }
  DType dtype(size_t i) const { return tensor(i).dtype; }
  /// Values of a kShape argument.
  const Array<Expr>& values(size_t i) const;

  /// Attributes, with the entry's default where the call does not say.
  NodeRef attr(std::string_view name) const;
  bool hasAttr(std::string_view name) const { return attr(name) != nullptr; }
  int64_t i(std::string_view name) const;
  double f(std::string_view name) const;
  std::string s(std::string_view name) const;
  std::vector<int64_t> ints(std::string_view name) const;
  std::vector<double> floats(std::string_view name) const;
  DType dtypeAttr(std::string_view name) const;

  /// An error about this call, naming the op.
  Error error(ErrorCode code, std::string message) const;
  tl::unexpected<Error> invalid(std::string message) const {
    return fail(error(ErrorCode::kInvalid, std::move(message)));
  }
  tl::unexpected<Error> unsupported(std::string message) const {
    return fail(error(ErrorCode::kUnsupported, std::move(message)));
  }

private:
  std::vector<Type> types_;
};

/// What inference may ask and note.
class InferContext {
public:
  explicit InferContext(Analyzer& a) : analyzer(a) {}
  Analyzer& analyzer;
  /// A dimension that only the run knows: a fresh variable. emit() binds it by a match_cast behind the call.
  Expr unknownDim(std::string hint = "d");
  /// A condition on symbolic dimensions that the call needs: proved, refused when it is false, else kept in
  /// `required` and checked at run time.
  Status require(const Expr& condition, const OpCall& call, std::string_view what);
  std::vector<Var> fresh;
  std::vector<Expr> required;
};

using TeTensors = std::vector<te::Tensor>;
/// Functions of operators are closures: a program may register its own, with state.
using InferFn = std::function<Result<Type>(const OpCall&, InferContext&)>;
/// Tensor expressions of the results. `inputs` is parallel to call.args; those that are absent or no tensors
/// are empty.
using ComputeFn = std::function<Result<TeTensors>(const OpCall&, const TeTensors& inputs)>;
/// The call as other calls, emitted through the builder; the result has the type of the call.
using DecomposeFn = std::function<Result<GraphExpr>(const OpCall&, BlockBuilder&)>;
/// Gradients with respect to each argument (null where none), given those of the results.
using GradientFn = std::function<Result<Array<GraphExpr>>(
    const OpCall&, const GraphExpr& result, const Array<GraphExpr>& outputGrads, BlockBuilder&)>;

/// How the op bears another layout of its data input.
enum class LayoutKind : uint8_t {
  kOpaque,      // needs the logical layout
  kAny,         // element by element: any common layout of all tensor inputs, results the same
  kChannelwise, // as kAny where the axes of attribute "axis"/"axes" are whole
  kContraction, // chooses (convolution, matmul, pooling): see select/layout
};

/// The ONNX operator that imports as this op without any conversion: same inputs in order, attributes of the
/// same names. What needs more is in import/onnx_convert_*.cc.
struct OnnxName {
  std::string name;
  int since = 1;
  int until = 1 << 20;
  std::string domain = "";
};

struct Op {
  std::string name;
  std::string doc; // one or more lines; ends with the source: "ONNX Softmax-13"
  std::vector<OpInput> inputs;
  std::vector<OpAttr> attrs = {};
  InferFn infer = nullptr;
  ComputeFn compute = nullptr;
  DecomposeFn decompose = nullptr;
  std::string packed = "";    // run-time function, for the closed list of data-dependent ops
  bool dataDependent = false; // result shapes depend on values
  bool pure = true;           // false: not removed, merged or reordered
  bool view = false;          // the result holds the elements of the first input in the same order
  GradientFn gradient = nullptr;
  LayoutKind layout = LayoutKind::kOpaque;
  std::vector<OnnxName> onnx = {};
  /// One case a line: inputs, then attributes. "float32[2,3] float32[3]:pos _ shape(2,3) axis=1 axes=[0,1]
  /// mode=linear". After ':' the values: pos (> 0), unit ([-1,1]), nonzero, int9 (integers in [-9,9]), idx5
  /// (in [-5,5)), special (NaN, infinities, zeros among them), bool.
  std::vector<std::string> tests = {};
  bool compositeOnly() const { return decompose && !compute; }
};

/// All operators by name.
class OpRegistry {
public:
  static OpRegistry& global();
  /// Adds an entry; an entry of the same name is refused (asserts for ours, see tryAdd for users').
  void add(Op op);
  Status tryAdd(Op op);
  const Op* find(std::string_view name) const;
  /// In order of registration, as of now.
  std::vector<const Op*> all() const;

private:
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::unique_ptr<Op>> ops_;
  std::vector<const Op*> order_;
};
inline const Op* findOp(std::string_view name) {
  return OpRegistry::global().find(name);
}

/// Whether the value has no effect besides its result: nothing changes where it is dropped, merged or moved. A function
/// is what it says of itself; a call of what is not known has effects.
bool isPure(const GraphExpr& value, const Module& module);

/// Checks the call against its op: number and kinds of inputs, attribute names and kinds, tensor ranks known.
/// Unknown dimensions of arguments get placeholder variables (added to `placeholders` when given).
Result<OpCall> checkCall(const Op& op, const Array<GraphExpr>& args, const Dict& attrs,
                         std::vector<Var>* placeholders = nullptr);

/// op(args, attrs) by name.
GraphCall opCall(std::string name, Array<GraphExpr> args, Dict attrs = nullptr);
/// The empty tuple: an absent optional input.
GraphExpr absent();
bool isAbsent(const GraphExpr& e);

/// The tensor program of one call: its parameters are the call's tensor args (in order, absent ones skipped),
/// then the results, then the scalars in `extra` (symbolic variables that no argument's shape binds).
struct OpProgram {
  PrimFunc function;
  Array<GraphExpr> tensors;
  Array<Expr> extra; // values at the call
};
Result<OpProgram> programOf(const GraphCall& call);

} // namespace bevel
