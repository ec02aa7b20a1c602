// The matcher of graph patterns: depth first, alternatives in order, with the state copied before each try.
#include "graph/pattern.h"

#include "graph/op.h"
#include "ir/structural.h"

#include <algorithm>

namespace bevel {

using Form = PatternNode::Form;

Pattern::Pattern(PatternNode node) : node_(std::make_shared<const PatternNode>(std::move(node))) {}
Pattern::Pattern(double value) : Pattern(PatternNode{.form = Form::kConstant, .equals = value}) {}

Pattern Pattern::where(Condition holds) const {
  PatternNode copy = *node_;
  copy.conditions.push_back(std::move(holds));
  return Pattern(std::move(copy));
}

Pattern Pattern::with(std::string attribute, NodeRef value) const {
  PatternNode copy = *node_;
  copy.attrs.emplace_back(std::move(attribute), std::move(value));
  return Pattern(std::move(copy));
}

Pattern Pattern::shared() const {
  PatternNode copy = *node_;
  copy.isShared = true;
  return Pattern(std::move(copy));
}

Pattern anything() {
  return Pattern(PatternNode{.form = Form::kAnything});
}
Pattern constantTensor() {
  return Pattern(PatternNode{.form = Form::kConstant});
}
Pattern scalar() {
  return constantTensor().where(
      [](const GraphExpr& e, const MatchContext&) { return scalarOf(e).has_value(); });
}
Pattern call(std::string op, std::vector<Pattern> args) {
  return callAny({std::move(op)}, std::move(args));
}
Pattern callAny(std::vector<std::string> ops, std::vector<Pattern> args) {
  return Pattern(PatternNode{.form = Form::kCall, .ops = std::move(ops), .parts = std::move(args)});
}
Pattern oneOf(std::vector<Pattern> alternatives) {
  return Pattern(PatternNode{.form = Form::kOneOf, .parts = std::move(alternatives)});
}

GraphExpr Match::operator[](const Pattern& p) const {
  for (const auto& [node, value] : bound_)
    if (node == p.get()) return value;
  return nullptr;
}
Tensor Match::tensor(const Pattern& p) const {
  return tensorOfConstant((*this)[p]);
}
double Match::scalar(const Pattern& p) const {
  return *scalarOf((*this)[p]);
}

class Matcher {
public:
  explicit Matcher(const MatchContext& v) : values_(v) {}

  bool run(const Pattern& p, const GraphExpr& e, Match& m, bool root = false) const {
    switch (p->form) {
    case Form::kAnything:
      return keep(p, e, m) && holds(p, e);
    case Form::kConstant: {
      GraphExpr value = values_.valueOf(e);
      return value.is<ConstantNode>() && (!p->equals || scalarOf(value) == p->equals) && holds(p, value) &&
             keep(p, value, m);
    }
    case Form::kOneOf:
      return std::any_of(p->parts.begin(), p->parts.end(), [&](const Pattern& part) {
        return attempt(m, [&](Match& trial) { return run(part, e, trial, root) && keep(p, e, trial); });
      });
    case Form::kCall:
      return runCall(p, e, m, root);
    }
    return false;
  }

  // Nothing else uses what lies inside.
  bool ownsInside(const Match& m) const {
    return std::all_of(m.inside_.begin(), m.inside_.end(),
                       [&](const auto& use) { return values_.uses(use.first) == use.second; });
  }

private:
  template <class Try> static bool attempt(Match& m, Try run) {
    Match trial = m;
    if (!run(trial)) return false;
    m = std::move(trial);
    return true;
  }

  static bool keep(const Pattern& p, const GraphExpr& e, Match& m) {
    if (GraphExpr known = m[p]) return known == e;
    m.bound_.emplace_back(p.get(), e);
    return true;
  }

  bool holds(const Pattern& p, const GraphExpr& e) const {
    return std::all_of(p->conditions.begin(), p->conditions.end(),
                       [&](const Pattern::Condition& c) { return c(e, values_); });
  }

  static void countUse(const GraphVar& v, Match& m) {
    for (auto& [var, uses] : m.inside_)
      if (var == v) {
        ++uses;
        return;
      }
    m.inside_.emplace_back(v, 1);
  }

  static bool hasAttrs(const Pattern& p, const GraphCallNode& c) {
    return std::all_of(p->attrs.begin(), p->attrs.end(), [&](const auto& a) {
      NodeRef value = attr(c.attrs, a.first);
      return value && same(value, a.second);
    });
  }

  bool runCall(const Pattern& p, const GraphExpr& e, Match& m, bool root) const {
    if (const auto* v = e.as<GraphVarNode>(); v && !root && !p->isShared) countUse(GraphVar(v), m);
    GraphExpr value = values_.valueOf(e);
    if (GraphExpr known = m[p]) return known == value;
    const auto* c = value.as<GraphCallNode>();
    if (!c || c->args.size() != p->parts.size() ||
        std::find(p->ops.begin(), p->ops.end(), c->opName()) == p->ops.end() || !hasAttrs(p, *c) ||
        !holds(p, value))
      return false;
    m.bound_.emplace_back(p.get(), value);
    static const char* const commute[] = {"add", "multiply", "maximum", "minimum"};
    bool swaps = p->parts.size() == 2 &&
                 std::find(std::begin(commute), std::end(commute), c->opName()) != std::end(commute);
    if (!swaps) return runArgs(p, *c, false, m);
    return attempt(m, [&](Match& trial) { return runArgs(p, *c, false, trial); }) || runArgs(p, *c, true, m);
  }

  bool runArgs(const Pattern& p, const GraphCallNode& c, bool swapped, Match& m) const {
    for (size_t i = 0; i < p->parts.size(); ++i)
      if (!run(p->parts[i], c.args[swapped ? p->parts.size() - 1 - i : i], m)) return false;
    return true;
  }

  const MatchContext& values_;
};

std::optional<Match> match(const Pattern& pattern, const GraphExpr& root, const MatchContext& values) {
  Matcher matcher(values);
  Match m;
  if (!matcher.run(pattern, root, m, true) || !matcher.ownsInside(m)) return std::nullopt;
  return m;
}

namespace {

class Instance {
public:
  explicit Instance(const Match& m) : m_(m) {}

  GraphExpr of(const Pattern& p) {
    if (GraphExpr known = m_[p]) return known;
    GraphExpr& made = made_[p.get()];
    if (!made) made = p->form == Form::kCall ? callOf(p) : constantOf(p);
    return made;
  }

private:
  GraphExpr callOf(const Pattern& p) {
    Array<GraphExpr> args;
    for (const Pattern& part : p->parts) args.push_back(of(part));
    Dict attrs;
    for (const auto& [key, value] : p->attrs) attrs = withAttr(attrs, key, value);
    return opCall(p->ops[0], args, attrs);
  }

  GraphExpr constantOf(const Pattern& p) {
    const auto* root = m_.root().type.as<TensorTypeNode>();
    BEVEL_ASSERT(p->equals && root, "a part of a replacement is neither matched nor made");
    return scalarConstant(root->dtype, *p->equals);
  }

  const Match& m_;
  std::unordered_map<const PatternNode*, GraphExpr> made_; // a part that is used twice is one value
};

} // namespace

GraphExpr instantiate(const Pattern& pattern, const Match& m) {
  return Instance(m).of(pattern);
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

GraphExpr scalarConstant(DType dtype, double value) {
  auto t = TensorObject::zeros(dtype, {});
  t->setDouble(0, value);
  return make<const ConstantNode>(Tensor(t));
}

const TensorTypeNode* knownTensor(const GraphExpr& e) {
  const auto* t = e && e->type ? e->type.as<TensorTypeNode>() : nullptr;
  return t && t->known && !t->dtype.isVoid() ? t : nullptr;
}

} // namespace bevel
