// bevel bench: how fast a model runs, and where its time goes.
#include "driver/bench.h"
#include "driver/commands.h"
#include "driver/session.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>

namespace bevel {
namespace {

struct BenchFlags {
  BuildFlags build;
  std::string model;
  std::vector<std::string> inputs;
  double seconds = 2;
  int threads = 1;
  int64_t random = 1;
  bool json = false, profile = false;
};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double peakMegabytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return double(usage.ru_maxrss) / 1024;
}

double percentile(const std::vector<double>& sorted, double p) {
  size_t at = size_t(p / 100 * double(sorted.size() - 1) + 0.5);
  return sorted[std::min(at, sorted.size() - 1)];
}

Result<std::vector<double>> measure(Session& session, double seconds) {
  BEVEL_CHECK(session.run()); // memory is allocated, pages are touched
  BEVEL_CHECK(session.run());
  std::vector<double> times;
  for (double begin = now(); times.size() < 3 || now() - begin < seconds;) {
    double start = now();
    BEVEL_CHECK(session.run());
    times.push_back((now() - start) * 1000);
  }
  std::sort(times.begin(), times.end());
  return times;
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
  fmt::print("\nmachine: {:.1f} GFLOP/s, {:.1f} GB/s (measured)\n", machine.gflops, machine.gbytes);
  fmt::print("{:>9} {:>6} {:>6} {:>8} {:>7} {:>5}  {}\n", "ms", "%", "calls", "GFLOP/s", "GB/s", "roof",
             "kernel: nodes of the model");
  for (const KernelTime& r : rows) {
    auto number = [](double v) { return v < 0 ? std::string("-") : fmt::format("{:.1f}", v); };
    std::string nodes = r.nodes.size() > 100 ? r.nodes.substr(0, 97) + "…" : r.nodes;
    fmt::print("{:9.4f} {:6.1f} {:6} {:>8} {:>7} {:>5}  {}{}{}\n", r.ms, r.percent, r.calls, number(r.gflops),
               number(r.gbytes), r.roofline < 0 ? "-" : fmt::format("{:.0f}%", r.roofline * 100), r.name,
               nodes.empty() ? "" : ": ", nodes);
  }
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
  BEVEL_TRY(Compiled compiled, compileFile(f.model, options));
  BEVEL_TRY(auto program, load(compiled));
  double compileMs = (now() - begin) * 1000;
  double compilePeak = peakMegabytes();
  if (f.build.timings) fmt::print(stderr, "{}", timingTable(compiled.timings));
  BEVEL_TRY(auto session, Session::create(program, f.threads));
  auto feed = [&](Session& s) -> Status {
    for (const std::string& text : f.inputs) {
      BEVEL_TRY(auto pair, keyValue(text, "--input"));
      BEVEL_TRY(size_t index, s.inputIndex(pair.first));
      HostValue value;
      BEVEL_TRY(value.tensor, readNpy(pair.second));
      BEVEL_CHECK(s.setInput(index, value));
    }
    return s.setRandom(uint64_t(f.random), options.dims);
  };
  BEVEL_CHECK(feed(*session));
  clearProgress();
  BEVEL_TRY(std::vector<double> times, measure(*session, f.seconds));
  std::vector<KernelTime> rows;
  Machine machine;
  if (f.profile) {
    BEVEL_TRY(auto profiled, Session::create(program, f.threads, true));
    BEVEL_CHECK(feed(*profiled));
    BEVEL_TRY(std::vector<double> again, measure(*profiled, std::min(f.seconds, 2.0)));
    machine = measureMachine(f.threads);
    BEVEL_TRY(rows, kernelTimes(*profiled, again.size() + 2, machine));
  }
  double memory = double(bevel_instance_memory(session->instance())) / 1e6;
  if (f.json) {
    nlohmann::json out = {{"model", f.model},
                          {"threads", f.threads},
                          {"runs", times.size()},
                          {"median_ms", percentile(times, 50)},
                          {"min_ms", times.front()},
                          {"max_ms", times.back()},
                          {"p10_ms", percentile(times, 10)},
                          {"p90_ms", percentile(times, 90)},
                          {"p99_ms", percentile(times, 99)},
                          {"compile_ms", compileMs},
                          {"kernels", compiled.program.kernels.size()},
                          {"kernels_from_cache", compiled.kernels.fromCache},
                          {"peak_memory_mb", peakMegabytes()},
                          {"compile_peak_memory_mb", compilePeak},
                          {"run_memory_mb", memory},
                          {"target", options.target.str()}};
    if (f.profile)
      out["profile"] = profileJson(rows),
      out["machine"] = {{"gflops", machine.gflops}, {"gbytes_per_s", machine.gbytes}};
    fmt::print("{}\n", out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return {};
  }
  fmt::print("{}: median {:.3f} ms, min {:.3f}, p90 {:.3f}, p99 {:.3f} ({} runs, {} thread{})\n", f.model,
             percentile(times, 50), times.front(), percentile(times, 90), percentile(times, 99), times.size(),
             f.threads, f.threads == 1 ? "" : "s");
  fmt::print(
      "compiled in {:.0f} ms ({} kernels, {} from the cache); peak memory {:.0f} MB, of the run {:.1f} MB\n",
      compileMs, compiled.program.kernels.size(), compiled.kernels.fromCache, peakMegabytes(), memory);
  if (f.profile) printProfile(rows, machine);
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
      ->check(CLI::Range(0.0, 86400.0));
  c->add_option("--random", flags->random, "Seed of the random inputs")
      ->type_name("SEED")
      ->check(CLI::NonNegativeNumber);
  c->add_flag("--profile", flags->profile,
              "Time of every kernel with its share of the machine's roofline and its ONNX nodes");
  c->add_flag("--json", flags->json, "Print one JSON object");
  addBuildFlags(*c, flags->build);
  c->callback([flags, &command] {
    command.json = flags->json;
    command.action = [flags] { return run(*flags); };
  });
}

} // namespace bevel
