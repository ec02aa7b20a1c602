// The BlockBuilder: frames of functions and branches under construction, normalisation to A-normal form,
// inference.
//
//   emit(add(mul(a, b), c))   →   lv: R.Tensor(...) = R.multiply(a, b)
//                                 lv1: R.Tensor(...) = R.add(lv, c)
#include "graph/block_builder.h"

#include "arith/analyzer.h"
#include "graph/infer.h"
#include "graph/shape_util.h"
#include "graph/visitor.h"

#include <fmt/format.h>
#include <unordered_set>

namespace bevel {

namespace {

// A function or a branch under construction.
struct Frame {
  bool branch = false;
  std::string name;
  Array<GraphVar> params;
  Dict attrs;
  bool pure = true;
  Array<BindingBlock> blocks;
  Array<NodeRef> current;
  bool dataflow = false;
  std::vector<Var> dims; // symbolic variables bound in this frame

  void closeBlock() {
    if (!current.empty()) blocks.push_back(make<const BindingBlockNode>(current, dataflow));
    current = {};
  }
};

// What functions share with their branches, and nested functions do not.
struct Scope {
  std::unordered_set<std::string> names;
  std::unordered_map<std::string, int> suffixes; // by base name: the last suffix given; names never get free
  std::unordered_set<Var, RefHash> dims;
  Analyzer analyzer;
};

} // namespace

struct BlockBuilder::Impl {
  Module module;
  std::vector<Frame> frames;
  std::vector<std::unique_ptr<Scope>> scopes;
  std::unordered_map<GraphVar, GraphExpr, RefHash> bindings;
  std::unordered_multimap<uint64_t, GlobalVar> programs; // PrimFuncs by structural hash
  std::unordered_map<std::string, int> counters;         // next suffix of a global name
  Origin origin;
  Scope outside; // for inference without a function

  Scope& scope() { return scopes.empty() ? outside : *scopes.back(); }
  Frame& frame() {
    BEVEL_ASSERT(!frames.empty(), "the BlockBuilder has no function under construction");
    return frames.back();
  }

  void bindDims(const Type& type, bool tensorDims) {
    for (const Var& v : shapeVars(type)) {
      if (!scope().dims.insert(v).second) continue;
      if (tensorDims) scope().analyzer.bind(v, ConstBound{0, kPosInf});
      if (!frames.empty()) frames.back().dims.push_back(v);
    }
  }
  std::string freshVar(const std::string& hint) {
    std::string base = hint.empty() ? "lv" : hint, name = base;
    int& last = scope().suffixes[base];
    while (!scope().names.insert(name).second) name = base + std::to_string(++last);
    return name;
  }
  // The node with the current origin, copied as the kind it is.
  NodeRef stamp(const NodeRef& node) {
    if (node->origin || !origin) return node;
    Ref<Node> copy(kindInfo(*node).clone(*node));
    copy->origin = origin;
    return copy;
  }

  void bind(const GraphVar& v, const GraphExpr& value) {
    frame().current.push_back(stamp(make<const VarBindingNode>(v, value)));
    bindings[v] = value;
  }
  void bindCast(const GraphVar& v, const GraphExpr& value, const Type& pattern) {
    frame().current.push_back(stamp(make<const MatchCastNode>(v, value, pattern)));
    bindings[v] = value;
    bindDims(pattern, !pattern.is<ShapeTypeNode>());
  }
  GraphVar newVar(const std::string& hint, const Type& type, bool output) {
    return make<const GraphVarNode>(freshVar(hint), type, frame().dataflow && !output);
  }
  void require(const Expr& condition);
  Result<Type> inferNow(const GraphExpr& value, InferContext& context) {
    return inferType(value, module.get(), context);
  }
};

// A condition on dimensions becomes a match_cast of its value to 1.
void BlockBuilder::Impl::require(const Expr& condition) {
  for (const NodeRef& v : freeVars(condition))
    if (!scope().dims.count(cast<VarNode>(v))) return;
  Array<Expr> value = {castTo(kInt64, condition)}, one = {intImm(1)};
  Type pattern = make<const ShapeTypeNode>(one);
  GraphVar v = make<const GraphVarNode>(freshVar("check"), pattern, frame().dataflow);
  bindCast(v, make<const ShapeExprNode>(value), pattern);
}

void BlockBuilder::require(const Expr& condition) {
  impl_->require(condition);
}

BlockBuilder::BlockBuilder(Module module) : impl_(std::make_unique<Impl>()) {
  impl_->module = module ? std::move(module) : Module(make<const ModuleNode>());
  for (size_t i = 0; i < impl_->module->names.size(); ++i)
    if (impl_->module->functions[i].is<PrimFuncNode>())
      impl_->programs.emplace(structuralHash(impl_->module->functions[i]), impl_->module->names[i]);
}
BlockBuilder::~BlockBuilder() = default;

void BlockBuilder::beginFunction(std::string name, Array<GraphVar> params, Dict attrs, bool pure) {
  Frame f;
  f.name = std::move(name);
  f.params = std::move(params);
  f.attrs = std::move(attrs);
  f.pure = pure;
  impl_->frames.push_back(std::move(f));
  impl_->scopes.push_back(std::make_unique<Scope>());
  for (const GraphVar& p : impl_->frame().params) {
    impl_->scope().names.insert(p->name);
    if (p->type) impl_->bindDims(p->type, !p->type.is<ShapeTypeNode>());
  }
}

Result<GlobalVar> BlockBuilder::emitFuncOutput(const GraphExpr& result) {
  Frame& f = impl_->frame();
  BEVEL_ASSERT(!f.branch, "a branch is still open");
  if (f.dataflow) endDataflow();
  BEVEL_TRY(GraphExpr leaf, normalize(result));
  Frame done = std::move(impl_->frames.back());
  done.closeBlock();
  std::unordered_set<Var, RefHash> bound;
  for (const GraphVar& p : done.params)
    for (const Var& v : shapeVars(p->type)) bound.insert(v);
  Type type = eraseVars(leaf->type, [&](const Var& v) { return bound.count(v) > 0; });
  auto body = make<const SeqExprNode>(done.blocks, leaf);
  GraphExpr function = make<const FunctionNode>(done.params, body, type, done.attrs, done.pure);
  impl_->frames.pop_back();
  impl_->scopes.pop_back();
  return addFunction(function, done.name);
}

void BlockBuilder::abandonFunction() {
  while (impl_->frame().branch) impl_->frames.pop_back();
  impl_->frames.pop_back();
  impl_->scopes.pop_back();
}

GlobalVar BlockBuilder::addFunction(const GraphExpr& function, const std::string& nameHint) {
  bool program = function.is<PrimFuncNode>();
  uint64_t hash = program ? structuralHash(function) : 0;
  if (program) {
    auto [first, last] = impl_->programs.equal_range(hash);
    for (auto it = first; it != last; ++it)
      if (GraphExpr known = impl_->module->find(it->second->name); known && structuralEqual(known, function))
        return it->second;
  }
  std::string name = nameHint;
  while (impl_->module->find(name)) name = fmt::format("{}_{}", nameHint, ++impl_->counters[nameHint]);
  impl_->module = withFunction(impl_->module, name, function);
  GlobalVar var = impl_->module->names.back();
  if (program) impl_->programs.emplace(hash, var);
  return var;
}

void BlockBuilder::updateFunction(const GlobalVar& name, GraphExpr function) {
  impl_->module = withFunction(impl_->module, name->name, std::move(function));
}

void BlockBuilder::removeFunction(const GlobalVar& name) {
  impl_->module = withoutFunction(impl_->module, name->name);
}

void BlockBuilder::beginDataflow() {
  impl_->frame().closeBlock();
  impl_->frame().dataflow = true;
}
void BlockBuilder::endDataflow() {
  impl_->frame().closeBlock();
  impl_->frame().dataflow = false;
}
bool BlockBuilder::inDataflow() const {
  return impl_->frame().dataflow;
}

// Parts of a compound expression as leaves.
static Result<GraphExpr> normalizeParts(const GraphExpr& value, BlockBuilder& self) {
  return mapOperands(value, [&](const GraphExpr& part) { return self.normalize(part); });
}

Result<GraphExpr> BlockBuilder::normalize(const GraphExpr& value) {
  switch (value->kind) {
  case Kind::kGraphCall:
  case Kind::kTupleGet:
  case Kind::kGraphIf: {
    BEVEL_TRY(GraphVar v, emit(value));
    return GraphExpr(v);
  }
  default:
    return normalizeParts(value, *this);
  }
}

namespace {

GraphExpr withType(const GraphExpr& value, const Type& type) {
  const auto* call = value.as<GraphCallNode>();
  if (!call || call->type == type) return value;
  auto copy = mutableCopy(cast<GraphCallNode>(value));
  copy->type = type;
  return GraphExpr(copy);
}

bool dimsUnknown(const Type& type) {
  if (const auto* t = type.as<TensorTypeNode>()) return !t->known && t->ndim >= 0;
  if (const auto* u = type.as<TupleTypeNode>())
    for (const Type& f : u->fields_)
      if (dimsUnknown(f)) return true;
  return false;
}

} // namespace

static Result<GraphVar> emitValue(BlockBuilder::Impl& impl, BlockBuilder& self, const GraphExpr& value,
                                  const std::string& hint, bool output) {
  BEVEL_TRY(GraphExpr parts, normalizeParts(value, self));
  InferContext context(impl.scope().analyzer);
  BEVEL_TRY(Type type, impl.inferNow(parts, context));
  for (const Expr& condition : context.required) impl.require(condition);
  if (parts.is<GraphCallNode>() && parts.as<GraphCallNode>()->op.is<OpRefNode>() && dimsUnknown(type))
    type = instantiateUnknown(type, context.fresh);
  if (parts.is<GraphIfNode>() && dimsUnknown(type)) type = instantiateUnknown(type, context.fresh);
  std::unordered_set<Var, RefHash> fresh(context.fresh.begin(), context.fresh.end());
  Type bare = fresh.empty() ? type : eraseVars(type, [&](const Var& v) { return !fresh.count(v); });
  GraphExpr typed = cast<GraphExprNode>(impl.stamp(withType(parts, bare)));
  bool casts = bare != type;
  GraphVar v = impl.newVar(casts ? "" : hint, bare, output && !casts);
  impl.bind(v, typed);
  if (!casts) return v;
  GraphVar known = impl.newVar(hint, type, output);
  impl.bindCast(known, v, type);
  return known;
}

Result<GraphVar> BlockBuilder::emit(const GraphExpr& value, const std::string& nameHint) {
  return emitValue(*impl_, *this, value, nameHint, false);
}
Result<GraphVar> BlockBuilder::emitOutput(const GraphExpr& value, const std::string& nameHint) {
  return emitValue(*impl_, *this, value, nameHint.empty() ? "gv" : nameHint, true);
}

Status BlockBuilder::emitBinding(const GraphVar& variable, const GraphExpr& value) {
  BEVEL_TRY(GraphExpr parts, normalizeParts(value, *this));
  Type type = variable->type;
  if (!parts.is<GraphIfNode>()) {
    InferContext context(impl_->scope().analyzer);
    BEVEL_TRY(Type inferred, impl_->inferNow(parts, context));
    std::unordered_set<Var, RefHash> fresh(context.fresh.begin(), context.fresh.end());
    type = eraseVars(inferred, [&](const Var& v) { return !fresh.count(v); });
    if (!type || type.is<ObjectTypeNode>()) type = variable->type;
  }
  impl_->scope().names.insert(variable->name);
  bool identity =
      parts.is<GraphVarNode>(); // a variable is its node: a copy with another type would be another
  impl_->bind(variable, identity ? parts : cast<GraphExprNode>(impl_->stamp(withType(parts, type))));
  return {};
}

GraphVar BlockBuilder::matchCast(const GraphExpr& value, const Type& type, const std::string& nameHint) {
  GraphVar v = impl_->newVar(nameHint, type, false);
  impl_->bindCast(v, value, type);
  return v;
}

Status BlockBuilder::emitMatchCast(const GraphVar& variable, const GraphExpr& value, const Type& pattern) {
  BEVEL_TRY(GraphExpr leaf, normalize(value));
  impl_->scope().names.insert(variable->name);
  impl_->bindCast(variable, leaf, pattern);
  return {};
}

void BlockBuilder::beginBranch() {
  BEVEL_ASSERT(!inDataflow(), "a dataflow block has no branches");
  Frame f;
  f.branch = true;
  impl_->frames.push_back(std::move(f));
}

Result<SeqExpr> BlockBuilder::endBranch(const GraphExpr& result) {
  BEVEL_ASSERT(impl_->frame().branch, "no branch is open");
  if (inDataflow()) endDataflow();
  BEVEL_TRY(GraphExpr leaf, normalize(result));
  Frame done = std::move(impl_->frames.back());
  impl_->frames.pop_back();
  done.closeBlock();
  for (const Var& v : done.dims) impl_->scope().dims.erase(v);
  return SeqExpr(make<const SeqExprNode>(done.blocks, leaf));
}

Result<GraphVar> BlockBuilder::emitIf(const GraphExpr& condition, const SeqExpr& thenBranch,
                                      const SeqExpr& elseBranch, const std::string& nameHint) {
  BEVEL_TRY(GraphExpr c, normalize(condition));
  auto known = [&](const Var& v) { return impl_->scope().dims.count(v) > 0; };
  Type t = eraseVars(thenBranch->type, known), e = eraseVars(elseBranch->type, known);
  BEVEL_TRY(Type joined, joinTypes(t, e, analyzer()));
  return emit(make<const GraphIfNode>(c, thenBranch, elseBranch, joined), nameHint);
}

Result<GraphVar> BlockBuilder::emitWhile(const GlobalVar& condition, const GlobalVar& body,
                                         const Array<GraphExpr>& state, const std::string& nameHint) {
  BEVEL_TRY(GraphExpr tuple, normalize(make<const TupleNode>(state)));
  return emit(opCall("while_loop", {condition, body, tuple}), nameHint);
}

GraphExpr BlockBuilder::lookupBinding(const GraphVar& variable) const {
  auto it = impl_->bindings.find(variable);
  return it == impl_->bindings.end() ? nullptr : it->second;
}

Result<Type> BlockBuilder::infer(const GraphExpr& value) {
  InferContext context(analyzer());
  return impl_->inferNow(value, context);
}

void BlockBuilder::setOrigin(Origin origin) {
  impl_->origin = std::move(origin);
}
const Origin& BlockBuilder::origin() const {
  return impl_->origin;
}
std::string BlockBuilder::freshVarName(const std::string& hint) {
  return impl_->freshVar(hint);
}
Analyzer& BlockBuilder::analyzer() {
  return impl_->scope().analyzer;
}
const Module& BlockBuilder::module() const {
  return impl_->module;
}

} // namespace bevel
