// See schedule.h.
#include "select/schedule.h"

#include "base/parallel.h"
#include "graph/visitor.h"
#include "ir/structural.h"

#include <algorithm>
#include <map>
#include <optional>

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

// Float operations of one run of the block, or nothing when its shape is symbolic.
std::optional<double> blockWork(const BlockNode& b) {
  double points = 1;
  for (const IterVar& a : b.iters) {
    auto extent = asConst(a->domain->extent);
    if (!extent) return std::nullopt;
    points *= double(*extent);
  }
  double work = 0;
  walk(b.body, [&](const NodeRef& n) {
    if (const auto* c = n.as<CallNode>())
      work += c->dtype.isFloat() && c->op != Intrin::kIfThenElse && c->op != Intrin::kLikely;
    if (const auto* x = n.as<BinaryNode>()) work += x->a->dtype.isFloat();
    return true;
  });
  return points * work;
}

std::optional<double> workOf(const PrimFunc& f) {
  std::optional<double> total = 0;
  walk(f->body, [&](const NodeRef& n) {
    const auto* b = n.as<BlockNode>();
    if (!b || b->iters.empty()) return true;
    auto work = blockWork(*b);
    total = total && work ? std::optional(*total + *work) : std::nullopt;
    return false;
  });
  return total;
}

std::optional<double> bytesOf(const PrimFunc& f) {
  double total = 0;
  for (const Buffer& b : f->buffers) {
    if (!b) continue;
    double bytes = double(b->dtype.bits) / 8;
    for (const Expr& d : b->shape) {
      auto extent = asConst(d);
      if (!extent) return std::nullopt;
      bytes *= double(*extent);
    }
    total += bytes;
  }
  return total;
}

} // namespace

Result<Module> countWork(const Module& module) {
  auto out = mutableCopy(module);
  for (size_t i = 0; i < module->functions.size(); ++i) {
    if (!module->functions[i].is<PrimFuncNode>()) continue;
    PrimFunc f = cast<PrimFuncNode>(module->functions[i]);
    auto work = workOf(f), bytes = bytesOf(f);
    if (work) f = withAttr(f, "flops", constantFloat(DType::Float(64), *work));
    if (bytes) f = withAttr(f, "bytes", constantFloat(DType::Float(64), *bytes));
    out->functions.set(i, f);
  }
  return Module(out);
}

Result<Module> scheduleAll(const Module& module, const Target& target, int threads,
                           std::vector<ScheduleReport>* report) {
  std::vector<size_t> programs;
  for (size_t i = 0; i < module->functions.size(); ++i)
    if (module->functions[i].is<PrimFuncNode>()) programs.push_back(i);
  std::vector<Result<DefaultSchedule>> results(programs.size(), fail(ErrorCode::kInternal, "not run"));
  parallelFor(programs.size(), threads, [&](size_t k) {
    results[k] = scheduleDefault(cast<PrimFuncNode>(module->functions[programs[k]]), target);
  });
  auto out = mutableCopy(module);
  for (size_t k = 0; k < programs.size(); ++k) {
    const std::string& name = module->names[programs[k]]->name;
    if (!results[k]) return fail(std::move(results[k].error()).note("while scheduling '" + name + "'"));
    out->functions.set(programs[k], results[k]->function);
    if (report) report->push_back({name, std::move(results[k]->trace), std::move(results[k]->why)});
  }
  return Module(out);
}

} // namespace bevel
