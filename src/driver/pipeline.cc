// The pass lists. One row a pass.
#include "driver/pipeline.h"

#include "base/file.h"
#include "driver/interpret_programs.h"
#include "driver/session.h"
#include "graph/passes/passes.h"
#include "ir/build.h"
#include "loop/index_bounds.h"
#include "loop/lower.h"
#include "sched/schedule.h"
#include "select/passes.h"
#include "select/schedule.h"

#include <fmt/format.h>

namespace bevel {
namespace {

using Run = Result<Module> (*)(const Module&);

Pass needed(Pass pass) {
  pass.needed = true;
  return pass;
}

Result<PrimFunc> setFastMath(const PrimFunc& f) {
  return withAttr(f, "fast_math", intImm(1));
}

// A program may carry a target of its own.
Result<PrimFunc> setTarget(const PrimFunc& f, const Target& target) {
  if (!attr(f->attrs, "target")) return withAttr(f, "target", make<const StringImmNode>(target.brief()));
  BEVEL_CHECK(targetOf(f, target));
  return f;
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

// What was taken, and the alternatives with what the model thinks each costs.
std::string choiceText(const DecisionReport& d) {
  std::string chosen, others;
  for (size_t i = 0; i < d.candidates.size(); ++i) {
    std::string text = d.candidates[i] + (d.costs.empty() ? "" : fmt::format(" ({} cycles)", d.costs[i]));
    if (i == d.decision)
      chosen = text + (d.why.empty() ? "" : " (" + d.why + ")");
    else
      others += (others.empty() ? "" : ", ") + text;
  }
  return chosen + "; instead of " + others;
}

// A pass that asks. Questions of one kind that were answered alike are one subject: "layout of conv1", "layout of conv2".
Pass asking(PipelineContext& c, std::string name, std::string doc,
            Result<Module> (*run)(const Module&, const Ask&)) {
  auto noted = [&c, name, run](const Module& module) -> Result<Module> {
    size_t before = c.options.notes ? decisionsOf(c.decisions.trace).size() : 0;
    BEVEL_TRY(Module out, run(module, c.decisions.ask()));
    if (!c.options.notes) return out;
    std::vector<DecisionReport> all = decisionsOf(c.decisions.trace);
    for (size_t i = before; i < all.size(); ++i) {
      const DecisionReport& d = all[i];
      constexpr std::string_view kOf = " of ";
      size_t at = d.name.find(kOf);
      c.notes.push_back({name, d.name.substr(0, at) + ": " + choiceText(d),
                         at == d.name.npos ? "" : d.name.substr(at + kOf.size())});
    }
    return out;
  };
  return {std::move(name), std::move(doc), noted};
}

Result<Module> notedSchedules(PipelineContext& context, const Module& module) {
  const BuildOptions& o = context.options;
  BEVEL_TRY(Module out, scheduleAll(module, o.target, o.checkSchedules, o.threads, &context.schedules));
  if (!o.notes) return out;
  for (const ScheduleReport& s : context.schedules) {
    auto note = [&](std::string text, bool detail = false) {
      context.notes.push_back({"schedule", s.name, std::move(text), true, detail});
    };
    for (const std::string& why : s.why) note(why);
    for (const DecisionReport& d : decisionsOf(s.trace)) note(fmt::format("- {}: {}", d.name, choiceText(d)));
    if (std::string trace = s.trace.str(); !trace.empty()) note(std::move(trace), true);
  }
  return out;
}

/// A pass of the list, and whether the options want it.
struct Row {
  bool wanted;
  Pass pass;
};

std::vector<Row> programRows(PipelineContext& c) {
  const BuildOptions& o = c.options;
  return {
      {true,
       {"set_target", "programs without a target get that of the compile", nullptr,
        [&o](const PrimFunc& f) { return setTarget(f, o.target); }}},
      {!o.scheduleFile.empty(),
       {"apply_trace", "the schedule of a file (--schedule)",
        [&o](const Module& m) { return applyTrace(m, o.scheduleFile); }}},
      {o.optimize,
       {"schedule", "the default schedule of every program that has none",
        [&c](const Module& m) { return notedSchedules(c, m); }}},
  };
}

// Programs as machine code of this machine, in order.
Result<std::vector<RunProgram>> runnable(const Module& programs, const BuildOptions& o) {
  BEVEL_TRY(Module module, callInPlace(programs));
  if (o.optimize) {
    BEVEL_TRY(module, scheduleAll(module, o.target, o.checkSchedules, o.threads));
  }
  PassOptions run;
  run.threads = o.threads;
  BEVEL_TRY(module, runPasses(lowerPasses(o.target), module, run));
  BEVEL_TRY(Compiled compiled, emitModule(module, o));
  BEVEL_TRY(auto loaded, load(compiled));
  std::vector<RunProgram> out;
  for (size_t i = 0; i < programs->names.size(); ++i)
    out.push_back([loaded, i](HostTensors buffers, const std::vector<Ref<TensorObject>>& results,
                              int threads) -> Status {
      BEVEL_TRY(auto session, Session::create(loaded, threads));
      buffers.insert(buffers.end(), results.begin(), results.end());
      return session->callInPlace(int32_t(i), buffers);
    });
  return out;
}

// Calls of constants are run by this machine, whatever the target is; with --interpret only small ones are.
Result<Module> fold(const BuildOptions& options, const Module& module) {
  BuildOptions o = options;
  if (!o.target.runsOn(Target::host())) o.target = Target::host();
  CompilePrograms compile = [&](const std::vector<PrimFunc>& programs) -> Result<std::vector<RunProgram>> {
    auto all = make<ModuleNode>();
    for (PrimFunc f : programs) {
      BEVEL_TRY(Target own, targetOf(f, o.target));
      if (!own.runsOn(Target::host())) f = withAttr(f, "target", nullptr);
      all->names.push_back(make<const GlobalVarNode>(fmt::format("constant_{}", all->names.size()), f->type));
      all->functions.push_back(f);
    }
    return runnable(all, o);
  };
  return foldConstants(module, o.interpret ? nullptr : compile, o.threads);
}

// From graph functions to scheduled programs and planned memory.
std::vector<Row> compileRows(PipelineContext& c) {
  const BuildOptions& o = c.options;
  auto folding = [&o](const Module& m) { return fold(o, m); };
  const bool always = true, graph = o.optimize && !o.onlySchedule;
  std::vector<Row> rows = {
      {always,
       {"call_programs", "in a module without graph functions, one that calls each tensor program",
        Run(callPrograms)}},
      {always, {"check_sizes", "what calls need of symbolic sizes is checked at run time", Run(checkSizes)}},
      {always, {"fold_constants", "evaluates calls of constants", folding}},
      {always, {"remove_dead", "drops what nothing uses", Run(removeDead)}},
      {always, {"eliminate_common", "binds equal calls once", Run(eliminateCommon)}},
      {always, {"decompose", "replaces composite operators by simpler ones", Run(decompose)}},
      {always, {"fold_constants_again", "evaluates what decomposition uncovered", folding}},
      {always, {"remove_dead_again", "drops what folding left", Run(removeDead)}},
      {graph, {"simplify", "removes and merges calls without effect", Run(simplifyGraph)}},
      {graph,
       {"fold_affine", "batch norms and per-channel constants go into weights and bias", Run(foldAffine)}},
      {graph, {"recognize", "operators that exporters took apart are put together", Run(recognizePatterns)}},
      {graph, asking(c, "choose_algorithm", "transposed convolutions as pixel products", chooseAlgorithm)},
      {graph, asking(c, "choose_layout", "regions around convolutions compute channels last", chooseLayout)},
      {graph, {"simplify_again", "merges the moves that are left", Run(simplifyGraph)}},
      {always, needed({"legalize", "operators become tensor programs", Run(legalize)})},
      {graph, asking(c, "fuse", "joins tensor programs (docs/fusion.md)", fuse)},
      {o.optimize,
       {"mark_constant_buffers", "notes which arguments are constants at every call",
        Run(markConstantBuffers)}},
      {always, {"count_work", "counts float operations and bytes of every program", Run(countWork)}},
      {o.fastMath,
       {"fast_math", "allows reassociation and approximate division (--fast-math)", nullptr, setFastMath}},
  };
  for (Row& r : programRows(c)) rows.push_back(std::move(r));
  std::vector<Row> end = {
      {o.optimize, {"split_preproc", "packing of constants becomes programs of its own", Run(splitPreproc)}},
      {!o.interpret, {"evaluate_programs", "runs programs whose arguments are constants", folding}},
      {o.interpret,
       {"interpret_programs", "programs become calls of the reference interpreter (--interpret)",
        Run(interpretPrograms)}},
      {always, needed({"plan_memory", "makes memory explicit", Run(planMemory)})},
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
  std::vector<Pass> passes = wanted(compileRows(c));
  for (Pass& p : lowerPasses(c.options.target)) passes.push_back(std::move(p));
  return passes;
}

PassOptions passOptions(const BuildOptions& o) {
  PassOptions run;
  run.dumpDir = o.dumpDir;
  run.disabled = o.without;
  run.threads = o.threads;
  run.progress = o.progress;
  return run;
}

std::vector<PassGroup> passGroups(PipelineContext& c) {
  PassGroup compile{"compile", "From graph functions to scheduled tensor programs and planned memory", {}};
  for (Row& r : compileRows(c)) compile.passes.push_back(std::move(r.pass));
  PassGroup loops{"lower", "From a scheduled tensor program to flat loops and vectors",
                  lowerPasses(c.options.target)};
  loops.passes.push_back({"lower", "all of these, in order", [&c](const Module& m) {
                            PassOptions run;
                            run.threads = c.options.threads;
                            return runPasses(lowerPasses(c.options.target), m, run);
                          }});
  PassGroup checks{"check", "What a tensor program is asked, at any stage; no compile runs these", {}};
  checks.passes.push_back({"verify_bounds", "fails at an access that does not provably lie inside its buffer",
                           nullptr, [](const PrimFunc& f) -> Result<PrimFunc> {
                             BEVEL_CHECK(verifyBounds(f));
                             return f;
                           }});
  return {std::move(compile), std::move(loops), std::move(checks)};
}

std::vector<Pass> knownPasses(PipelineContext& c) {
  std::vector<Pass> passes;
  for (PassGroup& group : passGroups(c))
    for (Pass& p : group.passes) passes.push_back(std::move(p));
  return passes;
}

std::string passesMarkdown() {
  PipelineContext context{BuildOptions()};
  std::string out =
      "# Passes\n\nGenerated from `src/driver/pipeline.cc` and `src/loop/passes/passes.def` by `./dev golden "
      "--update`. `bevel opt FILE --passes a,b` runs any of them by name; a compile runs those of the first "
      "two "
      "groups that its options want, in this order, and `--dump-dir` writes the module after each.\n";
  for (const PassGroup& group : passGroups(context)) {
    out += "\n## " + group.name + "\n\n" + group.doc + ".\n\n| pass | what it does |\n|---|---|\n";
    for (const Pass& p : group.passes)
      out += "| `" + p.name + "` | " + p.doc + (p.needed ? " (cannot be left out) |\n" : " |\n");
  }
  return out;
}

} // namespace bevel
