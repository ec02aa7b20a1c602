// The importer: scopes, frames of inlined functions, node by node conversion.
#pragma once

#include "import/onnx_context.h"

#include <utility>

namespace bevel::onnx {

/// Limits that a hostile file cannot exceed.
inline constexpr int64_t kMaxNodes = 400000; // after inlining functions
inline constexpr int kMaxFunctionDepth = 64;
inline constexpr int kMaxGraphDepth = 48;
inline constexpr size_t kMaxRank = 64;      // dimensions of a tensor: as many as the runtime loads
inline constexpr size_t kTrackLimit = 256;  // elements of an integer tensor tracked as expressions
inline constexpr int64_t kUnrollLimit = 32; // trips of a loop that is unrolled

class Importer {
public:
  Importer(const ModelProto& model, TensorSource source, const OnnxOptions& options)
      : model_(model), source_(std::move(source)), options_(options) {}
  Result<OnnxModel> run();

  BlockBuilder& builder() { return builder_; }
  TensorSource& source() { return source_; }
  const OnnxOptions& options() const { return options_; }

  /// Converts nodes from `first` on in a scope; failures are collected and poison their results. With
  /// `outputs`, an If whose branches give different ranks takes the rest of the nodes into both branches;
  /// then the outputs are returned.
  std::optional<Values> importNodes(const std::vector<NodeProto>& nodes, Scope& scope, size_t first = 0,
                                    const std::vector<ValueInfo>* outputs = nullptr);
  /// Initialisers, then nodes, then the graph's outputs.
  Result<Values> importBody(const GraphProto& graph, Scope& scope);
  /// A branch of an If: the values that `body` gives, in the scope `inner`.
  Result<SeqExpr> branch(Scope& inner, FunctionRef<Result<Values>()> body);
  Result<Values> outputsOf(const std::vector<ValueInfo>& outputs, Scope& scope);
  /// Whether an If may ask for a split (there are nodes behind it and the body's outputs are known).
  bool maySplit() const { return maySplit_; }
  /// Marks the failure of an If as a request to split.
  void requestSplit() { splitRequested_ = true; }
  /// The value of a name, null where there is none; the second null is an optional input that a call leaves out.
  const Value* find(const std::string& name, const Scope& scope) const;
  Value lookup(const std::string& name, const Scope& scope) const;
  Scope& scope() { return *scope_; }
  /// Makes a scope the current one and returns the one before.
  Scope* enter(Scope* scope) { return std::exchange(scope_, scope); }
  const Frame& frame() const { return *frame_; }

  /// The value as a typed leaf, in the current scope.
  Result<GraphExpr> materialise(const Value& v);
  Result<Array<Expr>> intsOf(const Value& v);
  Value ofExpr(GraphExpr e);
  /// Emits a call, or evaluates it when it is small and constant.
  Result<GraphExpr> emit(const GraphCall& call);
  /// Names captured by a graph from scopes around it, in order of first use.
  std::vector<std::string> captured(const GraphProto& graph) const;
  /// A type as declared in the file.
  Result<Type> declaredType(const ValueInfo& info);
  Origin originOf(const std::string& node) const;
  /// How often a node of this origin was converted before: trips of unrolled loops.
  int64_t countDraw(const Origin& origin);
  /// The trip of the loop whose body is converted, a scalar; null outside of loops of the run.
  GraphExpr trip;

private:
  friend class Node;
  Status checkOperators();
  Status checkFunctions();
  Result<Values> convert(const NodeProto& proto, const std::string& name, Scope& scope);
  Result<Values> inlineFunction(const FunctionProto& f, const NodeProto& call, Values inputs,
                                const std::string& name);
  const FunctionProto* findFunction(const NodeProto& n) const;
  Status importInitializers(const GraphProto& graph, Scope& scope);
  Status declareInputs(OnnxModel& out, Scope& scope, Array<GraphVar>& params);
  Result<Expr> dimension(const Dimension& d, const std::string& hint);
  Status finish(OnnxModel& out, const Values& outputs);
  Result<Values> split(const std::vector<NodeProto>& nodes, size_t at, Scope& scope,
                       const std::vector<ValueInfo>& outputs);
  Result<Values> splitSide(const std::vector<NodeProto>& nodes, size_t at, Scope& inner,
                           const GraphProto& side, const std::vector<ValueInfo>& outputs);
  void defineOutputs(const NodeProto& node, const std::string& name, Result<Values> results, Scope& scope);
  Error collected() const;

  const ModelProto& model_;
  TensorSource source_;
  const OnnxOptions& options_;
  BlockBuilder builder_;
  Scope* scope_ = nullptr;
  const Frame* frame_ = nullptr;
  std::map<std::string, Var> dims_;
  std::unordered_map<std::string, const FunctionProto*> functions_;
  std::vector<Error> errors_;
  std::vector<std::unique_ptr<Scope>> splitScopes_;
  std::map<std::vector<std::string>, int64_t> draws_; // by origin
  int64_t nodes_ = 0;
  int depth_ = 0;
  bool maySplit_ = false, splitRequested_ = false;
};

/// An ONNX name as an identifier of the notation, of limited length.
std::string identifier(std::string_view text, std::string_view otherwise);

} // namespace bevel::onnx
