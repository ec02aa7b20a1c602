// The rule engine: the table is parsed once; rules are bucketed by the operation at their root; matching binds
// wildcards by equality of expressions.
#include "arith/rules.h"

#include "arith/analyzer.h"
#include "ir/evaluate.h"
#include "ir/parser.h"
#include "ir/structural.h"

#include <array>

namespace bevel {

using namespace arith;

namespace {

// [("I", pattern, replacement, condition), …]: the table as one expression.
constexpr std::string_view kTable = "["
#define RULE(domain, pattern, replacement, condition)                                                        \
  "(\"" #domain "\"," pattern "," replacement "," condition "),\n"
#include "arith/rules.def"
#undef RULE
                                    "]";

// The wildcards' names; each is told by its first letter, constants by their digit too.
constexpr std::string_view kExprs = "xyzwpqr"; // the last three are conditions
constexpr size_t kConditions = 4, kConstants = 3, kLanes = kConstants;
constexpr int kPatternLanes = 2; // L in patterns: vectors of any number of lanes

struct Wildcard {
  bool constant;
  size_t slot;
};

Wildcard wildcardOf(const VarNode& v) {
  char c = v.name[0];
  if (c == 'c') return {true, size_t(v.name[1] - '1')};
  if (c == 'l') return {true, kLanes};
  return {false, kExprs.find(c)};
}

// What wildcards stand for.
struct Bindings {
  std::array<Expr, kExprs.size()> any;
  std::array<std::optional<int64_t>, kConstants + 1> constants; // the last: the number of lanes
  DType valueType;                                              // of integer constants that appear
  DType rootType = kBool;                                       // of the whole
};

struct Table {
  std::vector<Rule> rules;
  std::vector<uint16_t> buckets[64]; // by root operation
};

constexpr int kNotBucket = 40, kSelectBucket = 41, kIfBucket = 42;

int bucketOf(const Expr& e) {
  if (auto b = e.as<BinaryNode>()) return int(b->op);
  if (auto u = e.as<UnaryNode>()) return u->op == UnaryOp::kNot ? kNotBucket : -1;
  if (e->kind == Kind::kSelect) return kSelectBucket;
  auto c = e.as<CallNode>();
  return c && c->op == Intrin::kIfThenElse ? kIfBucket : -1;
}

// Whether a part of a rule has a wildcard that is no constant.
bool hasWildcard(const Expr& e) {
  if (auto v = e.as<VarNode>()) return !wildcardOf(*v).constant;
  if (auto b = e.as<BinaryNode>()) return hasWildcard(b->a) || hasWildcard(b->b);
  return e->kind != Kind::kIntImm;
}

const Table& table() {
  static const Table* t = [] {
    ParseOptions options;
    options.bareForms = true, options.origins = false;
    for (size_t i = 0; i < kExprs.size(); ++i) {
      std::string name(1, kExprs[i]);
      options.captures.emplace_back(name, var(name, i < kConditions ? kInt64 : kBool));
    }
    for (const char* name : {"c1", "c2", "c3", "lanes"}) options.captures.emplace_back(name, var(name));
    options.captures.emplace_back("L", intImm(kPatternLanes));
    auto parsed = parseExpression(kTable, options);
    BEVEL_ASSERT(parsed, parsed.error().str());
    auto* built = new Table;
    for (const NodeRef& node : parsed->as<ListNode>()->items) {
      const Array<NodeRef>& row = node.as<ListNode>()->items;
      bool conditional = row.size() > 3;
      Rule r{RuleDomain(row[0].as<StringImmNode>()->value[0]), cast<ExprNode>(row[1]), cast<ExprNode>(row[2]),
             conditional ? cast<ExprNode>(row[3]) : Expr(),
             conditional && hasWildcard(cast<ExprNode>(row[3]))};
      int bucket = bucketOf(r.pattern);
      BEVEL_ASSERT(bucket >= 0, "a rule's root must be an operation");
      built->buckets[bucket].push_back(uint16_t(built->rules.size()));
      built->rules.push_back(std::move(r));
    }
    return built;
  }();
  return *t;
}

// The value of a part of constants; nothing when it has another wildcard, divides by zero or overflows.
std::optional<int64_t> fold(const Expr& e, const Bindings& binds) {
  if (auto imm = e.as<IntImmNode>()) return imm->value;
  if (auto v = e.as<VarNode>()) {
    Wildcard w = wildcardOf(*v);
    return w.constant ? binds.constants[w.slot] : std::nullopt;
  }
  auto b = e.as<BinaryNode>();
  auto x = b ? fold(b->a, binds) : std::nullopt;
  // Conditions are read left to right: a guard before a division protects it.
  if (!x || (b->op == BinaryOp::kAnd && !*x)) return x;
  auto y = fold(b->b, binds);
  return y ? exactInt(b->op, *x, *y, b->a->dtype) : std::nullopt;
}

bool commutes(BinaryOp op) {
  return op == BinaryOp::kAdd || op == BinaryOp::kMul || op == BinaryOp::kMin || op == BinaryOp::kMax ||
         op == BinaryOp::kEq || op == BinaryOp::kNe || op == BinaryOp::kAnd || op == BinaryOp::kOr;
}

class Matcher {
public:
  Matcher(RuleDomain domain, Analyzer& analyzer) : domain_(domain), analyzer_(analyzer) {}

  Bindings binds;

  bool match(const Expr& p, const Expr& e) {
    if (auto v = p.as<VarNode>()) return matchWildcard(*v, e);
    if (auto imm = p.as<IntImmNode>()) {
      auto value = asConst(e);
      return value && *value == imm->value && e->dtype.isBool() == p->dtype.isBool();
    }
    if (p->kind != e->kind) return false;
    switch (p->kind) {
    case Kind::kBinary:
      return matchBinary(*p.as<BinaryNode>(), e);
    case Kind::kUnary:
      return e.as<UnaryNode>()->op == p.as<UnaryNode>()->op &&
             match(p.as<UnaryNode>()->a, e.as<UnaryNode>()->a);
    case Kind::kSelect: {
      auto *q = p.as<SelectNode>(), *s = e.as<SelectNode>();
      return match(q->condition, s->condition) && match(q->a, s->a) && match(q->b, s->b);
    }
    case Kind::kCall: {
      auto *q = p.as<CallNode>(), *c = e.as<CallNode>();
      bool same = q->op == c->op && q->args.size() == c->args.size();
      for (size_t i = 0; same && i < q->args.size(); ++i) same = match(q->arg(i), c->arg(i));
      return same;
    }
    case Kind::kRamp: {
      auto *q = p.as<RampNode>(), *r = e.as<RampNode>();
      return matchLanes(e) && match(q->base, r->base) && match(q->stride, r->stride);
    }
    case Kind::kBroadcast:
      return matchLanes(e) && match(p.as<BroadcastNode>()->value, e.as<BroadcastNode>()->value);
    default:
      return false;
    }
  }

private:
  bool matchWildcard(const VarNode& v, const Expr& e) {
    Wildcard w = wildcardOf(v);
    if (w.constant) {
      auto imm = e.as<IntImmNode>();
      if (!imm || e->dtype.isBool()) return false;
      auto& slot = binds.constants[w.slot];
      if (slot) return *slot == imm->value;
      slot = imm->value;
    } else {
      Expr& slot = binds.any[w.slot];
      if (slot) return slot->dtype == e->dtype && sameExpr(slot, e);
      if (v.dtype.isBool() && !e->dtype.isBool()) return false;
      slot = e;
    }
    if (binds.valueType.isVoid() && e->dtype.isInteger()) binds.valueType = e->dtype;
    return true;
  }
  bool matchLanes(const Expr& e) {
    auto& lanes = binds.constants[kLanes];
    if (!lanes) lanes = e->dtype.lanes;
    return *lanes == e->dtype.lanes;
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
  bool matchBinary(const BinaryNode& p, const Expr& e) {
    auto b = e.as<BinaryNode>();
    if (b->op != p.op || !typeAllowed(b->op, b->a)) return false;
    if (domain_ == RuleDomain::kExact && b->op <= BinaryOp::kMul && !analyzer_.isExact(e)) return false;
    Bindings saved = binds;
    if (match(p.a, b->a) && match(p.b, b->b)) return true;
    binds = saved;
    if (!commutes(b->op)) return false;
    return match(p.a, b->b) && match(p.b, b->a);
  }

  RuleDomain domain_;
  Analyzer& analyzer_;
};

// A side of a rule under bindings; null when a constant does not fit its dtype.
Expr build(const Expr& p, const Bindings& binds) {
  bool condition = p->dtype.isBool();
  if (auto v = p.as<VarNode>(); v && !wildcardOf(*v).constant) return binds.any[wildcardOf(*v).slot];
  if (!hasWildcard(p)) {
    auto value = fold(p, binds);
    DType t = condition                  ? DType::Bool(binds.rootType.lanes)
              : binds.valueType.isVoid() ? binds.rootType
                                         : binds.valueType;
    bool fits = value && (condition || (t.isInteger() && fitsDType(*value, t)));
    return fits ? constant(t, *value) : nullptr;
  }
  bool ok = true;
  NodeRef e = mapChildren(p, [&](const NodeRef& child) {
    NodeRef made = build(cast<ExprNode>(child), binds);
    ok &= bool(made);
    return made ? made : child;
  });
  if (!ok) return nullptr;
  int lanes = int(binds.constants[kLanes].value_or(kPatternLanes));
  if (auto* r = e.as<RampNode>()) return make<const RampNode>(r->base, r->stride, lanes);
  if (auto* b = e.as<BroadcastNode>()) return make<const BroadcastNode>(b->value, lanes);
  if (auto* b = e.as<BinaryNode>(); b && b->a->dtype != b->b->dtype) return nullptr;
  return cast<ExprNode>(e);
}

} // namespace

const std::vector<Rule>& RuleEngine::rules() {
  return table().rules;
}

Expr RuleEngine::apply(const Expr& e, Analyzer& analyzer) {
  int bucket = bucketOf(e);
  if (bucket < 0) return nullptr;
  const Table& t = table();
  for (uint16_t index : t.buckets[bucket]) {
    const Rule& r = t.rules[index];
    Matcher m(r.domain, analyzer);
    m.binds.rootType = e->dtype;
    if (!m.match(r.pattern, e)) continue;
    if (r.condition && !r.proved) {
      auto holds = fold(r.condition, m.binds);
      if (!holds || !*holds) continue;
    }
    if (r.proved) {
      Bindings scalar = m.binds; // a condition is one truth, whatever the lanes
      scalar.rootType = kBool;
      Expr condition = build(r.condition, scalar);
      if (!condition || !analyzer.prove(condition)) continue;
    }
    Expr result = build(r.replacement, m.binds);
    if (result && result->dtype == e->dtype) return result;
  }
  return nullptr;
}

Expr RuleEngine::instantiate(const Expr& side, const std::unordered_map<std::string, Expr>& names,
                             int lanes) {
  Bindings binds;
  binds.constants[kLanes] = lanes;
  for (const auto& [name, value] : names) {
    Wildcard w = wildcardOf(*var(name));
    if (w.constant)
      binds.constants[w.slot] = asConst(value);
    else
      binds.any[w.slot] = value;
    if (value->dtype.isInteger() && binds.valueType.isVoid()) binds.valueType = value->dtype;
  }
  return build(side, binds);
}

} // namespace bevel
