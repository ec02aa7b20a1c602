// bevel bench: how fast a model runs, and where its time goes.
#include "driver/bench.h"
#include "driver/commands.h"
#include "driver/console.h"
#include "driver/program.h"
#include "driver/session.h"
#include "select/schedule.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>

namespace bevel {
namespace {

struct BenchFlags {
  BuildFlags build;
  std::string model, function;
  std::vector<std::string> inputs;
  double seconds = 2;
  int threads = 1;
  int64_t random = 1;
  bool json = false, profile = false;
};

/// What was measured, of a model or of one tensor program.
struct Measured {
  std::string function;
  std::vector<double> times;                            // ms, sorted
  double compileMs = 0, compilePeak = 0, runMemory = 0; // MB
  size_t kernels = 0, fromCache = 0;
  double flops = -1; // of one run; negative: unknown
  std::vector<KernelTime> rows;
  Machine machine;
};

double peakMegabytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return double(usage.ru_maxrss) / 1024;
}

double percentile(const std::vector<double>& sorted, double p) {
  size_t at = size_t(p / 100 * double(sorted.size() - 1) + 0.5);
  return sorted[std::min(at, sorted.size() - 1)];
}

nlohmann::json profileJson(const std::vector<KernelTime>& rows) {
  nlohmann::json out = nlohmann::json::array();
  for (const KernelTime& r : rows) {
    nlohmann::json row = {
        {"kernel", r.name}, {"calls", r.calls}, {"ms", r.ms}, {"percent", r.percent}, {"nodes", r.nodes}};
    if (r.gflops >= 0) row["gflops"] = r.gflops;
    if (r.gbytes >= 0) row["gbytes_per_s"] = r.gbytes;
    if (r.roofline >= 0) row["roofline"] = r.roofline;
    out.push_back(row);
  }
  return out;
}

void printProfile(const std::vector<KernelTime>& rows, const Machine& machine) {
  say("\nmachine: {:.1f} GFLOP/s, {:.1f} GB/s, from caches {:.1f} GB/s (measured)\n", machine.gflops,
      machine.gbytes, machine.cacheGbytes);
  say("{:>9} {:>6} {:>6} {:>8} {:>7} {:>5}  {}\n", "ms", "%", "calls", "GFLOP/s", "GB/s", "roof",
      "kernel: nodes of the model");
  for (const KernelTime& r : rows) {
    auto number = [](double v) { return v < 0 ? std::string("-") : fmt::format("{:.1f}", v); };
    std::string nodes = r.nodes.size() > 100 ? r.nodes.substr(0, 97) + "…" : r.nodes;
    say("{:9.4f} {:6.1f} {:6} {:>8} {:>7} {:>5}  {}{}{}\n", r.ms, r.percent, r.calls, number(r.gflops),
        number(r.gbytes), r.roofline < 0 ? "-" : fmt::format("{:.0f}%", r.roofline * 100), r.name,
        nodes.empty() ? "" : ": ", nodes);
  }
}

Status feed(Session& session, const BenchFlags& f, const BuildOptions& options) {
  BEVEL_CHECK(session.setFiles(f.inputs));
  return session.setRandom(uint64_t(f.random), options.dims);
}

Result<Measured> measureGraph(const Module& module, const BenchFlags& f, const BuildOptions& options,
                              double begin, const std::string& main) {
  Measured out;
  BEVEL_TRY(Compiled compiled, compileModule(module, options, main));
  BEVEL_TRY(auto program, load(compiled));
  out.compileMs = (now() - begin) * 1000;
  out.compilePeak = peakMegabytes();
  out.kernels = compiled.program.kernels.size();
  out.fromCache = compiled.kernels.fromCache;
  if (f.build.timings) fmt::print(stderr, "{}", timingTable(compiled.timings));
  BEVEL_TRY(auto session, Session::create(program, f.threads));
  BEVEL_CHECK(feed(*session, f, options));
  clearProgress();
  BEVEL_TRY(out.times, timeRuns([&] { return session->run(); }, f.seconds));
  out.runMemory = double(bevel_instance_memory(session->instance())) / 1e6;
  if (!f.profile) return out;
  BEVEL_TRY(auto profiled, Session::create(program, f.threads, true));
  BEVEL_CHECK(feed(*profiled, f, options));
  BEVEL_TRY(auto again, timeRuns([&] { return profiled->run(); }, std::min(f.seconds, 2.0)));
  out.machine = measureMachine(f.threads);
  BEVEL_TRY(out.rows, kernelTimes(*profiled, again.size() + kWarmUps, out.machine));
  return out;
}

Result<Measured> measureProgram(const Module& module, const BenchFlags& f, const BuildOptions& options,
                                double begin, const std::string& name) {
  if (f.profile)
    return fail(ErrorCode::kUsage,
                fmt::format("--profile is for graph functions; '{}' is one tensor program", name));
  Measured out;
  BEVEL_TRY(Module counted, countWork(module));
  out.flops = attrFloat(cast<PrimFuncNode>(counted->find(name))->attrs, "flops", -1);
  ProgramInputs inputs{"", f.inputs, f.random, options.dims};
  BEVEL_TRY(auto scalars, programScalars(cast<PrimFuncNode>(module->find(name)), inputs));
  BEVEL_TRY(Module prepared, preparedProgram(module, name, options));
  PrimFunc program = cast<PrimFuncNode>(prepared->find(name));
  BEVEL_TRY(Compiled compiled, emitModule(prepared, options));
  BEVEL_TRY(auto loaded, load(compiled));
  out.compileMs = (now() - begin) * 1000;
  out.compilePeak = peakMegabytes();
  out.kernels = 1;
  out.fromCache = compiled.kernels.fromCache;
  BEVEL_TRY(auto tensors, programTensors(program, inputs));
  BEVEL_TRY(auto session, Session::create(loaded, f.threads));
  const std::vector<Tensor> buffers(tensors.begin(), tensors.end());
  clearProgress();
  BEVEL_TRY(out.times, timeRuns([&] { return session->callInPlace(0, buffers, scalars); }, f.seconds));
  return out;
}

nlohmann::json measuredJson(const BenchFlags& f, const Measured& m, const Target& target) {
  nlohmann::json out = {{"model", f.model},
                        {"function", m.function},
                        {"threads", f.threads},
                        {"runs", m.times.size()},
                        {"median_ms", percentile(m.times, 50)},
                        {"min_ms", m.times.front()},
                        {"max_ms", m.times.back()},
                        {"p10_ms", percentile(m.times, 10)},
                        {"p90_ms", percentile(m.times, 90)},
                        {"p99_ms", percentile(m.times, 99)},
                        {"compile_ms", m.compileMs},
                        {"kernels", m.kernels},
                        {"kernels_from_cache", m.fromCache},
                        {"peak_memory_mb", peakMegabytes()},
                        {"compile_peak_memory_mb", m.compilePeak},
                        {"run_memory_mb", m.runMemory},
                        {"target", target.str()}};
  if (m.flops >= 0) out["gflops"] = m.flops / percentile(m.times, 50) / 1e6;
  if (f.profile) {
    out["profile"] = profileJson(m.rows);
    out["machine"] = {{"gflops", m.machine.gflops},
                      {"gbytes_per_s", m.machine.gbytes},
                      {"cache_gbytes_per_s", m.machine.cacheGbytes}};
  }
  return out;
}

void printMeasured(const BenchFlags& f, const Measured& m) {
  std::string rate =
      m.flops < 0 ? "" : fmt::format(", {:.1f} GFLOP/s", m.flops / percentile(m.times, 50) / 1e6);
  std::string what = f.function.empty() ? f.model : f.model + " " + f.function;
  say("{}: median {:.3f} ms, min {:.3f}, p90 {:.3f}, p99 {:.3f}{} ({} runs, {} thread{})\n", what,
      percentile(m.times, 50), m.times.front(), percentile(m.times, 90), percentile(m.times, 99), rate,
      m.times.size(), f.threads, f.threads == 1 ? "" : "s");
  say("compiled in {:.0f} ms ({} kernel{}, {} from the cache); peak memory {:.0f} MB, of the run {:.1f} MB\n",
      m.compileMs, m.kernels, m.kernels == 1 ? "" : "s", m.fromCache, peakMegabytes(), m.runMemory);
  if (f.profile) printProfile(m.rows, m.machine);
}

Status run(const BenchFlags& f) {
  BEVEL_TRY(BuildOptions options, buildOptions(f.build));
  BEVEL_TRY(GraphInputs graph, onnxGraphInputs(f.model));
  for (const std::string& text : f.inputs) {
    BEVEL_TRY(auto pair, keyValue(text, "--input"));
    for (size_t i = 0; i < graph.names.size(); ++i)
      if (graph.names[i] == pair.first && graph.initialised[i]) options.overridden.push_back(pair.first);
  }
  double begin = now();
  BEVEL_TRY(Module module, readModel(f.model, options));
  BEVEL_TRY(std::string name, chosenFunction(module, f.function, f.model));
  auto measure = module->find(name).is<PrimFuncNode>() ? measureProgram : measureGraph;
  BEVEL_TRY(Measured measured, measure(module, f, options, begin, name));
  measured.function = name;
  if (f.json)
    sayJson(measuredJson(f, measured, options.target));
  else
    printMeasured(f, measured);
  return {};
}

} // namespace

void addBench(CLI::App& app, Command& command) {
  auto flags = std::make_shared<BenchFlags>();
  CLI::App* c = app.add_subcommand("bench", "Measure how fast a model runs, and where its time goes");
  c->add_option("MODEL", flags->model, "An ONNX model, or a text module (.py, .bvl)")->required();
  c->add_option("--input", flags->inputs, "A NumPy file for an input, NAME=FILE.npy; others are random")
      ->type_name("NAME=FILE");
  c->add_option("--threads", flags->threads, "Threads that run the model (default: 1)")
      ->check(CLI::Range(1, 1024));
  c->add_option("--seconds", flags->seconds, "How long to measure (default: 2)")
      ->check(CLI::Validator(
          [](const std::string& text) {
            double value = 0;
            bool fits = CLI::detail::lexical_cast(text, value) && value >= 0 && value <= 86400;
            return fits ? std::string() : "'" + text + "' is not a number from 0 to 86400";
          },
          "FLOAT in [0 - 86400]"));
  c->add_option("--random", flags->random, "Seed of the random inputs")
      ->type_name("SEED")
      ->check(CLI::NonNegativeNumber);
  c->add_option("--function", flags->function, "Function of a text module to measure (default: main)")
      ->type_name("NAME");
  c->add_flag("--profile", flags->profile,
              "Time of every kernel with its share of the machine's roofline and its ONNX nodes");
  c->add_flag("--json", flags->json, "Print one JSON object");
  addBuildFlags(*c, flags->build);
  runsOn(*c, command, flags, run);
}

} // namespace bevel
