// bevel opt: reads a module, runs passes, prints it.
#include "driver/commands.h"

#include "base/stack.h"
#include "ir/constants.h"
#include "ir/printer.h"
#include "ir/verify.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace bevel {
namespace {

struct OptFlags {
  BuildFlags build;
  std::string file, passes, output, stopAfter;
  bool list = false, verifyEach = false, printChanged = false;
};

Status optimise(const OptFlags& f) {
  BEVEL_TRY(BuildOptions options, buildOptions(f.build));
  PipelineContext context;
  context.target = options.target;
  context.threads = options.threads;
  context.optimize = options.optimize;
  context.scheduleFile = options.scheduleFile;
  if (f.list) {
    for (const Pass& p : knownPasses(context)) fmt::print("{:24} {}\n", p.name, p.doc);
    return {};
  }
  if (f.file.empty()) return fail(ErrorCode::kUsage, "no file given");
  BEVEL_TRY(Module module, readModel(f.file, options));
  std::vector<Pass> passes;
  if (!f.passes.empty()) {
    BEVEL_TRY(passes, selectPasses(knownPasses(context), f.passes));
  } // none: as read
  PassOptions run;
  run.verifyEach = f.verifyEach;
  run.printChanged = f.printChanged;
  run.stopAfter = f.stopAfter;
  run.dumpDir = f.build.dumpDir;
  std::vector<PassTiming> timings;
  run.timings = &timings;
  BEVEL_TRY(Module result, runPasses(passes, module, run));
  clearProgress();
  if (f.build.timings) fmt::print(stderr, "{}", timingTable(timings));
  if (!f.output.empty()) return writeModule(f.output, result);
  PrintOptions print;
  print.imports = true;
  fmt::print("{}", bevel::print(result, print));
  return {};
}

Status run(const OptFlags& f) {
  Status out;
  withLargeStack([&] { out = optimise(f); });
  return out;
}

} // namespace

void addOpt(CLI::App& app, Command& command) {
  auto flags = std::make_shared<OptFlags>();
  CLI::App* c = app.add_subcommand("opt", "Read a module, run passes on it, print it");
  c->add_option("FILE", flags->file, "A text module (.py, .bvl) or an ONNX model");
  c->add_option("--passes", flags->passes, "Names of passes, separated by commas; see --list")
      ->type_name("A,B,…");
  c->add_option("-o,--output", flags->output, "Write the text here, with its constants beside it")
      ->type_name("FILE");
  c->add_option("--stop-after", flags->stopAfter, "Leave out what comes after this pass")->type_name("PASS");
  c->add_flag("--verify-each", flags->verifyEach, "Check the module after every pass");
  c->add_flag("--print-changed", flags->printChanged,
              "Print the module after every pass that changed it, to standard error");
  c->add_flag("--list", flags->list, "List the passes");
  addBuildFlags(*c, flags->build);
  c->callback([flags, &command] { command.action = [flags] { return run(*flags); }; });
}

} // namespace bevel
