// Names of dimensions and inputs that the command line gives values for.
#pragma once

#include "driver/compile.h"

namespace bevel {

/// Refuses (kUsage) names in `options.dims` and `options.shapes` that the model of that file, imported as
/// `module`, does not have.
Status checkNames(const BuildOptions& options, const std::string& path, const Module& module);
/// There is no `what` of that name: an error that lists those that there are.
Error noSuchName(const std::string& what, const std::string& name, const std::vector<std::string>& known);

} // namespace bevel
