// bevel ops: the operators there are, and which ONNX operators import.
#include "driver/commands.h"
#include "driver/console.h"

#include "graph/op.h"
#include "import/onnx.h"
#include "ops/docs.h"
#include "ops/ops.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace bevel {
namespace {

using nlohmann::json;

struct OpsFlags {
  bool json = false, onnx = false;
  std::string filter;
};

std::string firstLine(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

Status run(const OpsFlags& f) {
  registerOps();
  auto wanted = [&](const std::string& name) {
    return f.filter.empty() || name.find(f.filter) != std::string::npos;
  };
  json ops = json::array(), onnx = json::array();
  for (const Op* op : OpRegistry::global().all()) {
    if (!wanted(op->name)) continue;
    ops.push_back(
        {{"name", op->name}, {"doc", op->doc}, {"signature", opSignature(*op)}, {"kind", opKind(*op)}});
  }
  for (const auto& [name, versions] : onnxOperators())
    if (wanted(name)) onnx.push_back({{"name", name}, {"versions", versions}});
  if (f.json) {
    sayJson(json({{"operators", ops}, {"onnx", onnx}}));
    return {};
  }
  if (!f.onnx) {
    for (const json& op : ops)
      say("{:28} {:18} {}\n", op["name"].get<std::string>(), op["kind"].get<std::string>(),
          firstLine(op["doc"].get<std::string>()));
    say("{} operators\n", ops.size());
    return {};
  }
  for (const json& row : onnx) {
    std::string versions;
    for (const json& v : row["versions"])
      versions += (versions.empty() ? "" : ", ") + std::to_string(v.get<int>());
    say("{:36} {}\n", row["name"].get<std::string>(), versions);
  }
  say("{} ONNX operators\n", onnx.size());
  return {};
}

} // namespace

void addOps(CLI::App& app, Command& command) {
  auto flags = std::make_shared<OpsFlags>();
  CLI::App* c = app.add_subcommand("ops", "List the operators, or the ONNX operators that import");
  c->add_option("FILTER", flags->filter, "Part of a name");
  c->add_flag("--onnx", flags->onnx, "ONNX operators with the opset versions at which their meaning changes");
  c->add_flag("--json", flags->json, "Print both as JSON");
  runsOn(*c, command, flags, run);
}

} // namespace bevel
