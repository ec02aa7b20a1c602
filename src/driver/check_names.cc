// See check_names.h.
#include "driver/check_names.h"

#include "base/near_name.h"
#include "driver/commands.h"

#include <algorithm>
#include <fmt/format.h>

namespace bevel {
namespace {

using Names = std::vector<std::string>;

// Of the inputs of functions, whose dimensions a run binds.
Names dimensionsOf(const Module& module) {
  Names out;
  auto collect = [&](const NodeRef& n) {
    if (const auto* v = n.as<VarNode>()) out.push_back(v->name);
    return true;
  };
  for (const GraphExpr& f : module->functions) {
    if (const auto* g = f.as<FunctionNode>())
      for (const GraphVar& p : g->params) walk(p->type, collect);
    if (const auto* p = f.as<PrimFuncNode>())
      for (const Buffer& b : p->buffers)
        if (b)
          for (const Expr& d : b->shape) walk(d, collect);
  }
  return out;
}

Names scalarParameters(const Module& module) {
  Names out;
  for (const GraphExpr& f : module->functions)
    if (const auto* p = f.as<PrimFuncNode>())
      for (size_t i = 0; i < p->params.size(); ++i)
        if (!p->buffers[i]) out.push_back(p->params[i]->name);
  return out;
}

Status check(const char* what, const std::string& name, Names known) {
  if (std::ranges::count(known, name)) return {};
  std::ranges::sort(known);
  known.erase(std::unique(known.begin(), known.end()), known.end());
  return fail(noSuchName(what, name, known));
}

} // namespace

Error noSuchName(const std::string& what, const std::string& name, const Names& known) {
  std::string list;
  for (const std::string& k : known)
    if (!k.empty()) list += (list.empty() ? "" : ", ") + k;
  std::string there = list.empty() ? "is none" : "are: " + list;
  Error error(ErrorCode::kUsage, fmt::format("there is no {} '{}'; there {}", what, name, there));
  return std::move(error).help(didYouMean(name, known));
}

Status checkNames(const BuildOptions& options, const std::string& path, const Module& module) {
  if (options.dims.empty() && options.shapes.empty()) return {};
  Names dims = dimensionsOf(module);
  BEVEL_TRY(GraphInputs file, onnxGraphInputs(path)); // the importer has put values in place of some
  dims.insert(dims.end(), file.dims.begin(), file.dims.end());
  Names scalars = scalarParameters(module), known = dims;
  known.insert(known.end(), scalars.begin(), scalars.end());
  for (const auto& [name, value] : options.dims) {
    BEVEL_CHECK(
        check(scalars.empty() ? "named dimension" : "named dimension or scalar parameter", name, known));
    if (value < 0 && std::find(dims.begin(), dims.end(), name) != dims.end())
      return fail(ErrorCode::kUsage, fmt::format("dimension '{}' cannot be {}", name, value));
  }
  for (const auto& [name, shape] : options.shapes) BEVEL_CHECK(check("ONNX input", name, file.names));
  return {};
}

} // namespace bevel
