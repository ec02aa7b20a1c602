// bevel compile: a native library and a C header.
#include "driver/commands.h"
#include "driver/console.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace bevel {
namespace {

struct CompileFlags {
  BuildFlags build;
  std::string model, output;
  bool json = false, noDebug = false;
};

Status run(const CompileFlags& f) {
  BEVEL_TRY(BuildOptions options, buildOptions(f.build));
  options.debugInfo = !f.noDebug;
  if (f.output.empty() && f.build.options.dumpDir.empty())
    return fail(Error(ErrorCode::kUsage, "nothing to write: give -o FILE.so or --dump-dir DIR"));
  if (!f.output.empty() && !f.output.ends_with(".so"))
    return fail(
        Error(ErrorCode::kUsage, fmt::format("cannot write '{}': the output is a shared library", f.output))
            .help("name it FILE.so"));
  BEVEL_TRY(Compiled compiled, compileFile(f.model, options));
  if (!f.output.empty()) BEVEL_CHECK(writeLibrary(compiled, f.output));
  clearProgress();
  if (f.build.timings) fmt::print(stderr, "{}", timingTable(compiled.timings));
  if (f.json) {
    nlohmann::json passes = nlohmann::json::array();
    for (const PassTiming& t : compiled.timings)
      passes.push_back({{"name", t.name}, {"ms", t.seconds * 1000}});
    nlohmann::json simpler = nlohmann::json::array(); // kernels whose better schedule could not be lowered
    for (const ScheduleReport& s : compiled.schedules)
      if (s.simpler) simpler.push_back({{"kernel", s.name}, {"why", s.why}});
    nlohmann::json out = {{"output", f.output},
                          {"kernels", compiled.program.kernels.size()},
                          {"compiled", compiled.kernels.compiled},
                          {"from_cache", compiled.kernels.fromCache},
                          {"seconds", compiled.seconds + compiled.kernels.seconds},
                          {"simpler_schedules", simpler},
                          {"passes", passes}};
    sayJson(out);
  } else if (!f.output.empty()) {
    std::error_code ignored;
    say("{}: {} kernels ({} from the cache), {:.1f} MB, {:.1f} s\n", f.output,
        compiled.program.kernels.size(), compiled.kernels.fromCache,
        double(std::filesystem::file_size(f.output, ignored)) / 1e6,
        compiled.seconds + compiled.kernels.seconds);
  }
  return {};
}

} // namespace

void addCompile(CLI::App& app, Command& command) {
  auto flags = std::make_shared<CompileFlags>();
  CLI::App* c = app.add_subcommand("compile", "Compile a model to a native library with a C header");
  c->add_option("MODEL", flags->model, "An ONNX model, or a text module (.py, .bvl)")->required();
  c->add_option("-o,--output", flags->output, "The library to write; the header gets the same stem")
      ->type_name("FILE.so");
  c->add_flag("--no-debug", flags->noDebug, "No line tables for debuggers and profilers");
  c->add_flag("--json", flags->json, "Print what was done as JSON");
  addBuildFlags(*c, flags->build);
  runsOn(*c, command, flags, run);
}

} // namespace bevel
