// bevel: the command line tool.
#include "driver/commands.h"
#include "driver/console.h"

#include "ir/render.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fmt/format.h>
#include <new>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unistd.h>

namespace bevel {
namespace {

int exitCode(ErrorCode code) {
  if (code == ErrorCode::kInternal) return 1;
  return code == ErrorCode::kUsage ? 2 : 3;
}

const char* codeName(ErrorCode code) {
  static const char* const names[] = {"internal", "usage", "invalid", "unsupported", "illegal", "io"};
  return names[size_t(code)];
}

void printJson(const Error& error) {
  nlohmann::json out = {{"error",
                         {{"code", codeName(error.code)},
                          {"message", error.message},
                          {"notes", error.notes},
                          {"hint", error.hint}}}};
  sayJson(out);
}

int report(const Error& error, bool json) {
  clearProgress();
  RenderOptions options;
  const char* plain = std::getenv("NO_COLOR"); // https://no-color.org
  options.color = isatty(2) != 0 && !(plain && *plain);
  fmt::print(stderr, "{}\n", render(withSource(error), options));
  if (json) printJson(error);
  return exitCode(error.code);
}

int runTool(int argc, char** argv) {
  CLI::App app("Bevel compiles trained models to native code.\n", "bevel");
  app.set_version_flag("--version", std::string("bevel ") + bevel_version());
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  app.footer(
      "Exit codes: 0 it ran; 1 a fault of the tool; 2 wrong usage; 3 the model or an input is refused.\n"
      "`bevel COMMAND --help` tells the options of a command.");
  Command command;
  addRun(app, command);
  addCompile(app, command);
  addBench(app, command);
  addOpt(app, command);
  addInspect(app, command);
  addExplain(app, command);
  addOps(app, command);
  addDocs(app, command);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (app.exit(e) == 0) return 0;
    bool json = std::any_of(argv, argv + argc, [](const char* a) { return std::string_view(a) == "--json"; });
    if (json) printJson(Error(ErrorCode::kUsage, e.what()));
    return 2;
  }
  Status status;
  try {
    status = command.action();
    if (status) status = flushOutput();
  } catch (const std::bad_alloc&) {
    status = fail(ErrorCode::kInternal,
                  "out of memory: the model, or an input, is too large for what this process may use");
  } catch (const std::exception& e) { // a library's
    status = fail(ErrorCode::kInternal, e.what());
  }
  clearProgress();
  if (status) return 0;
  Error& error = status.error();
  bool ofModel = exitCode(error.code) == 3 && error.code != ErrorCode::kIo;
  if (ofModel && error.file.empty()) error.file = command.model;
  return report(error, command.json);
}

} // namespace
} // namespace bevel

int main(int argc, char** argv) {
  std::signal(SIGABRT, [](int) { _exit(1); }); // a broken assertion has printed itself: a fault of the tool
  std::signal(SIGXFSZ, SIG_IGN);               // a file over the limit is an error of writing it
  return bevel::runTool(argc, argv);
}
