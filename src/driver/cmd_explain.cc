// bevel explain: what fused into what, and what the passes note of their decisions, and why.
#include "driver/commands.h"
#include "driver/console.h"

#include "graph/visitor.h"
#include "ir/build.h"
#include "ir/printer.h"
#include "ir/structural.h"

#include <CLI/CLI.hpp>
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

// What the passes note, each subject and its lines once.
void showNotes(const std::vector<Note>& notes, bool details) {
  std::map<std::pair<std::string, std::string>, std::vector<const Note*>> bySubject;
  for (const Note& n : notes)
    if (details || !n.detail) bySubject[{n.pass, n.subject}].push_back(&n);
  std::string pass;
  for (const Note& first : notes) {
    auto found = bySubject.extract({first.pass, first.subject});
    if (!found) continue; // shown already
    if (pass != first.pass) say("\n{}\n", pass = first.pass);
    say("  {}\n", first.subject);
    for (const Note* n : found.mapped())
      for (std::string_view rest = n->text; !rest.empty();) {
        std::string_view line = rest.substr(0, rest.find('\n'));
        say("    {}{}\n", n->detail ? "| " : "", line);
        rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      }
  }
}

void show(const json& d, const std::vector<Note>& notes, bool details) {
  say("kernels, and the nodes of the model that fused into each\n");
  if (d["calls"].empty()) say("  no graph function calls one\n");
  for (const json& c : d["calls"]) {
    std::string nodes = text(c, "nodes");
    say("  {} ({}){}\n", text(c, "callee"), text(c, "kind"), nodes.empty() ? "" : ": " + nodes);
  }
  showNotes(notes, details);
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
  options.notes = true;
  BEVEL_TRY(Compiled compiled, compileFile(f.model, options));
  clearProgress();
  auto gone = [&](const std::string& name) { return !compiled.module->find(name); };
  std::erase_if(compiled.notes, [&](const Note& n) { return n.program && gone(n.subject); });
  json notes = json::array(), schedules = json::array();
  for (const Note& n : compiled.notes)
    notes.push_back({{"pass", n.pass}, {"subject", n.subject}, {"text", n.text}, {"detail", n.detail}});
  for (const ScheduleReport& s : compiled.schedules)
    if (!gone(s.name)) // it ran while compiling, or is a view
      schedules.push_back({{"kernel", s.name},
                           {"why", s.why},
                           {"decisions", decisionsJson(s.trace)},
                           {"trace", s.trace.str()},
                           {"simpler", s.simpler}});
  json out = {{"calls", callsOf(compiled.module)},
              {"decisions", decisionsJson(compiled.decisions)},
              {"notes", notes},
              {"schedules", schedules},
              {"arena", arenaOf(compiled.module)}};
  if (f.json)
    sayJson(out);
  else
    show(out, compiled.notes, f.traces);
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
  runsOn(*c, command, flags, run);
}

} // namespace bevel
