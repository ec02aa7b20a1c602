// Options that commands share.
#include "driver/commands.h"

#include "base/file.h"
#include "codegen/cache.h"
#include "import/onnx_proto.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <fmt/format.h>
#include <unistd.h>
#include <unordered_set>

namespace bevel {

void addBuildFlags(CLI::App& c, BuildFlags& f) {
  BuildOptions& o = f.options;
  c.option_defaults()->group("Compiling");
  c.add_option("--target", f.target,
               "Machine to compile for: host, x86-64-v2, x86-64-v3, x86-64-v4, …, with changes such as "
               "\"x86-64-v3,cores=4\"");
  c.add_option(
       "--dim", f.dims,
       "Value of a named dimension, or of a scalar parameter of a tensor program, NAME=N; may be repeated")
      ->type_name("NAME=N");
  c.add_option("--shape", f.shapes, "Shape of an ONNX input, NAME=1x3x224x224; may be repeated")
      ->type_name("NAME=DIMS");
  c.add_option("--compile-threads", o.threads, "Threads that compile (default: one a processor)")
      ->check(CLI::Range(0, 1024));
  c.add_option("--schedule", o.scheduleFile,
               "A file with a schedule script or trace, used in place of the default schedules")
      ->type_name("FILE");
  c.add_option("--answer", f.answers,
               "Another answer to a question about the graph, as `bevel explain` lists them: "
               "'layout of conv1=channels first'; may be repeated")
      ->type_name("QUESTION=CANDIDATE");
  c.add_option("--dump-dir", o.dumpDir, "Folder that gets every stage as text")->type_name("DIR");
  c.add_option("--without", o.without,
               "Leave out these passes, so that what one of them gains can be measured")
      ->delimiter(',')
      ->type_name("PASS,...");
  c.add_flag("--no-opt", f.noOpt, "Plain loops: no fusion, no schedules");
  c.add_flag("--only-schedule", o.onlySchedule,
             "Of the optimisations, only the schedules: operators as they are, nothing fused or moved");
  c.add_flag("--fast-math", o.fastMath, "Allow reassociation and approximate division (docs/numerics.md)");
  c.add_flag("--no-cache", f.noCache, "Do not use the on-disk kernel cache");
  c.add_flag("--timings", f.timings, "Print the time of every pass to standard error");
}

std::string byteText(double bytes) {
  if (bytes < 1000) return fmt::format("{:.0f} bytes", bytes);
  return bytes < 1e6 ? fmt::format("{:.1f} kB", bytes / 1e3) : fmt::format("{:.2f} MB", bytes / 1e6);
}

Result<std::pair<std::string, std::string>> keyValue(const std::string& text, const char* option) {
  size_t at = text.find('=');
  if (at == std::string::npos || at == 0)
    return fail(ErrorCode::kUsage, fmt::format("{} takes NAME=VALUE, not '{}'", option, text));
  return std::pair(text.substr(0, at), text.substr(at + 1));
}

namespace {

std::optional<int64_t> integer(std::string_view text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Result<std::vector<int64_t>> shapeOf(const std::string& text) {
  std::vector<int64_t> shape;
  for (size_t at = 0; at <= text.size() && !text.empty();) {
    size_t end = std::min(text.find_first_of("x,", at), text.size());
    auto n = integer(std::string_view(text).substr(at, end - at));
    if (!n || *n < 0)
      return fail(ErrorCode::kUsage, fmt::format("'{}' is not a shape such as 1x3x224x224", text));
    shape.push_back(*n);
    at = end + 1;
  }
  return shape;
}

void warnOfCache() {
  const KernelCache& cache = KernelCache::global();
  if (std::string why = cache.refusal(); !why.empty())
    fmt::print(stderr,
               "warning: the kernel cache {} is not used: {}; chmod go-w it, or name another folder by "
               "BEVEL_CACHE_DIR\n",
               cache.directory(), why);
}

} // namespace

Result<BuildOptions> buildOptions(const BuildFlags& f) {
  BuildOptions o = f.options;
  auto target = Target::parse(f.target);
  if (!target) {
    target.error().code = ErrorCode::kUsage;
    return fail(std::move(target.error()));
  }
  o.target = *target;
  o.optimize = !f.noOpt;
  o.useCache = !f.noCache;
  for (const std::string& text : f.answers) {
    size_t at = text.rfind('=');
    if (at == std::string::npos || at == 0)
      return fail(ErrorCode::kUsage, fmt::format("--answer takes QUESTION=CANDIDATE, not '{}'", text));
    if (!o.answers.emplace(text.substr(0, at), text.substr(at + 1)).second)
      return fail(ErrorCode::kUsage, fmt::format("--answer: '{}' is answered twice", text.substr(0, at)));
  }
  for (const std::string& text : f.dims) {
    BEVEL_TRY(auto pair, keyValue(text, "--dim"));
    auto n = integer(pair.second);
    if (!n) return fail(ErrorCode::kUsage, fmt::format("--dim takes NAME=N, not '{}'", text));
    o.dims[pair.first] = *n;
  }
  for (const std::string& text : f.shapes) {
    BEVEL_TRY(auto pair, keyValue(text, "--shape"));
    BEVEL_TRY(o.shapes[pair.first], shapeOf(pair.second));
  }
  if (o.useCache) warnOfCache();
  o.progress = progressLine();
  return o;
}

std::function<void(const std::string&, size_t, size_t)> progressLine() {
  if (!isatty(2)) return nullptr;
  return [](const std::string& stage, size_t done, size_t total) {
    std::string text = total ? fmt::format("{} {}/{}", stage, done, total) : stage;
    fmt::print(stderr, "\r\x1b[K{}", text.substr(0, 100));
    std::fflush(stderr);
  };
}

void clearProgress() {
  if (isatty(2)) fmt::print(stderr, "\r\x1b[K");
}

bool isOnnxPath(const std::string& path) {
  return !path.ends_with(".py") && !path.ends_with(".bvl") && !path.ends_with(".txt");
}

Result<GraphInputs> onnxGraphInputs(const std::string& path) {
  GraphInputs out;
  if (!isOnnxPath(path)) return out;
  BEVEL_TRY(auto file, MappedFile::open(path));
  auto model = onnx::parseModel({reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()});
  if (!model) return fail(std::move(model.error()).in(path));
  std::unordered_set<std::string> constants;
  for (const auto& t : model->graph.initializers) constants.insert(t.name);
  for (const auto& t : model->graph.sparseInitializers) constants.insert(t.values.name);
  for (const auto& info : model->graph.inputs) {
    out.names.push_back(info.name);
    for (const auto& d : info.type.shape) out.dims.push_back(d.param);
    out.initialised.push_back(constants.count(info.name) > 0);
  }
  return out;
}

} // namespace bevel
