// Conditions on symbolic sizes, which inference assumes, are checked at run time.
//
//   y = R.matmul(x, w)          →     _ = R.match_cast(R.shape([m == k]), R.Shape([1]))
//                                     y = R.matmul(x, w)
//
// 1. The conditions of an operator are those that its inference asks for.
// 2. A tensor program asks that the shapes of its arguments are those of its buffers, and that no iteration leaves
//    a buffer.
// 3. What a check of the function says already is not said again: importers check what they emit.
#include "arith/analyzer.h"
#include "graph/infer.h"
#include "graph/mutator.h"
#include "graph/passes/passes.h"
#include "graph/shape_util.h"
#include "ir/build.h"
#include "loop/index_bounds.h"

#include <algorithm>
#include <fmt/format.h>

namespace bevel {
namespace {

/// The condition that a match_cast of its value to 1 checks, or null.
Expr checkedBy(const MatchCast& m) {
  const auto* value = m->value.as<ShapeExprNode>();
  const auto* pattern = m->pattern.as<ShapeTypeNode>();
  bool check = value && pattern && pattern->known && value->values.size() == 1 &&
               pattern->values.size() == 1 && isConst(pattern->values[0], 1);
  const auto* cast = check ? value->values[0].as<CastNode>() : nullptr;
  return cast && cast->value->dtype.isBool() ? cast->value : Expr();
}

class CheckSizes : public ExprMutator {
public:
  using ExprMutator::ExprMutator;

protected:
  Status visitMatchCast(const MatchCast& binding) override {
    if (Expr condition = checkedBy(binding)) known_.push_back(condition);
    return ExprMutator::visitMatchCast(binding);
  }

  Status visitSeqBody(const SeqExpr& seq, GraphExpr& result) override {
    size_t before = known_.size();
    Status status = ExprMutator::visitSeqBody(seq, result);
    known_.resize(before); // a check in a branch, or a function, says nothing of what follows it
    return status;
  }

  Status visitBinding(const VarBinding& binding) override {
    if (const auto* call = binding->value.as<GraphCallNode>()) {
      bool program = call->isOp("call_tir") || call->op.is<GlobalVarNode>();
      Status ok = program ? checkProgram(*call) : checkOperator(*call);
      if (!ok) return fail(std::move(ok.error()).at(binding->value));
    }
    return ExprMutator::visitBinding(binding);
  }

private:
  Status checkOperator(const GraphCallNode& call) {
    InferContext context(builder.analyzer());
    auto type = inferType(GraphExpr(&call), builder.module().get(), context);
    if (type) // what fails is told by who needs the type
      for (const Expr& condition : context.required) require(condition);
    return {};
  }

  // A call_tir: tensors, results, scalars. Or a call in place: tensors, scalars.
  Status checkProgram(const GraphCallNode& call) {
    const bool inPlace = !call.isOp("call_tir");
    const auto* name = (inPlace ? call.op : call.args[0]).as<GlobalVarNode>();
    GraphExpr callee = name ? builder.module()->find(name->name) : nullptr;
    const auto* program = callee.as<PrimFuncNode>();
    const auto* tuple = inPlace ? nullptr : call.args[1].as<TupleNode>();
    if (!program || (!inPlace && !tuple)) return {};
    Array<Type> types;
    for (const GraphExpr& t : inPlace ? call.args : tuple->items)
      if (!t.is<ShapeExprNode>()) types.push_back(t->type);
    const size_t inputs = types.size();
    const auto* results = call.typeArgs.size() == 1 ? call.typeArgs[0].as<TupleTypeNode>() : nullptr;
    types.append(results ? results->fields_ : call.typeArgs);
    const auto* scalars =
        call.args.size() > (inPlace ? inputs : 2) ? call.args.back().as<ShapeExprNode>() : nullptr;
    size_t tensor = 0, scalar = 0;
    VarMap dims;
    std::vector<Expr> conditions;
    for (size_t i = 0; i < program->params.size(); ++i) {
      const Buffer& b = program->buffers[i];
      if (!b) {
        if (scalars && scalar < scalars->values.size()) {
          const Expr& value = scalars->values[scalar];
          DType t = program->params[i]->dtype;
          dims[program->params[i]] = castTo(t, value);
          if (t.bits < value->dtype.bits)
            require(logicalAnd(value >= constant(value->dtype, minValue(t)),
                               value <= constant(value->dtype, maxValue(t))));
        }
        ++scalar;
        continue;
      }
      if (tensor >= types.size())
        return fail(ErrorCode::kInvalid, fmt::format("'{}' takes more tensors than the {} arguments and {} "
                                                     "results of the call",
                                                     name->name, inputs, types.size() - inputs));
      const auto* t = types[tensor++].as<TensorTypeNode>();
      if (!t || !t->known) continue;
      if (!t->dtype.isVoid() && t->dtype != b->dtype)
        return fail(ErrorCode::kInvalid,
                    fmt::format("tensor {} of '{}' is {}, its buffer \"{}\" is {}", tensor - 1, name->name,
                                t->dtype.str(), b->name, b->dtype.str()));
      if (Status ok = unifyShape(b->shape, t->shape, dims, builder.analyzer(), &conditions); !ok)
        return fail(std::move(ok.error()).note(fmt::format("tensor {} of '{}'", tensor - 1, name->name)));
    }
    for (const Expr& condition : conditions) require(condition);
    for (const Expr& condition : sizeConditions(PrimFunc(program))) require(substitute(condition, dims));
    return {};
  }

  void require(const Expr& condition) {
    auto same = [&](const Expr& k) { return structuralEqual(k, condition); };
    if (std::any_of(known_.begin(), known_.end(), same) || builder.analyzer().prove(condition)) return;
    builder.require(condition);
    known_.push_back(condition);
  }

  std::vector<Expr> known_; // conditions that are checked before the current place
};

} // namespace

Result<Module> checkSizes(const Module& module) {
  return CheckSizes(module).mutateModule();
}

} // namespace bevel
