// The pass lists. One row a pass.
#include "driver/pipeline.h"

#include "base/file.h"
#include "driver/evaluate_programs.h"
#include "graph/passes/passes.h"
#include "loop/lower.h"
#include "select/passes.h"
#include "select/split_preproc.h"

namespace bevel {
namespace {

using Run = Result<Module> (*)(const Module&);

Result<Module> setFastMath(const Module& module) {
  auto out = make<ModuleNode>(*module);
  for (size_t i = 0; i < module->functions.size(); ++i)
    if (module->functions[i].is<PrimFuncNode>())
      out->functions.set(i, withAttr(cast<PrimFuncNode>(module->functions[i]), "fast_math", intImm(1)));
  return Module(out);
}

// A trace from a file, before the default schedules: programs that it schedules keep what it made.
Result<Module> applyTrace(const Module& module, const std::string& path) {
  BEVEL_TRY(std::string text, readFile(path));
  BEVEL_TRY(Trace trace, Trace::parse(text, path));
  BEVEL_TRY(Schedule schedule, Schedule::create(module));
  BEVEL_CHECK(trace.applyTo(schedule));
  Module after = schedule.mod();
  auto out = make<ModuleNode>(*after);
  for (size_t i = 0; i < after->functions.size(); ++i)
    if (after->functions[i].is<PrimFuncNode>() &&
        !(after->functions[i] == module->find(after->names[i]->name)))
      out->functions.set(i, withAttr(cast<PrimFuncNode>(after->functions[i]), "tir.is_scheduled", intImm(1)));
  return Module(out);
}

} // namespace

std::vector<Pass> programPasses(PipelineContext& c) {
  std::vector<Pass> passes;
  if (!c.scheduleFile.empty())
    passes.push_back({"apply_trace", "the schedule of a file",
                      [&c](const Module& m) { return applyTrace(m, c.scheduleFile); }});
  if (c.optimize)
    passes.push_back({"schedule", "the default schedule of every program",
                      [&c](const Module& m) { return scheduleAll(m, c.target, c.threads, &c.schedules); }});
  return passes;
}

std::vector<Pass> compilePasses(PipelineContext& c) {
  std::vector<Pass> passes = {
      {"fold_constants", "evaluates calls of constants", Run(foldConstants)},
      {"remove_dead", "drops what nothing uses", Run(removeDead)},
      {"eliminate_common", "binds equal calls once", Run(eliminateCommon)},
      {"decompose", "replaces composite operators by simpler ones", Run(decompose)},
      {"fold_constants_again", "evaluates what decomposition uncovered", Run(foldConstants)},
      {"remove_dead_again", "drops what folding left", Run(removeDead)},
  };
  if (c.optimize) {
    passes.push_back({"simplify", "removes and merges calls without effect", Run(simplifyGraph)});
    passes.push_back(
        {"fold_affine", "batch norms and per-channel constants go into weights and bias", Run(foldAffine)});
    passes.push_back(
        {"recognize", "operators that exporters took apart are put together", Run(recognizePatterns)});
    passes.push_back({"choose_algorithm", "transposed convolutions as pixel products", Run(chooseAlgorithm)});
    passes.push_back(
        {"choose_layout", "regions around convolutions compute channels last", Run(chooseLayout)});
    passes.push_back({"simplify_again", "merges the moves that are left", Run(simplifyGraph)});
  }
  passes.push_back({"legalize", "operators become tensor programs", Run(legalize)});
  if (c.optimize) {
    passes.push_back({"fuse", "joins tensor programs (docs/fusion.md)", Run(fuse)});
    passes.push_back({"mark_constant_buffers", "notes which arguments are constants at every call",
                      Run(markConstantBuffers)});
  }
  passes.push_back({"count_work", "counts float operations and bytes of every program", Run(countWork)});
  if (c.fastMath)
    passes.push_back({"fast_math", "allows reassociation and approximate division", Run(setFastMath)});
  for (Pass& p : programPasses(c)) passes.push_back(std::move(p));
  if (c.optimize)
    passes.push_back(
        {"split_preproc", "packing of constants becomes programs of its own", Run(splitPreproc)});
  passes.push_back({"evaluate_programs", "runs programs whose arguments are constants",
                    [&c](const Module& m) { return evaluatePrograms(m, c.target, c.threads, c.useCache); }});
  passes.push_back({"plan_memory", "makes memory explicit", Run(planMemory)});
  passes.push_back({"remove_dead_at_end", "drops functions that nothing calls", Run(removeDead)});
  return passes;
}

std::vector<Pass> knownPasses(PipelineContext& c) {
  std::vector<Pass> passes = compilePasses(c);
  for (const LoopPass& p : lowerPasses()) {
    bool listed = false;
    for (const Pass& q : passes) listed |= q.name == p.name;
    if (!listed)
      passes.push_back(primFuncPass(p.name, p.doc, [run = p.run](const PrimFunc& f) { return run(f); }));
  }
  passes.push_back(
      primFuncPass("lower", "all lowering passes", [&c](const PrimFunc& f) { return lower(f, c.target); }));
  return passes;
}

} // namespace bevel
