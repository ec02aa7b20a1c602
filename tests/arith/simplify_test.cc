// Expected canonical forms, and what must not be rewritten.
#include "tests/arith/random_expr.h"

#include "arith/dims.h"

#include "ir/printer.h"

#include <gtest/gtest.h>

namespace bevel {
namespace {

class Simplify : public testing::Test {
protected:
  Analyzer an;
  Var i = var("i"), j = var("j"), k = var("k"), n = var("n"), m = var("m"), x = var("x"), y = var("y"),
      z = var("z");

  void SetUp() override {
    an.bind(i, range(intImm(0), intImm(32)));
    an.bind(j, range(intImm(0), intImm(8)));
    an.bind(k, range(intImm(0), intImm(4)));
    an.bind(n, ConstBound{0, kPosInf});
    an.bind(m, ConstBound{1, kPosInf});
  }
  void expect(const Expr& e, const char* want) {
    EXPECT_EQ(print(an.simplify(e)), want) << "of " << test::show(e);
  }
};

// A variable inside of a dimension's expression may be negative: it is no dimension itself.
TEST(BindDims, OnlyDimensionsAreNotNegative) {
  Analyzer an;
  Var n = var("n", kInt64), axis = var("axis", kInt64);
  bindDims({n, select(logicalOr(eq(axis, intImm(0)), eq(axis, intImm(-2))), intImm(1), intImm(3)),
            var("m", kInt64) * 4},
           an);
  EXPECT_TRUE(an.prove(n >= intImm(0)));
  EXPECT_FALSE(an.prove(axis >= intImm(0)));
  EXPECT_EQ(print(an.simplify(eq(axis, intImm(-2)))), "axis == -2");
}

TEST_F(Simplify, Sums) {
  expect(j + i * 8 - j + 3 - 1, "i * 8 + 2");
  expect(i - i, "T.int64(0)");
  expect((x + y) * 4 - y * 4, "x * 4");
  expect(floordiv(x, intImm(8)) * 8 + floormod(x, intImm(8)), "x");
  expect(floormod(floordiv(x, intImm(8)), intImm(4)) * 8 + floormod(x, intImm(8)), "x % 32");
  expect(x - floordiv(x, intImm(8)) * 8, "x % 8");
  expect(x + y - floordiv(x + y, intImm(8)) * 8, "(x + y) % 8");
  expect(x - floormod(x, intImm(8)), "x // 8 * 8");
  expect((i + 1) * n - i * n, "n");
  expect(truncdiv(x, intImm(4)) * 4 + truncmod(x, intImm(4)), "x");
}

TEST_F(Simplify, Divisions) {
  expect(floordiv(i * 8 + j, 8), "i");
  expect(floormod(i * 8 + j, 8), "j");
  expect(floordiv(i * 4 + k, 8), "i // 2");
  expect(floormod(i * 4 + k, 8), "i % 2 * 4 + k");
  expect(floordiv(i * 8 + j + 11, 8), "i + (j + 3) // 8 + 1");
  expect(floordiv(i * n + 0, n), "i");
  expect(floordiv(floordiv(x, 4), 8), "x // 32");
  expect(floormod(floormod(x, 32), 8), "x % 8");
  expect(truncdiv(i * 8 + j, intImm(8)), "i");
  expect(truncdiv(x * 8, intImm(8)), "x");
  expect(floordiv(x * 12, 8), "x * 3 // 2");
  expect(floormod(i * 9, 3), "T.int64(0)");
  Var t = var("t");
  an.bind(t, range(intImm(0), n));
  expect(floordiv(i * n + t, n), "i");
  expect(floormod(i * n + t, n), "t");
}

TEST_F(Simplify, ComparisonsAndBounds) {
  expect(i * 8 + j < intImm(256), "T.bool(True)");
  expect(i * 8 + j < intImm(16), "i < 2");
  expect(i + 3 > i + x, "x < 3");
  expect(intImm(7) >= x, "x < 8");
  expect(x * 4 <= y * 4, "x <= y");
  expect(eq(i * 2, intImm(7)), "T.bool(False)");
  expect(min(i, intImm(31)), "i");
  expect(max(i - 40, intImm(0)), "T.int64(0)");
  expect(logicalAnd(x < intImm(5), x < intImm(3)), "x < 3");
  expect(logicalAnd(x < intImm(5), x >= intImm(5)), "T.bool(False)");
  expect(logicalNot(x < y), "y <= x");
  expect(select(x < y, x, y), "T.min(x, y)");
}

/// Case 15: `x*8 + y - z < 16` is not `x < 2`: x=2, y=0, z=1 gives 15.
TEST_F(Simplify, RemainderMustStayWithinOneMultiple) {
  Var a = var("a"), b = var("b"), c = var("c");
  for (const Var& v : {a, b, c}) an.bind(v, range(intImm(0), intImm(8)));
  Expr e = a * 8 + b - c < intImm(16), s = an.simplify(e);
  IntEnv at{{a, 2}, {b, 0}, {c, 1}};
  EXPECT_EQ(evaluate(s, at), 1);
  EXPECT_EQ(evaluate(an.simplify(a * 8 + b < intImm(16)), at), 0);
  test::forEachPoint({{a, 0, 7}, {b, 0, 7}, {c, 0, 7}}, [&](const IntEnv& env) {
    EXPECT_EQ(evaluate(e, env), evaluate(s, env));
    return !HasFailure();
  });
}

TEST_F(Simplify, UnderConditions) {
  Var io = var("io"), ii = var("ii");
  an.bind(io, range(intImm(0), floordiv(n + 31, 32)));
  an.bind(ii, range(intImm(0), intImm(32)));
  EXPECT_FALSE(an.prove(io * 32 + ii < n));
  {
    auto scope = an.assume(io * 32 + ii < n);
    EXPECT_TRUE(an.prove(io * 32 + ii < n));
    EXPECT_TRUE(an.prove(io * 32 < n));
    EXPECT_TRUE(an.prove(io * 32 + ii - 1 < n + 5));
  }
  EXPECT_FALSE(an.prove(io * 32 + ii < n));
  EXPECT_TRUE(an.prove(io * 32 < n));
  {
    auto scope = an.assume(eq(floormod(n, intImm(32)), intImm(0)));
    EXPECT_TRUE(an.prove(eq(floormod(n, 8), intImm(0))));
    expect(floordiv(n + 31, 32), "n // 32");
    an.bind(io, range(intImm(0), floordiv(n + 31, 32)));
    EXPECT_TRUE(an.prove(io * 32 + ii < n));
  }
  {
    auto outer = an.assume(x < intImm(10));
    auto inner = an.assume(x >= intImm(9));
    EXPECT_TRUE(an.prove(eq(x, intImm(9))));
  }
}

/// Symbolic regions: what loops over i < m, j < n reach in a row-major buffer.
TEST_F(Simplify, SymbolicProducts) {
  Var r = var("r"), c = var("c");
  an.bind(r, range(intImm(0), m));
  an.bind(c, range(intImm(0), n));
  EXPECT_TRUE(an.prove(r * n + c < m * n));
  EXPECT_TRUE(an.prove(r * n + c >= intImm(0)));
  EXPECT_FALSE(an.prove(r * n + c < m * n - 1));
  EXPECT_TRUE(an.prove(min(r, c) <= r));
  EXPECT_TRUE(an.prove(floordiv(r, 4) * 4 <= r));
  EXPECT_TRUE(an.prove(floormod(x, m) < m));
  EXPECT_TRUE(an.prove(max(r, c) >= c));
}

TEST_F(Simplify, Vectors) {
  auto ramp = [&](Expr b, int64_t s) -> Expr { return make<const RampNode>(b, intImm(s), 4); };
  auto wide = [&](Expr b) -> Expr { return make<const BroadcastNode>(b, 4); };
  auto raw = [](BinaryOp op, Expr a, Expr b) -> Expr { return make<const BinaryNode>(op, a, b); };
  expect(raw(BinaryOp::kAdd, ramp(i * 4, 1), wide(intImm(8))), "T.Ramp(i * 4 + 8, T.int64(1), 4)");
  expect(raw(BinaryOp::kFloorDiv, ramp(i * 8, 1), wide(intImm(8))), "T.Broadcast(i, 4)");
  expect(raw(BinaryOp::kFloorMod, ramp(i * 8 + k, 1), wide(intImm(8))), "T.Ramp(k, T.int64(1), 4)");
  expect(raw(BinaryOp::kFloorDiv, ramp(x, 8), wide(intImm(4))), "T.Ramp(x // 4, T.int64(2), 4)");
  expect(raw(BinaryOp::kMul, wide(x), wide(y)), "T.Broadcast(x * y, 4)");
  EXPECT_EQ(an.bound(ramp(i, 2)), (ConstBound{0, 37}));
}

TEST_F(Simplify, SideEffectsAndUnsafeAccessesStay) {
  Buffer a = buffer("A", kInt64, {intImm(32)});
  Expr opaque = callAs(kInt64, Intrin::kCallExtern, {str("f")});
  Expr twice = make<const BinaryNode>(BinaryOp::kSub, opaque, opaque);
  EXPECT_EQ(an.simplify(twice), twice);
  Expr dropped = make<const BinaryNode>(BinaryOp::kMul, opaque, intImm(0));
  EXPECT_EQ(an.simplify(dropped), dropped);
  // A select evaluates both sides: its access must not lose the clamp that only the condition makes
  // superfluous.
  Expr clamped = select(x < intImm(32), load(a, {max(min(x, intImm(31)), intImm(0))}), intImm(0));
  EXPECT_EQ(an.simplify(clamped), clamped);
}

/// Loaded values wrap; only what bounds prove may be rewritten.
TEST_F(Simplify, LoadedValuesWrap) {
  Buffer a = buffer("A", kInt32, {intImm(32)});
  Expr v = load(a, {i});
  Expr e = truncdiv(v * 2, constant(kInt32, 2));
  EXPECT_EQ(an.simplify(e), e);
  Expr less = v < v + 1;
  EXPECT_EQ(an.simplify(less), less);
  Expr small = min(max(v, constant(kInt32, 0)), constant(kInt32, 100));
  EXPECT_EQ(test::show(an.simplify(floordiv(small * 2, 2))), test::show(an.simplify(small)));
}

} // namespace
} // namespace bevel
