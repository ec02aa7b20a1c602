// Passes and their runner.
#pragma once

#include "base/result.h"
#include "ir/graph.h"

#include <functional>
#include <string>
#include <vector>

namespace bevel {

/// A named rewriting of modules. Passes are ordinary values: a user's pass is made and listed like ours.
struct Pass {
  std::string name; // as in `--passes a,b`: lower case with underscores
  std::string doc;  // one line
  std::function<Result<Module>(const Module&)> run;
};

/// Applies f to every tensor program (or graph function) of a module; the others stay. Errors name the
/// function.
Pass primFuncPass(std::string name, std::string doc, std::function<Result<PrimFunc>(const PrimFunc&)> f);
Pass functionPass(std::string name, std::string doc, std::function<Result<Function>(const Function&)> f);
/// The same for passes that look at the rest of the module.
Pass primFuncPass(std::string name, std::string doc,
                  std::function<Result<PrimFunc>(const PrimFunc&, const Module&)> f);
Pass functionPass(std::string name, std::string doc,
                  std::function<Result<Function>(const Function&, const Module&)> f);
/// Several passes as one.
Pass sequence(std::string name, std::string doc, std::vector<Pass> passes);

struct PassTiming {
  std::string name;
  double seconds = 0;
  bool changed = false;
};

struct PassOptions {
  bool verifyEach = false;
  bool roundTripEach = false; // print, parse and compare after every pass (checkRoundTrip)
  bool printChanged = false;  // through `print`: the module's text after each pass that changed it
  std::function<void(const std::string& title, const std::string& text)> print; // null: standard error
  std::string stopAfter;                                                        // "" : run all
  std::vector<std::string> disabled;
  /// "": none; else input.txt, NAME.txt … with constants beside each, their names in the file `order`, which `bevel opt` reads again. Stages with equal constants
  /// share one file (hard links).
  std::string dumpDir;
  /// Called before a pass: its name, how many have run, how many there are. May be null.
  std::function<void(const std::string& pass, size_t done, size_t total)> progress;
  std::vector<PassTiming>* timings = nullptr;
};

/// Runs the passes in order. An error is returned with the pass's name as a note. `stopAfter` and `disabled`
/// must name passes of the list.
Result<Module> runPasses(const std::vector<Pass>& passes, Module module, const PassOptions& options = {});
/// A table of pass, time and whether it changed the module.
std::string timingTable(const std::vector<PassTiming>& timings);
/// The passes of a comma-separated list of names, or an error that lists near names.
Result<std::vector<Pass>> selectPasses(const std::vector<Pass>& known, std::string_view commaSeparated);

} // namespace bevel
