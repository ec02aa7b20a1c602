// Entry points, scopes and the module level of the verifier.
#include "ir/access_hook.h"
#include "ir/verify_impl.h"

#include "base/stack.h"
#include "ir/structural.h"

namespace bevel {

std::vector<Error> verifyAll(const NodeRef& node, size_t limit) {
  if (!node) return {Error(ErrorCode::kInvalid, "there is no module or function to verify")};
  return onLargeStack([&] {
    detail::Verifier verifier(limit);
    if (auto* m = node.as<ModuleNode>())
      verifier.module(*m);
    else
      verifier.function(node, "");
    return verifier.take();
  });
}

Status verify(const NodeRef& node) {
  std::vector<Error> errors = verifyAll(node, 1);
  if (errors.empty()) return {};
  return fail(std::move(errors.front()));
}

namespace detail {

void Verifier::error(const RefBase& node, std::string message, std::string hint) {
  if (full()) return;
  Error e(ErrorCode::kInvalid, std::move(message));
  if (node.object()) {
    e.nodes.push_back(Ref<const Object>(node.object()));
    const auto* n = static_cast<const Node*>(node.object());
    const Origin& place = n->origin ? n->origin : place_;
    if (place) e.file = place->file, e.span = place->span;
  }
  if (!function_.empty()) e.notes.push_back("in function '" + function_ + "'");
  e.hint = std::move(hint);
  errors_.push_back(std::move(e));
}

void Verifier::define(const NodeRef& v, const char* what) {
  if (!v) return error(NodeRef(), std::string(what) + " is missing");
  if (!ever_.insert(v.get()).second)
    error(v, std::string(what) + " is bound twice in this function",
          "steps that duplicate code make new variables (freshen)");
  if (visible_.insert(v.get()).second) order_.push_back(v.get());
}

void Verifier::leave(size_t mark) {
  for (; order_.size() > mark; order_.pop_back()) visible_.erase(order_.back());
}

void Verifier::bindFree(const NodeRef& pattern) {
  if (!pattern) return;
  for (const NodeRef& v : freeVars(pattern))
    if (v->kind == Kind::kVar && !visible(v.get())) {
      ever_.insert(v.get());
      visible_.insert(v.get());
      order_.push_back(v.get());
    }
}

void Verifier::scalars(const NodeRef& node) {
  if (!node) return;
  if (node.is<ExprNode>()) return expr(cast<ExprNode>(node), node);
  forEachChild(node, [&](const NodeRef& child, Role) { scalars(child); });
}

void Verifier::function(const NodeRef& f, const std::string& name) {
  function_ = name;
  visible_.clear(), ever_.clear(), order_.clear(), blocks_.clear(), loopLevel_.clear();
  level_ = isolation_ = 0;
  inDataflow_ = false;
  place_ = f->origin;
  if (auto* p = f.as<PrimFuncNode>()) {
    size_t before = errors_.size();
    primFunc(*p);
    if (errors_.size() > before || !accessHook.faults) return;
    for (const IndexFault& fault : accessHook.faults(PrimFunc(p))) {
      place_ = fault.place;
      error(fault.at, fault.message);
    }
  } else if (auto* g = f.as<FunctionNode>()) {
    graphFunction(*g);
  } else {
    error(f, "expected a function");
  }
}

void Verifier::module(const ModuleNode& m) {
  module_ = &m;
  if (m.names.size() != m.functions.size())
    return error(NodeRef(&m), "the module has " + std::to_string(m.names.size()) + " names for " +
                                  std::to_string(m.functions.size()) + " functions");
  std::unordered_set<std::string> names;
  for (const GlobalVar& g : m.names)
    if (!g || !names.insert(g->name).second)
      error(NodeRef(&m), g ? "function '" + g->name + "' is defined twice" : "a function has no name");
  for (size_t i = 0; i < m.names.size() && !full(); ++i) {
    if (!m.names[i]) continue;
    if (!m.functions[i])
      error(NodeRef(&m), "function '" + m.names[i]->name + "' is missing");
    else
      function(m.functions[i], m.names[i]->name);
  }
}

} // namespace detail
} // namespace bevel
