// The rule engine: the text of rules.def is parsed once into an array of small nodes; rules are bucketed by
// the operation at their root; matching binds wildcards by equality of expressions.
#include "arith/rules.h"

#include "arith/rule_parser.h"
#include "arith/state.h"

namespace bevel {

using namespace arith;

namespace {

const RuleText kTexts[] = {
#define RULE(domain, pattern, replacement, condition)                                                        \
  {RuleDomain(#domain[0]), pattern, replacement, condition},
#include "arith/rules.def"
#undef RULE
};

struct Rule {
  RuleDomain domain;
  int pattern, replacement, condition = -1;
  bool symbolicCondition = false;
};

struct Table {
  PatternArena arena;
  std::vector<Rule> rules;
  std::vector<uint16_t> buckets[64]; // by root operation
};

constexpr int kNotBucket = 40, kSelectBucket = 41, kIfBucket = 42;

int bucketOf(const Pattern& p) {
  switch (p.kind) {
  case Pattern::kBinary:
    return int(p.op);
  case Pattern::kNot:
    return kNotBucket;
  case Pattern::kSelect:
    return kSelectBucket;
  case Pattern::kIf:
    return kIfBucket;
  default:
    return -1;
  }
}

int bucketOf(const Expr& e) {
  if (auto b = e.as<BinaryNode>()) return int(b->op);
  if (auto u = e.as<UnaryNode>()) return u->op == UnaryOp::kNot ? kNotBucket : -1;
  if (e->kind == Kind::kSelect) return kSelectBucket;
  auto c = e.as<CallNode>();
  return c && c->op == Intrin::kIfThenElse ? kIfBucket : -1;
}

const Table& table() {
  static const Table* t = [] {
    auto* built = new Table;
    for (const RuleText& text : kTexts) {
      Rule r{text.domain, parsePattern(text.pattern, built->arena),
             parsePattern(text.replacement, built->arena)};
      if (*text.condition) {
        r.condition = parsePattern(text.condition, built->arena);
        r.symbolicCondition = hasWildcard(built->arena, r.condition);
      }
      int bucket = bucketOf(built->arena[size_t(r.pattern)]);
      BEVEL_ASSERT(bucket >= 0, "a rule's root must be an operation");
      built->buckets[bucket].push_back(uint16_t(built->rules.size()));
      built->rules.push_back(r);
    }
    return built;
  }();
  return *t;
}

bool commutes(BinaryOp op) {
  return op == BinaryOp::kAdd || op == BinaryOp::kMul || op == BinaryOp::kMin || op == BinaryOp::kMax ||
         op == BinaryOp::kEq || op == BinaryOp::kNe || op == BinaryOp::kAnd || op == BinaryOp::kOr;
}

class Matcher {
public:
  Matcher(const PatternArena& arena, RuleDomain domain, AnalyzerState& state)
      : arena_(arena), domain_(domain), state_(state) {}

  Bindings binds;

  bool match(int index, const Expr& e) {
    const Pattern& p = arena_[size_t(index)];
    switch (p.kind) {
    case Pattern::kAny: {
      Expr& slot = binds.any[size_t(p.value)];
      if (slot) return slot->dtype == e->dtype && sameExpr(slot, e);
      if (p.boolean && !e->dtype.isBool()) return false;
      slot = e;
      noteType(e);
      return true;
    }
    case Pattern::kConst: {
      auto imm = e.as<IntImmNode>();
      if (!imm || e->dtype.isBool()) return false;
      auto& slot = binds.constants[size_t(p.value)];
      if (slot) return *slot == imm->value;
      slot = imm->value;
      noteType(e);
      return true;
    }
    case Pattern::kInt: {
      auto value = asConst(e);
      return value && *value == p.value && e->dtype.isBool() == p.boolean;
    }
    case Pattern::kBinary:
      return matchBinary(p, e);
    case Pattern::kNot: {
      auto u = e.as<UnaryNode>();
      return u && u->op == UnaryOp::kNot && match(p.kids[0], u->a);
    }
    case Pattern::kSelect: {
      auto s = e.as<SelectNode>();
      return s && match(p.kids[0], s->condition) && match(p.kids[1], s->a) && match(p.kids[2], s->b);
    }
    case Pattern::kIf: {
      auto c = e.as<CallNode>();
      return c && c->op == Intrin::kIfThenElse && match(p.kids[0], c->arg(0)) &&
             match(p.kids[1], c->arg(1)) && match(p.kids[2], c->arg(2));
    }
    case Pattern::kRamp: {
      auto r = e.as<RampNode>();
      return r && matchLanes(e) && match(p.kids[0], r->base) && match(p.kids[1], r->stride);
    }
    case Pattern::kBroadcast: {
      auto b = e.as<BroadcastNode>();
      return b && matchLanes(e) && match(p.kids[0], b->value);
    }
    default:
      return false;
    }
  }

private:
  void noteType(const Expr& e) {
    if (binds.valueType.isVoid() && e->dtype.isInteger()) binds.valueType = e->dtype;
  }
  bool matchLanes(const Expr& e) {
    if (binds.lanes == 0) binds.lanes = e->dtype.lanes;
    return binds.lanes == e->dtype.lanes;
  }
  bool typeAllowed(BinaryOp op, const Expr& operand) const {
    if (op == BinaryOp::kAnd || op == BinaryOp::kOr) return operand->dtype.isBool();
    switch (domain_) {
    case RuleDomain::kInt:
    case RuleDomain::kExact:
      return operand->dtype.isInteger();
    case RuleDomain::kBool:
      return operand->dtype.isBool();
    case RuleDomain::kVector:
      return isIndexType(operand->dtype);
    case RuleDomain::kAny:
      return true;
    }
    return false;
  }
  bool matchBinary(const Pattern& p, const Expr& e) {
    auto b = e.as<BinaryNode>();
    if (!b || b->op != p.op || !typeAllowed(b->op, b->a)) return false;
    if (domain_ == RuleDomain::kExact && b->op <= BinaryOp::kMul && !state_.isExact(e)) return false;
    Bindings saved = binds;
    if (match(p.kids[0], b->a) && match(p.kids[1], b->b)) return true;
    binds = saved;
    if (!commutes(b->op)) return false;
    return match(p.kids[0], b->b) && match(p.kids[1], b->a);
  }

  const PatternArena& arena_;
  RuleDomain domain_;
  AnalyzerState& state_;
};

} // namespace

std::span<const RuleText> ruleTexts() {
  return kTexts;
}

Expr RuleEngine::apply(const Expr& e, AnalyzerState& state) {
  int bucket = bucketOf(e);
  if (bucket < 0) return nullptr;
  const Table& t = table();
  for (uint16_t index : t.buckets[bucket]) {
    const Rule& r = t.rules[index];
    Matcher m(t.arena, r.domain, state);
    m.binds.rootType = e->dtype;
    if (!m.match(r.pattern, e)) continue;
    if (r.condition >= 0 && !r.symbolicCondition) {
      auto holds = foldPattern(t.arena, r.condition, m.binds);
      if (!holds || !*holds) continue;
    }
    Builder builder(t.arena, m.binds);
    if (r.symbolicCondition) {
      Bindings scalar = m.binds; // a condition is one truth, whatever the lanes
      scalar.rootType = kBool;
      Expr condition = Builder(t.arena, scalar).build(r.condition);
      if (!condition || !state.prove(condition)) continue;
    }
    Expr result = builder.build(r.replacement);
    if (result && result->dtype == e->dtype) return result;
  }
  return nullptr;
}

Expr RuleEngine::instantiate(std::string_view text, const std::unordered_map<std::string, Expr>& names,
                             int lanes) {
  PatternArena arena;
  int root = parsePattern(text, arena);
  Bindings binds;
  binds.lanes = lanes;
  for (size_t i = 0; i < kWildcardNames.size(); ++i) {
    auto it = names.find(std::string(1, kWildcardNames[i]));
    if (it != names.end()) {
      binds.any[i] = it->second;
      if (it->second->dtype.isInteger() && binds.valueType.isVoid()) binds.valueType = it->second->dtype;
    }
  }
  for (size_t i = 0; i < binds.constants.size(); ++i) {
    auto it = names.find("c" + std::to_string(i + 1));
    if (it != names.end()) {
      binds.constants[i] = asConst(it->second);
      if (binds.valueType.isVoid()) binds.valueType = it->second->dtype;
    }
  }
  return Builder(arena, binds).build(root);
}

} // namespace bevel
