// The pass runner.
#include "ir/pass.h"

#include "base/file.h"
#include "base/near_name.h"
#include "base/parallel.h"
#include "ir/build.h"
#include "ir/constants.h"
#include "ir/parser.h"
#include "ir/printer.h"
#include "ir/structural.h"
#include "ir/verify.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <map>

namespace bevel {
namespace {

// Runs a pass of programs on a module's tensor programs.
Result<Module> runOnPrograms(const Pass& pass, const Module& m, int threads) {
  std::vector<size_t> at;
  for (size_t i = 0; i < m->functions.size(); ++i)
    if (m->functions[i].is<PrimFuncNode>()) at.push_back(i);
  std::vector<Result<PrimFunc>> after(at.size(), PrimFunc());
  parallelFor(at.size(), threads,
              [&](size_t k) { after[k] = pass.program(cast<PrimFuncNode>(m->functions[at[k]])); });
  Ref<ModuleNode> copy;
  for (size_t k = 0; k < at.size(); ++k) {
    if (!after[k])
      return fail(std::move(after[k].error()).note("in function '" + m->names[at[k]]->name + "'"));
    if (m->functions[at[k]] == *after[k]) continue;
    if (!copy) copy = mutableCopy(m);
    copy->functions.set(at[k], *after[k]);
  }
  return copy ? Module(copy) : m;
}

const Pass* findPass(const std::vector<Pass>& passes, std::string_view name) {
  auto found = std::find_if(passes.begin(), passes.end(), [&](const Pass& p) { return p.name == name; });
  return found == passes.end() ? nullptr : &*found;
}

Error unknownPass(const std::vector<Pass>& passes, std::string_view name) {
  std::string list;
  std::vector<std::string> names;
  for (const Pass& p : passes) {
    list += (list.empty() ? "" : ", ") + p.name;
    names.push_back(p.name);
  }
  std::string near = didYouMean(name, names);
  return Error(ErrorCode::kUsage, "there is no pass '" + std::string(name) + "'")
      .help(near.empty() ? "the passes are: " + list : near);
}

/// Writes every stage; see PassOptions::dumpDir.
class Dumper {
public:
  explicit Dumper(std::string folder) : folder_(std::move(folder)) {}
  // A stage is named after its pass, so that a new pass renames no other; a second run of it gets a number.
  Status stage(const std::string& name, const Module& m) {
    if (folder_.empty()) return {};
    std::error_code failed;
    std::filesystem::create_directories(folder_, failed);
    if (failed) return fail(ErrorCode::kIo, "cannot make the folder " + folder_ + ": " + failed.message());
    int times = ++times_[name];
    std::string file = times == 1 ? name + ".txt" : fmt::format("{}_{}.txt", name, times);
    order_ += file + "\n";
    BEVEL_CHECK(
        writeFile(folder_ + "/order", order_)); // grows with the run: an interrupted one is listed too
    return writeModule(folder_ + "/" + file, m, &written_);
  }

private:
  std::string folder_, order_;
  std::map<std::string, int> times_;
  WrittenConstants written_;
};

Status check(const PassOptions& options, const Module& m) {
  if (options.verifyEach) BEVEL_CHECK(verify(m));
  if (options.roundTripEach) BEVEL_CHECK(checkRoundTrip(m));
  return {};
}

void show(const PassOptions& options, const std::string& title, const Module& m) {
  std::string text = print(m);
  if (options.print) return options.print(title, text);
  fmt::print(stderr, "# {}\n{}\n", title, text);
}

} // namespace

Result<Module> runPasses(const std::vector<Pass>& passes, Module module, const PassOptions& options) {
  for (const std::string& name : options.disabled) {
    const Pass* pass = findPass(passes, name);
    if (!pass) return fail(unknownPass(passes, name));
    if (pass->needed)
      return fail(ErrorCode::kUsage, fmt::format("pass '{}' cannot be left out of a compile", name));
  }
  if (!options.stopAfter.empty() && !findPass(passes, options.stopAfter))
    return fail(unknownPass(passes, options.stopAfter));
  Dumper dumper(options.dumpDir);
  BEVEL_CHECK(dumper.stage("input", module));
  if (auto ok = check(options, module); !ok)
    return fail(std::move(ok.error()).note("in the input, before any pass"));
  size_t index = 0;
  for (const Pass& pass : passes) {
    if (options.progress) options.progress(pass.name, index, passes.size());
    ++index;
    bool off =
        std::find(options.disabled.begin(), options.disabled.end(), pass.name) != options.disabled.end();
    if (!off) {
      auto start = std::chrono::steady_clock::now();
      Result<Module> next = pass.run ? pass.run(module) : runOnPrograms(pass, module, options.threads);
      double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      if (!next) return fail(std::move(next.error()).note("in pass '" + pass.name + "'"));
      bool changed = !(*next == module) && !(options.printChanged && structuralEqual(*next, module));
      module = std::move(*next);
      if (options.timings) options.timings->push_back({pass.name, seconds, changed});
      if (options.printChanged && changed) show(options, "after " + pass.name, module);
      if (auto ok = check(options, module); !ok)
        return fail(std::move(ok.error()).note("after pass '" + pass.name + "'"));
      BEVEL_CHECK(dumper.stage(pass.name, module));
    }
    if (pass.name == options.stopAfter) break;
  }
  return module;
}

std::string timingTable(const std::vector<PassTiming>& timings) {
  size_t width = 4;
  double total = 0;
  for (const PassTiming& t : timings) width = std::max(width, t.name.size()), total += t.seconds;
  std::string out = fmt::format("{:<{}}  {:>10}  {:>5}\n", "pass", width, "ms", "share");
  for (const PassTiming& t : timings)
    out += fmt::format("{:<{}}  {:>10.3f}  {:>4.0f}%{}\n", t.name, width, t.seconds * 1e3,
                       total > 0 ? 100 * t.seconds / total : 0, t.changed ? "" : "  unchanged");
  return out + fmt::format("{:<{}}  {:>10.3f}\n", "all", width, total * 1e3);
}

Result<std::vector<Pass>> selectPasses(const std::vector<Pass>& known, std::string_view text) {
  std::vector<Pass> out;
  while (!text.empty()) {
    size_t comma = std::min(text.find(','), text.size());
    std::string_view name = text.substr(0, comma);
    while (!name.empty() && name.front() == ' ') name.remove_prefix(1);
    while (!name.empty() && name.back() == ' ') name.remove_suffix(1);
    const Pass* found = findPass(known, name);
    if (!found) return fail(unknownPass(known, name));
    out.push_back(*found);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return out;
}

} // namespace bevel
