// If, Loop and Scan.
//
// A condition that is known while importing leaves only its branch. Loops with a known small number of trips
// and no run-time condition are unrolled; others become while_loop over functions whose state is (trip,
// condition, carried values, accumulated scan outputs, captured values).
#include "import/onnx_helpers.h"

#include <algorithm>
#include <set>

namespace bevel::onnx {

namespace {

const GraphProto* bodyOf(Node& n, const char* name) {
  const AttributeProto* a = n.attr(name);
  return a && a->g ? a->g.get() : nullptr;
}

// ---- If

Result<SeqExpr> branch(Node& n, const GraphProto& graph) {
  Scope inner{&n.importer.scope()};
  return n.importer.branch(inner, [&] { return n.importer.importBody(graph, inner); });
}

bool ranksDiffer(const Type& a, const Type& b) {
  const auto *x = a.as<TensorTypeNode>(), *y = b.as<TensorTypeNode>();
  if (x && y) return x->ndim != y->ndim;
  const auto *s = a.as<TupleTypeNode>(), *t = b.as<TupleTypeNode>();
  if (!s || !t || s->fields_.size() != t->fields_.size()) return false;
  for (size_t i = 0; i < s->fields_.size(); ++i)
    if (ranksDiffer(s->fields_[i], t->fields_[i])) return true;
  return false;
}

Result<Values> ifNode(Node& n) {
  const GraphProto *thenGraph = bodyOf(n, "then_branch"), *elseGraph = bodyOf(n, "else_branch");
  if (!thenGraph || !elseGraph) return n.invalid("a branch is missing");
  if (thenGraph->outputs.size() != elseGraph->outputs.size() || thenGraph->outputs.empty())
    return n.invalid("the branches have different outputs");
  if (auto known = n.constInts(0); known && known->size() == 1) {
    Scope inner{&n.importer.scope()};
    return n.importer.importBody((*known)[0] ? *thenGraph : *elseGraph, inner);
  }
  BEVEL_TRY(GraphExpr condition, n.x(0).scalar());
  bool maySplit = n.importer.maySplit();
  BEVEL_TRY(SeqExpr t, branch(n, *thenGraph));
  BEVEL_TRY(SeqExpr e, branch(n, *elseGraph));
  if (maySplit && ranksDiffer(t->type, e->type)) {
    n.importer.requestSplit();
    return n.unsupported("branches of different rank");
  }
  BEVEL_TRY(GraphVar v, n.builder().emitIf(condition, t, e));
  if (thenGraph->outputs.size() == 1) return Values{n.value(v)};
  return n.fields({n, v});
}

// ---- Loop and Scan

// One trip of a body with its inputs given.
Result<Values> trip(Node& n, const GraphProto& body, const Values& inputs) {
  if (body.inputs.size() != inputs.size())
    return n.invalid(fmt::format("the body takes {} inputs, {} given", body.inputs.size(), inputs.size()));
  Scope inner{&n.importer.scope()};
  for (size_t i = 0; i < inputs.size(); ++i) inner.values[body.inputs[i].name] = inputs[i];
  return n.importer.importBody(body, inner);
}

// What one trip adds to a scan output: the value with a new axis of one.
Result<GraphExpr> withAxis(Node& n, const Value& v, int64_t axis = 0) {
  BEVEL_TRY(GraphExpr e, n.importer.materialise(v));
  BEVEL_TRY(axis, axisOf(n, axis, rankOf(e) + 1));
  return Term(n, e).unsqueeze({axis});
}

// Scan outputs of unrolled trips, one after the other.
Result<Value> joined(Node& n, const Array<GraphExpr>& parts, int64_t axis = 0) {
  if (parts.size() == 1) return n.value(parts[0]);
  BEVEL_TRY(GraphExpr e, n.emit("concat", parts, {{"axis", axis}}));
  return n.value(e);
}

Result<Values> unrolledLoop(Node& n, const GraphProto& body, int64_t trips, size_t carried) {
  Values state(n.inputs.begin() + 2, n.inputs.end());
  size_t scans = body.outputs.size() - 1 - carried;
  std::vector<Array<GraphExpr>> parts(scans);
  for (int64_t t = 0; t < trips; ++t) {
    Values inputs = {knownInts({intImm(t)}, {}), knownInts({intImm(1)}, {}, kBool)};
    inputs.insert(inputs.end(), state.begin(), state.end());
    BEVEL_TRY(Values out, trip(n, body, inputs));
    state.assign(out.begin() + 1, out.begin() + 1 + ptrdiff_t(carried));
    for (size_t k = 0; k < scans; ++k) {
      BEVEL_TRY(GraphExpr e, withAxis(n, out[1 + carried + k]));
      parts[k].push_back(e);
    }
  }
  for (size_t k = 0; k < scans; ++k) {
    BEVEL_TRY(Value v, joined(n, parts[k]));
    state.push_back(v);
  }
  return state;
}

bool isTrue(const TensorProto& t) {
  return (t.hasRaw && t.raw.size() == 1 && t.raw[0]) || (t.int32s.size() == 1 && t.int32s[0]);
}

// The body leaves the condition as it was given, or sets it to true.
bool alwaysTrue(const GraphProto& body) {
  if (body.inputs.size() < 2 || body.outputs.empty()) return false;
  std::string name = body.outputs[0].name;
  for (int hops = 0; hops < 8; ++hops) {
    if (name == body.inputs[1].name) return true;
    const NodeProto* producer = nullptr;
    for (const NodeProto& p : body.nodes)
      if (std::ranges::count(p.outputs, name)) producer = &p;
    if (!producer) {
      auto t = std::ranges::find_if(body.initializers, [&](const TensorProto& i) {
        return i.name == name && i.dataType == datatype::kBoolType;
      });
      return t != body.initializers.end() && isTrue(*t);
    }
    if (producer->opType != "Identity" || producer->inputs.size() != 1)
      return producer->opType == "Constant" && producer->attributes.size() == 1 &&
             producer->attributes[0].t && isTrue(*producer->attributes[0].t);
    name = producer->inputs[0];
  }
  return false;
}

// A value as it may be after any number of trips: the shape of carried values is forgotten where the body
// changes it.
struct LoopFunctions {
  Node& n;
  const GraphProto& body;
  size_t carried, scans;
  std::vector<std::string> captures;

  std::string base(const char* what) const { return fmt::format("{}_{}", identifier(n.name, "loop"), what); }

  // Runs `emit` in a function over fresh parameters for the state.
  Result<GlobalVar> function(const char* what, const Array<Type>& types,
                             FunctionRef<Result<GraphExpr>(const Array<GraphExpr>&)> emit) {
    Array<GraphVar> params;
    Array<GraphExpr> leaves;
    std::vector<Var> fresh;
    for (size_t i = 0; i < types.size(); ++i) {
      Type t = instantiateUnknown(types[i], fresh);
      params.push_back(make<const GraphVarNode>(fmt::format("s{}", i), t));
      leaves.push_back(params.back());
    }
    n.builder().beginFunction(base(what), params, dict({{"private", intImm(1)}}));
    auto result = emit(leaves);
    if (!result) {
      n.builder().abandonFunction();
      return fail(std::move(result.error()));
    }
    return n.builder().emitFuncOutput(*result);
  }
};

// Dimensions that are not constants become unknown: a function has its own symbolic variables.
Type withoutVars(const Type& type) {
  return eraseVars(type, [](const Var&) { return false; });
}

// What a scan output has gathered so far, with the extents of the next trip behind its first axis. Before the
// first trip it is empty, of extents that mean nothing.
Result<GraphExpr> sizedAs(Node& n, const GraphExpr& gathered, const Array<Expr>& next) {
  Array<Expr> shape = shapeOfExpr(gathered);
  if (shape.size() != next.size()) return n.invalid("a scan output has another rank than it declares");
  for (size_t d = 1; d < next.size(); ++d) {
    Expr fits = logicalOr(eq(shape[0], intImm(0)), eq(shape[d], next[d]));
    BEVEL_CHECK(n.check(fits, "the trips give scan outputs of different shapes"));
    shape.set(d, next[d]);
  }
  return Term(n, gathered).reshape(shape);
}

// Results of one trip as the new state: trip + 1, condition, carried, accumulated, captured.
Result<GraphExpr> bodyState(LoopFunctions& f, const Array<GraphExpr>& s) {
  Node& n = f.n;
  Scope inner; // a scope of its own: captured values are parameters
  size_t first = 3, at = first + f.carried + f.scans;
  for (size_t k = 0; k < f.captures.size(); ++k) inner.values[f.captures[k]] = n.value(s[at + k]);
  inner.values[f.body.inputs[0].name] = n.value(s[0]);
  inner.values[f.body.inputs[1].name] = n.value(s[2]);
  for (size_t k = 0; k < f.carried; ++k) inner.values[f.body.inputs[2 + k].name] = n.value(s[first + k]);
  Scope* outer = n.importer.enter(&inner);
  GraphExpr outerTrip = std::exchange(n.importer.trip, s[0]);
  auto out = n.importer.importBody(f.body, inner);
  n.importer.trip = outerTrip;
  auto newState = [&]() -> Result<GraphExpr> {
    BEVEL_CHECK(out);
    BEVEL_TRY(GraphExpr next, Term(n, s[0]) + 1);
    BEVEL_TRY(GraphExpr condition, n.importer.materialise((*out)[0]));
    BEVEL_TRY(condition, Term(n, condition).scalar());
    Array<GraphExpr> state = {next, s[1], condition};
    for (size_t k = 0; k < f.carried; ++k) {
      BEVEL_TRY(GraphExpr e, n.importer.materialise((*out)[1 + k]));
      state.push_back(e);
    }
    for (size_t k = 0; k < f.scans; ++k) {
      BEVEL_TRY(GraphExpr e, withAxis(n, (*out)[1 + f.carried + k]));
      BEVEL_TRY(GraphExpr before, sizedAs(n, s[first + f.carried + k], shapeOfExpr(e)));
      BEVEL_TRY(e, n.emit("concat", {before, e}, {{"axis", 0}}));
      state.push_back(e);
    }
    for (size_t k = 0; k < f.captures.size(); ++k) state.push_back(s[at + k]);
    return GraphExpr(make<const TupleNode>(state));
  };
  Result<GraphExpr> result = newState();
  n.importer.enter(outer);
  return result;
}

// Type of scan output k of a body: dtype and rank, from what the file declares.
Result<Type> scanType(Node& n, const ValueInfo& info) {
  BEVEL_TRY(Type t, n.importer.declaredType(info));
  const auto* tensor = t.as<TensorTypeNode>();
  if (!tensor || tensor->ndim < 0)
    return n.unsupported(fmt::format("the loop's output '{}' has no declared rank", info.name));
  return t;
}

Result<Values> whileLoop(Node& n, const GraphProto& body, size_t carried) {
  LoopFunctions f{n, body, carried, body.outputs.size() - 1 - carried, n.importer.captured(body)};
  Term most = n.has(0) ? n.x(0) : Node::scalarConstant(kInt64, 9.2e18);
  Term runs = n.has(1) ? n.x(1) : Node::scalarConstant(kBool, 1);
  BEVEL_TRY(GraphExpr limit, most.cast(kInt64).scalar());
  BEVEL_TRY(GraphExpr condition, runs.scalar());
  Array<GraphExpr> state = {Node::scalarConstant(kInt64, 0), limit, condition};
  for (size_t k = 0; k < carried; ++k) state.push_back(*n.x(2 + k));
  for (size_t k = 0; k < f.scans; ++k) { // empty at first
    BEVEL_TRY(Type t, scanType(n, body.outputs[1 + carried + k]));
    const auto* tensor = t.as<TensorTypeNode>();
    Array<Expr> shape = {intImm(0)};
    for (int64_t d = 0; d < tensor->ndim; ++d)
      shape.push_back(tensor->known && asConst(tensor->shape[size_t(d)]) ? tensor->shape[size_t(d)]
                                                                         : intImm(1));
    BEVEL_TRY(GraphExpr e, n.emit("broadcast_to", {Node::scalarConstant(tensor->dtype, 0), shape}));
    state.push_back(e);
  }
  for (const std::string& name : f.captures) {
    BEVEL_TRY(GraphExpr e, n.importer.materialise(n.importer.lookup(name, n.importer.scope())));
    state.push_back(e);
  }
  Array<Type> types;
  for (size_t i = 0; i < state.size(); ++i) {
    bool grows = i >= 3 && i < 3 + carried + f.scans;
    const auto* t = state[i]->type.as<TensorTypeNode>();
    if (!t) return n.unsupported("a loop over values that are not tensors");
    types.push_back(grows && t->ndim > 0 ? Type(make<const TensorTypeNode>(t->dtype, t->ndim))
                                         : withoutVars(state[i]->type));
  }
  BEVEL_TRY(GlobalVar test,
            f.function("condition", types, [&](const Array<GraphExpr>& s) -> Result<GraphExpr> {
              return n.emit("logical_and", {Term(n, s[0]) < s[1], s[2]});
            }));
  BEVEL_TRY(GlobalVar step,
            f.function("body", types, [&](const Array<GraphExpr>& s) { return bodyState(f, s); }));
  Type result = make<const TupleTypeNode>(types);
  GraphVar start = n.builder().matchCast(make<const TupleNode>(state), result);
  BEVEL_TRY(GraphVar last, n.builder().emit(opCall("while_loop", {test, step, start})));
  Values out;
  for (size_t k = 0; k < carried + f.scans; ++k) {
    BEVEL_TRY(GraphVar v, n.builder().emit(make<const TupleGetNode>(last, int64_t(3 + k))));
    std::vector<Var> fresh;
    Type known = instantiateUnknown(v->type, fresh);
    out.push_back(n.value(fresh.empty() ? v : n.builder().matchCast(v, known)));
  }
  return out;
}

Result<Values> loopNode(Node& n) {
  const GraphProto* body = bodyOf(n, "body");
  if (!body) return n.invalid("the body is missing");
  size_t carried = n.size() > 2 ? n.size() - 2 : 0;
  while (n.inputs.size() < 2) n.inputs.push_back(nullptr);
  for (size_t k = 2; k < n.inputs.size(); ++k)
    if (!n.has(k) || !n.in(k)->type.is<TensorTypeNode>())
      return n.unsupported("a loop over values that are not tensors");
  if (body->inputs.size() != carried + 2 || body->outputs.size() < carried + 1)
    return n.invalid("the body does not fit the loop's values");
  auto trips = n.constInts(0), condition = n.constInts(1);
  bool runs = !n.has(1) || (condition && condition->size() == 1 && (*condition)[0]);
  bool never = (condition && condition->size() == 1 && !(*condition)[0]) ||
               (trips && trips->size() == 1 && (*trips)[0] <= 0);
  size_t scans = body->outputs.size() - 1 - carried;
  if (never && scans == 0) return Values(n.inputs.begin() + 2, n.inputs.end());
  if (!never && trips && trips->size() == 1 && (*trips)[0] <= kUnrollLimit && runs && alwaysTrue(*body))
    return unrolledLoop(n, *body, (*trips)[0], carried);
  return whileLoop(n, *body, carried);
}

// Scan with a constant small length is unrolled; inputs are sliced along their axes.
Result<Values> scanNode(Node& n) {
  const GraphProto* body = bodyOf(n, "body");
  if (!body) return n.invalid("the body is missing");
  bool batched = n.opset < 9; // version 8: a batch axis in front and optional lengths
  if (batched) return n.unsupported("Scan of opset 8");
  int64_t numScan = n.attrInt("num_scan_inputs", 0);
  if (numScan < 1 || size_t(numScan) > n.size()) return n.invalid("num_scan_inputs is out of range");
  BEVEL_CHECK(n.require(n.size()));
  size_t states = n.size() - size_t(numScan);
  if (body->outputs.size() < states || body->inputs.size() != n.size())
    return n.invalid("the body does not fit the scan's values");
  size_t scans = body->outputs.size() - states;
  Ints axes = n.attrInts("scan_input_axes"), reversed = n.attrInts("scan_input_directions");
  Ints outAxes = n.attrInts("scan_output_axes"), outReversed = n.attrInts("scan_output_directions");
  axes.resize(size_t(numScan), 0);
  reversed.resize(size_t(numScan), 0);
  outAxes.resize(scans, 0);
  outReversed.resize(scans, 0);
  BEVEL_TRY(int64_t firstAxis, axisOf(n, axes[0], n.rank(states)));
  auto length = asConst(n.shape(states)[size_t(firstAxis)]);
  if (!length) return n.unsupported("a Scan whose length only the run knows");
  if (*length < 1 || *length > 1024) return n.unsupported(fmt::format("a Scan of {} steps", *length));
  Values state(n.inputs.begin(), n.inputs.begin() + ptrdiff_t(states));
  std::vector<Array<GraphExpr>> parts(scans);
  for (int64_t t = 0; t < *length; ++t) {
    Values inputs = state;
    for (size_t k = 0; k < size_t(numScan); ++k) {
      BEVEL_TRY(int64_t axis, axisOf(n, axes[k], n.rank(states + k)));
      int64_t at = reversed[k] ? *length - 1 - t : t;
      BEVEL_TRY(GraphExpr e, n.x(states + k).slice(axis, intImm(at), intImm(at + 1)).squeeze({axis}));
      inputs.push_back(n.value(e));
    }
    BEVEL_TRY(Values out, trip(n, *body, inputs));
    state.assign(out.begin(), out.begin() + ptrdiff_t(states));
    for (size_t k = 0; k < scans; ++k) {
      BEVEL_TRY(GraphExpr e, withAxis(n, out[states + k], outAxes[k]));
      parts[k].push_back(e);
    }
  }
  for (size_t k = 0; k < scans; ++k) {
    BEVEL_TRY(int64_t axis, axisOf(n, outAxes[k], rankOf(parts[k][0])));
    if (outReversed[k]) std::reverse(parts[k].raw().begin(), parts[k].raw().end());
    BEVEL_TRY(Value v, joined(n, parts[k], axis));
    state.push_back(v);
  }
  return state;
}

} // namespace

// Names that a graph uses and does not define, nested graphs included.
std::vector<std::string> Importer::captured(const GraphProto& graph) const {
  std::vector<std::string> out;
  std::set<std::string> found;
  auto visit = [&](auto&& self, const GraphProto& g, std::set<std::string> defined) -> void {
    for (const ValueInfo& i : g.inputs) defined.insert(i.name);
    for (const TensorProto& t : g.initializers) defined.insert(t.name);
    for (const SparseTensorProto& t : g.sparseInitializers) defined.insert(t.values.name);
    auto use = [&](const std::string& name) {
      if (name.empty() || defined.count(name) || found.count(name) || !scope_ || !lookup(name, *scope_))
        return;
      found.insert(name);
      out.push_back(name);
    };
    for (const NodeProto& n : g.nodes) {
      for (const std::string& i : n.inputs) use(i);
      for (const AttributeProto& a : n.attributes)
        if (a.g) self(self, *a.g, defined);
      for (const std::string& o : n.outputs) defined.insert(o);
    }
    for (const ValueInfo& o : g.outputs) use(o.name);
  };
  visit(visit, graph, {});
  return out;
}

std::vector<Conversion> controlConversions() {
  return {{"If", 1, ifNode, 1}, {"Loop", 1, loopNode}, {"Scan", 8, scanNode}};
}

} // namespace bevel::onnx
