// Verification of scalar expressions and buffer accesses.
#include "ir/build.h"
#include "ir/structural.h"
#include "ir/verify_impl.h"

namespace bevel::detail {

void Verifier::variable(const VarNode& v) {
  NodeRef node(&v);
  if (!visible(&v)) return error(node, "variable '" + v.name + "' is used outside the scope that binds it");
  auto it = loopLevel_.find(&v);
  if (it != loopLevel_.end() && it->second < isolation_)
    error(node, "loop variable '" + v.name + "' is used inside a block that has axes",
          "pass it as the value of an axis");
}

void Verifier::condition(const Expr& e, const RefBase& parent, const char* what) {
  if (!e) return error(parent, std::string(what) + " is missing");
  expr(e, parent);
  if (e->dtype != kBool) error(e, std::string(what) + " is a bool, not " + e->dtype.str());
}

void Verifier::binary(const BinaryNode& n) {
  NodeRef node(&n);
  bool logical = n.op == BinaryOp::kAnd || n.op == BinaryOp::kOr;
  expr(n.a, node);
  expr(n.b, node);
  if (!n.a || !n.b) return;
  DType t = n.a->dtype;
  if (t != n.b->dtype)
    return error(node, std::string("operands of '") + kBinaryNames[int(n.op)] +
                           "' have different types: " + t.str() + " and " + n.b->dtype.str());
  bool bits = n.op >= BinaryOp::kBitAnd;
  bool anyType =
      n.op == BinaryOp::kEq || n.op == BinaryOp::kNe || n.op == BinaryOp::kMin || n.op == BinaryOp::kMax;
  bool fits = logical ? t.isBool()
              : bits  ? t.isInteger() || t.isBool()
                      : t.isInteger() || t.isFloat() || (anyType && (t.isBool() || t.isHandle()));
  if (!fits) error(node, std::string("'") + kBinaryNames[int(n.op)] + "' does not take " + t.str());
  computes(Expr(&n), isComparison(n.op) ? DType::Bool(t.lanes) : t);
}

void Verifier::call(const CallNode& n) {
  NodeRef node(&n);
  const IntrinInfo& info = intrinInfo(n.op);
  if (info.arity >= 0 && n.args.size() != size_t(info.arity))
    return error(node, std::string("T.") + info.name + " takes " + std::to_string(info.arity) +
                           " arguments, but has " + std::to_string(n.args.size()));
  bool choice = n.op == Intrin::kIfThenElse;
  for (size_t i = 0; i < n.args.size(); ++i) {
    const NodeRef& arg = n.args[i];
    if (!arg) {
      error(node, "an argument is missing");
      continue;
    }
    if (arg.is<ExprNode>())
      expr(cast<ExprNode>(arg), node);
    else if (arg->kind == Kind::kBuffer)
      bufferUse(cast<BufferNode>(arg), node);
    else if (auto* r = arg.as<BufferRegionNode>())
      region(*r);
    else if (auto* g = arg.as<GlobalVarNode>())
      moduleHas(*g, node);
  }
  if (choice && n.args[0].is<ExprNode>() && n.args[1].is<ExprNode>() && n.args[2].is<ExprNode>()) {
    if (n.arg(0)->dtype != kBool)
      error(node, "the condition of T.if_then_else is a bool, not " + n.arg(0)->dtype.str());
    if (n.arg(1)->dtype != n.arg(2)->dtype || n.dtype != n.arg(1)->dtype)
      error(node, "the sides of T.if_then_else have different types");
  }
}

void Verifier::bufferUse(const Buffer& b, const RefBase& node) {
  if (!b || !b->data) return error(node, "a buffer is missing");
  if (!visible(b->data.get()))
    error(node, "buffer '" + b->name + "' is used outside the scope that declares it");
}

void Verifier::bufferLayout(const Buffer& b, const RefBase& node) {
  for (const auto* list : {&b->shape, &b->strides})
    for (const Expr& e : *list) {
      expr(e, node);
      if (e && (!e->dtype.isInteger() || e->dtype.isVector()))
        error(node, "a dimension of buffer '" + b->name + "' is " + e->dtype.str());
      if (auto c = asConst(e); c && *c < 0 && list == &b->shape)
        error(node, "a dimension of buffer '" + b->name + "' is negative");
    }
  if (!b->strides.empty() && b->strides.size() != b->shape.size())
    error(node, "buffer '" + b->name + "' has " + std::to_string(b->strides.size()) + " strides for " +
                    std::to_string(b->shape.size()) + " dimensions");
  if (b->elemOffset) expr(b->elemOffset, node);
}

void Verifier::indices(const Buffer& b, const Array<Expr>& list, const RefBase& node) {
  bufferUse(b, node);
  if (!b) return;
  if (list.size() != b->rank())
    return error(node, "buffer '" + b->name + "' has " + std::to_string(b->rank()) + " dimensions, but " +
                           std::to_string(list.size()) + " indices are given");
  for (size_t i = 0; i < list.size(); ++i) {
    const Expr& e = list[i];
    expr(e, node);
    if (!e) continue;
    if (!e->dtype.isInteger()) error(e, "an index is an integer, not " + e->dtype.str());
    if (e->dtype.isVector() && i + 1 != list.size()) error(e, "only the last index may be a vector");
  }
}

void Verifier::load(const LoadNode& n) {
  NodeRef node(&n);
  indices(n.buffer, n.indices, node);
  if (!n.buffer) return;
  int lanes = n.indices.empty() || !n.indices.back() ? 1 : n.indices.back()->dtype.lanes;
  DType expected = n.buffer->dtype.withLanes(n.buffer->dtype.lanes * lanes);
  if (n.dtype != expected)
    error(node, "this access is marked " + n.dtype.str() + ", but reads " + expected.str());
  if (!n.predicate) return;
  expr(n.predicate, node);
  if (n.predicate->dtype != DType::Bool(lanes))
    error(node, "the predicate of an access has one bool for each lane, not " + n.predicate->dtype.str());
}

void Verifier::region(const BufferRegionNode& r) {
  NodeRef node(&r);
  bufferUse(r.buffer, node);
  if (!r.buffer) return;
  if (r.region.size() != r.buffer->rank())
    return error(node, "buffer '" + r.buffer->name + "' has " + std::to_string(r.buffer->rank()) +
                           " dimensions, but its region has " + std::to_string(r.region.size()));
  for (const Range& x : r.region) {
    if (!x) {
      error(node, "a range is missing");
      continue;
    }
    expr(x->min, node), expr(x->extent, node);
  }
}

// What is marked with a dtype must compute it.
void Verifier::computes(const Expr& e, DType computed) {
  if (e->dtype != computed)
    error(e, "this expression is marked " + e->dtype.str() + ", but computes " + computed.str());
}

void Verifier::let(const LetNode& n, const Expr& e) {
  expr(n.value, e);
  size_t scope = mark();
  define(n.var, "the variable of a let");
  sameType(n.var, n.value, e);
  expr(n.body, e);
  leave(scope);
}

void Verifier::sameType(const Var& v, const Expr& value, const NodeRef& node) {
  if (v && value && v->dtype != value->dtype)
    error(node, "variable '" + v->name + "' is " + v->dtype.str() + ", its value " + value->dtype.str());
}

void Verifier::select(const SelectNode& n, const Expr& e) {
  expr(n.condition, e);
  expr(n.a, e), expr(n.b, e);
  if (!n.condition || !n.a || !n.b) return;
  DType c = n.condition->dtype;
  if (!c.isBool() || (c.lanes != 1 && c.lanes != n.dtype.lanes))
    error(e, "the condition of T.Select is a bool, not " + c.str());
  if (n.a->dtype != n.b->dtype || n.a->dtype != n.dtype)
    error(e, "the sides of T.Select have different types: " + n.a->dtype.str() + " and " + n.b->dtype.str());
}

void Verifier::expr(const Expr& e, const RefBase& parent) {
  if (full()) return;
  if (!e) return error(parent, "an operand is missing");
  DType t = e->dtype;
  if (auto* v = e.as<VarNode>()) return variable(*v);
  if (auto* n = e.as<BinaryNode>()) return binary(*n);
  if (auto* n = e.as<LoadNode>()) return load(*n);
  if (auto* n = e.as<CallNode>()) return call(*n);
  if (auto* n = e.as<SelectNode>()) return select(*n, e);
  if (auto* n = e.as<LetNode>()) return let(*n, e);
  if (auto* n = e.as<IntImmNode>()) {
    bool wide = t.bits == 64 && t.isUInt();
    if (!t.isInteger() && !t.isBool())
      error(e, "an integer constant is marked " + t.str());
    else if (!wide && (n->value < minValue(t) || n->value > maxValue(t)))
      error(e, "the constant " + std::to_string(n->value) + " does not fit " + t.str());
  } else if (e.is<FloatImmNode>()) {
    if (!t.isFloat()) error(e, "a floating-point constant is marked " + t.str());
  } else if (auto* n = e.as<UnaryNode>()) {
    expr(n->a, e);
    if (!n->a) return;
    if (n->op == UnaryOp::kNot && !n->a->dtype.isBool())
      error(e, "'not' takes a bool, not " + n->a->dtype.str());
    computes(e, n->a->dtype);
  } else if (auto* n = e.as<CastNode>()) {
    expr(n->value, e);
    if (n->value && n->value->dtype.lanes != t.lanes) error(e, "a conversion keeps the number of lanes");
  } else if (auto* n = e.as<RampNode>()) {
    expr(n->base, e), expr(n->stride, e);
    if (n->base && n->stride &&
        (n->base->dtype != n->stride->dtype || n->base->dtype.isVector() || t.scalar() != n->base->dtype))
      error(e, "T.Ramp has a scalar base and stride of one type");
  } else if (auto* n = e.as<BroadcastNode>()) {
    expr(n->value, e);
    if (n->value && (n->value->dtype.isVector() || t.scalar() != n->value->dtype))
      error(e, "T.Broadcast repeats a scalar of its own type");
  } else if (auto* n = e.as<ShuffleNode>()) {
    int64_t lanes = 0;
    for (const Expr& v : n->vectors) {
      expr(v, e);
      lanes += v ? v->dtype.lanes : 0;
    }
    for (const Expr& i : n->indices)
      if (auto c = asConst(i); !c || *c < 0 || *c >= lanes)
        error(e, "an index of T.Shuffle is no constant below " + std::to_string(lanes));
  } else if (e.is<ReduceNode>())
    error(e, "a reduction expression belongs into a tensor expression, not into a tensor program");
}

} // namespace bevel::detail
