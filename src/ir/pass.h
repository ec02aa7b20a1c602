// Passes and their runner.
#pragma once

#include "base/result.h"
#include "ir/graph.h"

#include <functional>
#include <string>
#include <vector>

namespace bevel {

/// A named rewriting of modules, or of each tensor program of a module. Passes are ordinary values: a user's pass is
/// made and listed like ours.
struct Pass {
  std::string name;                                 // as in `--passes a,b`: lower case with underscores
  std::string doc;                                  // one line
  std::function<Result<Module>(const Module&)> run; // of the module; null: `program` is the pass
  /// Of every tensor program by itself, several at once; graph functions stay.
  std::function<Result<PrimFunc>(const PrimFunc&)> program = {};
  bool needed = false; // machine code is made of what it leaves: `disabled` may not name it
};

struct PassTiming {
  std::string name;
  double seconds = 0;
  bool changed = false;
};

struct PassOptions {
  bool verifyEach = false;
  bool roundTripEach = false; // print, parse and compare after every pass (checkRoundTrip)
  bool printChanged = false;  // through `print`: the module's text after each pass that changed it
  std::function<void(const std::string& title, const std::string& text)> print = {}; // null: standard error
  std::string stopAfter = {};                                                        // "" : run all
  std::vector<std::string> disabled = {};
  int threads = 0; // for passes of programs; 0: one a processor
  /// "": none; else input.txt, NAME.txt … with constants beside each, their names in the file `order`, which `bevel opt` reads again. Stages with equal constants
  /// share one file (hard links).
  std::string dumpDir = {};
  /// Called before a pass: its name, how many have run, how many there are. May be null.
  std::function<void(const std::string& pass, size_t done, size_t total)> progress = {};
  std::vector<PassTiming>* timings = nullptr;
};

/// Runs the passes in order. An error is returned with the names of the pass and of the tensor program as notes.
/// `stopAfter` and `disabled` must name passes of the list.
Result<Module> runPasses(const std::vector<Pass>& passes, Module module, const PassOptions& options = {});
/// A table of pass, time and whether it changed the module.
std::string timingTable(const std::vector<PassTiming>& timings);
/// The passes of a comma-separated list of names, or an error that lists near names.
Result<std::vector<Pass>> selectPasses(const std::vector<Pass>& known, std::string_view commaSeparated);

} // namespace bevel
