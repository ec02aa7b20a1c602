// Operators as tensor programs: placeholders for the tensor arguments, the op's compute, create_prim_func.
#include "arith/analyzer.h"
#include "graph/block_builder.h"
#include "ir/printer.h"

#include <algorithm>
#include <fmt/format.h>

namespace bevel {

namespace {

std::string placeholderName(const GraphExpr& arg, size_t i) {
  if (const auto* v = arg.as<GraphVarNode>()) return toIdentifier(v->name, "p");
  return fmt::format("p{}", i);
}

struct Traced {
  OpProgram program;
  Array<Type> results;
};

// Results that are an input itself, or the same tensor twice, are copied so that each has a buffer of its
// own.
te::Tensor copyOf(const te::Tensor& t, const std::string& name) {
  return te::compute(t.shape(), name, [&](const Array<Var>& i) { return t(Array<Expr>(i)); });
}

Result<Traced> trace(FunctionRef<Result<TeTensors>(const TeTensors&)> f, const Array<GraphExpr>& args) {
  TeTensors inputs;
  std::vector<te::Tensor> params;
  Traced out;
  for (size_t i = 0; i < args.size(); ++i) {
    const auto* t = args[i]->type.as<TensorTypeNode>();
    inputs.emplace_back();
    if (!t) continue;
    if (!t->known)
      return fail(ErrorCode::kUnsupported, fmt::format("the shape of argument {} is unknown", i));
    inputs.back() = te::placeholder(t->shape, t->dtype, placeholderName(args[i], i));
    params.push_back(inputs.back());
    out.program.tensors.push_back(args[i]);
  }
  BEVEL_TRY(TeTensors results, f(inputs));
  size_t numInputs = params.size();
  for (te::Tensor& r : results) {
    bool taken = std::any_of(params.begin(), params.end(), [&](const te::Tensor& p) { return p.same(r); });
    if (taken || r.op->kind == te::OpKind::kPlaceholder) r = copyOf(r, "out");
    params.push_back(r);
    out.results.push_back(make<const TensorTypeNode>(r.dtype(), r.shape()));
  }
  Array<Var> scalars;
  Dict attrs = dict({{"num_outputs", intImm(int64_t(params.size() - numInputs))}});
  out.program.function = te::createPrimFunc(params, attrs, &scalars);
  for (const Var& v : scalars) out.program.extra.push_back(v);
  return out;
}

GraphCall tirCall(const GlobalVar& name, const OpProgram& program, const Array<Type>& results) {
  Array<GraphExpr> args = {name, make<const TupleNode>(program.tensors)};
  if (!program.extra.empty()) args.push_back(make<const ShapeExprNode>(program.extra));
  return make<const GraphCallNode>(make<const OpRefNode>("call_tir"), args, nullptr, results);
}

Result<Traced> traceOp(const GraphCall& call) {
  const Op* op = findOp(call->opName());
  if (!op || !op->compute)
    return fail(ErrorCode::kUnsupported,
                fmt::format("operator '{}' has no tensor expression", call->opName()));
  BEVEL_TRY(OpCall checked, checkCall(*op, call->args, call->attrs));
  return trace([&](const TeTensors& inputs) { return op->compute(checked, inputs); }, call->args);
}

// Result types: those of the call where known (they may say more than the program's buffers, in the same
// variables).
Array<Type> resultTypes(const GraphCall& call, const Array<Type>& traced) {
  if (const auto* t = call->type.as<TensorTypeNode>(); t && t->known && traced.size() == 1)
    return {call->type};
  return traced;
}

} // namespace

Result<OpProgram> programOf(const GraphCall& call) {
  BEVEL_TRY(Traced traced, traceOp(call));
  return std::move(traced.program);
}

Result<GraphCall> BlockBuilder::callTir(const GraphCall& call, const std::string& name) {
  BEVEL_TRY(Traced traced, traceOp(call));
  GlobalVar f = addFunction(traced.program.function, toIdentifier(name.empty() ? call->opName() : name, "f"));
  return with(tirCall(f, traced.program, resultTypes(call, traced.results)), &GraphCallNode::origin,
              call->origin);
}

Result<GraphVar> BlockBuilder::emitTe(FunctionRef<Result<TeTensors>(const TeTensors&)> f,
                                      const Array<GraphExpr>& inputs, const std::string& name) {
  Array<GraphExpr> leaves;
  for (const GraphExpr& e : inputs) {
    BEVEL_TRY(GraphExpr leaf, normalize(e));
    leaves.push_back(std::move(leaf));
  }
  BEVEL_TRY(Traced traced, trace(f, leaves));
  GlobalVar program = addFunction(traced.program.function, toIdentifier(name, "f"));
  return emit(tirCall(program, traced.program, traced.results));
}

} // namespace bevel
