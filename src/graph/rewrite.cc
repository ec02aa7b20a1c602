#include "graph/rewrite.h"

#include "base/stack.h"
#include "graph/mutator.h"
#include "graph/passes/passes.h"
#include "graph/shape_util.h"
#include "graph/visitor.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <mutex>

namespace bevel {
namespace {

constexpr int kMostRounds = 16;     // over a function
constexpr int kMostSteps = 1 << 10; // at one binding: only rules without end take so many

// Answers of a function's bindings; several rounds ask once.
struct Asking {
  const Ask& ask;
  std::unordered_map<GraphVar, std::map<const Rule*, bool>, RefHash> answers = {};
};

using RulesByOp = std::unordered_map<std::string, std::vector<const Rule*>>;

void index(const Rule& rule, const Pattern& root, RulesByOp& out) {
  BEVEL_ASSERT(!root->ops.empty() || !root->parts.empty(), "a rule begins at a call");
  for (const std::string& op : root->ops)
    if (auto& of = out[op]; of.empty() || of.back() != &rule) of.push_back(&rule);
  if (root->ops.empty())
    for (const Pattern& part : root->parts) index(rule, part, out);
}

bool isKnown(const Type& type) {
  if (const auto* t = type.as<TensorTypeNode>()) return t->known && !t->dtype.isVoid();
  const auto* tuple = type.as<TupleTypeNode>();
  return tuple && std::all_of(tuple->fields_.begin(), tuple->fields_.end(), isKnown);
}

class RuleMutator : public ExprMutator, MatchContext {
public:
  RuleMutator(const Module& module, const RulesByOp& rules, Asking& asking, const Function& f)
      : ExprMutator(module), rules_(rules), asking_(asking) {
    forEachValue(f, [&](const NodeRef& n, const NodeRef&) {
      if (n.is<GraphVarNode>()) ++uses_[cast<GraphVarNode>(n)];
    });
  }
  bool changed = false;

protected:
  Status visitBlock(const BindingBlock& block) override {
    size_t outer = std::exchange(block_, ++blocks_);
    Status status = ExprMutator::visitBlock(block);
    block_ = outer;
    return status;
  }

  Status visitMatchCast(const MatchCast& b) override {
    home_[b->var] = block_;
    return ExprMutator::visitMatchCast(b);
  }

  Status emit(const VarBinding& b, const GraphExpr& value) override {
    steps_ = 0;
    typed_.clear();
    bound_.clear();
    home_[b->var] = block_;
    binding_ = b;
    bool looks = value.is<GraphCallNode>() && isKnown(b->var->type);
    GraphExpr better = looks ? settled(value, b->var->type) : value;
    if (!better) return failure();
    BEVEL_CHECK(better == value ? ExprMutator::emit(b, value) : bindOrReplace(b->var, better));
    GraphExpr now = replacement(b->var);
    if (now == b->var || !now.is<GraphVarNode>()) return {};
    GraphVar other = cast<GraphVarNode>(now); // reads what comes in its place
    home_.emplace(other, block_);
    uses_[other] += uses_[b->var] - (now == better && b->var->dataflow ? 1 : 0);
    return {};
  }

private:
  GraphExpr valueOf(const GraphExpr& e) const override {
    GraphExpr at = e;
    while (at.is<GraphVarNode>()) {
      GraphExpr value = lookup(at);
      if (!value) break;
      at = value;
    }
    return at;
  }
  int uses(const GraphVar& v) const override {
    auto it = uses_.find(v);
    return it == uses_.end() ? 0 : it->second;
  }

  // What the rules make of a value whose operands are leaves; nested calls of replacements are bound before it.
  GraphExpr settled(GraphExpr value, const Type& type) {
    while (value.is<GraphCallNode>()) {
      const Rule* rule = nullptr;
      auto better = firstReplacement(value, type, rule);
      if (!better) return fault(std::move(better.error()));
      if (!*better) return value;
      if (++steps_ > kMostSteps)
        return fault(Error(ErrorCode::kInternal,
                           fmt::format("rule '{}' is applied to its own results without end", rule->name)));
      changed = true;
      GraphExpr flat = flattened(*better);
      if (!flat) return nullptr;
      countUses(flat, 1);
      dropUses(value);
      value = flat;
    }
    return value;
  }

  // Null where no rule fits.
  Result<GraphExpr> firstReplacement(const GraphExpr& value, const Type& type, const Rule*& found) {
    auto it = rules_.find(value.as<GraphCallNode>()->opName());
    GraphExpr root = it == rules_.end() ? nullptr : typed(value);
    if (!root) return GraphExpr();
    for (const Rule* rule : it->second) {
      auto m = match(rule->pattern, root, *this);
      GraphExpr made = m ? typed(rule->replacement(*m)) : nullptr;
      if (!made || made == root || !sameType(made->type, type, builder.analyzer()) || !isVisible(made))
        continue;
      BEVEL_TRY(bool wanted, isWanted(*rule));
      if (!wanted) continue;
      found = rule;
      return made;
    }
    return GraphExpr();
  }

  Result<bool> isWanted(const Rule& rule) {
    if (!asking_.ask) return true;
    auto [it, isNew] = asking_.answers[binding_->var].emplace(&rule, true);
    if (isNew) {
      BEVEL_TRY(size_t answer, asking_.ask(yesNo(rule.name + " of " + subjectOf(binding_), true, rule.why)));
      it->second = answer == 0;
    }
    return it->second;
  }

  // The expression with the types of all its calls; null where there is none.
  GraphExpr typed(const GraphExpr& e) {
    if (!e || !e.is<GraphCallNode>() || e->type) return e;
    if (auto it = typed_.find(e); it != typed_.end()) return it->second;
    auto parts = mapOperands(e, [&](const GraphExpr& operand) -> Result<GraphExpr> {
      GraphExpr out = typed(operand);
      if (!out) return fail(ErrorCode::kInvalid, "no type");
      return out;
    });
    auto type = parts ? builder.infer(*parts) : Result<Type>(nullptr);
    if (!type || !*type) return nullptr;
    return typed_[e] = with(cast<GraphCallNode>(*parts), &GraphCallNode::type, *type);
  }

  // A variable of a dataflow block is seen in its block only.
  bool isVisible(const GraphExpr& e) const {
    if (e.is<GraphVarNode>()) {
      auto v = cast<GraphVarNode>(e);
      auto it = home_.find(v);
      return !v->dataflow || (it != home_.end() && it->second == block_);
    }
    bool all = true;
    forEachValue(e, [&](const NodeRef& n, const NodeRef&) {
      if (n.is<GraphVarNode>()) all &= isVisible(cast<GraphVarNode>(n));
    });
    return all;
  }

  GraphExpr flattened(const GraphExpr& e) {
    auto flat = mapOperands(e, [&](const GraphExpr& operand) -> Result<GraphExpr> {
      GraphExpr leaf = operand.is<GraphCallNode>() ? bound(operand) : operand;
      if (!leaf) return failure();
      return leaf;
    });
    return flat ? *flat : nullptr;
  }

  // A nested call as a leaf. One that is used twice is bound once.
  GraphExpr bound(const GraphExpr& nested) {
    if (auto it = bound_.find(nested); it != bound_.end()) return it->second;
    GraphExpr flat = flattened(nested);
    if (!flat) return nullptr;
    countUses(flat, 1);
    GraphExpr value = settled(flat, nested->type);
    if (!value) return nullptr;
    if (value.is<GraphCallNode>()) {
      auto v = builder.emit(value);
      if (!v) return fault(std::move(v.error()));
      home_[*v] = block_;
      value = *v;
    } else
      countUses(value, -1); // the user counts it
    return bound_[nested] = value;
  }

  void countUses(const GraphExpr& e, int by) {
    if (e.is<GraphVarNode>()) uses_[cast<GraphVarNode>(e)] += by;
    forEachValue(e, [&](const NodeRef& n, const NodeRef&) {
      if (n.is<GraphVarNode>()) uses_[cast<GraphVarNode>(n)] += by;
    });
  }

  // The value goes, and with it what only it uses.
  void dropUses(const GraphExpr& e) {
    forEachValue(e, [&](const NodeRef& n, const NodeRef&) {
      if (!n.is<GraphVarNode>() || --uses_[cast<GraphVarNode>(n)] > 0) return;
      GraphExpr made = lookup(cast<GraphVarNode>(n));
      if (made && isPure(made, builder.module())) dropUses(made);
    });
  }

  const RulesByOp& rules_;
  Asking& asking_;
  VarBinding binding_;                              // in hand
  std::unordered_map<GraphVar, int, RefHash> uses_; // by what is emitted, and by what is still to be visited
  std::unordered_map<GraphVar, size_t, RefHash> home_;              // the block that binds a variable
  std::unordered_map<GraphExpr, GraphExpr, RefHash> typed_, bound_; // of the binding in hand
  size_t block_ = 0, blocks_ = 0;
  int steps_ = 0;
};

Result<Function> rewriteFunction(const Module& module, const RulesByOp& rules, const Ask& ask, Function f) {
  Asking asking{ask};
  bool any = false;
  forEachCall(f, [&](const GraphCall& c, const GraphVar&) { any |= rules.count(c->opName()) > 0; });
  for (int round = 0; any && round < kMostRounds; ++round) {
    RuleMutator mutator(module, rules, asking, f);
    BEVEL_TRY(Function after, mutator.mutateFunction(f));
    any = mutator.changed;
    if (any) f = after;
  }
  return f;
}

struct Added {
  std::mutex mutex;
  std::map<std::string, Rules> lists;
};
Added& added() {
  static Added all;
  return all;
}

} // namespace

Result<Module> rewriteGraph(const Module& module, const Rules& rules, const Ask& ask) {
  RulesByOp byOp;
  for (const Rule& rule : rules) index(rule, rule.pattern, byOp);
  BEVEL_TRY(Module out, onLargeStack([&] { // a replacement of a replacement lies deeper
              return mapFunctions(module, [&](const Module& soFar, const Function& f) {
                return rewriteFunction(soFar, byOp, ask, f);
              });
            }));
  return removeDead(out);
}

void addGraphRule(const std::string& list, Rule rule) {
  std::lock_guard lock(added().mutex);
  Rules& rules = added().lists[list];
  std::erase_if(rules, [&](const Rule& r) { return r.name == rule.name; });
  rules.push_back(std::move(rule));
}

Rules withAddedRules(const std::string& list, Rules ours) {
  std::lock_guard lock(added().mutex);
  const Rules& theirs = added().lists[list];
  ours.insert(ours.end(), theirs.begin(), theirs.end());
  return ours;
}

} // namespace bevel
