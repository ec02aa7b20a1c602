// ONNX models as modules of graph functions.
#pragma once

#include "base/file.h"
#include "ir/graph.h"

#include <map>
#include <memory>
#include <string_view>

namespace bevel {

struct OnnxOptions {
  std::map<std::string, int64_t> dims = {};                // values for named dimensions
  std::map<std::string, std::vector<int64_t>> shapes = {}; // shapes for inputs, by name
  /// Inputs with initialisers that stay parameters, because values will be given.
  std::vector<std::string> overridden = {};
  std::string function = "main";
};

struct OnnxValue {
  std::string name;
  Type type;
  bool hasDefault = false; // an input with an initialiser
  bool parameter = true;   // an input that is a parameter of the function
};

/// An imported model. Its function takes the inputs that are parameters, in order, and gives the output, or a
/// tuple of all. Weights are Constants that refer to the mapped file (their addresses may be unaligned).
/// Attributes of the function: "input_names" and "output_names" (lists of strings), "num_input".
struct OnnxModel {
  Module module;
  std::string function;
  std::vector<OnnxValue> inputs, outputs; // as in the graph, initialised inputs included
  std::map<std::string, int64_t> opsets;  // domain → version
};

/// Imports a file. External data must lie in its folder.
Result<OnnxModel> importOnnx(const std::string& path, const OnnxOptions& options = {});
/// Imports bytes that `owner` keeps alive. `folder`: where external data may lie; empty: nowhere.
Result<OnnxModel> importOnnx(std::string_view bytes, std::shared_ptr<const void> owner,
                             const std::string& folder, const OnnxOptions& options = {});

/// Operators that import, for documentation: "domain/Name" → the versions at which their meaning changes.
std::vector<std::pair<std::string, std::vector<int>>> onnxOperators();

} // namespace bevel
