// Random integer expressions over small variables, and their exhaustive evaluation: the oracle of arith's
// tests.
#pragma once

#include "arith/analyzer.h"
#include "arith/eval_support.h"

#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace bevel::test {

/// How many random cases to run: BEVEL_FUZZ_SCALE multiplies (long runs), BEVEL_FUZZ_SEED moves on to other
/// cases.
inline int fuzzCount(int count) {
  const char* scale = std::getenv("BEVEL_FUZZ_SCALE");
  return scale ? int(count * std::atof(scale)) : count;
}
inline unsigned fuzzSeed(unsigned seed) {
  const char* base = std::getenv("BEVEL_FUZZ_SEED");
  return base ? seed + unsigned(std::atoi(base)) * 7919u : seed;
}

struct BoxVar {
  Var var;
  int64_t lo, hi; // inclusive
};

inline std::string show(const Expr& e);

inline std::string showList(std::initializer_list<Expr> items) {
  std::string s;
  for (const Expr& x : items) s += (s.empty() ? "" : ", ") + show(x);
  return s;
}

/// A plain rendering for failure messages that does not depend on the printer.
inline std::string show(const Expr& e) {
  if (auto v = e.as<VarNode>()) return v->name;
  if (auto i = e.as<IntImmNode>()) return std::to_string(i->value);
  if (auto u = e.as<UnaryNode>())
    return (u->op == UnaryOp::kNot ? "not " : u->op == UnaryOp::kNeg ? "-" : "~") + ("(" + show(u->a) + ")");
  if (auto b = e.as<BinaryNode>()) {
    static const char* const names[] = {"+",   "-",  "*",  "truncdiv", "truncmod", "//", "%",  "min",
                                        "max", "==", "!=", "<",        "<=",       ">",  ">=", "and",
                                        "or",  "&",  "|",  "^",        "<<",       ">>"};
    std::string op = names[int(b->op)];
    if (op.size() >= 3 && op != "and") return op + "(" + showList({b->a, b->b}) + ")";
    return "(" + show(b->a) + " " + op + " " + show(b->b) + ")";
  }
  if (auto s = e.as<SelectNode>()) return "select(" + showList({s->condition, s->a, s->b}) + ")";
  if (auto c = e.as<CastNode>()) return c->dtype.str() + "(" + show(c->value) + ")";
  if (auto r = e.as<RampNode>()) return "ramp(" + showList({r->base, r->stride}) + ")";
  if (auto b = e.as<BroadcastNode>()) return "broadcast(" + show(b->value) + ")";
  if (auto c = e.as<CallNode>(); c && c->op == Intrin::kIfThenElse)
    return "if_then_else(" + showList({c->arg(0), c->arg(1), c->arg(2)}) + ")";
  return "?";
}

/// Calls f for every point of the box; f returns false to stop.
inline void forEachPoint(const std::vector<BoxVar>& box, const std::function<bool(const IntEnv&)>& f) {
  IntEnv env;
  for (const BoxVar& b : box) env[b.var] = b.lo;
  while (true) {
    if (!f(env)) return;
    size_t k = 0;
    for (; k < box.size(); ++k) {
      if (++env[box[k].var] <= box[k].hi) break;
      env[box[k].var] = box[k].lo;
    }
    if (k == box.size()) return;
  }
}

class RandomExprs {
public:
  RandomExprs(unsigned seed, std::vector<BoxVar> box, DType t = kInt64)
      : rng_(seed), box_(std::move(box)), t_(t) {}

  int64_t pick(int64_t lo, int64_t hi) { return std::uniform_int_distribution<int64_t>(lo, hi)(rng_); }

  Expr leaf() {
    if (pick(0, 2)) return box_[size_t(pick(0, int64_t(box_.size()) - 1))].var;
    return constant(t_, pick(-9, 9));
  }
  Expr divisor() { return constant(t_, pick(0, 4) ? pick(1, 9) : -pick(1, 6)); }
  Expr raw(BinaryOp op, Expr a, Expr b) { return make<const BinaryNode>(op, std::move(a), std::move(b)); }

  Expr integer(int depth) {
    if (depth == 0) return leaf();
    Expr a = integer(depth - 1);
    switch (pick(0, 13)) {
    case 0:
    case 1:
      return raw(BinaryOp::kAdd, a, integer(depth - 1));
    case 2:
      return raw(BinaryOp::kSub, a, integer(depth - 1));
    case 3:
    case 4:
      return raw(BinaryOp::kMul, a, constant(t_, pick(-8, 8)));
    case 5:
    case 6:
      return raw(BinaryOp::kFloorDiv, a, divisor());
    case 7:
    case 8:
      return raw(BinaryOp::kFloorMod, a, divisor());
    case 9:
      return raw(pick(0, 1) ? BinaryOp::kDiv : BinaryOp::kMod, a, divisor());
    case 10:
      return raw(pick(0, 1) ? BinaryOp::kMin : BinaryOp::kMax, a, integer(depth - 1));
    case 11:
      return make<const SelectNode>(boolean(depth - 1), a, integer(depth - 1));
    case 12:
      if (pick(0, 1))
        return raw(pick(0, 1) ? BinaryOp::kFloorDiv : BinaryOp::kFloorMod, a, integer(depth - 1));
      return raw(BinaryOp::kMul, a, leaf());
    default:
      return make<const UnaryNode>(UnaryOp::kNeg, a);
    }
  }

  Expr boolean(int depth) {
    if (depth == 0 || pick(0, 3)) {
      auto op = BinaryOp(pick(int(BinaryOp::kEq), int(BinaryOp::kGe)));
      return raw(op, integer(depth ? depth - 1 : 0), integer(depth ? depth - 1 : 0));
    }
    if (!pick(0, 3)) return make<const UnaryNode>(UnaryOp::kNot, boolean(depth - 1));
    return raw(pick(0, 1) ? BinaryOp::kAnd : BinaryOp::kOr, boolean(depth - 1), boolean(depth - 1));
  }

private:
  std::mt19937 rng_;
  std::vector<BoxVar> box_;
  DType t_;
};

} // namespace bevel::test
