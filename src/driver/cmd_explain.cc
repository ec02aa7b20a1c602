// bevel explain: what fused into what, what was chosen for the graph and for each kernel, and why.
#include "driver/commands.h"
#include "driver/console.h"

#include "graph/visitor.h"
#include "ir/build.h"
#include "ir/printer.h"
#include "ir/structural.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
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

json decisionsJson(const Trace& trace) {
  json out = json::array();
  for (const DecisionReport& d : decisionsOf(trace))
    out.push_back({{"name", d.name},
                   {"candidates", d.candidates},
                   {"costs", d.costs},
                   {"decision", d.decision},
                   {"why", d.why}});
  return out;
}

std::string text(const json& d, const char* key) {
  return d[key].get<std::string>();
}

// What was taken, and the alternatives with what the model thinks each costs.
std::string choiceText(const json& d) {
  std::vector<std::string> all;
  for (size_t i = 0; i < d["candidates"].size(); ++i) {
    std::string cost = d["costs"].empty() ? "" : fmt::format(" ({} cycles)", d["costs"][i].get<double>());
    all.push_back(d["candidates"][i].get<std::string>() + cost);
  }
  size_t taken = d["decision"].get<size_t>();
  std::string chosen = std::move(all[taken]), why = text(d, "why");
  all.erase(all.begin() + ptrdiff_t(taken));
  return fmt::format("{}{}; instead of {}", chosen, why.empty() ? "" : " (" + why + ")",
                     fmt::join(all, ", "));
}

// Questions of one kind that were answered alike are one entry: "layout of conv1" and "layout of conv2".
void showGraphDecisions(const json& decisions) {
  std::map<std::string, std::vector<std::string>> groups;
  for (const json& d : decisions) {
    std::string name = text(d, "name"), of = " of ";
    size_t at = name.find(of);
    groups[name.substr(0, at) + ": " + choiceText(d)].push_back(name.substr(at + of.size()));
  }
  say("\nchoices for the graph\n");
  if (groups.empty()) say("  there was nothing to choose\n");
  for (const auto& [choice, names] : groups) say("  {}\n    {}\n", choice, fmt::join(names, "\n    "));
}

void show(const json& d, bool traces) {
  say("kernels, and the nodes of the model that fused into each\n");
  if (d["calls"].empty()) say("  no graph function calls one\n");
  for (const json& c : d["calls"]) {
    std::string nodes = text(c, "nodes");
    say("  {} ({}){}\n", text(c, "callee"), text(c, "kind"), nodes.empty() ? "" : ": " + nodes);
  }
  showGraphDecisions(d["decisions"]);
  say("\nschedules, and why\n");
  for (const json& s : d["schedules"]) {
    say("  {}\n", text(s, "kernel"));
    for (const json& w : s["why"]) say("    {}\n", w.get<std::string>());
    for (const json& c : s["decisions"]) say("    - {}: {}\n", text(c, "name"), choiceText(c));
    if (!traces) continue;
    std::string trace = text(s, "trace");
    for (size_t at = 0; at < trace.size();) {
      size_t end = std::min(trace.find('\n', at), trace.size());
      say("    | {}\n", trace.substr(at, end - at));
      at = end + 1;
    }
  }
  say("\nmemory for the tensors between kernels: {}\n", text(d, "arena"));
}

// Bytes of the main function's arena as text: a number, or an expression over the symbolic dimensions.
std::string arenaOf(const Module& module) {
  for (const GraphExpr& fn : module->functions) {
    const auto* g = fn.as<FunctionNode>();
    if (!g) continue;
    NodeRef bytes = attr(g->attrs, "arena_bytes");
    if (!bytes) return "none";
    auto c = bytes.is<ExprNode>() ? asConst(cast<ExprNode>(bytes)) : std::nullopt;
    return c ? byteText(double(*c)) : print(bytes) + " bytes";
  }
  return "none";
}

Status run(const ExplainFlags& f) {
  BEVEL_TRY(BuildOptions options, buildOptions(f.build));
  BEVEL_TRY(Compiled compiled, compileFile(f.model, options));
  clearProgress();
  json out = {{"calls", callsOf(compiled.module)}, {"decisions", decisionsJson(compiled.decisions)}};
  json schedules = json::array();
  for (const ScheduleReport& s : compiled.schedules)
    if (compiled.module->find(s.name)) // not what ran while compiling, nor views
      schedules.push_back({{"kernel", s.name},
                           {"why", s.why},
                           {"decisions", decisionsJson(s.trace)},
                           {"trace", s.trace.str()},
                           {"simpler", s.simpler}});
  out["schedules"] = schedules;
  out["arena"] = arenaOf(compiled.module);
  if (f.json)
    say("{}\n", out.dump(2, ' ', false, json::error_handler_t::replace));
  else
    show(out, f.traces);
  return {};
}

} // namespace

void addExplain(CLI::App& app, Command& command) {
  auto flags = std::make_shared<ExplainFlags>();
  CLI::App* c = app.add_subcommand(
      "explain", "Show what fused into what, what was chosen for the graph and for each kernel, and why");
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
