// One tensor program of a module by itself, as `run` and `bench` take it: scheduled, and with tensors for its
// parameters.
#pragma once

#include "driver/compile.h"

namespace bevel {

/// The function that a command means: the one named, else "main", else the first. `path` is named in the
/// error.
Result<std::string> chosenFunction(const Module& module, const std::string& name, const std::string& path);

/// The program after the schedule of `options.scheduleFile` and, with `options.optimize`, the default one, in a module of
/// its own. Unless it is to be interpreted (`options.interpret`) it is flat loops, and a function calls it in place.
Result<Module> preparedProgram(const Module& module, const std::string& name, const BuildOptions& options);

/// Where the tensors come from.
struct ProgramInputs {
  std::string dir;                     // with input_<i>.npy; "": none
  std::vector<std::string> named;      // NAME=FILE.npy; these win
  int64_t random = -1;                 // seed for those that are not given; negative: zeros
  std::map<std::string, int64_t> dims; // of symbolic dimensions that no tensor gives and of scalar parameters
};
/// A tensor for every buffer parameter, to be written in place.
Result<std::vector<Ref<TensorObject>>> programTensors(const PrimFunc& program, const ProgramInputs& inputs);

/// A value for every scalar parameter, by its name in `dims`. Floats have none and are refused.
Result<std::vector<int64_t>> programScalars(const PrimFunc& program, const ProgramInputs& inputs);

} // namespace bevel
