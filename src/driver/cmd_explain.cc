// bevel explain: what fused into what, which schedules were chosen, and why.
#include "driver/commands.h"

#include "graph/visitor.h"
#include "ir/build.h"
#include "ir/structural.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>

namespace bevel {
namespace {

using nlohmann::json;

struct ExplainFlags {
  BuildFlags build;
  std::string model;
  bool json = false, traces = false;
};

std::string nodesOf(const Node& n) {
  std::string out;
  if (n.origin)
    for (const std::string& name : n.origin->nodes) out += (out.empty() ? "" : ", ") + name;
  return out;
}

json callsOf(const Module& module) {
  json calls = json::array();
  for (size_t i = 0; i < module->functions.size(); ++i) {
    if (!module->functions[i].is<FunctionNode>()) continue;
    forEachCall(cast<FunctionNode>(module->functions[i]), [&](const GraphCall& call, const GraphVar&) {
      const auto* g = call->op.as<GlobalVarNode>();
      const auto* e = call->op.as<ExternFuncNode>();
      if (!g && !e) return;
      json row = {
          {"function", module->names[i]->name}, {"callee", g ? g->name : e->name}, {"nodes", nodesOf(*call)}};
      const auto* f = g ? module->find(g->name).as<PrimFuncNode>() : nullptr;
      row["kind"] = e   ? "run-time function"
                    : f ? attrStr(f->attrs, "fusion_kind", "program")
                        : std::string("graph function");
      calls.push_back(row);
    });
  }
  return calls;
}

void show(const json& d, bool traces) {
  fmt::print("kernels and their nodes of the model\n");
  for (const json& c : d["calls"])
    fmt::print("  {} ({}): {}\n", c["callee"].get<std::string>(), c["kind"].get<std::string>(),
               c["nodes"].get<std::string>());
  fmt::print("\nschedules\n");
  for (const json& s : d["schedules"]) {
    fmt::print("  {}\n", s["kernel"].get<std::string>());
    for (const json& w : s["why"]) fmt::print("    {}\n", w.get<std::string>());
    if (!traces) continue;
    std::string trace = s["trace"].get<std::string>();
    for (size_t at = 0; at < trace.size();) {
      size_t end = std::min(trace.find('\n', at), trace.size());
      fmt::print("    | {}\n", trace.substr(at, end - at));
      at = end + 1;
    }
  }
  fmt::print("\nmemory: arena of {}\n", d["arena"].get<std::string>());
}

Status run(const ExplainFlags& f) {
  BEVEL_TRY(BuildOptions options, buildOptions(f.build));
  BEVEL_TRY(Compiled compiled, compileFile(f.model, options));
  clearProgress();
  json out = {{"calls", callsOf(compiled.module)}};
  json schedules = json::array();
  for (const ScheduleReport& s : compiled.schedules)
    schedules.push_back({{"kernel", s.name}, {"why", s.why}, {"trace", s.trace.str()}});
  out["schedules"] = schedules;
  out["arena"] = "unknown size";
  for (const GraphExpr& fn : compiled.module->functions)
    if (const auto* g = fn.as<FunctionNode>()) {
      NodeRef bytes = attr(g->attrs, "arena_bytes");
      auto c = bytes && bytes.is<ExprNode>() ? asConst(cast<ExprNode>(bytes)) : std::nullopt;
      if (c) out["arena"] = fmt::format("{:.2f} MB", double(*c) / 1e6);
      break;
    }
  if (f.json)
    fmt::print("{}\n", out.dump(2, ' ', false, json::error_handler_t::replace));
  else
    show(out, f.traces);
  return {};
}

} // namespace

void addExplain(CLI::App& app, Command& command) {
  auto flags = std::make_shared<ExplainFlags>();
  CLI::App* c = app.add_subcommand("explain", "Show what fused into what, the schedules chosen, and why");
  c->add_option("MODEL", flags->model, "An ONNX model, or a text module (.py, .bvl)")->required();
  c->add_flag("--traces", flags->traces, "Show every schedule's trace");
  c->add_flag("--json", flags->json, "Print it as JSON");
  addBuildFlags(*c, flags->build);
  c->callback([flags, &command] {
    command.json = flags->json;
    command.action = [flags] { return run(*flags); };
  });
}

} // namespace bevel
