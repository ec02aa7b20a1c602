// The BlockBuilder: frames of functions and branches under construction, normalisation to A-normal form,
// inference.
//
//   emit(add(mul(a, b), c))   →   lv: R.Tensor(...) = R.multiply(a, b)
//                                 lv1: R.Tensor(...) = R.add(lv, c)
#include "graph/block_builder.h"

#include "graph/shape_util.h"
#include "graph/visitor.h"

#include <fmt/format.h>

namespace bevel {

void BlockBuilder::Frame::closeBlock() {
  if (!current.empty()) blocks.push_back(make<const BindingBlockNode>(current, dataflow));
  current = {};
}

BlockBuilder::Frame& BlockBuilder::frame() {
  BEVEL_ASSERT(!frames_.empty(), "the BlockBuilder has no function under construction");
  return frames_.back();
}

void BlockBuilder::bindDims(const Type& type) {
  for (const Var& v : shapeVars(type)) {
    if (!scope().dims.insert(v).second) continue;
    if (!type.is<ShapeTypeNode>()) scope().analyzer.bind(v, ConstBound{0, kPosInf});
    if (!frames_.empty()) frames_.back().dims.push_back(v);
  }
}

std::string BlockBuilder::freshVarName(const std::string& hint) {
  std::string base = hint.empty() ? "lv" : hint, name = base;
  int& last = scope().suffixes[base];
  while (!scope().names.insert(name).second) name = base + std::to_string(++last);
  return name;
}

// The node with the current origin, copied as the kind it is.
NodeRef BlockBuilder::stamp(const NodeRef& node) {
  if (node->origin || !origin_) return node;
  Ref<Node> copy(kindInfo(*node).clone(*node));
  copy->origin = origin_;
  return copy;
}

void BlockBuilder::bind(const GraphVar& v, const GraphExpr& value) {
  frame().current.push_back(stamp(make<const VarBindingNode>(v, value)));
  bindings_[v] = value;
}

void BlockBuilder::bindCast(const GraphVar& v, const GraphExpr& value, const Type& pattern) {
  frame().current.push_back(stamp(make<const MatchCastNode>(v, value, pattern)));
  bindings_[v] = value;
  bindDims(pattern);
}

GraphVar BlockBuilder::newVar(const std::string& hint, const Type& type, bool output) {
  return make<const GraphVarNode>(freshVarName(hint), type, frame().dataflow && !output);
}

// A condition on dimensions becomes a match_cast of its value to 1.
void BlockBuilder::require(const Expr& condition) {
  for (const NodeRef& v : freeVars(condition))
    if (!scope().dims.count(cast<VarNode>(v))) return;
  Array<Expr> value = {castTo(kInt64, condition)}, one = {intImm(1)};
  matchCast(make<const ShapeExprNode>(value), make<const ShapeTypeNode>(one), "check");
}

BlockBuilder::BlockBuilder(Module module)
    : module_(module ? std::move(module) : Module(make<const ModuleNode>())) {
  for (size_t i = 0; i < module_->names.size(); ++i)
    if (module_->functions[i].is<PrimFuncNode>())
      programs_.emplace(structuralHash(module_->functions[i]), module_->names[i]);
}

void BlockBuilder::beginFunction(std::string name, Array<GraphVar> params, Dict attrs, bool pure) {
  frames_.push_back(
      {.name = std::move(name), .params = std::move(params), .attrs = std::move(attrs), .pure = pure});
  scopes_.push_back(std::make_unique<Scope>());
  for (const GraphVar& p : frame().params) {
    scope().names.insert(p->name);
    if (p->type) bindDims(p->type);
  }
}

Result<GlobalVar> BlockBuilder::emitFuncOutput(const GraphExpr& result) {
  Frame& f = frame();
  BEVEL_ASSERT(!f.branch, "a branch is still open");
  if (f.dataflow) endDataflow();
  BEVEL_TRY(GraphExpr leaf, normalize(result));
  Frame done = std::move(frames_.back());
  done.closeBlock();
  std::unordered_set<Var, RefHash> bound;
  for (const GraphVar& p : done.params)
    for (const Var& v : shapeVars(p->type)) bound.insert(v);
  Type type = eraseVars(leaf->type, [&](const Var& v) { return bound.count(v) > 0; });
  auto body = make<const SeqExprNode>(done.blocks, leaf);
  GraphExpr function = make<const FunctionNode>(done.params, body, type, done.attrs, done.pure);
  frames_.pop_back();
  scopes_.pop_back();
  return addFunction(function, done.name);
}

void BlockBuilder::abandonFunction() {
  while (frame().branch) frames_.pop_back();
  frames_.pop_back();
  scopes_.pop_back();
}

GlobalVar BlockBuilder::addFunction(const GraphExpr& function, const std::string& nameHint) {
  bool program = function.is<PrimFuncNode>();
  uint64_t hash = program ? structuralHash(function) : 0;
  if (program) {
    auto [first, last] = programs_.equal_range(hash);
    for (auto it = first; it != last; ++it)
      if (GraphExpr known = module_->find(it->second->name); known && structuralEqual(known, function))
        return it->second;
  }
  std::string name = nameHint;
  while (module_->find(name)) name = fmt::format("{}_{}", nameHint, ++counters_[nameHint]);
  module_ = withFunction(module_, name, function);
  GlobalVar var = module_->names.back();
  if (program) programs_.emplace(hash, var);
  return var;
}

void BlockBuilder::updateFunction(const GlobalVar& name, GraphExpr function) {
  module_ = withFunction(module_, name->name, std::move(function));
}

void BlockBuilder::removeFunction(const GlobalVar& name) {
  module_ = withoutFunction(module_, name->name);
}

void BlockBuilder::beginDataflow() {
  frame().closeBlock();
  frame().dataflow = true;
}
void BlockBuilder::endDataflow() {
  frame().closeBlock();
  frame().dataflow = false;
}

// Parts of a compound expression as leaves.
Result<GraphExpr> BlockBuilder::normalizeParts(const GraphExpr& value) {
  return mapOperands(value, [&](const GraphExpr& part) { return normalize(part); });
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
    return normalizeParts(value);
  }
}

namespace {

GraphExpr withType(const GraphExpr& value, const Type& type) {
  const auto* call = value.as<GraphCallNode>();
  if (!call || call->type == type) return value;
  return with(cast<GraphCallNode>(value), &GraphCallNode::type, type);
}

} // namespace

Result<GraphVar> BlockBuilder::emitValue(const GraphExpr& value, const std::string& hint, bool output) {
  BEVEL_TRY(GraphExpr parts, normalizeParts(value));
  InferContext context(scope().analyzer);
  BEVEL_TRY(Type type, infer(parts, context));
  for (const Expr& condition : context.required) require(condition);
  const auto* call = parts.as<GraphCallNode>();
  if (parts.is<GraphIfNode>() || (call && call->op.is<OpRefNode>()))
    type = instantiateUnknown(type, context.fresh);
  std::unordered_set<Var, RefHash> fresh(context.fresh.begin(), context.fresh.end());
  Type bare = fresh.empty() ? type : eraseVars(type, [&](const Var& v) { return !fresh.count(v); });
  GraphExpr typed = cast<GraphExprNode>(stamp(withType(parts, bare)));
  bool casts = bare != type;
  GraphVar v = newVar(casts ? "" : hint, bare, output && !casts);
  bind(v, typed);
  if (!casts) return v;
  GraphVar known = newVar(hint, type, output);
  bindCast(known, v, type);
  return known;
}

Result<GraphVar> BlockBuilder::emit(const GraphExpr& value, const std::string& nameHint) {
  return emitValue(value, nameHint, false);
}
Result<GraphVar> BlockBuilder::emitOutput(const GraphExpr& value, const std::string& nameHint) {
  return emitValue(value, nameHint.empty() ? "gv" : nameHint, true);
}

Status BlockBuilder::emitBinding(const GraphVar& variable, const GraphExpr& value) {
  BEVEL_TRY(GraphExpr parts, normalizeParts(value));
  Type type = variable->type;
  if (!parts.is<GraphIfNode>()) {
    InferContext context(scope().analyzer);
    BEVEL_TRY(Type inferred, infer(parts, context));
    std::unordered_set<Var, RefHash> fresh(context.fresh.begin(), context.fresh.end());
    type = eraseVars(inferred, [&](const Var& v) { return !fresh.count(v); });
    if (!type || type.is<ObjectTypeNode>()) type = variable->type;
  }
  scope().names.insert(variable->name);
  bool identity =
      parts.is<GraphVarNode>(); // a variable is its node: a copy with another type would be another
  bind(variable, identity ? parts : cast<GraphExprNode>(stamp(withType(parts, type))));
  return {};
}

GraphVar BlockBuilder::matchCast(const GraphExpr& value, const Type& type, const std::string& nameHint) {
  GraphVar v = newVar(nameHint, type, false);
  bindCast(v, value, type);
  return v;
}

Status BlockBuilder::emitMatchCast(const GraphVar& variable, const GraphExpr& value, const Type& pattern) {
  BEVEL_TRY(GraphExpr leaf, normalize(value));
  scope().names.insert(variable->name);
  bindCast(variable, leaf, pattern);
  return {};
}

void BlockBuilder::beginBranch() {
  BEVEL_ASSERT(!inDataflow(), "a dataflow block has no branches");
  frames_.push_back({.branch = true});
}

Result<SeqExpr> BlockBuilder::endBranch(const GraphExpr& result) {
  BEVEL_ASSERT(frame().branch, "no branch is open");
  if (inDataflow()) endDataflow();
  BEVEL_TRY(GraphExpr leaf, normalize(result));
  Frame done = std::move(frames_.back());
  frames_.pop_back();
  done.closeBlock();
  for (const Var& v : done.dims) scope().dims.erase(v);
  return SeqExpr(make<const SeqExprNode>(done.blocks, leaf));
}

Result<GraphVar> BlockBuilder::emitIf(const GraphExpr& condition, const SeqExpr& thenBranch,
                                      const SeqExpr& elseBranch, const std::string& nameHint) {
  BEVEL_TRY(GraphExpr c, normalize(condition));
  auto known = [&](const Var& v) { return scope().dims.count(v) > 0; };
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
  auto it = bindings_.find(variable);
  return it == bindings_.end() ? nullptr : it->second;
}

Result<Type> BlockBuilder::infer(const GraphExpr& value) {
  InferContext context(analyzer());
  return infer(value, context);
}

Result<Type> BlockBuilder::infer(const GraphExpr& value, InferContext& context) {
  return inferType(value, module_.get(), context);
}

} // namespace bevel
