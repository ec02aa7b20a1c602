// bevel inspect: what a model file holds.
#include "driver/check_names.h"
#include "driver/commands.h"
#include "driver/console.h"

#include "base/stack.h"
#include "graph/visitor.h"
#include "import/onnx.h"
#include "ir/build.h"
#include "ir/printer.h"
#include "ir/structural.h"
#include "ops/ops.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>

namespace bevel {
namespace {

using nlohmann::json;

struct InspectFlags {
  BuildFlags build;
  std::string model;
  bool json = false;
};

json describe(const Module& module) {
  json functions = json::array();
  std::map<std::string, int> ops;
  int64_t weightBytes = 0, weights = 0;
  for (size_t i = 0; i < module->functions.size(); ++i) {
    walk(module->functions[i], [&](const NodeRef& n) {
      if (const auto* c = n.as<ConstantNode>())
        weightBytes += c->value->byteSize(), weights += c->value->size();
      if (const auto* c = n.as<GraphCallNode>(); c && !c->opName().empty()) ++ops[c->opName()];
      if (n.is<GraphIfNode>()) ++ops["if"];
      return true;
    });
    const auto* f = module->functions[i].as<FunctionNode>();
    json entry = {{"name", module->names[i]->name}, {"kind", f ? "graph" : "tensor program"}};
    if (f && !attrInt(f->attrs, "private")) {
      json inputs = json::array(), outputs = json::array();
      for (size_t k = 0; k < f->params.size(); ++k)
        inputs.push_back({{"name", listedName(f->attrs, "input_names", k, f->params[k]->name)},
                          {"type", print(f->params[k]->type)}});
      Type result = f->body->body->type ? f->body->body->type : f->result;
      const auto* tuple = result.as<TupleTypeNode>();
      for (size_t k = 0; k < numResults(result); ++k)
        outputs.push_back({{"name", listedName(f->attrs, "output_names", k, fmt::format("output_{}", k))},
                           {"type", print(tuple ? tuple->fields_[k] : result)}});
      entry["inputs"] = inputs;
      entry["outputs"] = outputs;
    }
    functions.push_back(entry);
  }
  json counts = json::object();
  for (const auto& [name, count] : ops) counts[name] = count;
  return {
      {"functions", functions}, {"operators", counts}, {"weights", weights}, {"weight_bytes", weightBytes}};
}

void show(const json& d) {
  say("file        {} ({})\n", d["file"].get<std::string>(),
      byteText(double(d["file_bytes"].get<uint64_t>())));
  if (d.contains("opsets"))
    for (const auto& [domain, version] : d["opsets"].items())
      say("opset       {} {}\n", domain.empty() ? "ai.onnx" : domain, version.get<int64_t>());
  say("weights     {} values, {}\n", d["weights"].get<int64_t>(),
      byteText(double(d["weight_bytes"].get<int64_t>())));
  int more = 0;
  for (const json& f : d["functions"]) {
    if (!f.contains("inputs")) {
      ++more;
      continue;
    }
    say("function    {}\n", f["name"].get<std::string>());
    for (const json& p : f["inputs"])
      say("  input     {}: {}\n", p["name"].get<std::string>(), p["type"].get<std::string>());
    for (const json& p : f["outputs"])
      say("  output    {}: {}\n", p["name"].get<std::string>(), p["type"].get<std::string>());
  }
  if (more) say("programs    {}, called by the others\n", more);
  std::string list;
  for (const auto& [name, count] : d["operators"].items())
    list += fmt::format("{}{} ×{}", list.empty() ? "" : ", ", name, count.get<int>());
  say("operators   {}\n", list.empty() ? "none" : list);
}

Status inspect(const InspectFlags& f) {
  BEVEL_TRY(BuildOptions options, buildOptions(f.build));
  json out;
  if (isOnnxPath(f.model)) {
    registerOps();
    BEVEL_TRY(OnnxModel model, importOnnx(f.model, {options.dims, options.shapes}));
    BEVEL_CHECK(checkNames(options, f.model, model.module));
    out = describe(model.module);
    json opsets = json::object();
    for (const auto& [domain, version] : model.opsets) opsets[domain] = version;
    out["opsets"] = opsets;
  } else {
    BEVEL_TRY(Module module, readModel(f.model, options));
    out = describe(module);
  }
  std::error_code ignored;
  out["file"] = f.model;
  out["file_bytes"] = uint64_t(std::filesystem::file_size(f.model, ignored));
  clearProgress();
  if (f.json)
    sayJson(out);
  else
    show(out);
  return {};
}

Status run(const InspectFlags& f) {
  return onLargeStack([&] { return inspect(f); });
}

} // namespace

void addInspect(CLI::App& app, Command& command) {
  auto flags = std::make_shared<InspectFlags>();
  CLI::App* c = app.add_subcommand("inspect", "Show what a model holds: inputs, outputs, operators, sizes");
  c->add_option("MODEL", flags->model, "An ONNX model, or a text module (.py, .bvl)")->required();
  c->add_flag("--json", flags->json, "Print it as JSON");
  addBuildFlags(*c, flags->build);
  runsOn(*c, command, flags, run);
}

} // namespace bevel
