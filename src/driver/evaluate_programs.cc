// See evaluate_programs.h.
//
// 1. Walk the bindings: a call_tir of constants (or of results found before) is work.
// 2. Lower and compile each program once.
// 3. Run the work in order and put the results in place of the variables.
#include "driver/evaluate_programs.h"

#include "base/parallel.h"
#include "codegen/llvm.h"
#include "driver/host_kernel.h"
#include "graph/mutator.h"
#include "graph/visitor.h"
#include "ir/structural.h"

#include "loop/lower.h"
#include <algorithm>

#include <map>

namespace bevel {
namespace {

bool isConstantCall(const GraphCallNode& call, FunctionRef<bool(const GraphExpr&)> isConstant) {
  if (!call.isOp("call_tir") || call.args.size() != 2 || call.typeArgs.size() != 1) return false;
  const auto* t = call.typeArgs[0].as<TensorTypeNode>();
  if (!t || !t->known || !constDims(t->shape) || t->dtype.isString()) return false;
  for (const GraphExpr& a : call.args[1].as<TupleNode>()->items)
    if (!isConstant(a)) return false;
  return true;
}

int64_t bytesOf(const Type& type) {
  const auto* t = type.as<TensorTypeNode>();
  auto shape = t && t->known ? constDims(t->shape) : std::nullopt;
  auto count = shape ? elementCount(*shape) : Result<int64_t>(0);
  return count ? t->dtype.bytesFor(*count) : INT64_MAX;
}

// Broadcasts that blow a constant up are better computed where they are used.
bool growsMuch(const GraphCallNode& call) {
  int64_t in = 1 << 12;
  for (const GraphExpr& a : call.args[1].as<TupleNode>()->items) in += bytesOf(a->type);
  return bytesOf(call.typeArgs[0]) > 4 * in;
}

// Names of the programs that will run, in order of first use.
std::vector<std::string> programsToRun(const Module& module) {
  std::vector<std::string> out;
  std::unordered_set<GraphExpr, RefHash> constants;
  for (const GraphExpr& f : module->functions) {
    if (!f.is<FunctionNode>()) continue;
    forEachCall(cast<FunctionNode>(f), [&](const GraphCall& call, const GraphVar& var) {
      auto isConstant = [&](const GraphExpr& e) { return e.is<ConstantNode>() || constants.count(e); };
      if (!isConstantCall(*call, isConstant) || growsMuch(*call)) return;
      if (var) constants.insert(var);
      const std::string& name = call->args[0].as<GlobalVarNode>()->name;
      if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
    });
  }
  return out;
}

using Key = std::pair<std::string, std::vector<const TensorObject*>>; // program and arguments

Key keyOf(const GraphCallNode& call) {
  Key key{call.args[0].as<GlobalVarNode>()->name, {}};
  for (const GraphExpr& a : call.args[1].as<TupleNode>()->items)
    key.second.push_back(a.as<ConstantNode>()->value.get());
  return key;
}

Result<Constant> evaluate(const GraphCallNode& call, const HostKernel& kernel, int threads) {
  const auto& args = call.args[1].as<TupleNode>()->items;
  std::vector<Tensor> inputs;
  for (const GraphExpr& a : args) inputs.push_back(a.as<ConstantNode>()->value);
  const auto* t = call.typeArgs[0].as<TensorTypeNode>();
  auto result = TensorObject::zeros(t->dtype, *constDims(t->shape));
  BEVEL_CHECK(kernel.run(inputs, {result}, threads));
  return make<const ConstantNode>(Tensor(result), args.size() == 1 ? args[0].as<ConstantNode>()->name : "");
}

class Evaluator : public ExprMutator {
public:
  Evaluator(Module module, const std::map<std::string, HostKernel>& kernels, int threads)
      : ExprMutator(std::move(module)), kernels_(kernels), threads_(threads) {}

  // Calls of constants that stand in the module, at once on several threads; each runs on one.
  Status evaluateAhead(const Module& module) {
    std::vector<GraphCall> calls;
    for (const GraphExpr& f : module->functions)
      if (f.is<FunctionNode>())
        forEachCall(cast<FunctionNode>(f), [&](const GraphCall& call, const GraphVar&) {
          if (!isConstantCall(*call, [](const GraphExpr& e) { return e.is<ConstantNode>(); }) ||
              growsMuch(*call))
            return;
          if (kernels_.count(call->args[0].as<GlobalVarNode>()->name) &&
              done_.emplace(keyOf(*call), nullptr).second)
            calls.push_back(call);
        });
    std::vector<Result<Constant>> results(calls.size(), fail(ErrorCode::kInternal, "not run"));
    parallelFor(calls.size(), threads_, [&](size_t i) {
      results[i] = evaluate(*calls[i], kernels_.at(calls[i]->args[0].as<GlobalVarNode>()->name), 1);
    });
    for (size_t i = 0; i < calls.size(); ++i) {
      if (!results[i]) return fail(std::move(results[i].error()));
      done_[keyOf(*calls[i])] = *results[i];
    }
    return {};
  }

protected:
  Status visitBinding(const VarBinding& b) override {
    if (b->value.is<GraphIfNode>()) return ExprMutator::visitBinding(b); // branches are visited once
    GraphExpr value = visitExpr(b->value);
    const auto* call = value.as<GraphCallNode>();
    bool constant = call && isConstantCall(*call, [](const GraphExpr& e) { return e.is<ConstantNode>(); }) &&
                    !growsMuch(*call);
    auto kernel = constant ? kernels_.find(call->args[0].as<GlobalVarNode>()->name) : kernels_.end();
    if (kernel == kernels_.end()) return ExprMutator::visitBinding(b);
    BEVEL_TRY(Constant c, run(*call, kernel->second));
    replace(b->var, c);
    return b->var->dataflow ? Status() : builder.emitBinding(b->var, c);
  }

private:
  Result<Constant> run(const GraphCallNode& call, const HostKernel& kernel) {
    Constant& known = done_[keyOf(call)];
    if (known) return known;
    BEVEL_TRY(known, evaluate(call, kernel, threads_));
    kept_.push_back(GraphCall(&call));
    return known;
  }

  const std::map<std::string, HostKernel>& kernels_;
  int threads_;
  std::map<Key, Constant> done_;
  std::vector<GraphCall> kept_; // addresses in done_ must not be used again
};

} // namespace

Result<Module> evaluatePrograms(const Module& module, const Target& target, int threads, bool useCache) {
  std::vector<std::string> names = programsToRun(module);
  if (names.empty() || !target.runsOn(Target::host())) return module;
  std::vector<KernelSource> sources;
  for (const std::string& n : names) sources.push_back({n, cast<PrimFuncNode>(module->find(n))});
  BEVEL_TRY(auto kernels, HostKernel::compile(std::move(sources), target, threads, useCache));
  Evaluator evaluator(module, kernels, threads);
  BEVEL_CHECK(evaluator.evaluateAhead(module));
  return evaluator.mutateModule();
}

} // namespace bevel
