// Takes tail predicates off the statements that only fill private tiles, so that inner loops have no
// branches.
//
// before:  for ii, ji in T.grid(6, 16):
//            if io*6 + ii < M: acc[ii, ji] = 0
//          for k, ii, ji in T.grid(K, 6, 16):
//            if io*6 + ii < M: acc[ii, ji] += A[io*6 + ii, k] * B[k, ji]
//          for ii, ji in T.grid(6, 16):
//            if io*6 + ii < M: C[io*6 + ii, ji] = acc[ii, ji]
// after:   for ii, ji in T.grid(6, 16):
//            acc[ii, ji] = 0
//          for k, ii, ji in T.grid(K, 6, 16):
//            acc[ii, ji] += A[min(io*6 + ii, M-1), k] * B[k, ji]
//          for ii, ji in T.grid(6, 16):
//            if io*6 + ii < M: C[io*6 + ii, ji] = acc[ii, ji]
//
// 1. A predicate is written as a function of the slot of the private buffer that a statement stores or
//    loads: here "io*6 + s0 < M" at all three places.
// 2. It may leave a store when every load of the buffer whose value goes elsewhere stands under it: then
//    slots where it is false hold garbage that nobody looks at. A predicate on the reduction axis never
//    qualifies.
// 3. Loads that the predicate kept inside their buffer get the last valid index instead; along a vectorised
//    loop they get a mask. Statements that could trap on garbage (integer division, calls) keep their
//    predicates.
#include "arith/linear.h"
#include "loop/passes/context.h"
#include "loop/passes/passes.h"
#include "loop/reduction.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace bevel {
namespace {

/// Evaluating e on garbage, or where the program did not, is harmless.
bool speculable(const Expr& e, Analyzer& analyzer) {
  return !anyNode(e, [&](const NodeRef& n) {
    if (const auto* c = n.as<CallNode>())
      return intrinInfo(c->op).effect != Effect::kPure || c->op == Intrin::kCallPureExtern;
    const auto* b = n.as<BinaryNode>();
    return b && dividesInteger(*b) && !analyzer.prove(constant(b->b->dtype, 1) <= b->b);
  });
}

/// For a store to a private buffer: the conjuncts of the conditions around it that it does not need. Keyed by
/// identity (lookup only).
using DroppedPredicates = std::unordered_map<const Node*, std::vector<Expr>>;

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
std::optional<std::vector<Use>> usesOf(const Alloc& a, Analyzer& analyzer) {
  if (addressTaken(a->body, a->buffer)) return std::nullopt;
  auto hides = [&](const StmtNode& s) { // conditions over let variables are not followed
    return (s.kind == Kind::kLetStmt || s.kind == Kind::kWhile) && usesVar(Stmt(&s), a->buffer->data);
  };
  if (anyNode<StmtNode>(a->body, hides)) return std::nullopt;
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
      if (store && sameElement(u.indices, store->indices) && usesVar(store->value, x.node)) continue;
    }
    u.conditions = conjuncts(conjunction(x.conditions));
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
  bool left = std::ranges::any_of(inner, [&](const Var& v) { return usesVar(rest, v); });
  if (left || isConst(slotPart, 0)) return nullptr;
  return make<const BinaryNode>(c->op, analyzer.simplify(slotPart + rest), intImm(0));
}

bool contains(const std::vector<Expr>& list, const Expr& e) {
  return std::ranges::any_of(list, [&](const Expr& x) { return same(x, e); });
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
  using ContextRewriter::ContextRewriter;
  DroppedPredicates dropped;

private:
  NodeRef visit(const NodeRef& node) override {
    if (const auto* a = node.as<AllocNode>()) inspect(*a);
    return ContextRewriter::visit(node);
  }

  void inspect(const AllocNode& a) {
    auto uses = usesOf(Alloc(&a), analyzer);
    if (!uses) return;
    std::vector<Var> slots;
    for (size_t d = 0; d < a.buffer->rank(); ++d) slots.push_back(var("s" + std::to_string(d)));
    // What holds at every load whose value leaves the buffer.
    std::optional<std::vector<Expr>> common;
    for (const Use& u : *uses) {
      if (!u.escapes) continue;
      std::vector<Expr> here;
      for (const Expr& c : u.conditions)
        if (Expr e = overSlots(c, u, slots, analyzer)) here.push_back(e);
      if (!common) common = here;
      std::erase_if(*common, [&](const Expr& e) { return !contains(here, e); });
    }
    if (!common || common->empty()) return;
    for (const Use& u : *uses) {
      if (!u.write || !u.harmless || !storesInside(u, a.buffer, analyzer)) continue;
      for (const Expr& c : u.conditions)
        if (Expr e = overSlots(c, u, slots, analyzer); e && contains(*common, e))
          dropped[u.node].push_back(c);
    }
  }
};

class Speculation : public ContextRewriter {
public:
  Speculation(const PrimFunc& f, DroppedPredicates dropped)
      : ContextRewriter(f), dropped_(std::move(dropped)) {}

private:
  NodeRef visit(const NodeRef& node) override {
    if (node.is<IfNode>()) return visitIf(cast<IfNode>(node));
    if (node.is<StoreNode>() && dropped_.contains(node.get())) return visitStore(cast<StoreNode>(node));
    if (node.is<LoadNode>() && speculating_) return guardedLoad(cast<LoadNode>(ContextRewriter::visit(node)));
    return ContextRewriter::visit(node);
  }

  /// Conjuncts that every store below drops leave the If; a sequence whose statements disagree is split
  /// first.
  NodeRef visitIf(const If& s) {
    if (s->elseBody || readsMemory(s->condition)) return ContextRewriter::visit(s);
    if (const auto* list = s->thenBody.as<SeqNode>(); list && anyDropped(s->thenBody)) {
      std::vector<Stmt> out;
      for (const Stmt& x : list->stmts)
        if (NodeRef kept = (*this)(NodeRef(make<const IfNode>(s->condition, x))))
          out.push_back(cast<StmtNode>(kept));
      return seq(out);
    }
    std::vector<Expr> kept;
    for (const Expr& c : conjuncts(s->condition))
      if (!allDrop(s->thenBody, c)) kept.push_back(c);
    if (kept.empty()) return (*this)(NodeRef(s->thenBody));
    if (kept.size() == conjuncts(s->condition).size()) return ContextRewriter::visit(s);
    return ContextRewriter::visit(with(s, &IfNode::condition, call(Intrin::kLikely, {conjunction(kept)})));
  }
  bool anyDropped(const Stmt& body) {
    return anyNode<StoreNode>(body, [&](const StoreNode& s) { return dropped_.contains(&s); });
  }
  bool allDrop(const Stmt& body, const Expr& conjunct) {
    return !anyNode<StmtNode>(body, [&](const StmtNode& s) {
      if (s.kind != Kind::kStore)
        return s.kind == Kind::kEvaluate || s.kind == Kind::kAssert || s.kind == Kind::kWhile;
      auto it = dropped_.find(&s);
      return it == dropped_.end() || !contains(it->second, conjunct);
    });
  }

  NodeRef visitStore(const Store& s) {
    bool outer = speculating_;
    speculating_ = true;
    NodeRef out = ContextRewriter::visit(s);
    speculating_ = outer;
    return out;
  }

  /// The load with indices that lie inside the buffer whatever the dropped predicates say.
  NodeRef guardedLoad(const Load& l) {
    Array<Expr> indices;
    Expr mask = boolImm(true);
    for (size_t d = 0; d < l->indices.size(); ++d) {
      const Expr &i = l->indices[d], &size = l->buffer->shape[d];
      Expr zero = constant(i->dtype.scalar(), 0);
      bool low = analyzer.prove(i >= zero), high = analyzer.prove(i < size);
      if (low && high) {
        indices.push_back(i);
      } else if (variesByLane(i) || !isPositive(size)) {
        if (!low) mask = logicalAnd(mask, i >= zero);
        if (!high) mask = logicalAnd(mask, i < size);
        indices.push_back(i);
      } else {
        Expr clamped = high ? i : min(i, castTo(i->dtype, size) - 1);
        indices.push_back(low ? clamped : max(clamped, zero));
      }
    }
    Load inside = with(l, &LoadNode::indices, indices);
    return isConst(mask, 1) ? NodeRef(inside) : ifThenElse(mask, inside, constantFloat(l->dtype, 0));
  }
  bool variesByLane(const Expr& e) {
    return std::ranges::any_of(
        loops, [&](const For& l) { return l->forKind == ForKind::kVectorized && usesVar(e, l->var); });
  }
  bool isPositive(const Expr& size) { return analyzer.prove(size >= constant(size->dtype, 1)); }

  DroppedPredicates dropped_;
  bool speculating_ = false;
};

} // namespace

Result<PrimFunc> speculatePredicates(const PrimFunc& f, const Target&) {
  DropFinder finder(f);
  finder.run(f);
  return finder.dropped.empty() ? f : Speculation(f, std::move(finder.dropped)).run(f);
}

} // namespace bevel
