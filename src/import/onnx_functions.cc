// Local functions of a model, inlined; and the check that every operator of the model is known before
// conversion starts.
//
// Functions that call each other in a circle are refused; so is a model whose inlined size exceeds kMaxNodes
// (a chain of functions that each call the next twice doubles at each step).
#include "import/onnx_importer.h"

#include <algorithm>
#include <set>

namespace bevel::onnx {

namespace {

std::string functionKey(const std::string& domain, const std::string& name, const std::string& overload) {
  return domain + "\x1f" + name + "\x1f" + overload;
}

// Sizes of functions after inlining, with detection of circles.
struct FunctionSizes {
  const std::unordered_map<std::string, const FunctionProto*>& functions;
  std::unordered_map<const FunctionProto*, int64_t> sizes;
  std::set<const FunctionProto*> active;

  Result<int64_t> of(const FunctionProto& f) {
    if (auto it = sizes.find(&f); it != sizes.end()) return it->second;
    if (!active.insert(&f).second)
      return fail(ErrorCode::kInvalid, fmt::format("function '{}' calls itself", f.name));
    if (int(active.size()) > kMaxFunctionDepth)
      return fail(ErrorCode::kUnsupported,
                  fmt::format("functions call each other more than {} deep", kMaxFunctionDepth));
    BEVEL_TRY(int64_t n, ofNodes(f.nodes));
    active.erase(&f);
    sizes[&f] = n;
    return n;
  }
  Result<int64_t> ofNodes(const std::vector<NodeProto>& nodes) {
    int64_t total = 0;
    for (const NodeProto& n : nodes) {
      ++total;
      if (auto it = functions.find(functionKey(n.domain, n.opType, n.overload)); it != functions.end()) {
        BEVEL_TRY(int64_t inner, of(*it->second));
        total += inner;
      }
      for (const AttributeProto& a : n.attributes)
        if (a.g) {
          BEVEL_TRY(int64_t inner, ofNodes(a.g->nodes));
          total += inner;
        }
      if (total > kMaxNodes)
        return fail(
            ErrorCode::kUnsupported,
            fmt::format("the model has more than {} nodes when its functions are inlined", kMaxNodes));
    }
    return total;
  }
};

// Operators without converter: "Name (domain, opset)" → the nodes that use it.
struct Unknown {
  std::map<std::string, std::vector<std::string>> nodes;

  void visit(const std::vector<NodeProto>& list, const std::map<std::string, int64_t>& opsets,
             const std::unordered_map<std::string, const FunctionProto*>& functions) {
    for (size_t i = 0; i < list.size(); ++i) {
      const NodeProto& n = list[i];
      auto it = opsets.find(n.domain);
      int64_t version = it == opsets.end() ? 1 : it->second;
      const Conversion* c = findConversion(n.domain, n.opType, version);
      bool known = functions.count(functionKey(n.domain, n.opType, n.overload)) || (c && c->convert) ||
                   findDirect(n.domain, n.opType, version);
      if (!known) {
        std::string key =
            fmt::format("{}{} (opset {})", n.domain.empty() ? "" : n.domain + ".", n.opType, version);
        nodes[key].push_back(n.name.empty() ? fmt::format("{}_{}", n.opType, i) : n.name);
      }
      for (const AttributeProto& a : n.attributes)
        if (a.g) visit(a.g->nodes, opsets, functions);
    }
  }
};

} // namespace

const FunctionProto* Importer::findFunction(const NodeProto& n) const {
  auto it = functions_.find(functionKey(n.domain, n.opType, n.overload));
  return it == functions_.end() ? nullptr : it->second;
}

Status Importer::checkFunctions() {
  for (const FunctionProto& f : model_.functions)
    if (!functions_.emplace(functionKey(f.domain, f.name, f.overload), &f).second)
      return fail(ErrorCode::kInvalid, fmt::format("function '{}' is defined twice", f.name));
  FunctionSizes sizes{functions_, {}, {}};
  for (const FunctionProto& f : model_.functions)
    if (auto n = sizes.of(f); !n) return fail(std::move(n.error()));
  if (auto n = sizes.ofNodes(model_.graph.nodes); !n) return fail(std::move(n.error()));
  return {};
}

Status Importer::checkOperators() {
  Unknown unknown;
  unknown.visit(model_.graph.nodes, frame_->opsets, functions_);
  for (const FunctionProto& f : model_.functions) {
    auto opsets = frame_->opsets;
    for (const OpsetId& id : f.opsets) opsets[id.domain] = id.version;
    unknown.visit(f.nodes, opsets, functions_);
  }
  if (unknown.nodes.empty()) return {};
  std::string names;
  std::vector<std::string> notes;
  for (const auto& [key, nodes] : unknown.nodes) {
    names += (names.empty() ? "" : ", ") + key;
    std::string note = fmt::format("{}: {} node{}", key, nodes.size(), nodes.size() == 1 ? "" : "s");
    for (size_t i = 0; i < std::min<size_t>(nodes.size(), 5); ++i)
      note += fmt::format("{} '{}'", i ? "," : "", nodes[i]);
    notes.push_back(note + (nodes.size() > 5 ? ", …" : ""));
  }
  Error e(ErrorCode::kUnsupported, fmt::format("operators that are not supported: {}", names));
  e.notes = std::move(notes);
  return fail(std::move(e));
}

Result<Values> Importer::inlineFunction(const FunctionProto& f, const NodeProto& call, Values inputs,
                                        const std::string& name) {
  if (inputs.size() > f.inputs.size())
    return fail(ErrorCode::kInvalid, fmt::format("function '{}' takes {} inputs, {} given", f.name,
                                                 f.inputs.size(), inputs.size()));
  Frame frame;
  frame.caller = frame_;
  frame.call = &call;
  frame.function = &f;
  frame.opsets = frame_->opsets;
  for (const OpsetId& id : f.opsets) frame.opsets[id.domain] = id.version;
  frame.origin = name;
  Scope scope;
  for (size_t i = 0; i < f.inputs.size(); ++i)
    if (i < inputs.size() && inputs[i])
      scope.values[f.inputs[i]] = inputs[i];
    else
      scope.values[f.inputs[i]] = nullptr; // absent
  const Frame* outer = std::exchange(frame_, &frame);
  Scope* outerScope = scope_;
  importNodes(f.nodes, scope);
  scope_ = outerScope;
  frame_ = outer;
  Values out;
  for (const std::string& o : f.outputs) {
    Value v = lookup(o, scope);
    if (v && v->poison) return fail(ErrorCode::kUsage, "");
    out.push_back(v);
  }
  for (size_t k = 0; k < call.outputs.size(); ++k)
    if (!call.outputs[k].empty() && (k >= out.size() || !out[k]))
      return fail(ErrorCode::kInvalid, fmt::format("function '{}' does not define its output {}", f.name, k));
  return out;
}

} // namespace bevel::onnx
