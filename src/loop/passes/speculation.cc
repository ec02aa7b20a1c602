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
  std::vector<Expr> conditions; // conjuncts, from statements only
  bool write = false;
  bool escapes = false; // a load whose value goes elsewhere than to the same slot
  bool harmless = true; // a store whose value may be computed on garbage
};

class UseCollector {
public:
  UseCollector(const Buffer& buffer, FunctionRef<bool(const Expr&, Analyzer&)> speculable, Analyzer& analyzer)
      : buffer_(buffer), speculable_(speculable), analyzer_(analyzer) {}
  void visit(const NodeRef& n) {
    if (const auto* f = n.as<ForNode>()) {
      visit(f->min);
      visit(f->extent);
      loops_.emplace_back(f->var, range(f->min, f->extent));
      visit(f->body);
      loops_.pop_back();
    } else if (const auto* s = n.as<IfNode>()) {
      visitIf(*s);
    } else if (n.is<StoreNode>()) {
      visitStore(cast<StoreNode>(n));
    } else if (const auto* l = n.as<LoadNode>()) {
      if (l->buffer->sameAs(*buffer_)) add(n, l->buffer, l->indices, false, true);
      forEachChild(n, [&](const NodeRef& c, Role) { visit(c); });
    } else if (n == buffer_->data) {
      ok = false; // its address is taken
    } else if (n.is<LetStmtNode>() || n.is<WhileNode>()) {
      // Conditions over let variables are not followed.
      if (usesVar(n, buffer_->data)) ok = false;
    } else if (!n.is<BufferNode>()) {
      forEachChild(n, [&](const NodeRef& c, Role) { visit(c); });
    }
  }
  std::vector<Use> uses;
  bool ok = true;

private:
  void visitIf(const IfNode& s) {
    visit(s.condition);
    size_t depth = conditions_.size();
    for (Expr& c : conjuncts(s.condition)) conditions_.push_back(std::move(c));
    visit(s.thenBody);
    conditions_.resize(depth);
    if (s.elseBody) visit(s.elseBody);
  }
  void visitStore(const Store& s) {
    if (!s->buffer->sameAs(*buffer_)) return forEachChild(s, [&](const NodeRef& c, Role) { visit(c); });
    add(s, s->buffer, s->indices, true, false);
    uses.back().harmless = speculable_(s->value, analyzer_) && !s->predicate;
    // Loads of the very slot that is stored keep garbage where it is.
    walk(s->value, [&](const NodeRef& n) {
      const auto* l = n.as<LoadNode>();
      if (!l || !l->buffer->sameAs(*buffer_)) return true;
      bool sameSlot = l->indices.size() == s->indices.size();
      for (size_t d = 0; sameSlot && d < l->indices.size(); ++d)
        sameSlot = same(l->indices[d], s->indices[d]);
      if (!sameSlot) add(n, l->buffer, l->indices, false, true);
      return true;
    });
    for (const Expr& i : s->indices) visit(i);
  }
  void add(const NodeRef& n, const Buffer& view, const Array<Expr>& indices, bool write, bool escapes) {
    ok &= same(view, buffer_); // slots of another view are other elements
    Use u;
    u.node = n.get();
    u.indices = indices;
    u.loops = loops_;
    u.conditions = conditions_;
    u.write = write;
    u.escapes = escapes;
    uses.push_back(std::move(u));
  }

  const Buffer& buffer_;
  FunctionRef<bool(const Expr&, Analyzer&)> speculable_;
  Analyzer& analyzer_; // of what holds outside of the allocation
  std::vector<VarRange> loops_;
  std::vector<Expr> conditions_;
};

/// A condition as `sum (op) 0` over slot variables s0, s1, … and variables outside of the allocation.
Expr overSlots(const Expr& condition, const Use& use, const std::vector<Var>& slots, Analyzer& analyzer) {
  const auto* c = condition.as<BinaryNode>();
  if (!c || !isComparison(c->op) || c->a->dtype != kInt64 || !isPureIndex(condition)) return nullptr;
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
    UseCollector collector(a.buffer, speculable_, analyzer);
    collector.visit(a.body);
    if (!collector.ok) return;
    std::vector<Var> slots;
    for (size_t d = 0; d < a.buffer->rank(); ++d) slots.push_back(var("s" + std::to_string(d)));
    // What holds at every load whose value leaves the buffer.
    std::vector<Expr> common;
    bool first = true;
    for (const Use& u : collector.uses) {
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
    for (const Use& u : collector.uses) {
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
