// Vector forms of expressions.
#include "arith/linear.h"
#include "loop/passes/vector_util.h"
#include "loop/passes/vectorizer.h"

#include <algorithm>
#include <cmath>

namespace bevel {
namespace {

/// A mask `Ramp(0, s, n) < Broadcast(d)`: some lane is on exactly when the first one is.
bool firstLaneDecides(const Expr& mask) {
  const auto* c = mask.as<BinaryNode>();
  const auto* r = c && c->op == BinaryOp::kLt ? c->a.as<RampNode>() : nullptr;
  auto stride = r ? asConst(r->stride) : std::nullopt;
  return stride && *stride > 0 && isConst(r->base, 0) && uniformValue(c->b);
}

/// Maths that works lane by lane.
bool isElementwise(Intrin op) {
  switch (op) {
  case Intrin::kAssume:
  case Intrin::kQMultiplyShift:
  case Intrin::kCallPureExtern:
  case Intrin::kCallLlvmPureIntrin:
  case Intrin::kVectorReduceAdd:
  case Intrin::kVectorReduceMul:
  case Intrin::kVectorReduceMin:
  case Intrin::kVectorReduceMax:
  case Intrin::kAddressOf:
  case Intrin::kTypeAnnotation:
  case Intrin::kPrefetch:
  case Intrin::kUndef:
    return false;
  default:
    return intrinInfo(op).effect == Effect::kPure;
  }
}

/// A mask in the cheapest form: `base + stride*lane < limit` becomes a comparison of small lane numbers with
/// one scalar.
Expr canonicalMask(const Expr& condition, Analyzer& analyzer) {
  const auto* c = condition.as<BinaryNode>();
  if (!c || c->b->dtype.scalar() != kInt64) return condition;
  bool turned = c->op == BinaryOp::kGt || c->op == BinaryOp::kGe;
  bool strict = c->op == BinaryOp::kLt || c->op == BinaryOp::kGt;
  if (!turned && !strict && c->op != BinaryOp::kLe) return condition;
  // The greater side less the other one is base + stride*lane, and has to be positive (or not negative).
  Expr distance =
      turned ? vectorBinary(BinaryOp::kSub, c->a, c->b) : vectorBinary(BinaryOp::kSub, c->b, c->a);
  const auto* ramp = distance.as<RampNode>();
  auto stride = ramp ? asConst(ramp->stride) : std::nullopt;
  if (!stride || *stride == 0 || *stride < -1024 || *stride > 1024) return condition;
  int lanes = ramp->dtype.lanes;
  int64_t step = std::abs(*stride);
  Expr base = strict ? ramp->base : ramp->base + 1;
  // falling: step*lane < base      rising: -base < step*lane
  Expr rest = analyzer.simplify(*stride < 0 ? base : intImm(0) - base);
  Expr small = castTo(kInt32, analyzer.simplify(max(min(rest, intImm(step * lanes)), intImm(-1))));
  Expr steps = make<const RampNode>(constant(kInt32, 0), constant(kInt32, step), lanes);
  Expr edge = make<const BroadcastNode>(small, lanes);
  if (*stride > 0) std::swap(steps, edge);
  return make<const BinaryNode>(BinaryOp::kLt, steps, edge);
}

} // namespace

Expr Vectorizer::expr(const Expr& e) {
  if (!e.is<LoadNode>() && !usesAnyVar(e, [](const VarNode*) { return true; })) return e; // constants
  switch (e->kind) {
  case Kind::kVar: {
    Var v = cast<VarNode>(e);
    if (v == loop_->var) return make<const RampNode>(loop_->min, constant(v->dtype, 1), lanes_);
    auto it = lets_.find(v);
    return it == lets_.end() ? e : it->second;
  }
  case Kind::kUnary: {
    const auto& u = static_cast<const UnaryNode&>(*e);
    Expr a = expr(u.a);
    return a ? Expr(make<const UnaryNode>(u.op, a)) : nullptr;
  }
  case Kind::kBinary:
    return binaryOf(cast<BinaryNode>(e));
  case Kind::kSelect: {
    const auto& s = static_cast<const SelectNode&>(*e);
    Expr c = condition(s.condition), a = expr(s.a), b = expr(s.b);
    if (!c || !a || !b) return nullptr;
    int lanes = std::max({c->dtype.lanes, a->dtype.lanes, b->dtype.lanes});
    return make<const SelectNode>(broadcastTo(c, lanes), broadcastTo(a, lanes), broadcastTo(b, lanes));
  }
  case Kind::kCast: {
    const auto& c = static_cast<const CastNode&>(*e);
    Expr v = expr(c.value);
    return v ? castTo(c.dtype.withLanes(v->dtype.lanes), v) : nullptr;
  }
  case Kind::kLoad:
    return load(cast<LoadNode>(e));
  case Kind::kLet:
    return letOf(cast<LetNode>(e));
  case Kind::kCall:
    return callOf(cast<CallNode>(e));
  default:
    return varies(e) || mask() ? nullptr : e;
  }
}

Expr Vectorizer::binaryOf(const Binary& b) {
  // A trap in a lane that is off would be one that the program does not have.
  if (mask() && dividesInteger(*b) && mayTrap(b)) return nullptr;
  Expr x = expr(b->a), y = expr(b->b);
  return x && y ? vectorBinary(b->op, x, y) : nullptr;
}

/// An index: linear in the lane gives a Ramp whatever its form was.
Expr Vectorizer::index(const Expr& e) {
  if (e->dtype.isVector()) return nullptr;
  if (!varies(e)) return expr(e);
  Expr simple = analyzer_.simplify(e);
  if (auto linear = linearIn(simple, loop_->var, analyzer_); linear && !varies(linear->rest)) {
    Expr stride = castTo(e->dtype, linear->factor);
    Expr base = analyzer_.simplify(linear->rest + stride * castTo(e->dtype, loop_->min));
    if (isConst(stride, 0)) return base;
    if (!readsMemory(linear->rest) || !mask()) return make<const RampNode>(base, stride, lanes_);
  }
  return expr(simple);
}

Expr Vectorizer::load(const Load& l) {
  if (l->indices.size() != 1 || l->predicate) return varies(l) || mask() ? nullptr : Expr(l);
  Expr at = index(l->indices[0]);
  if (!at || l->buffer->dtype.lanes != 1) return nullptr;
  Expr on = mask();
  if (!at->dtype.isVector() && on) return uniformLoad(l, at, on);
  // A slot of a register buffer is read whole: it is not memory, so no lane can be out of bounds.
  if (inRegisters(l->buffer->scope, kind_)) on = nullptr;
  return make<const LoadNode>(l->buffer, Array<Expr>{at}, at->dtype.isVector() ? on : nullptr);
}

/// The same element for all lanes, of which perhaps none is on: a plain load where the element exists in any
/// case, or a lane is known to be on.
Expr Vectorizer::uniformLoad(const Load& l, const Expr& at, const Expr& on) {
  Expr plain = make<const LoadNode>(l->buffer, Array<Expr>{at});
  Expr inside = logicalAnd(at >= constant(at->dtype, 0), at < castTo(at->dtype, l->buffer->shape[0]));
  if (analyzer_.prove(inside)) return plain;
  Expr first = boolImm(true);
  for (const Guard& g : guards_) {
    if (!firstLaneDecides(g.vector))
      return make<const LoadNode>(l->buffer, Array<Expr>{broadcastTo(at, lanes_)}, on);
    first = logicalAnd(first, laneOf(g.vector, 0));
  }
  first = analyzer_.simplify(first);
  return isConst(first, 1) ? plain : bevel::ifThenElse(first, plain, constantFloat(l->dtype, 0));
}

Expr Vectorizer::callOf(const Call& c) {
  if (c->op == Intrin::kIfThenElse) return ifThenElse(c);
  if (c->op == Intrin::kLikely) return expr(c->arg(0));
  if (!varies(c) && !mask()) return c;
  if (!isElementwise(c->op)) return nullptr;
  Array<NodeRef> args;
  int lanes = 1;
  for (const NodeRef& a : c->args) {
    Expr arg = a.is<ExprNode>() ? expr(cast<ExprNode>(a)) : nullptr;
    if (!arg) return nullptr;
    args.push_back(arg);
    lanes = std::max<int>(lanes, arg->dtype.lanes);
  }
  for (size_t i = 0; i < args.size(); ++i) args.set(i, broadcastTo(cast<ExprNode>(args[i]), lanes));
  return with(c, &CallNode::args, args, &CallNode::dtype, c->dtype.withLanes(lanes));
}

/// Each side is evaluated under its mask, so its loads touch only lanes that are on.
Expr Vectorizer::ifThenElse(const Call& c) {
  // What is the same for all lanes stays a choice of one side.
  if (auto split = splitByLane(c->arg(0)))
    return expr(
        bevel::ifThenElse(split->first, bevel::ifThenElse(split->second, c->arg(1), c->arg(2)), c->arg(2)));
  Expr on = condition(c->arg(0));
  if (!on || (on->dtype.isVector() && !(isPure(c->arg(1)) && isPure(c->arg(2))))) return nullptr;
  Expr a = under(c->arg(0), on, c->arg(1));
  Expr b = under(logicalNot(c->arg(0)), make<const UnaryNode>(UnaryOp::kNot, on), c->arg(2));
  if (!a || !b) return nullptr;
  if (!on->dtype.isVector()) {
    int lanes = std::max(a->dtype.lanes, b->dtype.lanes);
    return make<const CallNode>(c->dtype.withLanes(lanes), c->op,
                                Array<NodeRef>{on, broadcastTo(a, lanes), broadcastTo(b, lanes)});
  }
  // Lanes that a masked load leaves off are 0 already.
  const auto* l = a.as<LoadNode>();
  const auto* zero = b.as<FloatImmNode>();
  bool gives0 = isConst(b, 0) || (zero && zero->value == 0 && !std::signbit(zero->value));
  if (l && l->predicate && gives0) return a;
  return make<const SelectNode>(on, broadcastTo(a, lanes_), broadcastTo(b, lanes_));
}

Expr Vectorizer::condition(const Expr& e) {
  Expr simple = !readsMemory(e) ? analyzer_.simplify(stripLikely(e)) : stripLikely(e);
  if (!varies(simple)) return expr(simple);
  if (const auto* b = simple.as<BinaryNode>(); b && (b->op == BinaryOp::kAnd || b->op == BinaryOp::kOr)) {
    Expr x = condition(b->a), y = condition(b->b);
    return x && y ? vectorBinary(b->op, x, y) : nullptr;
  }
  if (const auto* b = simple.as<BinaryNode>();
      b && isComparison(b->op) && b->a->dtype == kInt64 && !readsMemory(b->a) && !readsMemory(b->b)) {
    Expr x = index(b->a), y = index(b->b);
    return x && y ? canonicalMask(vectorBinary(b->op, x, y), analyzer_) : nullptr;
  }
  return expr(simple);
}

} // namespace bevel
