// The pass lists. One row a pass.
#include "driver/pipeline.h"

#include "base/file.h"
#include "driver/host_kernel.h"
#include "driver/interpret_programs.h"
#include "graph/passes/passes.h"
#include "loop/index_bounds.h"
#include "loop/lower.h"
#include "sched/schedule.h"
#include "select/passes.h"
#include "select/split_preproc.h"

#include <fmt/format.h>

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

// A wrong script is a refused input, whatever the schedule's own interface calls it.
Error inTrace(Error error, const std::string& path) {
  if (error.code == ErrorCode::kUsage) error.code = ErrorCode::kInvalid;
  if (error.file.empty()) error.file = path;
  return withSource(std::move(error));
}

// Before the default schedules: programs that the trace schedules keep what it made.
Result<Module> applyTrace(const Module& module, const std::string& path) {
  if (path.empty()) return fail(ErrorCode::kUsage, "apply_trace has no trace: give it by --schedule FILE");
  BEVEL_TRY(Module after, applyTraceFile(module, path));
  auto out = make<ModuleNode>(*after);
  for (size_t i = 0; i < after->functions.size(); ++i)
    if (after->functions[i].is<PrimFuncNode>() &&
        !(after->functions[i] == module->find(after->names[i]->name)))
      out->functions.set(i, withAttr(cast<PrimFuncNode>(after->functions[i]), "tir.is_scheduled", intImm(1)));
  return Module(out);
}

/// A pass of the list, and whether the options want it.
struct Row {
  bool wanted;
  Pass pass;
};

std::vector<Row> programRows(PipelineContext& c) {
  return {
      {!c.scheduleFile.empty(),
       {"apply_trace", "the schedule of a file (--schedule)",
        [&c](const Module& m) { return applyTrace(m, c.scheduleFile); }}},
      {c.optimize,
       {"schedule", "the default schedule of every program that has none",
        [&c](const Module& m) { return scheduleAll(m, c.target, c.threads, &c.schedules); }}},
  };
}

// Calls of constants are run by this machine, whatever the target is; with --interpret only small ones are.
Result<Module> fold(const PipelineContext& c, const Module& module) {
  Target target = c.target.runsOn(Target::host()) ? c.target : Target::host();
  CompilePrograms compile = [&](const std::vector<PrimFunc>& programs) -> Result<std::vector<RunProgram>> {
    auto all = make<ModuleNode>();
    for (const PrimFunc& f : programs) {
      all->names.push_back(make<const GlobalVarNode>(fmt::format("constant_{}", all->names.size()), f->type));
      all->functions.push_back(f);
    }
    Module scheduled = all;
    if (c.optimize) {
      BEVEL_TRY(scheduled, scheduleAll(all, target, c.threads));
    }
    return HostKernel::compileAll(scheduled, target, c.threads, c.useCache);
  };
  return foldConstants(module, c.interpret ? nullptr : compile, c.threads);
}

// From graph functions to scheduled programs and planned memory.
std::vector<Row> compileRows(PipelineContext& c) {
  const bool always = true;
  auto folding = [&c](const Module& m) { return fold(c, m); };
  std::vector<Row> rows = {
      {always, {"check_sizes", "what calls need of symbolic sizes is checked at run time", Run(checkSizes)}},
      {always, {"fold_constants", "evaluates calls of constants", folding}},
      {always, {"remove_dead", "drops what nothing uses", Run(removeDead)}},
      {always, {"eliminate_common", "binds equal calls once", Run(eliminateCommon)}},
      {always, {"decompose", "replaces composite operators by simpler ones", Run(decompose)}},
      {always, {"fold_constants_again", "evaluates what decomposition uncovered", folding}},
      {always, {"remove_dead_again", "drops what folding left", Run(removeDead)}},
      {c.optimize, {"simplify", "removes and merges calls without effect", Run(simplifyGraph)}},
      {c.optimize,
       {"fold_affine", "batch norms and per-channel constants go into weights and bias", Run(foldAffine)}},
      {c.optimize,
       {"recognize", "operators that exporters took apart are put together", Run(recognizePatterns)}},
      {c.optimize,
       {"choose_algorithm", "transposed convolutions as pixel products",
        [&c](const Module& m) { return chooseAlgorithm(m, c.decisions.ask()); }}},
      {c.optimize,
       {"choose_layout", "regions around convolutions compute channels last",
        [&c](const Module& m) { return chooseLayout(m, c.decisions.ask()); }}},
      {c.optimize, {"simplify_again", "merges the moves that are left", Run(simplifyGraph)}},
      {always, {"legalize", "operators become tensor programs", Run(legalize)}},
      {c.optimize,
       {"fuse", "joins tensor programs (docs/fusion.md)",
        [&c](const Module& m) { return fuse(m, c.decisions.ask()); }}},
      {c.optimize,
       {"mark_constant_buffers", "notes which arguments are constants at every call",
        Run(markConstantBuffers)}},
      {always, {"count_work", "counts float operations and bytes of every program", Run(countWork)}},
      {c.fastMath,
       {"fast_math", "allows reassociation and approximate division (--fast-math)", Run(setFastMath)}},
  };
  for (Row& r : programRows(c)) rows.push_back(std::move(r));
  std::vector<Row> end = {
      {c.optimize, {"split_preproc", "packing of constants becomes programs of its own", Run(splitPreproc)}},
      {!c.interpret, {"evaluate_programs", "runs programs whose arguments are constants", folding}},
      {c.interpret,
       {"interpret_programs", "programs become calls of the reference interpreter (--interpret)",
        Run(interpretPrograms)}},
      {always, {"plan_memory", "makes memory explicit", Run(planMemory)}},
      {always, {"remove_dead_at_end", "drops functions that nothing calls", Run(removeDead)}},
  };
  for (Row& r : end) rows.push_back(std::move(r));
  return rows;
}

std::vector<Pass> wanted(std::vector<Row> rows) {
  std::vector<Pass> passes;
  for (Row& r : rows)
    if (r.wanted) passes.push_back(std::move(r.pass));
  return passes;
}

} // namespace

Error withSource(Error error) {
  auto text = error.span.line > 0 && !error.file.empty() ? readFile(error.file) : Result<std::string>("");
  if (!text) return error;
  size_t begin = 0;
  for (int line = 1; line < error.span.line && begin < text->size(); ++line)
    begin = std::min(text->find('\n', begin), text->size()) + 1;
  if (begin < text->size()) error.source = text->substr(begin, text->find('\n', begin) - begin);
  return error;
}

Result<Module> applyTraceFile(const Module& module, const std::string& path) {
  BEVEL_TRY(std::string text, readFile(path));
  BEVEL_TRY(Schedule schedule, Schedule::create(module));
  if (auto ok = runScript(schedule, text, path); !ok) return fail(inTrace(std::move(ok.error()), path));
  return schedule.mod();
}

std::vector<Pass> programPasses(PipelineContext& c) {
  return wanted(programRows(c));
}

std::vector<Pass> compilePasses(PipelineContext& c) {
  return wanted(compileRows(c));
}

std::vector<PassGroup> passGroups(PipelineContext& c) {
  PassGroup compile{"compile", "From graph functions to scheduled tensor programs and planned memory", {}};
  for (Row& r : compileRows(c)) compile.passes.push_back(std::move(r.pass));
  PassGroup loops{"lower", "From a scheduled tensor program to flat loops and vectors", {}};
  for (const LoopPass& p : lowerPasses()) {
    bool listed = false;
    for (const Pass& q : loops.passes) listed |= q.name == p.name;
    if (!listed)
      loops.passes.push_back(
          primFuncPass(p.name, p.doc, [&c, run = p.run](const PrimFunc& f) { return run(f, c.target); }));
  }
  loops.passes.push_back(primFuncPass("lower", "all of these, in order",
                                      [&c](const PrimFunc& f) { return lower(f, c.target); }));
  PassGroup checks{"check", "What a tensor program is asked, at any stage; no compile runs these", {}};
  checks.passes.push_back(primFuncPass("verify_bounds",
                                       "fails at an access that does not provably lie inside its buffer",
                                       [](const PrimFunc& f) -> Result<PrimFunc> {
                                         BEVEL_CHECK(verifyBounds(f));
                                         return f;
                                       }));
  return {std::move(compile), std::move(loops), std::move(checks)};
}

std::vector<Pass> knownPasses(PipelineContext& c) {
  std::vector<Pass> passes;
  for (PassGroup& group : passGroups(c))
    for (Pass& p : group.passes) passes.push_back(std::move(p));
  return passes;
}

std::string passesMarkdown() {
  PipelineContext context;
  std::string out =
      "# Passes\n\nGenerated from `src/driver/pipeline.cc` and `src/loop/lower.cc` by `./dev golden "
      "--update`. `bevel opt FILE --passes a,b` runs any of them by name; a compile runs those of the first "
      "two "
      "groups that its options want, in this order, and `--dump-dir` writes the module after each.\n";
  for (const PassGroup& group : passGroups(context)) {
    out += "\n## " + group.name + "\n\n" + group.doc + ".\n\n| pass | what it does |\n|---|---|\n";
    for (const Pass& p : group.passes) out += "| `" + p.name + "` | " + p.doc + " |\n";
  }
  return out;
}

} // namespace bevel
