// Evaluation by direct recursion, exact in 128 bits before the result is put into its dtype.
#include "arith/eval_support.h"

#include "arith/number.h"

namespace bevel {

using namespace arith;
using Value = std::optional<int64_t>;

namespace {

using Wide = __int128;

class Evaluator {
public:
  Evaluator(const IntEnv& env, const EvalOptions& options) : env_(env), options_(options) {}

  Value eval(const Expr& e) {
    switch (e->kind) {
    case Kind::kIntImm:
      return e.as<IntImmNode>()->value;
    case Kind::kVar: {
      auto it = env_.find(cast<VarNode>(e));
      return it == env_.end() ? Value() : it->second;
    }
    case Kind::kUnary: {
      Value a = eval(e.as<UnaryNode>()->a);
      if (!a) return a;
      switch (e.as<UnaryNode>()->op) {
      case UnaryOp::kNeg:
        return put(-Wide(*a), e->dtype);
      case UnaryOp::kNot:
        return *a == 0;
      case UnaryOp::kBitNot:
        return put(~Wide(*a), e->dtype, true);
      }
      return std::nullopt;
    }
    case Kind::kBinary:
      return evalBinary(e.as<BinaryNode>());
    case Kind::kSelect: {
      auto s = e.as<SelectNode>();
      Value c = eval(s->condition), a = eval(s->a), b = eval(s->b);
      return c && a && b ? (*c ? a : b) : Value();
    }
    case Kind::kCast: {
      Value v = e.as<CastNode>()->value->dtype.isFloat() ? Value() : eval(e.as<CastNode>()->value);
      if (!v || e->dtype.isFloat()) return std::nullopt;
      return e->dtype.isBool() ? Value(*v != 0) : put(*v, e->dtype, true);
    }
    case Kind::kRamp: {
      Value base = eval(e.as<RampNode>()->base), stride = eval(e.as<RampNode>()->stride);
      return base && stride ? put(Wide(*base) + Wide(*stride) * options_.lane, e->dtype) : Value();
    }
    case Kind::kBroadcast:
      return eval(e.as<BroadcastNode>()->value);
    case Kind::kLet: {
      auto n = e.as<LetNode>();
      Value v = eval(n->value);
      if (!v) return v;
      IntEnv inner = env_;
      inner[n->var] = *v;
      return Evaluator(inner, options_).eval(n->body);
    }
    case Kind::kCall: {
      auto c = e.as<CallNode>();
      if (c->op == Intrin::kLikely) return eval(c->arg(0));
      if (c->op != Intrin::kIfThenElse) return std::nullopt;
      Value p = eval(c->arg(0));
      return p ? eval(c->arg(*p ? 1 : 2)) : p;
    }
    default:
      return std::nullopt;
    }
  }

private:
  /// Stores an exact result in its dtype: wraps, or is undefined for index types.
  Value put(Wide v, DType t, bool wraps = false) const {
    if (t.isBool()) return v != 0;
    int bits = t.bits;
    Wide low = t.isUInt() ? 0 : -(Wide(1) << (bits - 1)),
         high = (Wide(1) << (t.isUInt() ? bits : bits - 1)) - 1;
    if (v >= low && v <= high) return int64_t(v);
    if (isIndexType(t) && !wraps && !options_.wrapIndex) return std::nullopt;
    auto u = static_cast<unsigned __int128>(v) & ((static_cast<unsigned __int128>(1) << bits) - 1);
    Wide w = Wide(u);
    if (t.isInt() && w > high) w -= Wide(1) << bits;
    return int64_t(w);
  }

  Value evalBinary(const BinaryNode* n) {
    if (n->a->dtype.isFloat()) return std::nullopt;
    Value x = eval(n->a), y = eval(n->b);
    if (!x || !y) return std::nullopt;
    Wide a = *x, b = *y;
    if (n->a->dtype.isUInt() && n->a->dtype.bits == 64) {
      a = Wide(uint64_t(*x));
      b = Wide(uint64_t(*y));
    }
    bool divides = n->op >= BinaryOp::kDiv && n->op <= BinaryOp::kFloorMod;
    if (divides && b == 0) return std::nullopt;
    Wide q = divides ? a / b : 0, r = divides ? a % b : 0;
    bool down = divides && r != 0 && (r < 0) != (b < 0);
    DType t = n->dtype;
    switch (n->op) {
    case BinaryOp::kAdd:
      return put(a + b, t);
    case BinaryOp::kSub:
      return put(a - b, t);
    case BinaryOp::kMul:
      return put(a * b, t);
    case BinaryOp::kDiv:
      return put(q, t);
    case BinaryOp::kMod:
      return put(r, t);
    case BinaryOp::kFloorDiv:
      return put(down ? q - 1 : q, t);
    case BinaryOp::kFloorMod:
      return put(down ? r + b : r, t);
    case BinaryOp::kMin:
      return put(a < b ? a : b, t);
    case BinaryOp::kMax:
      return put(a > b ? a : b, t);
    case BinaryOp::kEq:
      return a == b;
    case BinaryOp::kNe:
      return a != b;
    case BinaryOp::kLt:
      return a < b;
    case BinaryOp::kLe:
      return a <= b;
    case BinaryOp::kGt:
      return a > b;
    case BinaryOp::kGe:
      return a >= b;
    case BinaryOp::kAnd:
      return a != 0 && b != 0;
    case BinaryOp::kOr:
      return a != 0 || b != 0;
    case BinaryOp::kBitAnd:
      return put(a & b, t, true);
    case BinaryOp::kBitOr:
      return put(a | b, t, true);
    case BinaryOp::kBitXor:
      return put(a ^ b, t, true);
    case BinaryOp::kShl:
      return b < 0 || b >= t.bits ? Value() : put(a * (Wide(1) << int(b)), t);
    case BinaryOp::kShr:
      return b < 0 || b >= t.bits ? Value() : put(a >> int(b), t);
    }
    return std::nullopt;
  }

  const IntEnv& env_;
  const EvalOptions& options_;
};

} // namespace

std::optional<int64_t> evaluate(const Expr& e, const IntEnv& env, const EvalOptions& options) {
  return Evaluator(env, options).eval(e);
}

} // namespace bevel
