// The commands of the tool, one file each.
#pragma once

#include "driver/compile.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace bevel {

/// What the chosen command does. `json`: errors are printed as JSON too. `model`: the file that is named where an error
/// about a model names none.
struct Command {
  std::function<Status()> action;
  bool json = false;
  std::string model;
};
/// The command, where it is chosen: `run` with its flags.
template <class App, class Flags>
void runsOn(App& app, Command& command, std::shared_ptr<Flags> flags, Status (*run)(const Flags&)) {
  app.callback([flags, run, &command] {
    command.json = flags->json;
    if constexpr (requires { flags->model; }) command.model = flags->model;
    command.action = [flags, run] { return run(*flags); };
  });
}

void addRun(CLI::App& app, Command& command);
void addCompile(CLI::App& app, Command& command);
void addBench(CLI::App& app, Command& command);
void addOpt(CLI::App& app, Command& command);
void addInspect(CLI::App& app, Command& command);
void addExplain(CLI::App& app, Command& command);
void addOps(CLI::App& app, Command& command);
void addDocs(CLI::App& app, Command& command);

/// Options that every compiling command has.
struct BuildFlags {
  BuildOptions options; // what flags set as it is
  std::string target = "host";
  bool noOpt = false, noCache = false, timings = false;
  std::vector<std::string> dims, shapes; // NAME=VALUE
  std::vector<std::string> answers;      // QUESTION=CANDIDATE
};
void addBuildFlags(CLI::App& command, BuildFlags& flags);
Result<BuildOptions> buildOptions(const BuildFlags& flags);

/// "412 bytes", "1.5 kB", "3.25 MB".
std::string byteText(double bytes);
/// "name=rest" split at the first '='.
Result<std::pair<std::string, std::string>> keyValue(const std::string& text, const char* option);
/// A line on standard error that replaces itself, when that is a terminal.
std::function<void(const std::string&, size_t, size_t)> progressLine();
void clearProgress();

/// Names of an ONNX model's inputs as in the file, initialisers among them included, and of their dimensions; empty for
/// other files.
struct GraphInputs {
  std::vector<std::string> names, dims;
  std::vector<bool> initialised;
};
Result<GraphInputs> onnxGraphInputs(const std::string& path);
bool isOnnxPath(const std::string& path);

} // namespace bevel
