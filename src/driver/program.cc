// See program.h.
#include "driver/program.h"

#include "arith/number.h"
#include "driver/check_names.h"
#include "driver/commands.h"
#include "driver/values.h"
#include "graph/passes/passes.h"
#include "ir/build.h"
#include "loop/lower.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>

namespace bevel {
namespace {

// The shape of a parameter with symbolic dimensions replaced by the values given for their names.
Result<std::vector<int64_t>> shapeOf(const Buffer& b, const std::map<std::string, int64_t>& dims) {
  std::vector<int64_t> out;
  for (const Expr& d : b->shape) {
    const auto* v = d.as<VarNode>();
    auto given = v ? dims.find(v->name) : dims.end();
    auto value = given == dims.end() ? asConst(d) : given->second;
    if (!value)
      return fail(Error(ErrorCode::kUsage, fmt::format("parameter '{}' has symbolic dimensions", b->name))
                      .help("give it by --input or --input-dir, or its dimensions by --dim NAME=N"));
    out.push_back(*value);
  }
  BEVEL_TRY(int64_t count, elementCount(out));
  (void)count;
  return out;
}

Result<std::string> fileFor(const Buffer& b, size_t index, const ProgramInputs& inputs) {
  std::string path = inputs.dir.empty() ? "" : fmt::format("{}/input_{}.npy", inputs.dir, index);
  std::error_code ignored;
  if (!path.empty() && !std::filesystem::exists(path, ignored)) path.clear();
  for (const std::string& text : inputs.named) {
    BEVEL_TRY(auto pair, keyValue(text, "--input"));
    if (pair.first == b->name) path = pair.second;
  }
  return path;
}

Status checkNames(const PrimFunc& program, const ProgramInputs& inputs) {
  std::vector<std::string> known;
  for (const Buffer& b : program->buffers)
    if (b) known.push_back(b->name);
  for (const std::string& text : inputs.named) {
    BEVEL_TRY(auto pair, keyValue(text, "--input"));
    if (std::find(known.begin(), known.end(), pair.first) == known.end())
      return fail(noSuchName("parameter", pair.first, known));
  }
  return {};
}

} // namespace

Result<std::string> chosenFunction(const Module& module, const std::string& name, const std::string& path) {
  std::string chosen = !name.empty()           ? name
                       : module->find("main")  ? "main"
                       : module->names.empty() ? ""
                                               : module->names[0]->name;
  if (!chosen.empty() && module->find(chosen)) return chosen;
  std::vector<std::string> known;
  for (const GlobalVar& v : module->names) known.push_back(v->name);
  if (known.empty()) return fail(Error(ErrorCode::kInvalid, "there is no function in it").in(path));
  return fail(noSuchName("function", chosen, known));
}

Result<Module> preparedProgram(const Module& module, const std::string& name, const BuildOptions& options) {
  PipelineContext context(options);
  std::vector<Pass> passes = {{"call_in_place", "a function that calls the program", callInPlace},
                              {"check_sizes", "its sizes are checked at run time", checkSizes}};
  if (options.interpret) passes.clear();
  for (Pass& p : programPasses(context)) passes.push_back(std::move(p));
  if (!options.interpret)
    for (Pass& p : lowerPasses(options.target)) passes.push_back(std::move(p));
  return runPasses(passes, withFunction(make<const ModuleNode>(), name, module->find(name)),
                   passOptions(options));
}

Result<std::vector<Ref<TensorObject>>> programTensors(const PrimFunc& program, const ProgramInputs& inputs) {
  BEVEL_CHECK(checkNames(program, inputs));
  std::vector<Ref<TensorObject>> out;
  uint64_t state = uint64_t(std::max<int64_t>(inputs.random, 0)) + 1;
  for (const Buffer& b : program->buffers) {
    if (!b) continue;
    BEVEL_TRY(std::string path, fileFor(b, out.size(), inputs));
    Tensor given;
    if (!path.empty()) {
      BEVEL_TRY(given, readNpy(path));
    } else {
      BEVEL_TRY(auto shape, shapeOf(b, inputs.dims));
      if (inputs.random >= 0) {
        BEVEL_TRY(given, randomTensor(b->dtype, shape, state));
      } else {
        BEVEL_TRY(given, inputTensor(b->dtype, shape));
      }
    }
    if (given->dtype != b->dtype || given->shape.size() != b->shape.size())
      return fail(ErrorCode::kInvalid,
                  fmt::format("parameter '{}' is {} of rank {}, {} of rank {} given", b->name, b->dtype.str(),
                              b->shape.size(), given->dtype.str(), given->shape.size()));
    BEVEL_TRY(Ref<TensorObject> own, inputTensor(given->dtype, given->shape));
    if (own->byteSize()) std::copy(given->bytes(), given->bytes() + own->byteSize(), own->mutableBytes());
    out.push_back(own);
  }
  return out;
}

Result<std::vector<int64_t>> programScalars(const PrimFunc& program, const ProgramInputs& inputs) {
  std::vector<int64_t> out;
  for (size_t i = 0; i < program->params.size(); ++i) {
    const Var& p = program->params[i];
    if (program->buffers[i]) continue;
    if (!p->dtype.isInteger() && !p->dtype.isBool())
      return fail(ErrorCode::kUnsupported,
                  fmt::format("scalar parameter '{}' is {}: only integers can be given here", p->name,
                              p->dtype.str()));
    auto given = inputs.dims.find(p->name);
    if (given == inputs.dims.end())
      return fail(Error(ErrorCode::kUsage, fmt::format("scalar parameter '{}' has no value", p->name))
                      .help(fmt::format("give it by --dim {}=N", p->name)));
    int64_t value = given->second;
    if (!arith::fitsDType(value, p->dtype))
      return fail(ErrorCode::kUsage, fmt::format("scalar parameter '{}' is {}: {} does not fit", p->name,
                                                 p->dtype.str(), value));
    out.push_back(value);
  }
  return out;
}

} // namespace bevel
