// bevel run: compiles a model in memory and runs it once.
#include "driver/commands.h"
#include "driver/console.h"
#include "driver/pipeline.h"
#include "driver/program.h"
#include "driver/session.h"

#include "base/stack.h"
#include "ir/build.h"
#include "loop/interpreter.h"
#include "loop/kernel_signature.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace bevel {
namespace {

using nlohmann::json;

struct RunFlags {
  BuildFlags build;
  std::string model, inputDir, outputDir, function;
  std::vector<std::string> inputs;
  int64_t random = -1;
  int threads = 0;
  bool npy = false, interpret = false, json = false;
};

bool exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

// A file of the input folder by number: `.pb` first, `.npy` else; "" when there is neither.
std::string inputFile(const RunFlags& f, size_t i) {
  for (const char* end : {"pb", "npy"})
    if (std::string path = fmt::format("{}/input_{}.{}", f.inputDir, i, end); exists(path)) return path;
  return "";
}

Status makeFolder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return fail(ErrorCode::kIo, fmt::format("cannot make the folder '{}': {}", folder, error.message()));
  return {};
}

std::string summary(const HostValue& v) {
  if (v.isNone()) return "none";
  if (v.isList) return fmt::format("list of {}", v.items.size());
  const TensorObject& t = *v.tensor;
  std::string shape, values;
  for (int64_t d : t.shape) shape += (shape.empty() ? "" : ", ") + std::to_string(d);
  for (int64_t i = 0; i < std::min<int64_t>(t.size(), 8); ++i) {
    if (i) values += ", ";
    if (t.dtype.isString())
      values += '"' + t.strings[size_t(i)] + '"';
    else if (t.dtype.isFloat())
      values += fmt::format("{:.6g}", t.asDouble(i));
    else if (t.dtype.code == TypeCode::kComplex)
      values += "…";
    else
      values += t.dtype.isUInt() ? std::to_string(uint64_t(t.asInt(i))) : std::to_string(t.asInt(i));
  }
  return fmt::format("{}[{}] = {}{}", t.dtype.str(), shape, values, t.size() > 8 ? ", …" : "");
}

// A value as JSON: numbers where it has any, text for those that are not finite.
json valueJson(const HostValue& v) {
  if (v.isNone()) return nullptr;
  if (v.isList) {
    json items = json::array();
    for (const HostValue& item : v.items) items.push_back(valueJson(item));
    return items;
  }
  const TensorObject& t = *v.tensor;
  json values = json::array();
  for (int64_t i = 0; i < t.size(); ++i) {
    if (t.dtype.isString())
      values.push_back(t.strings[size_t(i)]);
    else if (t.dtype.code == TypeCode::kComplex)
      values.push_back("complex");
    else if (t.dtype.isUInt())
      values.push_back(uint64_t(t.asInt(i)));
    else if (!t.dtype.isFloat())
      values.push_back(t.asInt(i));
    else if (std::isfinite(t.asDouble(i)))
      values.push_back(t.asDouble(i));
    else
      values.push_back(fmt::format("{}", t.asDouble(i)));
  }
  return {{"dtype", t.dtype.str()}, {"shape", t.shape}, {"values", values}};
}

// Shows the outputs: a line each, or one JSON object.
void showOutputs(const RunFlags& f, const std::vector<std::pair<std::string, HostValue>>& outputs) {
  json rows = json::array();
  for (const auto& [name, value] : outputs)
    if (f.json)
      rows.push_back({{"name", name}, {"value", valueJson(value)}});
    else
      say("{}: {}\n", name, summary(value));
  if (f.json) sayJson(json({{"outputs", rows}}));
}

Status writeOutput(const RunFlags& f, size_t i, const SessionParam& p, const HostValue& value) {
  std::string stem = fmt::format("{}/output_{}", f.outputDir, i);
  int32_t kind = p.kind == BEVEL_PARAM_ANY ? value.isList     ? BEVEL_PARAM_LIST
                                             : value.isNone() ? BEVEL_PARAM_OPTIONAL
                                                              : BEVEL_PARAM_TENSOR
                                           : p.kind;
  BEVEL_CHECK(writePb(stem + ".pb", value, kind, p.name));
  if (f.npy && value.tensor && !value.tensor->dtype.isString()) return writeNpy(stem + ".npy", *value.tensor);
  return {};
}

// Inputs of the folder and the command line.
Status setInputs(Session& session, const RunFlags& f, const GraphInputs& graph) {
  if (!f.inputDir.empty()) {
    size_t count = graph.names.empty() ? session.inputs().size() : graph.names.size();
    for (size_t i = 0; i < count; ++i) {
      std::string path = inputFile(f, i);
      if (path.empty()) continue;
      size_t index = i;
      if (!graph.names.empty()) {
        BEVEL_TRY(index, session.inputIndex(graph.names[i]));
      }
      BEVEL_TRY(HostValue value, readValue(path, session.inputs()[index].kind));
      BEVEL_CHECK(session.setInput(index, value));
    }
  }
  return session.setFiles(f.inputs);
}

// ONNX inputs with initialisers for which a file is given.
std::vector<std::string> overriddenInputs(const RunFlags& f, const GraphInputs& graph) {
  std::vector<std::string> out;
  for (size_t i = 0; i < graph.names.size(); ++i) {
    bool named = false;
    for (const std::string& text : f.inputs) named |= text.starts_with(graph.names[i] + "=");
    if (graph.initialised[i] && (named || (!f.inputDir.empty() && !inputFile(f, i).empty())))
      out.push_back(graph.names[i]);
  }
  return out;
}

Status runGraph(const Module& module, const std::string& main, const RunFlags& f, BuildOptions options,
                const GraphInputs& graph) {
  BEVEL_TRY(Compiled compiled, compileModule(module, options, main));
  if (f.build.timings) fmt::print(stderr, "{}", timingTable(compiled.timings));
  BEVEL_TRY(auto program, load(compiled));
  BEVEL_TRY(auto session, Session::create(program, f.threads));
  BEVEL_CHECK(setInputs(*session, f, graph));
  if (f.random >= 0) BEVEL_CHECK(session->setRandom(uint64_t(f.random), options.dims));
  clearProgress();
  BEVEL_CHECK(session->run());
  std::vector<std::pair<std::string, HostValue>> shown;
  for (size_t i = 0; i < session->outputs().size(); ++i) {
    BEVEL_TRY(HostValue value, session->output(i));
    if (!f.outputDir.empty())
      BEVEL_CHECK(writeOutput(f, i, session->outputs()[i], value));
    else
      shown.emplace_back(session->outputs()[i].name, value);
  }
  showOutputs(f, shown);
  return {};
}

Status runProgram(const Module& module, const std::string& name, const RunFlags& f, BuildOptions options) {
  ModuleDecisions asked; // a program asks nothing over its module
  asked.answers = options.answers;
  BEVEL_CHECK(asked.checkAnswers());
  ProgramInputs inputs{f.inputDir, f.inputs, f.random, options.dims};
  BEVEL_TRY(auto scalars, programScalars(cast<PrimFuncNode>(module->find(name)), inputs));
  BEVEL_TRY(Module prepared, preparedProgram(module, name, options));
  PrimFunc program = cast<PrimFuncNode>(prepared->find(name));
  BEVEL_TRY(auto tensors, programTensors(program, inputs));
  if (f.interpret) {
    Status ran = onLargeStack([&] { return interpret(program, tensors, {scalars.begin(), scalars.end()}); });
    if (!ran && ran.error().code == ErrorCode::kInternal)
      ran.error().code =
          ErrorCode::kInvalid; // an access outside a buffer and the like: of the program, not of the tool
    BEVEL_CHECK(ran);
  } else {
    BEVEL_TRY(Compiled compiled, emitModule(prepared, options));
    BEVEL_TRY(auto loaded, load(compiled));
    BEVEL_TRY(auto session, Session::create(loaded, f.threads));
    BEVEL_CHECK(session->callInPlace(0, {tensors.begin(), tensors.end()}, scalars));
  }
  std::vector<std::pair<std::string, HostValue>> shown;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!f.outputDir.empty())
      BEVEL_CHECK(writeNpy(fmt::format("{}/output_{}.npy", f.outputDir, i), *tensors[i]));
    else
      shown.push_back({program->buffers[kernelBuffers(program)[i]]->name, {tensors[i], false, {}}});
  }
  showOutputs(f, shown);
  return {};
}

Status run(const RunFlags& f) {
  BEVEL_TRY(BuildOptions options, buildOptions(f.build));
  if (!f.outputDir.empty()) BEVEL_CHECK(makeFolder(f.outputDir));
  if (!f.inputDir.empty() && !exists(f.inputDir))
    return fail(Error(ErrorCode::kIo, "there is no such folder").in(f.inputDir));
  options.interpret = f.interpret;
  options.optimize &= !f.interpret; // the reference is the text as written
  BEVEL_TRY(GraphInputs graph, onnxGraphInputs(f.model));
  options.overridden = overriddenInputs(f, graph);
  BEVEL_TRY(Module module, readModel(f.model, options));
  BEVEL_TRY(std::string name, chosenFunction(module, f.function, f.model));
  if (module->find(name).is<PrimFuncNode>()) return runProgram(module, name, f, options);
  return runGraph(module, name, f, options, graph);
}

} // namespace

void addRun(CLI::App& app, Command& command) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App* c = app.add_subcommand("run", "Compile a model in memory and run it once");
  c->add_option("MODEL", flags->model, "An ONNX model, or a text module (.py, .bvl)")->required();
  c->add_option("--input", flags->inputs, "A NumPy file for an input, NAME=FILE.npy; may be repeated")
      ->type_name("NAME=FILE");
  c->add_option("--input-dir", flags->inputDir,
                "Folder with input_<i>.pb (ONNX test data) or input_<i>.npy; i counts the graph's inputs")
      ->type_name("DIR");
  c->add_option("--output-dir", flags->outputDir,
                "Folder for output_<i>.pb; without it outputs are shown in short")
      ->type_name("DIR");
  c->add_flag("--npy", flags->npy, "Write output_<i>.npy too");
  c->add_option("--random", flags->random,
                "Pseudo-random values from this seed for inputs that are not given")
      ->type_name("SEED")
      ->check(CLI::NonNegativeNumber);
  c->add_option("--threads", flags->threads, "Threads that run the model (default: all processors)")
      ->check(CLI::Range(0, 1024));
  c->add_option("--function", flags->function, "Function of a text module to run (default: main)")
      ->type_name("NAME");
  c->add_flag("--interpret", flags->interpret,
              "Run tensor programs by the reference interpreter: as written, or as --schedule makes them");
  c->add_flag("--json", flags->json, "Show the outputs, all of their values, as one JSON object");
  addBuildFlags(*c, flags->build);
  runsOn(*c, command, flags, run);
}

} // namespace bevel
