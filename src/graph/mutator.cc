// Rewrites graph functions by emitting every binding again.
#include "graph/mutator.h"

#include "arith/analyzer.h"
#include "graph/shape_util.h"
#include "graph/visitor.h"

namespace bevel {

GraphExpr ExprMutator::fault(Error error) {
  faults_.push_back(std::move(error));
  return nullptr;
}

tl::unexpected<Error> ExprMutator::failure() const {
  return fail(faults_.empty() ? Error(ErrorCode::kInternal, "a value was lost") : faults_.front());
}

void ExprMutator::replace(const GraphVar& from, GraphExpr to) {
  map_[from] = std::move(to);
}

GraphExpr ExprMutator::lookup(const GraphExpr& e) const {
  if (const auto* v = e.as<GraphVarNode>()) return builder.lookupBinding(GraphVar(v));
  return e;
}

GraphExpr ExprMutator::replacement(const GraphVar& v) const {
  auto it = map_.find(v);
  return it == map_.end() ? GraphExpr(v) : it->second;
}

GraphExpr ExprMutator::visitExpr(const GraphExpr& e) {
  if (e.is<GraphVarNode>()) return replacement(cast<GraphVarNode>(e));
  if (e.is<GraphIfNode>()) return visitIf(cast<GraphIfNode>(e));
  auto mapped = mapOperands(e, [this](const GraphExpr& operand) -> Result<GraphExpr> {
    GraphExpr made = visitExpr(operand);
    if (!made) return failure();
    return made;
  });
  return mapped ? *mapped : nullptr;
}

Status ExprMutator::visitBranch(const SeqExpr& branch, GraphExpr& result) {
  return visitSeqBody(branch, result);
}

GraphExpr ExprMutator::visitIf(const GraphIf& e) {
  GraphExpr condition = visitExpr(e->condition);
  if (!condition) return nullptr;
  SeqExpr branches[2];
  for (int k = 0; k < 2; ++k) {
    builder.beginBranch();
    GraphExpr result;
    if (auto ok = visitBranch(k == 0 ? e->thenBranch : e->elseBranch, result); !ok)
      return fault(std::move(ok.error()));
    auto done = builder.endBranch(result);
    if (!done) return fault(std::move(done.error()));
    branches[k] = std::move(*done);
  }
  return make<const GraphIfNode>(condition, branches[0], branches[1], e->type);
}

Status ExprMutator::visitBinding(const VarBinding& binding) {
  Origin outer = builder.origin();
  if (binding->value->origin) builder.setOrigin(binding->value->origin);
  GraphExpr value = visitExpr(binding->value);
  Status status = value ? emit(binding, value) : failure();
  builder.setOrigin(std::move(outer));
  return status;
}

Status ExprMutator::emit(const VarBinding& binding, const GraphExpr& value) {
  GraphVar v = binding->var;
  if (value != binding->value) {
    auto type = builder.infer(value);
    // A variable whose type becomes more precise is replaced; the others keep their identity.
    if (type && *type && !sameType(*type, v->type, builder.analyzer()) && value.is<GraphCallNode>() &&
        shapeVars(*type).empty()) {
      v = make<const GraphVarNode>(v->name, *type, v->dataflow);
      replace(binding->var, v);
    }
  }
  return builder.emitBinding(v, value);
}

Status ExprMutator::bindOrReplace(const GraphVar& v, const GraphExpr& value) {
  if (!value.is<GraphCallNode>()) {
    const auto* leaf = value.as<GraphVarNode>();
    if (v->dataflow || !leaf || !leaf->dataflow) replace(v, value);
    if (v->dataflow) return {};
  }
  return builder.emitBinding(v, value);
}

Status ExprMutator::visitMatchCast(const MatchCast& binding) {
  GraphExpr value = visitExpr(binding->value);
  if (!value) return failure();
  Origin outer = builder.origin();
  builder.setOrigin(binding->origin);
  Status status = builder.emitMatchCast(binding->var, value, binding->pattern);
  builder.setOrigin(std::move(outer));
  return status;
}

Status ExprMutator::visitBlock(const BindingBlock& block) {
  if (block->dataflow) builder.beginDataflow();
  for (const NodeRef& b : block->bindings)
    BEVEL_CHECK(b.is<VarBindingNode>() ? visitBinding(cast<VarBindingNode>(b))
                                       : visitMatchCast(cast<MatchCastNode>(b)));
  if (block->dataflow) builder.endDataflow();
  return {};
}

Status ExprMutator::visitSeqBody(const SeqExpr& seq, GraphExpr& result) {
  for (const BindingBlock& block : seq->blocks) BEVEL_CHECK(visitBlock(block));
  result = visitExpr(seq->body);
  if (!result) return failure();
  return {};
}

Result<Function> ExprMutator::mutateFunction(const Function& f) {
  // The function is built under a temporary name and taken out again.
  builder.beginFunction("_mutated", f->params, f->attrs, f->pure);
  GraphExpr result;
  if (auto ok = visitSeqBody(f->body, result); !ok) {
    builder.abandonFunction();
    return fail(std::move(ok.error()));
  }
  auto name = builder.emitFuncOutput(result);
  if (!name) return fail(std::move(name.error()));
  auto made = cast<FunctionNode>(builder.module()->find((*name)->name));
  builder.removeFunction(*name);
  if (!faults_.empty()) return fail(faults_.front());
  return with(made, &FunctionNode::origin, f->origin);
}

Result<Module> ExprMutator::mutateModule() {
  Module before = builder.module();
  for (size_t i = 0; i < before->names.size(); ++i) {
    if (!before->functions[i].is<FunctionNode>()) continue;
    BEVEL_TRY(Function f, mutateFunction(cast<FunctionNode>(before->functions[i])));
    builder.updateFunction(before->names[i], f);
  }
  return builder.module();
}

namespace {

using MapCall = FunctionRef<Result<GraphExpr>(const GraphCall&, const Op*, BlockBuilder&)>;

class CallMapper : public ExprMutator {
public:
  CallMapper(Module module, MapCall f) : ExprMutator(std::move(module)), f_(f) {}

protected:
  GraphExpr visitExpr(const GraphExpr& original) override {
    GraphExpr e = ExprMutator::visitExpr(original);
    if (!e.is<GraphCallNode>()) return e;
    auto call = cast<GraphCallNode>(e);
    auto made = f_(call, call->op.is<OpRefNode>() ? findOp(call->opName()) : nullptr, builder);
    return made ? *made : fault(std::move(made.error()));
  }

private:
  MapCall f_;
};

} // namespace

Result<Module> mapCalls(const Module& module, MapCall f) {
  return CallMapper(module, f).mutateModule();
}

} // namespace bevel
