// Around the limits of int32 and int64: no rewrite may need a constant that does not fit or an operand that
// may overflow.
#include "tests/arith/random_expr.h"

#include <gtest/gtest.h>

namespace bevel {
namespace {

using test::show;

/// Largest literal in an expression must be a value of its dtype.
void expectLiteralsFit(const Expr& e) {
  if (auto i = e.as<IntImmNode>()) {
    EXPECT_GE(i->value, minValue(e->dtype));
    EXPECT_LE(i->value, maxValue(e->dtype));
  } else if (auto b = e.as<BinaryNode>()) {
    expectLiteralsFit(b->a);
    expectLiteralsFit(b->b);
  } else if (auto s = e.as<SelectNode>()) {
    expectLiteralsFit(s->condition);
    expectLiteralsFit(s->a);
    expectLiteralsFit(s->b);
  } else if (auto u = e.as<UnaryNode>()) {
    expectLiteralsFit(u->a);
  }
}

/// Values where overflow lurks, and small ones.
std::vector<int64_t> edges(DType t) {
  int64_t lo = minValue(t), hi = maxValue(t);
  std::vector<int64_t> out;
  for (int64_t v : {lo, lo + 1, lo + 9, lo / 2, int64_t(-3), int64_t(-1), int64_t(0), int64_t(1), int64_t(2),
                    int64_t(24), hi / 2, hi - 9, hi - 1, hi})
    if (v >= lo && v <= hi) out.push_back(v);
  return out;
}

void checkAtEdges(const Expr& e, const std::vector<Var>& vars, DType t) {
  Analyzer an;
  Expr s = an.simplify(e);
  expectLiteralsFit(s);
  if (testing::Test::HasFailure()) ADD_FAILURE() << show(e) << " became " << show(s);
  ConstBound b = an.bound(e);
  auto values = edges(t);
  std::vector<size_t> at(vars.size(), 0);
  while (true) {
    IntEnv env;
    for (size_t i = 0; i < vars.size(); ++i) env[vars[i]] = values[at[i]];
    if (auto want = evaluate(e, env)) {
      auto got = evaluate(s, env, {.wrapIndex = true});
      EXPECT_EQ(got, want) << show(e) << " became " << show(s) << " at " << (vars.empty() ? 0 : env[vars[0]])
                           << (vars.size() > 1 ? " " + std::to_string(env[vars[1]]) : "")
                           << (vars.size() > 2 ? " " + std::to_string(env[vars[2]]) : "");
      EXPECT_TRUE(*want >= b.min && *want <= b.max)
          << show(e) << " = " << *want << " outside [" << b.min << ", " << b.max << "]";
    }
    size_t k = 0;
    while (k < at.size() && ++at[k] == values.size()) at[k++] = 0;
    if (k == at.size() || testing::Test::HasFailure()) return;
  }
}

/// Random expressions whose constants and values lie at the limits.
void fuzzEdges(DType t, unsigned seed, int count) {
  std::mt19937 rng(test::fuzzSeed(seed));
  auto pick = [&](size_t size) { return std::uniform_int_distribution<size_t>(0, size - 1)(rng); };
  auto consts = edges(t);
  Var x = var("x", t), y = var("y", t), z = var("z", t);
  std::vector<Var> vars{x, y, z};
  auto raw = [](BinaryOp op, Expr a, Expr b) -> Expr { return make<const BinaryNode>(op, a, b); };
  std::function<Expr(int)> gen = [&](int depth) -> Expr {
    if (depth == 0) return pick(3) ? Expr(vars[pick(3)]) : constant(t, consts[pick(consts.size())]);
    static constexpr BinaryOp ops[] = {
        BinaryOp::kAdd,      BinaryOp::kAdd, BinaryOp::kSub, BinaryOp::kMul, BinaryOp::kFloorDiv,
        BinaryOp::kFloorMod, BinaryOp::kDiv, BinaryOp::kMod, BinaryOp::kMin, BinaryOp::kMax};
    BinaryOp op = ops[pick(std::size(ops))];
    Expr a = gen(depth - 1);
    bool constantSide = op == BinaryOp::kMul || (op >= BinaryOp::kDiv && op <= BinaryOp::kFloorMod);
    static constexpr int64_t small[] = {1, 2, 3, 4, 8, 10, -1, -2, 16};
    return raw(op, a,
               constantSide && pick(4)
                   ? constant(t, t.isUInt() ? 1 + int64_t(pick(16)) : small[pick(std::size(small))])
                   : gen(depth - 1));
  };
  for (int i = 0; i < test::fuzzCount(count) && !testing::Test::HasFailure(); ++i) {
    Expr e = gen(i % 2 ? 3 : 2);
    if (i % 3 == 0) e = raw(BinaryOp(int(BinaryOp::kEq) + int(pick(6))), e, gen(2));
    checkAtEdges(e, vars, t);
  }
}

TEST(ArithOverflow, FuzzInt32) {
  fuzzEdges(kInt32, 1, 400);
}
TEST(ArithOverflow, FuzzInt64) {
  fuzzEdges(kInt64, 2, 400);
}
TEST(ArithOverflow, FuzzInt8) {
  fuzzEdges(DType::Int(8), 3, 250);
}
TEST(ArithOverflow, FuzzUInt32) {
  fuzzEdges(DType::UInt(32), 4, 250);
}

/// Case 13: ceildiv(n, 10) of a run-time int32.
TEST(ArithOverflow, CeilDiv) {
  Var n = var("n", kInt32);
  Analyzer an;
  Expr ceildiv = floordiv(n + 9, 10), s = an.simplify(ceildiv);
  EXPECT_EQ(evaluate(s, {{n, 24}}), 3);
  expectLiteralsFit(s);
  checkAtEdges(ceildiv, {n}, kInt32);
  // The shift that makes a dividend positive does not fit int32: it must not be folded.
  Expr shifted = make<const BinaryNode>(
      BinaryOp::kFloorDiv, make<const BinaryNode>(BinaryOp::kAdd, n + maxValue(kInt32), constant(kInt32, 9)),
      constant(kInt32, 10));
  expectLiteralsFit(an.simplify(shifted));
  checkAtEdges(shifted, {n}, kInt32);
}

/// Case 13: a constant base beyond int32 keeps the expression in 64 bits and the literals in range.
TEST(ArithOverflow, LargeBase) {
  Var x0 = var("x0", kInt32), x1 = var("x1", kInt32), stride = var("stride");
  Expr wide = intImm(int64_t(1) << 33) + castTo(kInt64, x0) + stride * castTo(kInt64, x1);
  Analyzer an;
  an.bind(x0, range(constant(kInt32, 0), constant(kInt32, 100)));
  Expr s = an.simplify(wide);
  EXPECT_EQ(s->dtype, kInt64);
  EXPECT_EQ(evaluate(s, {{x0, 7}, {x1, 3}, {stride, int64_t(1) << 31}}),
            (int64_t(1) << 33) + 7 + 3 * (int64_t(1) << 31));
  EXPECT_FALSE(an.prove(s < intImm(int64_t(1) << 31)));
}

TEST(ArithOverflow, FoldingStaysInTheDtype) {
  Var x = var("x", kInt32);
  int64_t hi = maxValue(kInt32);
  auto c = [](int64_t v) { return constant(kInt32, v); };
  auto raw = [](BinaryOp op, Expr a, Expr b) -> Expr { return make<const BinaryNode>(op, a, b); };
  Analyzer an;
  for (const Expr& e : {raw(BinaryOp::kAdd, raw(BinaryOp::kAdd, x, c(hi)), c(1)),
                        raw(BinaryOp::kMul, raw(BinaryOp::kMul, x, c(1 << 20)), c(1 << 20)),
                        raw(BinaryOp::kSub, raw(BinaryOp::kSub, x, c(hi)), c(2)),
                        raw(BinaryOp::kFloorDiv, raw(BinaryOp::kFloorDiv, x, c(1 << 20)), c(1 << 20)),
                        raw(BinaryOp::kLt, raw(BinaryOp::kSub, x, c(hi)), c(hi)),
                        raw(BinaryOp::kMul, raw(BinaryOp::kAdd, x, c(1 << 16)), c(1 << 16))}) {
    expectLiteralsFit(an.simplify(e));
    checkAtEdges(e, {x}, kInt32);
  }
}

/// (x*8 + y + z) // 8: the rest y + z may overflow though the whole does not, unless bounds say otherwise.
TEST(ArithOverflow, RestOfAQuotient) {
  Var x = var("x", kInt32), y = var("y", kInt32), z = var("z", kInt32);
  checkAtEdges(floordiv(x * 8 + y + z, 8), {x, y, z}, kInt32);
  checkAtEdges(floormod(x * 8 + y + z, 8), {x, y, z}, kInt32);
  checkAtEdges(x + y < x + z, {x, y, z}, kInt32);
  checkAtEdges(min(x + y, x + z), {x, y, z}, kInt32);
}

} // namespace
} // namespace bevel
