// The matcher of graph patterns: depth first, alternatives in order, with the state copied before each try.
#include "select/patterns.h"

#include "graph/visitor.h"

namespace bevel {
namespace {

bool commutative(const std::string& op) {
  return op == "add" || op == "multiply" || op == "maximum" || op == "minimum";
}

class Matcher {
public:
  Matcher(const Bindings& b) : bindings_(b) {}

  bool run(const Pattern& p, const GraphExpr& e, Match& m, bool root) const {
    using Form = PatternNode::Form;
    switch (p->form) {
    case Form::kWild:
      return keep(p->slot, e, m);
    case Form::kScalar: {
      GraphExpr value = bindings_.value(e);
      auto s = scalarOf(value);
      return s && (!p->equals || *s == *p->equals) && (p->slot < 0 || keep(p->slot, value, m));
    }
    case Form::kOneOf:
      for (const Pattern& part : p->parts) {
        Match trial = m;
        if (!run(part, e, trial, root)) continue;
        m = std::move(trial);
        return true;
      }
      return false;
    case Form::kCall:
      return runCall(p, e, m, root);
    }
    return false;
  }

private:
  static bool keep(int slot, const GraphExpr& e, Match& m) {
    GraphExpr& place = m.slots[size_t(slot)];
    if (place) return place == e;
    place = e;
    return true;
  }

  bool runCall(const Pattern& p, const GraphExpr& e, Match& m, bool root) const {
    if (const auto* v = e.as<GraphVarNode>(); v && !root) {
      for (auto& [var, use] : m.interior)
        if (var == GraphVar(v)) {
          ++use.second;
          return use.first == p.get();
        }
      m.interior.push_back({GraphVar(v), {p.get(), 1}});
    }
    GraphExpr value = bindings_.value(e);
    const auto* c = value.as<GraphCallNode>();
    if (!c || c->opName() != p->op || c->args.size() != p->parts.size()) return false;
    if (p->slot >= 0) m.slots[size_t(p->slot)] = value;
    if (!commutative(p->op) || p->parts.size() != 2) return runArgs(p, *c, false, m);
    Match trial = m;
    if (runArgs(p, *c, false, trial)) {
      m = std::move(trial);
      return true;
    }
    return runArgs(p, *c, true, m);
  }

  bool runArgs(const Pattern& p, const GraphCallNode& c, bool swapped, Match& m) const {
    for (size_t i = 0; i < p->parts.size(); ++i)
      if (!run(p->parts[i], c.args[swapped ? p->parts.size() - 1 - i : i], m, false)) return false;
    return true;
  }

  const Bindings& bindings_;
};

Pattern made(PatternNode n) {
  return std::make_shared<const PatternNode>(std::move(n));
}

} // namespace

Bindings::Bindings(const Function& f) {
  forEachValue(f->body, [&](const NodeRef& n, const NodeRef&) {
    if (const auto* b = n.as<VarBindingNode>()) values_[b->var] = b->value;
    if (const auto* v = n.as<GraphVarNode>()) ++uses_[GraphVar(v)];
  });
}

GraphExpr Bindings::value(const GraphExpr& e) const {
  GraphExpr at = e;
  while (const auto* v = at.as<GraphVarNode>()) {
    auto it = values_.find(GraphVar(v));
    if (it == values_.end()) return at;
    at = it->second;
  }
  return at;
}

const GraphCallNode* Bindings::call(const GraphExpr& e, std::string_view op) const {
  GraphExpr v = value(e);
  const auto* c = v.as<GraphCallNode>();
  return c && c->opName() == op ? c : nullptr; // the function keeps it alive
}

int Bindings::uses(const GraphVar& v) const {
  auto it = uses_.find(v);
  return it == uses_.end() ? 0 : it->second;
}

Tensor tensorOfConstant(const GraphExpr& e) {
  const auto* c = e.as<ConstantNode>();
  return c ? c->value : nullptr;
}

std::optional<double> scalarOf(const GraphExpr& e) {
  Tensor t = tensorOfConstant(e);
  if (!t || t->size() != 1 || t->dtype.isString() || t->dtype.code == TypeCode::kComplex) return std::nullopt;
  return t->dtype.isFloat() ? t->asDouble(0) : double(t->asInt(0));
}

Pattern wild(int slot) {
  return made({.form = PatternNode::Form::kWild, .slot = slot, .op = "", .parts = {}, .equals = {}});
}
Pattern scalar(int slot) {
  return made({.form = PatternNode::Form::kScalar, .slot = slot, .op = "", .parts = {}, .equals = {}});
}
Pattern scalarEqual(double value) {
  return made({.form = PatternNode::Form::kScalar, .slot = -1, .op = "", .parts = {}, .equals = value});
}
Pattern call(std::string op, std::vector<Pattern> args, int slot) {
  return made({.form = PatternNode::Form::kCall,
               .slot = slot,
               .op = std::move(op),
               .parts = std::move(args),
               .equals = {}});
}
Pattern oneOf(std::vector<Pattern> alternatives) {
  return made({.form = PatternNode::Form::kOneOf,
               .slot = -1,
               .op = "",
               .parts = std::move(alternatives),
               .equals = {}});
}

std::optional<Match> match(const Pattern& pattern, const GraphExpr& root, const Bindings& bindings) {
  Match m;
  if (!Matcher(bindings).run(pattern, root, m, true)) return std::nullopt;
  for (const auto& [var, use] : m.interior)
    if (bindings.uses(var) != use.second) return std::nullopt;
  return m;
}

} // namespace bevel
