// bevel opt: reads a module, applies a trace, runs passes, prints it.
#include "driver/commands.h"
#include "driver/console.h"
#include "driver/program.h"

#include "base/stack.h"
#include "ir/constants.h"
#include "ir/printer.h"
#include "ir/structural.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace bevel {
namespace {

struct OptFlags {
  BuildFlags build;
  std::string model, passes, output, stopAfter, function, expect;
  bool list = false, verifyEach = false, printChanged = false, json = false;
};

void list(PipelineContext& context, bool json) {
  nlohmann::json rows = nlohmann::json::array();
  for (const PassGroup& group : passGroups(context)) {
    if (!json) say("{}{}:\n", rows.empty() ? "" : "\n", group.doc);
    for (const Pass& p : group.passes) {
      rows.push_back({{"name", p.name}, {"doc", p.doc}, {"group", group.name}, {"needed", p.needed}});
      if (!json) say("  {:24} {}\n", p.name, p.doc);
    }
  }
  if (json) sayJson(nlohmann::json({{"passes", rows}}));
}

// A trace alone shows just what the schedule makes; before other passes it is a pass like them.
Result<std::vector<Pass>> chosenPasses(PipelineContext& context, const OptFlags& f) {
  std::string names = f.passes;
  if (!context.options.scheduleFile.empty() && names.find("apply_trace") == std::string::npos &&
      !names.empty())
    names = "apply_trace," + names;
  return selectPasses(knownPasses(context), names);
}

Status compare(const Module& result, const OptFlags& f, const BuildOptions& options) {
  BEVEL_TRY(Module expected, readModel(f.expect, options));
  if (structuralEqual(result, expected)) return {};
  return fail(Error(ErrorCode::kInvalid, "the result differs from " + f.expect)
                  .note("first at " + firstDifference(result, expected) + " (the result against the file)"));
}

Result<Module> only(const Module& module, const std::string& function, const std::string& path) {
  if (function.empty()) return module;
  BEVEL_TRY(std::string name, chosenFunction(module, function, path));
  auto out = make<ModuleNode>();
  out->names.push_back(make<const GlobalVarNode>(name));
  out->functions.push_back(module->find(name));
  return Module(out);
}

Status optimise(const OptFlags& f) {
  BEVEL_TRY(BuildOptions options, buildOptions(f.build));
  PipelineContext context(options);
  if (f.list) {
    list(context, f.json);
    return {};
  }
  if (f.model.empty())
    return fail(Error(ErrorCode::kUsage, "no file given").help("bevel opt FILE, or --list for the passes"));
  BEVEL_TRY(Module module, readModel(f.model, options));
  BEVEL_TRY(std::vector<Pass> passes, chosenPasses(context, f));
  if (!options.scheduleFile.empty() && passes.empty()) {
    BEVEL_TRY(module, applyTraceFile(module, options.scheduleFile));
  }
  PassOptions run = passOptions(options);
  run.verifyEach = true;
  run.roundTripEach = f.verifyEach;
  run.printChanged = f.printChanged;
  run.stopAfter = f.stopAfter;
  std::vector<PassTiming> timings;
  run.timings = &timings;
  BEVEL_TRY(Module result, runPasses(passes, module, run));
  BEVEL_CHECK(context.decisions.checkAnswers());
  BEVEL_TRY(result, only(result, f.function, f.model));
  clearProgress();
  if (f.build.timings) fmt::print(stderr, "{}", timingTable(timings));
  if (!f.expect.empty()) return compare(result, f, options);
  if (!f.output.empty()) BEVEL_CHECK(writeModule(f.output, result));
  PrintOptions print;
  print.imports = true;
  if (f.json) {
    nlohmann::json ran = nlohmann::json::array();
    for (const PassTiming& t : timings)
      ran.push_back({{"name", t.name}, {"ms", t.seconds * 1000}, {"changed", t.changed}});
    nlohmann::json out = {{"module", bevel::print(result, print)}, {"passes", ran}};
    sayJson(out);
  } else if (f.output.empty()) {
    say("{}", bevel::print(result, print));
  }
  return {};
}

Status run(const OptFlags& f) {
  return onLargeStack([&] { return optimise(f); });
}

} // namespace

void addOpt(CLI::App& app, Command& command) {
  auto flags = std::make_shared<OptFlags>();
  CLI::App* c = app.add_subcommand("opt", "Read a module, run passes or a schedule on it, print it");
  c->add_option("FILE", flags->model, "A text module (.py, .bvl) or an ONNX model");
  c->add_option("--passes", flags->passes,
                "Names of passes, separated by commas; a name may come again. See --list")
      ->type_name("A,B,…");
  c->add_option("--function", flags->function, "Keep only this function of the result")->type_name("NAME");
  c->add_option("-o,--output", flags->output, "Write the text here instead, with its constants beside it")
      ->type_name("FILE");
  c->add_option(
       "--expect", flags->expect,
       "Compare the result with this module instead of printing it: the same up to names of variables, "
       "or exit code 3 and where they first differ")
      ->type_name("FILE");
  c->add_option("--stop-after", flags->stopAfter, "Leave out what comes after this pass")->type_name("PASS");
  c->add_flag("--verify-each", flags->verifyEach,
              "Check the module after every pass: its rules, and that its text reads back as the same");
  c->add_flag("--print-changed", flags->printChanged,
              "Print the module after every pass that changed it, to standard error");
  c->add_flag("--list", flags->list, "List the passes, in the order in which a compile runs them");
  c->add_flag("--json", flags->json, "Print the module, and what ran, as one JSON object");
  addBuildFlags(*c, flags->build);
  c->footer("--schedule FILE applies a trace before the passes, or by itself: the program that the schedule "
            "makes.");
  runsOn(*c, command, flags, run);
}

} // namespace bevel
