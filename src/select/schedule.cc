// See schedule.h.
#include "select/schedule.h"

#include "arith/analyzer.h"
#include "base/parallel.h"
#include "graph/visitor.h"
#include "ir/build.h"
#include "ir/printer.h"
#include "ir/structural.h"
#include "loop/lower.h"
#include "loop/reduction.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace bevel {

Result<Module> markConstantBuffers(const Module& module) {
  std::map<std::string, std::vector<bool>> constant; // for each program, which arguments always are
  for (const GraphExpr& f : module->functions) {
    if (!f.is<FunctionNode>()) continue;
    forEachCall(cast<FunctionNode>(f), [&](const GraphCall& call, const GraphVar&) {
      const auto* g = call->isOp("call_tir") ? call->args[0].as<GlobalVarNode>() : nullptr;
      const auto* args = g ? call->args[1].as<TupleNode>() : nullptr;
      if (!args) return;
      auto [it, fresh] = constant.emplace(g->name, std::vector<bool>());
      it->second.resize(args->items.size(), fresh);
      for (size_t i = 0; i < args->items.size(); ++i)
        if (!args->items[i].is<ConstantNode>()) it->second[i] = false;
    });
  }
  Module out = module;
  for (const auto& [name, flags] : constant) {
    GraphExpr f = out->find(name);
    if (!f.is<PrimFuncNode>()) continue;
    std::vector<int64_t> indices;
    for (size_t i = 0; i < flags.size(); ++i)
      if (flags[i]) indices.push_back(int64_t(i));
    PrimFunc marked =
        withAttr(cast<PrimFuncNode>(f), "layout_free_buffers", indices.empty() ? nullptr : intList(indices));
    out = withFunction(out, name, marked);
  }
  return out;
}

namespace {

// A sum of products of extents: a number, and an expression over the symbolic dimensions (null: none).
class Amount {
public:
  // Adds factor * the product of the extents.
  void add(double factor, const std::vector<Expr>& extents) {
    Expr symbolic;
    for (const Expr& e : extents) {
      Expr wide = castTo(kInt64, e);
      if (auto extent = asConst(e))
        factor *= double(*extent);
      else
        symbolic = symbolic ? symbolic * wide : wide;
    }
    if (!symbolic) {
      number_ += factor;
      return;
    }
    exact_ &= factor < 0x1p53 && factor == std::floor(factor);
    if (exact_ && factor != 0) symbolic = symbolic * intImm(int64_t(factor));
    if (factor != 0) rest_ = rest_ ? rest_ + symbolic : symbolic;
  }

  // Keeps it as the attribute `key`, a number, or as `key`_text, an expression over the dimensions' names.
  PrimFunc mark(const PrimFunc& f, const std::string& key) const {
    if (!rest_) return withAttr(f, key, constantFloat(DType::Float(64), number_));
    if (!exact_ || number_ >= 0x1p53) return f;
    Analyzer analyzer;
    Expr all = analyzer.simplify(rest_ + intImm(int64_t(std::ceil(number_))));
    return withAttr(f, key + "_text", make<const StringImmNode>(print(all)));
  }

private:
  double number_ = 0;
  Expr rest_;
  bool exact_ = true;
};

Amount operationsOf(const PrimFunc& f) {
  Amount total;
  walk(f->body, [&](const NodeRef& n) {
    const auto* b = n.as<BlockNode>();
    if (!b || b->iters.empty()) return true;
    std::vector<Expr> extents;
    for (const IterVar& a : b->iters) extents.push_back(a->domain->extent);
    total.add(double(workOf(b->body).operations), extents);
    return false;
  });
  return total;
}

Amount bytesOf(const PrimFunc& f) {
  Amount total;
  for (const Buffer& b : f->buffers)
    if (b) total.add(double(b->dtype.bits) / 8, {b->shape.begin(), b->shape.end()});
  return total;
}

} // namespace

Result<Module> countWork(const Module& module) {
  auto out = mutableCopy(module);
  for (size_t i = 0; i < module->functions.size(); ++i) {
    if (!module->functions[i].is<PrimFuncNode>()) continue;
    PrimFunc f = cast<PrimFuncNode>(module->functions[i]);
    out->functions.set(i, bytesOf(f).mark(operationsOf(f).mark(f, "flops"), "bytes"));
  }
  return Module(out);
}

Result<Module> scheduleAll(const Module& module, const Target& target, bool checked, int threads,
                           std::vector<ScheduleReport>* report) {
  std::vector<size_t> programs;
  for (size_t i = 0; i < module->functions.size(); ++i)
    if (module->functions[i].is<PrimFuncNode>()) programs.push_back(i);
  std::vector<Result<DefaultSchedule>> results(programs.size(), fail(ErrorCode::kInternal, "not run"));
  parallelFor(programs.size(), threads, [&](size_t k) {
    PrimFunc f = cast<PrimFuncNode>(module->functions[programs[k]]);
    auto own = targetOf(f, target);
    if (!own)
      results[k] = fail(std::move(own.error()));
    else
      results[k] = checked ? scheduleDefault(f, *own) : scheduleByRules(f, *own);
  });
  auto out = mutableCopy(module);
  for (size_t k = 0; k < programs.size(); ++k) {
    const std::string& name = module->names[programs[k]]->name;
    if (!results[k]) return fail(std::move(results[k].error()).note("while scheduling '" + name + "'"));
    out->functions.set(programs[k], results[k]->function);
    if (report)
      report->push_back(
          {name, std::move(results[k]->trace), std::move(results[k]->why), results[k]->simpler});
  }
  return Module(out);
}

} // namespace bevel
