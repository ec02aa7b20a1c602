// Small ONNX models built in memory.
#pragma once

#include "base/tensor.h"
#include "graph/evaluate.h"
#include "import/onnx.h"

#include <string>
#include <vector>

namespace bevel::test {

struct OnnxAttr {
  std::string name;
  enum Kind { kInt, kFloat, kString, kInts, kFloats, kGraph } kind;
  int64_t i = 0;
  float f = 0;
  std::string s; // a string, or a serialised graph
  std::vector<int64_t> ints;
  std::vector<float> floats;
};
OnnxAttr intAttribute(std::string name, int64_t v);
OnnxAttr floatAttribute(std::string name, float v);
OnnxAttr stringAttribute(std::string name, std::string v);
OnnxAttr intsAttribute(std::string name, std::vector<int64_t> v);

struct OnnxNode {
  std::string op;
  std::vector<std::string> inputs, outputs;
  std::vector<OnnxAttr> attrs;
  std::string domain, name;
};

struct OnnxGraph {
  std::vector<OnnxNode> nodes;
  std::vector<std::pair<std::string, Tensor>> initializers;
  std::vector<std::pair<std::string, std::vector<std::string>>>
      inputs; // float; numbers or names of dimensions
  std::vector<std::string> outputs;
};
struct OnnxFunction {
  std::string name, domain;
  std::vector<std::string> inputs, outputs;
  std::vector<OnnxNode> nodes;
};
std::string serialize(const OnnxGraph& graph, int64_t opset, const std::vector<OnnxFunction>& functions = {});

/// One node on constants: imports it, and gives what it was folded to.
Result<HostTensors> foldNode(const std::string& op, const HostTensors& inputs,
                             const std::vector<OnnxAttr>& attrs, int64_t opset = 18, size_t outputs = 1);

} // namespace bevel::test
