#include "loop/reduction.h"

#include "ir/structural.h"

#include <algorithm>

namespace bevel {

std::optional<Intrin> laneReduction(BinaryOp op) {
  switch (op) {
  case BinaryOp::kAdd:
    return Intrin::kVectorReduceAdd;
  case BinaryOp::kMul:
    return Intrin::kVectorReduceMul;
  case BinaryOp::kMin:
    return Intrin::kVectorReduceMin;
  case BinaryOp::kMax:
    return Intrin::kVectorReduceMax;
  default:
    return std::nullopt;
  }
}

bool sameElement(const Array<Expr>& a, const Array<Expr>& b) {
  return std::ranges::equal(a.raw(), b.raw(), [](const NodeRef& x, const NodeRef& y) { return same(x, y); });
}

namespace {

/// The element that the store updates, before it does.
bool isCurrent(const Expr& e, const StoreNode& update) {
  const auto* l = e.as<LoadNode>();
  return l && !l->predicate && l->buffer->data == update.buffer->data &&
         sameElement(l->indices, update.indices);
}

/// Whatever the operator: `B[i] = op(B[i], value)` or `B[i] = op(value, B[i])`.
std::optional<Accumulation> selfUpdate(const StoreNode& update) {
  const auto* b = update.value.as<BinaryNode>();
  if (!b) return std::nullopt;
  bool first = isCurrent(b->a, update);
  if (!first && !isCurrent(b->b, update)) return std::nullopt;
  const Expr& value = first ? b->b : b->a;
  if (usesVar(value, update.buffer->data)) return std::nullopt;
  return Accumulation{b->op, value};
}

bool isReduction(BinaryOp op) {
  return laneReduction(op) || op == BinaryOp::kAnd || op == BinaryOp::kOr;
}

bool isGreater(BinaryOp op) {
  return op == BinaryOp::kGt || op == BinaryOp::kGe;
}

/// How a result stands to what the step contributes to it: `left op right`.
struct Comparison {
  size_t result;
  BinaryOp op;
};

struct Opposites {
  BinaryOp op, turned, negated;
};
constexpr Opposites kOrders[] = {{BinaryOp::kLt, BinaryOp::kGt, BinaryOp::kGe},
                                 {BinaryOp::kGt, BinaryOp::kLt, BinaryOp::kLe},
                                 {BinaryOp::kLe, BinaryOp::kGe, BinaryOp::kGt},
                                 {BinaryOp::kGe, BinaryOp::kLe, BinaryOp::kLt}};

std::optional<Comparison> comparisonIn(const Reducer& r, const Expr& e) {
  const auto* b = e.as<BinaryNode>();
  const auto* order = b ? std::ranges::find(kOrders, b->op, &Opposites::op) : nullptr;
  for (size_t m = 0; b && m < r.updates.size(); ++m) {
    bool known = order != std::end(kOrders) || b->op == BinaryOp::kEq;
    if (known && isCurrent(b->a, *r.updates[m]) && same(b->b, r.values[m])) return Comparison{m, b->op};
    if (known && isCurrent(b->b, *r.updates[m]) && same(b->a, r.values[m]))
      return Comparison{m, b->op == BinaryOp::kEq ? b->op : order->turned};
  }
  return std::nullopt;
}

/// What a choice goes by: the greater (or lesser) of one result; where they are equal, of another.
struct Order {
  Comparison by;
  std::optional<Comparison> ties;
};

std::optional<Order> orderIn(const Reducer& r, const Expr& condition) {
  const auto* either = condition.as<BinaryNode>();
  const auto* both = either && either->op == BinaryOp::kOr ? either->b.as<BinaryNode>() : nullptr;
  auto by = comparisonIn(r, both ? either->a : condition);
  if (!by || by->op == BinaryOp::kEq) return std::nullopt;
  if (!both) return Order{*by, {}};
  auto equal = comparisonIn(r, both->a), ties = comparisonIn(r, both->b);
  if (both->op != BinaryOp::kAnd || !equal || equal->op != BinaryOp::kEq || equal->result != by->result ||
      !ties || ties->op == BinaryOp::kEq || ties->result == by->result)
    return std::nullopt;
  return Order{*by, ties};
}

/// The result, chosen by its condition, as a function of left and right; and the order by which left is kept. Null where
/// no order stands behind it.
Expr chosen(const Reducer& r, size_t result, std::optional<Order>& order) {
  const auto* s = r.updates[result]->value.as<SelectNode>();
  order = s ? orderIn(r, s->condition) : std::nullopt;
  if (!order) return nullptr;
  auto compared = [&](const Comparison& c) { return binary(c.op, r.left[c.result], r.right[c.result]); };
  Expr condition = compared(order->by);
  if (order->ties) {
    Expr equal = eq(r.left[order->by.result], r.right[order->by.result]);
    condition = logicalOr(condition, logicalAnd(equal, compared(*order->ties)));
  }
  if (isCurrent(s->a, *r.updates[result])) return select(condition, r.left[result], r.right[result]);
  if (order->ties) return nullptr;
  order->by.op = std::ranges::find(kOrders, order->by.op, &Opposites::op)->negated;
  return select(condition, r.right[result], r.left[result]);
}

/// Choosing for one result by another keeps both together: the other is the greatest itself, and of equal ones the
/// same is kept whatever came between.
bool isSound(Reducer& r, size_t result, const Order& order) {
  size_t by = order.by.result;
  if (order.ties) return r.updates.size() == 2;
  if (by == result) return true;
  r.firstWins = true;
  if (order.by.op != BinaryOp::kGe && order.by.op != BinaryOp::kLe) return false;
  const Expr& other = r.updates[by]->value;
  if (const auto* b = other.as<BinaryNode>())
    return b->op == (isGreater(order.by.op) ? BinaryOp::kMax : BinaryOp::kMin);
  std::optional<Order> own;
  return chosen(r, by, own) && own->by.result == by && isGreater(own->by.op) == isGreater(order.by.op);
}

} // namespace

std::optional<Accumulation> accumulationOf(const StoreNode& update) {
  auto found = selfUpdate(update);
  return found && laneReduction(found->op) ? found : std::nullopt;
}

std::optional<std::vector<Store>> plainStores(const Stmt& body) {
  VarMap lets;
  Stmt rest = body;
  for (; const auto* l = rest.as<LetStmtNode>(); rest = l->body) lets[l->var] = substitute(l->value, lets);
  std::vector<Store> out;
  const auto* several = rest.as<SeqNode>();
  for (const Stmt& s : several ? several->stmts : Array<Stmt>{rest}) {
    const auto* one = s.as<StoreNode>();
    if (!one || one->predicate) return std::nullopt;
    for (const Store& before : out)
      if (usesVar(s, before->buffer->data)) return std::nullopt;
    out.push_back(lets.empty() ? Store(one)
                               : substitute(Store(one), lets)); // what the lets read is not stored yet
  }
  return out;
}

std::optional<Reducer> reducerOf(const Stmt& body) {
  auto updates = plainStores(body);
  if (!updates) return std::nullopt;
  Reducer r;
  r.updates = std::move(*updates);
  auto readsResult = [&](const NodeRef& e) {
    return std::ranges::any_of(r.updates, [&](const Store& u) { return usesVar(e, u->buffer->data); });
  };
  for (const Store& u : r.updates) {
    const auto* b = u->value.as<BinaryNode>();
    const auto* s = u->value.as<SelectNode>();
    if (!s && (!b || !isReduction(b->op))) return std::nullopt;
    const Expr &x = b ? b->a : s->a, &y = b ? b->b : s->b;
    bool first = isCurrent(x, *u);
    if (!first && !isCurrent(y, *u)) return std::nullopt;
    r.values.push_back(first ? y : x);
    r.left.push_back(var("left", u->value->dtype));
    r.right.push_back(var("right", u->value->dtype));
    if (readsResult(r.values[r.values.size() - 1]) || std::ranges::any_of(u->indices.raw(), readsResult) ||
        !sameElement(u->indices, r.updates[0]->indices))
      return std::nullopt;
  }
  for (size_t i = 0; i < r.updates.size(); ++i) {
    std::optional<Order> order;
    const auto* b = r.updates[i]->value.as<BinaryNode>();
    Expr combined = b ? binary(b->op, r.left[i], r.right[i]) : chosen(r, i, order);
    if (!combined || (order && !isSound(r, i, *order))) return std::nullopt;
    r.combined.push_back(combined);
  }
  return r;
}

bool accumulates(const BlockNode& block) {
  if (const auto* update = block.body.as<StoreNode>()) {
    auto found = update->predicate ? std::nullopt : selfUpdate(*update);
    if (found) return isReduction(found->op);
  }
  auto r = reducerOf(block.body);
  return r && !r->firstWins;
}

bool sumsProducts(const BlockNode& block) {
  const auto* update = block.body.as<StoreNode>();
  auto sum = update ? accumulationOf(*update) : std::nullopt;
  auto loadOf = [](Expr e) {
    while (const auto* c = e.as<CastNode>()) e = c->value;
    return e.as<LoadNode>();
  };
  return sum && sum->op == BinaryOp::kAdd && anyNode<BinaryNode>(sum->value, [&](const BinaryNode& m) {
           const auto *x = m.op == BinaryOp::kMul ? loadOf(m.a) : nullptr, *y = x ? loadOf(m.b) : nullptr;
           return y && x->buffer->data != y->buffer->data;
         });
}

Work workOf(const Stmt& body) {
  Work work;
  walk(body, [&](const NodeRef& n) {
    const auto* c = n.as<CallNode>();
    if (c && c->op != Intrin::kIfThenElse && c->op != Intrin::kLikely) {
      work.operations += c->dtype.isFloat();
      work.cost += 10;
    }
    if (const auto* b = n.as<BinaryNode>(); b && b->a->dtype.isFloat()) {
      ++work.operations;
      if (b->dtype.isFloat()) work.cost += b->op == BinaryOp::kDiv ? 5 : 1;
    }
    return true;
  });
  return work;
}

bool isIdempotent(const Expr& value, BinaryOp op) {
  if (op != BinaryOp::kAdd && op != BinaryOp::kMul) return true;
  double neutral = op == BinaryOp::kMul ? 1 : 0;
  if (const auto* f = value.as<FloatImmNode>()) return f->value == neutral;
  const auto* i = value.as<IntImmNode>();
  return i && double(i->value) == neutral;
}

} // namespace bevel
