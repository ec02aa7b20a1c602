// Folding of constants: calls of constants are run while compiling.
//
//   lv = R.multiply(c0, c1)      →     gv = R.add(x, c2)        c2 = c0 * c1
//   gv = R.add(x, lv)
//
// 1. Walk the bindings in order: a call of constants, or of results of calls before it, is work.
// 2. Small programs are interpreted; all that are large are compiled together.
// 3. Run: what depends on constants alone, at once on several threads, then what depends on these results.
// 4. Put the results in place of the variables. A call that fails stays, and fails in the run with its message.
#include "base/parallel.h"
#include "graph/evaluate.h"
#include "graph/mutator.h"
#include "graph/passes/passes.h"
#include "graph/visitor.h"
#include "ir/structural.h"

#include <algorithm>
#include <map>

namespace bevel {
namespace {

constexpr int64_t kSmallResult = 1 << 16; // bytes that a result may have, however small the constants are
constexpr int64_t kGrowth = 4;            // a larger result may be so many times the size of its constants

// A tensor that is known when the work before is done: a constant, or a result of a piece of work.
struct Source {
  Tensor value;
  std::string name; // of the weight
  size_t work = 0, result = 0;
  bool operator<(const Source& o) const {
    return std::tuple(value.get(), work, result) < std::tuple(o.value.get(), o.work, o.result);
  }
};

struct Work {
  ConstantCall call;
  std::vector<Source> inputs;
  bool isTuple = false;
  size_t level = 0;   // the work that it depends on has lower ones
  size_t program = 0; // among the compiled ones
  Result<HostTensors> results = fail(ErrorCode::kInternal, "not run");
};

int64_t bytesOf(DType dtype, const std::vector<int64_t>& shape) {
  return dtype.bytesFor(elementCount(shape).value_or(0));
}

class Collector {
public:
  Collector(const Module& module, bool canCompile) : module_(module), canCompile_(canCompile) {}
  std::vector<Work> work;
  std::unordered_map<GraphVar, size_t, RefHash> byVar;

  void visit(const Function& f) {
    forEachValue(f, [&](const NodeRef& n, const NodeRef&) {
      if (n.is<VarBindingNode>()) visitBinding(cast<VarBindingNode>(n));
    });
  }

private:
  void visitBinding(const VarBinding& b) {
    if (b->value.is<GraphCallNode>())
      plan(cast<GraphCallNode>(b->value), b->var);
    else if (auto sources = resolve(b->value))
      known_[b->var] = std::move(*sources);
  }

  std::optional<std::vector<Source>> resolve(const GraphExpr& e) const {
    if (const auto* c = e.as<ConstantNode>()) return std::vector<Source>{{c->value, c->name}};
    if (e.is<GraphVarNode>()) {
      auto it = known_.find(cast<GraphVarNode>(e));
      return it == known_.end() ? std::nullopt : std::optional(it->second);
    }
    if (const auto* get = e.as<TupleGetNode>()) {
      auto all = resolve(get->tuple);
      if (!all || size_t(get->index) >= all->size()) return std::nullopt;
      return std::vector<Source>{(*all)[size_t(get->index)]};
    }
    return std::nullopt;
  }

  // Every tensor argument is known; shapes are part of the program.
  bool resolveAll(const Array<GraphExpr>& args, std::vector<Source>& out) const {
    for (const GraphExpr& a : args) {
      if (a.is<GlobalVarNode>() || a.is<ShapeExprNode>() || isAbsent(a)) continue;
      if (const auto* tuple = a.as<TupleNode>()) {
        if (!resolveAll(tuple->items, out)) return false;
        continue;
      }
      auto sources = resolve(a);
      if (!sources || sources->size() != 1) return false;
      out.push_back((*sources)[0]);
    }
    return true;
  }

  bool growsMuch(const Work& w) const {
    int64_t in = 0, out = 0;
    for (const Source& s : w.inputs) {
      const auto& [dtype, shape] =
          s.value ? std::pair(s.value->dtype, s.value->shape) : work[s.work].call.results[s.result];
      in += bytesOf(dtype, shape);
    }
    for (const auto& [dtype, shape] : w.call.results) out += bytesOf(dtype, shape);
    return out > kSmallResult && out > kGrowth * in;
  }

  void plan(const GraphCall& call, const GraphVar& var) {
    Work w;
    if (!resolveAll(call->args, w.inputs)) return;
    auto runnable = ConstantCall::of(call, module_);
    if (!runnable || runnable->tensors.size() != w.inputs.size()) return;
    if (!runnable->isSmall && !canCompile_) return;
    w.call = std::move(*runnable);
    w.isTuple = var->type.is<TupleTypeNode>();
    if (growsMuch(w)) return;
    for (const Source& s : w.inputs)
      if (!s.value) w.level = std::max(w.level, work[s.work].level + 1);
    auto [it, isNew] = same_.emplace(std::pair(w.call.program.get(), w.inputs), work.size());
    byVar[var] = it->second;
    for (size_t i = 0; i < w.call.results.size(); ++i)
      known_[var].push_back({nullptr, w.inputs.size() == 1 ? w.inputs[0].name : "", it->second, i});
    if (isNew) work.push_back(std::move(w));
  }

  const Module& module_;
  bool canCompile_;
  std::unordered_map<GraphVar, std::vector<Source>, RefHash> known_;
  std::map<std::pair<const Node*, std::vector<Source>>, size_t> same_; // of equal calls, the first
};

class Folder : public ExprMutator {
public:
  Folder(const Module& module, const Collector& found) : ExprMutator(module), found_(found) {}

protected:
  Status emit(const VarBinding& b, const GraphExpr& value) override {
    GraphExpr folded = fold(b, value);
    return folded ? bindOrReplace(b->var, folded) : ExprMutator::emit(b, value);
  }

private:
  GraphExpr fold(const VarBinding& b, const GraphExpr& value) {
    if (auto it = found_.byVar.find(b->var); it != found_.byVar.end()) {
      const Work& w = found_.work[it->second];
      if (!w.results) return nullptr;
      return constantsOf(*w.results, w.isTuple, w.inputs.size() == 1 ? w.inputs[0].name : "");
    }
    const auto* get = value.as<TupleGetNode>();
    const auto* tuple = get ? get->tuple.as<TupleNode>() : nullptr;
    return tuple && size_t(get->index) < tuple->items.size() ? tuple->items[size_t(get->index)] : nullptr;
  }

  const Collector& found_;
};

// Equal programs are compiled once.
Result<std::vector<RunProgram>> compileLarge(std::vector<Work>& work, const CompilePrograms& compile) {
  std::vector<PrimFunc> programs;
  std::unordered_map<NodeRef, size_t, StructuralHasher, StructuralEq> known;
  for (Work& w : work) {
    if (w.call.isSmall) continue;
    auto [it, isNew] = known.emplace(w.call.program, programs.size());
    w.program = it->second;
    if (isNew) programs.push_back(w.call.program);
  }
  if (programs.empty()) return std::vector<RunProgram>{};
  return compile(programs);
}

void runOne(std::vector<Work>& all, Work& w, const std::vector<RunProgram>& programs, int threads) {
  HostTensors inputs;
  for (const Source& s : w.inputs) {
    if (!s.value && !all[s.work].results) return;
    inputs.push_back(s.value ? s.value : (*all[s.work].results)[s.result]);
  }
  w.results = w.call.run(inputs, w.call.isSmall ? nullptr : programs[w.program], threads);
}

void runAll(std::vector<Work>& work, const std::vector<RunProgram>& programs, int threads) {
  size_t levels = 0;
  for (const Work& w : work) levels = std::max(levels, w.level + 1);
  for (size_t level = 0; level < levels; ++level) {
    std::vector<Work*> ready;
    for (Work& w : work)
      if (w.level == level) ready.push_back(&w);
    if (ready.size() == 1)
      runOne(work, *ready[0], programs, threads);
    else
      parallelFor(ready.size(), threads, [&](size_t i) { runOne(work, *ready[i], programs, 1); });
  }
}

} // namespace

Result<Module> foldConstants(const Module& module, const CompilePrograms& compile, int threads) {
  Collector found(module, compile != nullptr);
  for (const GraphExpr& f : module->functions)
    if (f.is<FunctionNode>()) found.visit(cast<FunctionNode>(f));
  BEVEL_TRY(std::vector<RunProgram> programs, compileLarge(found.work, compile));
  runAll(found.work, programs, threads);
  return Folder(module, found).mutateModule();
}

} // namespace bevel
