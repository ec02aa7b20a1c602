// See the header, and speculate_predicates.cc for what it is for.
#include "loop/passes/speculation.h"

#include "arith/linear.h"

#include <algorithm>

namespace bevel {
namespace {

/// A load or store of the private buffer, with what surrounds it inside the allocation.
struct Use {
  const Node* node = nullptr; // the Store or Load
  Array<Expr> indices;
  std::vector<VarRange> loops;  // inside the allocation
  std::vector<Expr> conditions; // conjuncts
  bool write = false;
  bool escapes = false; // a load whose value goes elsewhere than to the same slot
  bool harmless = true; // a store whose value may be computed on garbage
};

/// The uses of the buffer under its allocation; nothing when some are not followed.
std::optional<std::vector<Use>> usesOf(const Alloc& a, FunctionRef<bool(const Expr&, Analyzer&)> speculable,
                                       Analyzer& analyzer) {
  bool followed = !addressTaken(a->body, a->buffer);
  walk(a->body, [&](const NodeRef& n) { // conditions over let variables are not followed
    bool scope = n.is<LetStmtNode>() || n.is<WhileNode>();
    followed = followed && !(scope && usesVar(n, a->buffer->data));
    return followed && !n.is<ExprNode>();
  });
  if (!followed) return std::nullopt;
  std::vector<Use> out;
  const StoreNode* store = nullptr; // to the buffer, whose value is looked at
  for (const BufferAccess& x : collectAccesses(a->body)) {
    if (x.node.is<StoreNode>()) store = nullptr;
    if (!x.buffer || !x.buffer->sameAs(*a->buffer)) continue;
    if (x.opaque) return std::nullopt;
    Use u{x.node.get(), {}, x.loops, {}, x.write, !x.write};
    if (const auto* s = x.node.as<StoreNode>()) {
      store = s;
      u.indices = s->indices;
      u.harmless = speculable(s->value, analyzer) && !s->predicate;
    } else {
      u.indices = x.node.as<LoadNode>()->indices;
      // Loads of the very slot that is stored keep garbage where it is.
      bool slot = store && std::ranges::equal(u.indices.raw(), store->indices.raw(),
                                              [](const NodeRef& i, const NodeRef& j) { return same(i, j); });
      if (slot && usesVar(store->value, x.node)) continue;
    }
    for (const Expr& c : x.conditions)
      for (Expr& part : conjuncts(c)) u.conditions.push_back(std::move(part));
    out.push_back(std::move(u));
  }
  return out;
}

/// A condition as `sum (op) 0` over slot variables s0, s1, … and variables outside of the allocation.
Expr overSlots(const Expr& condition, const Use& use, const std::vector<Var>& slots, Analyzer& analyzer) {
  const auto* c = condition.as<BinaryNode>();
  if (!c || !isComparison(c->op) || c->a->dtype != kInt64 || readsMemory(condition)) return nullptr;
  std::vector<Var> inner;
  for (const VarRange& l : use.loops) inner.push_back(l.first);
  Expr rest = c->a - c->b, slotPart = intImm(0);
  // Take off multiples of the indices until no inner variable is left.
  for (size_t d = 0; d < use.indices.size(); ++d) {
    auto index = affineIn(use.indices[d], inner, analyzer), sum = affineIn(rest, inner, analyzer);
    if (!index || !sum) return nullptr;
    auto pick = std::ranges::find_if(inner, [&](const Var& v) { return index->coefOf(v) != 0; });
    if (pick == inner.end()) continue;
    int64_t step = index->coefOf(*pick), have = sum->coefOf(*pick);
    if (have == 0) continue;
    if (have % step != 0) return nullptr;
    int64_t times = have / step;
    rest = analyzer.simplify(rest - use.indices[d] * times);
    slotPart = slotPart + slots[d] * times;
  }
  bool left = usesAnyVar(rest, [&](const VarNode* v) {
    return std::any_of(inner.begin(), inner.end(), [&](const Var& x) { return x.get() == v; });
  });
  if (left || isConst(slotPart, 0)) return nullptr;
  return make<const BinaryNode>(c->op, analyzer.simplify(slotPart + rest), intImm(0));
}

/// The store stays inside its buffer without the conditions.
bool storesInside(const Use& use, const Buffer& buffer, Analyzer& analyzer) {
  for (const VarRange& l : use.loops) analyzer.bind(l.first, l.second);
  bool inside = true;
  for (size_t d = 0; d < use.indices.size(); ++d)
    inside &= analyzer.prove(use.indices[d] >= intImm(0)) &&
              analyzer.prove(use.indices[d] < castTo(kInt64, buffer->shape[d]));
  for (const VarRange& l : use.loops) analyzer.unbind(l.first);
  return inside;
}

class DropFinder : public ContextRewriter {
public:
  DropFinder(const PrimFunc& f, FunctionRef<bool(const Expr&, Analyzer&)> speculable)
      : ContextRewriter(f), speculable_(speculable) {}
  DroppedPredicates dropped;

private:
  NodeRef visit(const NodeRef& node) override {
    if (const auto* a = node.as<AllocNode>()) inspect(*a);
    return ContextRewriter::visit(node);
  }

  void inspect(const AllocNode& a) {
    auto uses = usesOf(Alloc(&a), speculable_, analyzer);
    if (!uses) return;
    std::vector<Var> slots;
    for (size_t d = 0; d < a.buffer->rank(); ++d) slots.push_back(var("s" + std::to_string(d)));
    // What holds at every load whose value leaves the buffer.
    std::vector<Expr> common;
    bool first = true;
    for (const Use& u : *uses) {
      if (!u.escapes) continue;
      std::vector<Expr> here;
      for (const Expr& c : u.conditions)
        if (Expr e = overSlots(c, u, slots, analyzer)) here.push_back(e);
      if (first)
        common = here;
      else
        std::erase_if(common, [&](const Expr& e) { return !contains(here, e); });
      first = false;
    }
    if (common.empty()) return;
    for (const Use& u : *uses) {
      if (!u.write || !u.harmless || !storesInside(u, a.buffer, analyzer)) continue;
      for (const Expr& c : u.conditions)
        if (Expr e = overSlots(c, u, slots, analyzer); e && contains(common, e)) dropped[u.node].push_back(c);
    }
  }
  static bool contains(const std::vector<Expr>& list, const Expr& e) {
    return std::any_of(list.begin(), list.end(), [&](const Expr& x) { return same(x, e); });
  }

  FunctionRef<bool(const Expr&, Analyzer&)> speculable_;
};

} // namespace

DroppedPredicates findDroppable(const PrimFunc& f, FunctionRef<bool(const Expr&, Analyzer&)> speculable) {
  DropFinder finder(f, speculable);
  finder.run(f);
  return std::move(finder.dropped);
}

} // namespace bevel
