// Interval sets and solved conditions against all points.
#include "arith/linear.h"
#include "tests/arith/random_expr.h"

#include <gtest/gtest.h>

namespace bevel {
namespace {

using test::BoxVar;
using test::show;

Range rangeOf(const BoxVar& b) {
  return range(intImm(b.lo), intImm(b.hi - b.lo + 1));
}

/// Every value lies in the set, for every value of the variable that stays a symbol.
TEST(ArithSets, ContainAllValues) {
  int bounded = 0, total = 0;
  for (unsigned i = 0; i < unsigned(test::fuzzCount(1000)) && !HasFailure(); ++i) {
    std::vector<BoxVar> box{{var("x"), -3, 5}, {var("y"), 0, 4}, {var("s"), -6, 6}};
    Analyzer an;
    IntSetMap sets;
    for (size_t k = 0; k < 2; ++k) {
      an.bind(box[k].var, rangeOf(box[k]));
      sets[box[k].var] = IntSet::range(rangeOf(box[k]));
    }
    test::RandomExprs gen(test::fuzzSeed(700000 + i), box);
    Expr e = gen.integer(3);
    IntSet set = evalSet(e, sets, an);
    ++total;
    bounded += set.bounded();
    EXPECT_FALSE(set.empty);
    test::forEachPoint(box, [&](const IntEnv& env) {
      auto v = evaluate(e, env);
      if (!v) return true;
      auto lo = set.min ? evaluate(set.min, env, {.wrapIndex = true}) : std::nullopt;
      auto hi = set.max ? evaluate(set.max, env, {.wrapIndex = true}) : std::nullopt;
      bool inside = (!lo || *lo <= *v) && (!hi || *v <= *hi);
      EXPECT_TRUE(inside) << show(e) << " = " << *v << " outside [" << (set.min ? show(set.min) : "-inf")
                          << ", " << (set.max ? show(set.max) : "inf") << "] at " << env.at(box[0].var) << " "
                          << env.at(box[1].var) << " " << env.at(box[2].var);
      return inside;
    });
  }
  EXPECT_GT(bounded * 100, total * 75) << bounded << " of " << total;
}

TEST(ArithSets, Shapes) {
  Analyzer an;
  Var i = var("i"), j = var("j"), k = var("k"), n = var("n");
  an.bind(n, ConstBound{1, kPosInf});
  IntSetMap sets{{i, IntSet::interval(intImm(0), intImm(3))}, {j, IntSet::interval(intImm(0), n - 1)}};
  auto is = [&](const Expr& e, const Expr& lo, const Expr& hi) {
    IntSet s = evalSet(e, sets, an);
    EXPECT_TRUE(s.min && an.proveEqual(s.min, lo)) << show(e) << " min " << (s.min ? show(s.min) : "none");
    EXPECT_TRUE(s.max && an.proveEqual(s.max, hi)) << show(e) << " max " << (s.max ? show(s.max) : "none");
  };
  is(i * 8 + k, k, k + 24);
  is(j + i, intImm(0), n + 2);
  is(k - j, k - n + 1, k);
  is(floordiv(j, 4), intImm(0), floordiv(n - 1, 4));
  is(i * n + j, intImm(0), n * 4 - 1);
  is(min(i, k), min(k, intImm(0)), min(k, intImm(3)));
  is(floormod(i, 8), intImm(0), intImm(3));
  is(k, k, k);
  Buffer a = buffer("A", kInt64, {n});
  EXPECT_TRUE(evalSet(load(a, {i}), sets, an).isEverything());
}

TEST(ArithSets, Algebra) {
  Analyzer an;
  Var n = var("n");
  an.bind(n, ConstBound{8, kPosInf});
  auto set = [](const Expr& a, const Expr& b) { return IntSet::interval(a, b); };
  IntSet a = set(intImm(0), n), b = set(intImm(4), n + 3);
  IntSet u = unionSet(a, b, an), x = intersectSet(a, b, an);
  EXPECT_TRUE(isConst(u.min, 0) && an.proveEqual(u.max, n + 3));
  EXPECT_TRUE(isConst(x.min, 4) && an.proveEqual(x.max, n));
  EXPECT_TRUE(intersectSet(a, set(n + 1, n + 9), an).empty);
  EXPECT_TRUE(unionSet(IntSet::nothing(), a, an).bounded());
  Range r = toRange(a, nullptr, an);
  EXPECT_TRUE(an.proveEqual(r->extent, n + 1));
  EXPECT_EQ(toRange({nullptr, n, false}, nullptr, an), nullptr);
}

TEST(ArithLinear, Coefficients) {
  Analyzer an;
  Var i = var("i"), j = var("j"), n = var("n");
  auto linear = linearIn((i + 2) * n * 4 + j * 3 - i + n, i, an);
  ASSERT_TRUE(linear);
  EXPECT_TRUE(an.proveEqual(linear->factor, n * 4 - 1));
  EXPECT_TRUE(an.proveEqual(linear->rest, j * 3 + n * 9));
  EXPECT_FALSE(linearIn(i * i, i, an));
  EXPECT_FALSE(linearIn(floordiv(i, 2), i, an));
  auto form = affineIn(i * 8 + castTo(kInt64, j) + n + 5, {i, j}, an);
  ASSERT_TRUE(form);
  EXPECT_EQ(form->coefOf(i), 8);
  EXPECT_EQ(form->coefOf(j), 1);
  EXPECT_TRUE(an.proveEqual(restOf(*form, {i, j}, kInt64, an), n + 5));
  Var narrow = var("k", kInt32);
  EXPECT_EQ(affineIn(castTo(kInt64, narrow) * 3, {narrow}, an)->coefOf(narrow), 3) << "widened";
  EXPECT_FALSE(affineIn(i * n, {i}, an));
  EXPECT_FALSE(affineIn(i * j, {i, j}, an));
  EXPECT_TRUE(affineIn(i + floordiv(j, 2), {i}, an));
}

/// The solution is contained in the true set, and is the true set when it says exact.
TEST(ArithLinear, SolveAgainstBruteForce) {
  int solved = 0, exact = 0;
  for (unsigned seed = 0; seed < unsigned(test::fuzzCount(1000)) && !HasFailure(); ++seed) {
    std::mt19937 rng(test::fuzzSeed(seed));
    auto pick = [&](int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(rng); };
    Var x = var("x"), y = var("y"), s = var("s");
    Analyzer an;
    an.bind(y, range(intImm(0), intImm(4)));
    auto side = [&] {
      return x * pick(-4, 4) + y * pick(-1, 1) * pick(0, 1) + s * pick(-2, 2) + pick(-9, 9);
    };
    auto compare = [&]() -> Expr {
      return make<const BinaryNode>(BinaryOp(pick(int(BinaryOp::kEq), int(BinaryOp::kGe))), Expr(side()),
                                    Expr(side()));
    };
    Expr c = pick(0, 2) ? compare() : logicalAnd(compare(), compare());
    IntSetMap relax{{y, IntSet::interval(intImm(0), intImm(3))}};
    auto result = solveFor(c, x, relax, an);
    if (!result) continue;
    ++solved;
    exact += result->exact;
    for (int64_t sv = -5; sv <= 5; ++sv)
      for (int64_t xv = -30; xv <= 30; ++xv) {
        bool all = true;
        for (int64_t yv = 0; yv < 4; ++yv) all = all && evaluate(c, {{x, xv}, {y, yv}, {s, sv}}) == 1;
        IntEnv env{{s, sv}};
        const IntSet& set = result->set;
        bool in = !set.empty && (!set.min || *evaluate(set.min, env) <= xv) &&
                  (!set.max || xv <= *evaluate(set.max, env));
        EXPECT_TRUE(!in || all) << show(c) << " does not hold at x=" << xv << " s=" << sv;
        EXPECT_TRUE(!result->exact || in == all) << show(c) << " holds at x=" << xv << " s=" << sv;
        if (HasFailure()) return;
      }
  }
  EXPECT_GT(solved * 100, test::fuzzCount(1000) * 33);
  EXPECT_GT(exact * 100, test::fuzzCount(1000) * 10);
}

TEST(ArithLinear, SolveTails) {
  Analyzer an;
  Var io = var("io"), ii = var("ii"), n = var("n");
  an.bind(n, ConstBound{0, kPosInf});
  IntSetMap relax{{ii, IntSet::interval(intImm(0), intImm(31))}};
  auto s = solveFor(io * 32 + ii < n, io, relax, an);
  ASSERT_TRUE(s);
  EXPECT_FALSE(s->set.min);
  for (int64_t nv : {0, 1, 31, 32, 33, 64, 95}) // all of the tile lies below n
    EXPECT_EQ(*evaluate(s->set.max, {{n, nv}}), floorDivide(nv - 32, 32));
  EXPECT_FALSE(solveFor(ne(io, n), io, relax, an));
  EXPECT_FALSE(solveFor(logicalOr(io<n, io> n), io, relax, an));
}

} // namespace
} // namespace bevel
