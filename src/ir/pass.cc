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
#include <fmt/ranges.h>
#include <map>
#include <span>

namespace bevel {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Runs passes of programs, each program through all of them by one thread: what a pass leaves is near at hand for the
// next. Their times are shares of the time of all.
Result<Module> runOnPrograms(std::span<const Pass* const> passes, const Module& m, int threads,
                             std::vector<PassTiming>& timings) {
  std::vector<size_t> at;
  for (size_t i = 0; i < m->functions.size(); ++i)
    if (m->functions[i].is<PrimFuncNode>()) at.push_back(i);
  std::vector<Result<PrimFunc>> after(at.size(), PrimFunc());
  std::vector<std::vector<PassTiming>> spent(at.size());
  auto start = Clock::now();
  parallelFor(at.size(), threads, [&](size_t k) {
    after[k] = cast<PrimFuncNode>(m->functions[at[k]]);
    for (const Pass* pass : passes) {
      auto begin = Clock::now();
      auto next = pass->program(*after[k]);
      if (!next)
        next = fail(std::move(next.error())
                        .note("in function '" + m->names[at[k]]->name + "'")
                        .note("in pass '" + pass->name + "'"));
      spent[k].push_back({pass->name, since(begin), next && !(*next == *after[k])});
      after[k] = std::move(next);
      if (!after[k]) return;
    }
  });
  double wall = since(start), sum = 1e-9;
  auto out = mutableCopy(m);
  for (size_t k = 0; k < at.size(); ++k) {
    if (!after[k]) return fail(std::move(after[k].error()));
    if (!(m->functions[at[k]] == *after[k])) out->functions.set(at[k], *after[k]);
    for (const PassTiming& t : spent[k]) sum += t.seconds;
  }
  bool changed = false;
  for (size_t p = 0; p < passes.size(); ++p) {
    PassTiming all{passes[p]->name};
    for (const auto& times : spent)
      all.seconds += times[p].seconds / sum * wall, all.changed |= times[p].changed;
    changed |= all.changed;
    timings.push_back(std::move(all));
  }
  return changed ? Module(out) : m;
}

// Runs a pass of modules.
Result<Module> runOnModule(const Pass& pass, const Module& m, std::vector<PassTiming>& timings) {
  auto start = Clock::now();
  Result<Module> next = pass.run(m);
  if (!next) return fail(std::move(next.error()).note("in pass '" + pass.name + "'"));
  timings.push_back({pass.name, since(start), !(*next == m)});
  return next;
}

const Pass* findPass(const std::vector<Pass>& passes, std::string_view name) {
  auto found = std::find_if(passes.begin(), passes.end(), [&](const Pass& p) { return p.name == name; });
  return found == passes.end() ? nullptr : &*found;
}

Error unknownPass(const std::vector<Pass>& passes, std::string_view name) {
  std::vector<std::string> names;
  for (const Pass& p : passes) names.push_back(p.name);
  std::string near = didYouMean(name, names);
  return Error(ErrorCode::kUsage, "there is no pass '" + std::string(name) + "'")
      .help(near.empty() ? fmt::format("the passes are: {}", fmt::join(names, ", ")) : near);
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
  std::vector<const Pass*> active;
  for (const Pass& p : passes) {
    if (std::find(options.disabled.begin(), options.disabled.end(), p.name) == options.disabled.end())
      active.push_back(&p);
    if (p.name == options.stopAfter) break;
  }
  std::vector<PassTiming> ignored, &timings = options.timings ? *options.timings : ignored;
  bool observed =
      options.printChanged || options.verifyEach || options.roundTripEach || !options.dumpDir.empty();
  for (size_t begin = 0, end = 0; begin < active.size(); begin = end) {
    const Pass& pass = *active[end++];
    if (options.progress) options.progress(pass.name, begin, active.size());
    while (!observed && !pass.run && end < active.size() && !active[end]->run) ++end;
    Result<Module> next = pass.run ? runOnModule(pass, module, timings)
                                   : runOnPrograms(std::span(active).subspan(begin, end - begin), module,
                                                   options.threads, timings);
    if (!next) return fail(std::move(next.error()));
    bool shown = options.printChanged && !(*next == module) && !structuralEqual(*next, module);
    module = std::move(*next);
    if (shown) show(options, "after " + pass.name, module);
    if (auto ok = check(options, module); !ok)
      return fail(std::move(ok.error()).note("after pass '" + pass.name + "'"));
    BEVEL_CHECK(dumper.stage(pass.name, module));
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
