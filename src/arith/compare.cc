// Equality and simple facts of scalar expressions, by direct recursion over the common kinds.
#include "arith/compare.h"

#include "ir/build.h"
#include "ir/structural.h"

namespace bevel::arith {

namespace {

bool isCommutative(BinaryOp op, DType operand) {
  switch (op) {
  case BinaryOp::kAdd:
  case BinaryOp::kMul:
  case BinaryOp::kMin:
  case BinaryOp::kMax:
    return !operand.isFloat();
  case BinaryOp::kEq:
  case BinaryOp::kNe:
  case BinaryOp::kAnd:
  case BinaryOp::kOr:
  case BinaryOp::kBitAnd:
  case BinaryOp::kBitOr:
  case BinaryOp::kBitXor:
    return true;
  default:
    return false;
  }
}

bool sameProduct(const Expr& a, const Expr& b) {
  std::vector<Expr> fa, fb;
  collectFactors(a, fa);
  collectFactors(b, fb);
  if (fa.size() != fb.size()) return false;
  for (const Expr& x : fa) {
    bool found = false;
    for (Expr& y : fb)
      if (y && sameExpr(x, y)) {
        y = nullptr;
        found = true;
        break;
      }
    if (!found) return false;
  }
  return true;
}

template <bool kModuloOrder> bool equal(const Expr& a, const Expr& b);

template <bool kModuloOrder> bool equalLists(const Array<NodeRef>& a, const Array<NodeRef>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    if (!a[i] || !b[i]) return false;
    bool exprs = ExprNode::classof(a[i].get()) && ExprNode::classof(b[i].get());
    if (!(exprs ? equal<kModuloOrder>(cast<ExprNode>(a[i]), cast<ExprNode>(b[i]))
                : structuralEqual(a[i], b[i])))
      return false;
  }
  return true;
}

template <bool kModuloOrder> bool equalBinary(const BinaryNode* x, const BinaryNode* y) {
  if (x->op != y->op || x->a->dtype != y->a->dtype) return false;
  if (equal<kModuloOrder>(x->a, y->a) && equal<kModuloOrder>(x->b, y->b)) return true;
  if constexpr (kModuloOrder) {
    if (x->op == BinaryOp::kMul && x->dtype.isInteger()) return sameProduct(Expr(x), Expr(y));
    return isCommutative(x->op, x->a->dtype) && equal<true>(x->a, y->b) && equal<true>(x->b, y->a);
  }
  return false;
}

template <bool kModuloOrder> bool equal(const Expr& a, const Expr& b) {
  if (a == b) return !kModuloOrder || a->kind != Kind::kCall || !hasEffects(a);
  if (!a || !b || a->kind != b->kind || a->dtype != b->dtype) return false;
  switch (a->kind) {
  case Kind::kVar:
    return false;
  case Kind::kIntImm:
    return a.as<IntImmNode>()->value == b.as<IntImmNode>()->value;
  case Kind::kUnary: {
    auto x = a.as<UnaryNode>(), y = b.as<UnaryNode>();
    return x->op == y->op && equal<kModuloOrder>(x->a, y->a);
  }
  case Kind::kBinary:
    return equalBinary<kModuloOrder>(a.as<BinaryNode>(), b.as<BinaryNode>());
  case Kind::kSelect: {
    auto x = a.as<SelectNode>(), y = b.as<SelectNode>();
    return equal<kModuloOrder>(x->condition, y->condition) && equal<kModuloOrder>(x->a, y->a) &&
           equal<kModuloOrder>(x->b, y->b);
  }
  case Kind::kCast:
    return equal<kModuloOrder>(a.as<CastNode>()->value, b.as<CastNode>()->value);
  case Kind::kBroadcast:
    return equal<kModuloOrder>(a.as<BroadcastNode>()->value, b.as<BroadcastNode>()->value);
  case Kind::kRamp: {
    auto x = a.as<RampNode>(), y = b.as<RampNode>();
    return equal<kModuloOrder>(x->base, y->base) && equal<kModuloOrder>(x->stride, y->stride);
  }
  case Kind::kLoad: {
    auto x = a.as<LoadNode>(), y = b.as<LoadNode>();
    if (x->buffer != y->buffer || bool(x->predicate) != bool(y->predicate)) return false;
    if (x->predicate && !equal<kModuloOrder>(x->predicate, y->predicate)) return false;
    return equalLists<kModuloOrder>(x->indices, y->indices);
  }
  case Kind::kCall: {
    auto x = a.as<CallNode>(), y = b.as<CallNode>();
    if (x->op != y->op || x->attrs != y->attrs) return false;
    if (kModuloOrder && hasEffects(a)) return false;
    return equalLists<kModuloOrder>(x->args, y->args);
  }
  default:
    return structuralEqual(a, b);
  }
}

/// Whether pred holds of the expression or of a part of it; what describes a buffer is no part.
bool any(const NodeRef& e, FunctionRef<bool(const Node*)> pred) {
  bool found = pred(e.get());
  if (!found)
    forEachChild(e, [&](const NodeRef& x, Role) { found = found || (!x.is<BufferNode>() && any(x, pred)); });
  return found;
}

} // namespace

bool sameExpr(const Expr& a, const Expr& b) {
  return equal<true>(a, b);
}
bool identicalExpr(const Expr& a, const Expr& b) {
  return equal<false>(a, b);
}

bool readsData(const Expr& e) {
  return any(e, [](const Node* n) {
    if (n->kind == Kind::kCall) {
      auto op = static_cast<const CallNode*>(n)->op;
      return op != Intrin::kIfThenElse && op != Intrin::kLikely;
    }
    if (n->kind == Kind::kCast) return static_cast<const CastNode*>(n)->value->dtype.isFloat();
    return n->kind == Kind::kLoad || n->kind == Kind::kReduce || n->kind == Kind::kShuffle;
  });
}

bool hasEffects(const Expr& e) {
  return any(e, [](const Node* n) {
    if (n->kind != Kind::kCall) return false;
    Effect effect = intrinInfo(static_cast<const CallNode*>(n)->op).effect;
    return effect != Effect::kPure && effect != Effect::kReads;
  });
}

bool mayFault(const Expr& e) {
  return any(e, [](const Node* n) {
    if (n->kind == Kind::kBinary) {
      auto b = static_cast<const BinaryNode*>(n);
      bool divides = b->op >= BinaryOp::kDiv && b->op <= BinaryOp::kFloorMod;
      return divides && b->dtype.isInteger() && asConst(b->b).value_or(0) == 0;
    }
    if (n->kind == Kind::kCall) return static_cast<const CallNode*>(n)->op != Intrin::kLikely;
    return n->kind == Kind::kLoad || n->kind == Kind::kReduce;
  });
}

bool isRing(const Expr& e) {
  if (auto u = e.as<UnaryNode>()) return u->op == UnaryOp::kNeg && u->dtype.isInteger();
  auto b = e.as<BinaryNode>();
  return b && b->dtype.isInteger() && b->op <= BinaryOp::kMul;
}

void collectFactors(const Expr& e, std::vector<Expr>& out) {
  auto m = e.as<BinaryNode>();
  if (m && m->op == BinaryOp::kMul && m->dtype.isInteger()) {
    collectFactors(m->a, out);
    collectFactors(m->b, out);
  } else {
    out.push_back(e);
  }
}

Expr productOf(const std::vector<Expr>& factors) {
  Expr p = factors[0];
  for (size_t i = 1; i < factors.size(); ++i) p = make<const BinaryNode>(BinaryOp::kMul, p, factors[i]);
  return p;
}

} // namespace bevel::arith
