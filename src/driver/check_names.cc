// See check_names.h.
#include "driver/check_names.h"

#include "base/file.h"
#include "base/near_name.h"
#include "driver/commands.h"
#include "import/onnx_proto.h"

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

// Those that the file names: the importer has put values in place of some.
Status addNames(const std::string& path, Names& dims, Names& inputs) {
  BEVEL_TRY(auto file, MappedFile::open(path));
  auto model = onnx::parseModel({reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()});
  if (!model) return fail(std::move(model.error()).in(path));
  for (const auto& info : model->graph.inputs) {
    inputs.push_back(info.name);
    for (const auto& d : info.type.shape) dims.push_back(d.param);
  }
  return {};
}

Status check(const char* what, const std::string& name, Names known) {
  if (std::find(known.begin(), known.end(), name) != known.end()) return {};
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  std::string list;
  for (const std::string& k : known)
    if (!k.empty()) list += (list.empty() ? "" : ", ") + k;
  Error error(ErrorCode::kUsage, fmt::format("there is no {} '{}'; there {}", what, name,
                                             list.empty() ? "is none" : "are: " + list));
  error.hint = didYouMean(name, known);
  return fail(std::move(error));
}

} // namespace

Status checkNames(const BuildOptions& options, const std::string& path, const Module& module) {
  if (options.dims.empty() && options.shapes.empty()) return {};
  Names dims = dimensionsOf(module), inputs;
  if (isOnnxPath(path)) BEVEL_CHECK(addNames(path, dims, inputs));
  Names scalars = scalarParameters(module), known = dims;
  known.insert(known.end(), scalars.begin(), scalars.end());
  for (const auto& [name, value] : options.dims) {
    BEVEL_CHECK(
        check(scalars.empty() ? "named dimension" : "named dimension or scalar parameter", name, known));
    if (value < 0 && std::find(dims.begin(), dims.end(), name) != dims.end())
      return fail(ErrorCode::kUsage, fmt::format("dimension '{}' cannot be {}", name, value));
  }
  for (const auto& [name, shape] : options.shapes) BEVEL_CHECK(check("ONNX input", name, inputs));
  return {};
}

} // namespace bevel
