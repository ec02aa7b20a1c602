// Imports a graph: inputs to parameters, initialisers to constants, nodes in order to bindings.
//
// 1. Operators that have no converter are collected over the whole model, subgraphs and functions included,
//    and refused in one error.
// 2. Nodes are converted in order; one that fails poisons its results, and nodes that need those are skipped,
//    so one run lists all faults.
// 3. Bindings are grouped into dataflow blocks behind the import (graph/dataflow.h).
#include "import/onnx_importer.h"

#include "arith/analyzer.h"
#include "base/stack.h"
#include "graph/evaluate.h"
#include "graph/infer.h"
#include "graph/passes/passes.h"
#include "ir/printer.h"
#include "ops/ops.h"

#include <algorithm>
#include <set>

namespace bevel::onnx {

std::string identifier(std::string_view text, std::string_view otherwise) {
  size_t first = 0; // "/layer/Conv" without its slash
  while (first < text.size() && !std::isalnum(static_cast<unsigned char>(text[first]))) ++first;
  return toIdentifier(text.substr(first, 200), otherwise);
}

Origin Importer::originOf(const std::string& node) const {
  auto origin = make<OriginObject>();
  for (const Frame* f = frame_; f && f->caller; f = f->caller)
    origin->nodes.insert(origin->nodes.begin(), f->origin);
  origin->nodes.push_back(node);
  return Origin(origin);
}

int64_t Importer::countDraw(const Origin& origin) {
  return draws_[origin->nodes]++;
}

const Value* Importer::find(const std::string& name, const Scope& scope) const {
  for (const Scope* s = &scope; s; s = s->parent)
    if (auto it = s->values.find(name); it != s->values.end()) return &it->second;
  return nullptr;
}

Value Importer::lookup(const std::string& name, const Scope& scope) const {
  const Value* v = find(name, scope);
  return v ? *v : nullptr;
}

Value Importer::ofExpr(GraphExpr e) {
  auto v = make<ValueObject>();
  v->type = e->type;
  if (const auto* c = e.as<ConstantNode>()) {
    const TensorObject& t = *c->value;
    if ((t.dtype.isInteger() || t.dtype.isBool()) && t.size() <= int64_t(kTrackLimit)) {
      v->known = true;
      for (int64_t i = 0; i < t.size(); ++i) v->ints.push_back(intImm(t.asInt(i)));
    }
  }
  v->expr = std::move(e);
  return v;
}

Value knownInts(Array<Expr> ints, std::vector<int64_t> shape, DType dtype) {
  auto v = make<ValueObject>();
  v->type = tensorType(dtype, shape);
  v->known = true;
  bool constant =
      std::all_of(ints.raw().begin(), ints.raw().end(), [](const NodeRef& e) { return e.is<IntImmNode>(); });
  if (constant) {
    auto t = TensorObject::zeros(dtype, shape);
    for (size_t i = 0; i < ints.size(); ++i) t->setInt(int64_t(i), *asConst(ints[i]));
    v->expr = make<const ConstantNode>(Tensor(t));
  }
  v->ints = std::move(ints);
  return v;
}

Result<GraphExpr> Importer::emit(const GraphCall& call) {
  bool constant = true;
  HostTensors inputs;
  for (const GraphExpr& a : call->args) {
    if (const auto* c = a.as<ConstantNode>())
      inputs.push_back(c->value);
    else if (const auto* s = a.as<ShapeExprNode>())
      constant = constant && constDims(s->values).has_value();
    else
      constant = constant && isAbsent(a);
  }
  const Op* op = findOp(call->opName());
  if (constant && op && op->compute && op->pure) {
    BEVEL_TRY(Type type, builder_.infer(call));
    auto runnable = ConstantCall::of(call, nullptr);
    // What is large is folded later, by machine code; what fails will say so when it runs.
    if (runnable && runnable->isSmall)
      if (auto results = runnable->run(inputs)) return constantsOf(*results, type.is<TupleTypeNode>());
  }
  if (op && op->compositeOnly()) {
    BEVEL_TRY(OpCall checked, checkCall(*op, call->args, call->attrs));
    return op->decompose(checked, builder_);
  }
  BEVEL_TRY(GraphVar v, builder_.emit(call));
  return GraphExpr(v);
}

Result<GraphExpr> Importer::materialise(const Value& v) {
  if (!v) return absent();
  if (v->expr) return v->expr;
  for (Scope* s = scope_; s; s = s->parent)
    if (auto it = s->materialised.find(v); it != s->materialised.end()) return it->second;
  const auto* t = v->type.as<TensorTypeNode>();
  BEVEL_TRY(GraphExpr e, emit(opCall("shape_to_tensor", {make<const ShapeExprNode>(v->ints)})));
  if (t->dtype != kInt64) {
    BEVEL_TRY(e, emit(opCall("astype", {e}, dict({{"dtype", make<const DTypeImmNode>(t->dtype)}}))));
  }
  if (t->ndim != 1) {
    BEVEL_TRY(e, emit(opCall("reshape", {e, make<const ShapeExprNode>(t->shape)})));
  }
  scope_->materialised[v] = e;
  return e;
}

// Elements that only the run knows: tensor_to_shape reads them into registers, a match_cast names them.
Result<Array<Expr>> Importer::intsOf(const Value& v) {
  if (!v) return fail(ErrorCode::kInvalid, "a required input is missing");
  if (v->known) return v->ints;
  for (Scope* s = scope_; s; s = s->parent)
    if (auto it = s->bound.find(v); it != s->bound.end()) return it->second;
  const auto* t = v->type.as<TensorTypeNode>();
  if (!t || !(t->dtype.isInteger() || t->dtype.isBool()))
    return fail(ErrorCode::kInvalid, "an integer tensor is expected");
  auto shape = t->known ? constDims(t->shape) : std::nullopt;
  if (!shape) return fail(ErrorCode::kUnsupported, "a shape or index tensor whose length only the run knows");
  auto n = elementCount(*shape);
  if (!n || *n > int64_t(kTrackLimit))
    return fail(ErrorCode::kUnsupported, "an index tensor with too many elements");
  BEVEL_TRY(GraphExpr e, materialise(v));
  if (t->ndim != 1) {
    BEVEL_TRY(e, emit(opCall("reshape", {e, make<const ShapeExprNode>(dims({*n}))})));
  }
  if (t->dtype != kInt64) {
    BEVEL_TRY(e, emit(opCall("astype", {e}, dict({{"dtype", make<const DTypeImmNode>(kInt64)}}))));
  }
  Array<Expr> values;
  for (int64_t i = 0; i < *n; ++i) values.push_back(var(builder_.freshVarName("n"), kInt64));
  if (*n > 0) {
    BEVEL_TRY(GraphVar s, builder_.emit(opCall("tensor_to_shape", {e})));
    builder_.matchCast(s, make<const ShapeTypeNode>(values));
  }
  scope_->bound[v] = values;
  return values;
}

static Value poisoned() {
  auto v = make<ValueObject>();
  v->poison = true;
  v->type = make<const ObjectTypeNode>();
  return v;
}

// Results of a node into the scope; failures are noted and poison what the node should have given.
static Status rankFault(size_t rank, std::string_view name) {
  if (rank <= kMaxRank) return {};
  return fail(ErrorCode::kUnsupported,
              fmt::format("'{}' has {} dimensions; at most {} are supported", name, rank, kMaxRank));
}

void Importer::defineOutputs(const NodeProto& n, const std::string& name, Result<Values> results,
                             Scope& scope) {
  auto note = [&](Error e) {
    errors_.push_back(std::move(e).note(fmt::format("node '{}' ({})", name, n.opType)));
  };
  size_t given = results ? results->size() : 0;
  if (!results && results.error().code != ErrorCode::kUsage) note(results.error());
  for (size_t k = 0; k < n.outputs.size(); ++k) {
    if (n.outputs[k].empty()) continue;
    if (scope.values.count(n.outputs[k]))
      note(Error(ErrorCode::kInvalid, fmt::format("'{}' is produced twice", n.outputs[k])));
    Value result = k < given && (*results)[k] ? (*results)[k] : poisoned();
    if (const auto* t = result->type.as<TensorTypeNode>()) {
      if (Status ok = rankFault(t->shape.size(), n.outputs[k]); !ok) {
        note(std::move(ok.error()));
        result = poisoned();
      }
    }
    scope.values[n.outputs[k]] = std::move(result);
    if (results && k >= given)
      note(Error(ErrorCode::kUnsupported, fmt::format("output {} ('{}') is not supported", k, n.outputs[k])));
  }
}

std::optional<Values> Importer::importNodes(const std::vector<NodeProto>& nodes, Scope& scope, size_t first,
                                            const std::vector<ValueInfo>* outputs) {
  Scope* outer = std::exchange(scope_, &scope);
  std::optional<Values> finished;
  for (size_t i = first; i < nodes.size() && errors_.size() < 100 && !finished; ++i) {
    const NodeProto& n = nodes[i];
    std::string name = n.name.empty() ? fmt::format("{}_{}", n.opType, i) : n.name;
    Origin before = builder_.origin();
    builder_.setOrigin(originOf(name));
    maySplit_ = outputs && i + 1 < nodes.size();
    splitRequested_ = false;
    Result<Values> results = convert(n, name, scope);
    scope_ = &scope;
    if (std::exchange(splitRequested_, false)) {
      results = split(nodes, i, scope, *outputs);
      if (results) finished = std::move(*results);
    }
    builder_.setOrigin(before);
    if (!finished) defineOutputs(n, name, std::move(results), scope);
  }
  scope_ = outer;
  return finished;
}

Result<SeqExpr> Importer::branch(Scope& inner, FunctionRef<Result<Values>()> body) {
  builder_.beginBranch();
  Scope* outer = enter(&inner);
  Array<GraphExpr> items;
  auto values = body();
  scope_ = &inner;
  Status status = values ? Status{} : Status(fail(values.error()));
  for (size_t i = 0; status && i < values->size(); ++i) {
    auto e = materialise((*values)[i]);
    if (e)
      items.push_back(*e);
    else
      status = fail(e.error());
  }
  scope_ = outer;
  auto done = builder_.endBranch(items.size() == 1 ? items[0] : GraphExpr(make<const TupleNode>(items)));
  if (!status) return fail(std::move(status.error()));
  return done;
}

// One side of a split, and all nodes behind it: the body's outputs, in the current frame of the builder.
Result<Values> Importer::splitSide(const std::vector<NodeProto>& nodes, size_t at, Scope& inner,
                                   const GraphProto& side, const std::vector<ValueInfo>& outputs) {
  const NodeProto& n = nodes[at];
  Scope own{&inner};
  scope_ = &inner;
  BEVEL_TRY(Values given, importBody(side, own));
  for (size_t o = 0; o < n.outputs.size() && o < given.size(); ++o) inner.values[n.outputs[o]] = given[o];
  std::optional<Values> results = importNodes(nodes, inner, at + 1, &outputs);
  scope_ = &inner;
  if (!results) {
    BEVEL_TRY(results, outputsOf(outputs, inner));
  }
  return std::move(*results);
}

// if c: v = rank 2 else: v = rank 3; rest(v)      →      if c: rest(rank 2) else: rest(rank 3)
//
// A side on which the rest is malformed (code that the run never reaches) is dropped: the condition is then
// required.
Result<Values> Importer::split(const std::vector<NodeProto>& nodes, size_t at, Scope& scope,
                               const std::vector<ValueInfo>& outputs) {
  Node node(*this, nodes[at], "", 1);
  node.inputs.push_back(lookup(nodes[at].inputs[0], scope));
  BEVEL_TRY(GraphExpr condition, node.x(0).scalar());
  if (depth_ >= kMaxGraphDepth) return fail(ErrorCode::kUnsupported, "too many branches of different rank");
  ++depth_;
  const GraphProto* sides[2] = {node.attr("then_branch")->g.get(), node.attr("else_branch")->g.get()};
  SeqExpr branches[2];
  std::vector<Error> faults[2];
  for (int k = 0; k < 2; ++k) {
    size_t before = errors_.size();
    Scope inner{&scope};
    auto done = branch(inner, [&] { return splitSide(nodes, at, inner, *sides[k], outputs); });
    faults[k].assign(errors_.begin() + ptrdiff_t(before), errors_.end());
    errors_.resize(before);
    if (done)
      branches[k] = *done;
    else if (faults[k].empty())
      faults[k].push_back(done.error());
  }
  --depth_;
  if (!faults[0].empty() && !faults[1].empty()) {
    errors_.insert(errors_.end(), faults[0].begin(), faults[0].end());
    return fail(ErrorCode::kUsage, "");
  }
  if (faults[0].empty() && faults[1].empty()) {
    BEVEL_TRY(GraphVar v, builder_.emitIf(condition, branches[0], branches[1]));
    if (outputs.size() == 1) return Values{ofExpr(v)};
    return node.fields({node, v});
  }
  int good = faults[0].empty() ? 0 : 1;
  BEVEL_TRY(Array<Expr> value, intsOf(node.inputs[0]));
  builder_.matchCast(make<const ShapeExprNode>(value), make<const ShapeTypeNode>(dims({good == 0})), "check");
  splitScopes_.push_back(std::make_unique<Scope>(&scope));
  return splitSide(nodes, at, *splitScopes_.back(), *sides[good], outputs);
}

// Operators of the standard that take text; the others take numbers alone.
static bool takesText(const NodeProto& node) {
  static constexpr std::string_view kTakeText =
      " Cast CastLike Compress Concat ConcatFromSequence DepthToSpace Equal Expand Flatten Gather"
      " GatherElements GatherND Identity If Loop OneHot Optional OptionalGetElement OptionalHasElement"
      " RegexFullMatch Reshape ReverseSequence Scan Scatter ScatterElements ScatterND SequenceConstruct"
      " SequenceInsert Shape Size Slice SpaceToDepth Split SplitToSequence Squeeze StringConcat"
      " StringNormalizer StringSplit Tile Transpose Unique Unsqueeze Where ";
  return !node.domain.empty() || kTakeText.find(" " + node.opType + " ") != kTakeText.npos;
}

static Status checkText(const Node& node) {
  for (size_t i = 0; i < node.size(); ++i)
    if (const auto* t = node.has(i) ? node.in(i)->type.as<TensorTypeNode>() : nullptr;
        t && t->dtype.isString() && !takesText(node.proto))
      return fail(ErrorCode::kInvalid, fmt::format("input '{}' cannot be of string", node.proto.inputs[i]));
  return {};
}

// An error of code kUsage marks a node that is skipped because its inputs failed before.
Result<Values> Importer::convert(const NodeProto& proto, const std::string& name, Scope& scope) {
  if (++nodes_ > kMaxNodes) return fail(ErrorCode::kUnsupported, "the model has too many nodes");
  auto opset = frame_->opsets.find(proto.domain);
  int64_t version = opset == frame_->opsets.end() ? 1 : opset->second;
  Node node(*this, proto, name, version);
  for (const std::string& input : proto.inputs) {
    if (input.empty()) {
      node.inputs.push_back(nullptr);
      continue;
    }
    const Value* v = find(input, scope);
    if (!v)
      return fail(ErrorCode::kInvalid, fmt::format("input '{}' is not defined before it is used", input));
    if (*v && (*v)->poison) return fail(ErrorCode::kUsage, "");
    node.inputs.push_back(*v);
  }
  while (!node.inputs.empty() && !node.inputs.back()) node.inputs.pop_back();
  if (const FunctionProto* f = findFunction(proto)) return inlineFunction(*f, proto, node.inputs, name);
  if (int64_t keep = node.attrInt("keepdims", 1); keep != 0 && keep != 1)
    return fail(ErrorCode::kInvalid, fmt::format("keepdims is {}, not 0 or 1", keep));
  BEVEL_CHECK(checkText(node));
  BEVEL_TRY(std::optional<Values> tracked, trackInts(node));
  if (tracked) return std::move(*tracked);
  return convertNode(node);
}

Status Importer::importInitializers(const GraphProto& graph, Scope& scope) {
  std::set<std::string> overridden(options_.overridden.begin(), options_.overridden.end());
  auto add = [&](const std::string& name, Result<Tensor> t) -> Status {
    if (!t) return fail(std::move(t.error()));
    if (scope.values.count(name))
      return fail(ErrorCode::kInvalid, fmt::format("initialiser '{}' is given twice", name));
    BEVEL_CHECK(rankFault((*t)->shape.size(), name));
    scope.values[name] = ofExpr(make<const ConstantNode>(*t, name));
    return {};
  };
  for (const TensorProto& t : graph.initializers)
    if (!overridden.count(t.name)) BEVEL_CHECK(add(t.name, source_.decode(t)));
  for (const SparseTensorProto& t : graph.sparseInitializers)
    if (!overridden.count(t.values.name)) BEVEL_CHECK(add(t.values.name, source_.decode(t)));
  return {};
}

Result<Values> Importer::outputsOf(const std::vector<ValueInfo>& outputs, Scope& scope) {
  Values out;
  for (const ValueInfo& o : outputs) {
    Value v = lookup(o.name, scope);
    if (!v) return fail(ErrorCode::kInvalid, fmt::format("output '{}' is not defined", o.name));
    if (v->poison) return fail(ErrorCode::kUsage, "");
    out.push_back(std::move(v));
  }
  return out;
}

Result<Values> Importer::importBody(const GraphProto& graph, Scope& scope) {
  if (++depth_ > kMaxGraphDepth) return fail(ErrorCode::kInvalid, "subgraphs are nested too deep");
  Scope* outer = std::exchange(scope_, &scope);
  Status status = importInitializers(graph, scope);
  std::optional<Values> finished;
  if (status) finished = importNodes(graph.nodes, scope, 0, &graph.outputs);
  scope_ = outer;
  --depth_;
  if (!status) return fail(std::move(status.error()));
  if (finished) return std::move(*finished);
  return outputsOf(graph.outputs, scope);
}

Result<Expr> Importer::dimension(const Dimension& d, const std::string& hint) {
  if (d.hasValue && d.value >= 0) return intImm(d.value);
  // Some exporters write -1, or a name that says nothing, for an unknown dimension: such ones are not the
  // same.
  bool unknown = d.param.empty() || d.param == "?" || d.param == "None" || d.param == "-1";
  if (unknown) return Expr(var(builder_.freshVarName(hint), kInt64));
  if (auto it = options_.dims.find(d.param); it != options_.dims.end()) return intImm(it->second);
  auto [it, added] = dims_.emplace(d.param, nullptr);
  if (added) it->second = var(identifier(d.param, "dim"), kInt64);
  return Expr(it->second);
}

Result<Type> Importer::declaredType(const ValueInfo& info) {
  const TypeProto& t = info.type;
  if (t.kind == TypeProto::kSequence || t.kind == TypeProto::kOptional)
    return Type(make<const ObjectTypeNode>(t.kind == TypeProto::kSequence ? "sequence" : "optional"));
  if (t.kind != TypeProto::kTensor)
    return fail(ErrorCode::kUnsupported,
                fmt::format("'{}' is not a tensor, sequence or optional", info.name));
  auto dtype = dtypeOf(t.elemType);
  if (!dtype)
    return fail(ErrorCode::kUnsupported,
                fmt::format("'{}': element type {} is not supported", info.name, t.elemType));
  if (auto it = options_.shapes.find(info.name); it != options_.shapes.end()) {
    if (t.hasShape && t.shape.size() != it->second.size())
      return fail(ErrorCode::kUsage, fmt::format("the shape given for '{}' has another rank", info.name));
    return tensorType(*dtype, it->second);
  }
  if (!t.hasShape) return Type(make<const TensorTypeNode>(*dtype, int64_t(-1)));
  BEVEL_CHECK(rankFault(t.shape.size(), info.name));
  Array<Expr> shape;
  for (size_t i = 0; i < t.shape.size(); ++i) {
    BEVEL_TRY(Expr d, dimension(t.shape[i], fmt::format("{}_{}", identifier(info.name, "x"), i)));
    shape.push_back(std::move(d));
  }
  return Type(make<const TensorTypeNode>(*dtype, shape));
}

Status Importer::declareInputs(OnnxModel& out, Scope& scope, Array<GraphVar>& params) {
  std::set<std::string> defaults, names, overridden(options_.overridden.begin(), options_.overridden.end());
  for (const TensorProto& t : model_.graph.initializers) defaults.insert(t.name);
  for (const SparseTensorProto& t : model_.graph.sparseInitializers) defaults.insert(t.values.name);
  std::set<std::string> used;
  for (const ValueInfo& info : model_.graph.inputs) {
    if (!names.insert(info.name).second)
      return fail(ErrorCode::kInvalid, fmt::format("input '{}' is given twice", info.name));
    BEVEL_TRY(Type type, declaredType(info));
    bool hasDefault = defaults.count(info.name) > 0, parameter = !hasDefault || overridden.count(info.name);
    out.inputs.push_back({info.name, type, hasDefault, parameter});
    if (!parameter) continue;
    std::string base = identifier(info.name, "x"), name = base;
    for (int i = 1; !used.insert(name).second; ++i) name = fmt::format("{}_{}", base, i);
    auto v = make<const GraphVarNode>(name, type);
    params.push_back(v);
    scope.values[info.name] = ofExpr(v);
  }
  return {};
}

Error Importer::collected() const {
  if (errors_.size() == 1) return errors_[0];
  Error all(errors_[0].code,
            fmt::format("{} faults in the model; the first: {}", errors_.size(), errors_[0].message));
  for (const Error& e : errors_)
    all.notes.push_back(fmt::format("{}{}", e.notes.empty() ? "" : e.notes.back() + ": ", e.message));
  return all;
}

Status Importer::finish(OnnxModel& out, const Values& outputs) {
  if (outputs.empty()) return fail(ErrorCode::kInvalid, "the graph has no outputs");
  Array<GraphExpr> results;
  for (size_t i = 0; i < outputs.size(); ++i) {
    BEVEL_TRY(GraphExpr e, materialise(outputs[i]));
    results.push_back(e);
    out.outputs.push_back({model_.graph.outputs[i].name, e->type});
  }
  bool one = results.size() == 1 &&
             !results[0]->type.is<TupleTypeNode>(); // a sequence is one output, not its elements
  GraphExpr result = one ? results[0] : GraphExpr(make<const TupleNode>(results));
  BEVEL_TRY(GlobalVar name, builder_.emitFuncOutput(result));
  out.function = name->name;
  out.module = convertToDataflow(builder_.module());
  return {};
}

Result<OnnxModel> Importer::run() {
  if (!model_.hasGraph) return fail(ErrorCode::kInvalid, "the file holds no ONNX graph");
  OnnxModel out;
  for (const OpsetId& id : model_.opsets) out.opsets[id.domain] = id.version;
  if (!out.opsets.count("")) out.opsets[""] = 1;
  if (out.opsets[""] < 1 || out.opsets[""] > 28)
    return fail(ErrorCode::kUnsupported,
                fmt::format("opset {} is not supported (1 to 28 are)", out.opsets[""]));
  Frame frame;
  frame.opsets = out.opsets;
  frame_ = &frame;
  BEVEL_CHECK(checkFunctions());
  BEVEL_CHECK(checkOperators());
  Scope scope;
  scope_ = &scope;
  Array<GraphVar> params;
  BEVEL_CHECK(declareInputs(out, scope, params));
  Array<NodeRef> inputNames, outputNames;
  for (const OnnxValue& v : out.inputs)
    if (v.parameter) inputNames.push_back(str(v.name));
  for (const ValueInfo& v : model_.graph.outputs) outputNames.push_back(str(v.name));
  builder_.beginFunction(options_.function, params,
                         dict({{"num_input", intImm(int64_t(params.size()))},
                               {"input_names", list(inputNames)},
                               {"output_names", list(outputNames)}}));
  Result<Values> outputs = importBody(model_.graph, scope);
  if (!errors_.empty()) return fail(collected());
  if (!outputs) return fail(std::move(outputs.error()));
  scope_ = &scope;
  BEVEL_CHECK(finish(out, *outputs));
  return out;
}

} // namespace bevel::onnx

namespace bevel {

Result<OnnxModel> importOnnx(std::string_view bytes, std::shared_ptr<const void> owner,
                             const std::string& folder, const OnnxOptions& options) {
  registerOps();
  return onLargeStack([&]() -> Result<OnnxModel> {
    BEVEL_TRY(onnx::ModelProto model, onnx::parseModel(bytes));
    return onnx::Importer(model, onnx::TensorSource(owner, folder), options).run();
  });
}

Result<OnnxModel> importOnnx(const std::string& path, const OnnxOptions& options) {
  BEVEL_TRY(auto file, MappedFile::open(path));
  auto bytes = file->bytes();
  size_t slash = path.rfind('/');
  std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  auto result =
      importOnnx({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, file, folder, options);
  if (!result) return fail(std::move(result.error()).in(path));
  return result;
}

} // namespace bevel
