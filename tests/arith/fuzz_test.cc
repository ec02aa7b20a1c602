// Random expressions, simplified and bounded, against their values at every point of a small box.
#include "tests/arith/random_expr.h"

#include <gtest/gtest.h>

namespace bevel {
namespace {

using test::BoxVar;
using test::show;

/// Simplified form and bounds agree with the original at all points where the original is defined and `holds`
/// is true.
void checkAt(Analyzer& an, const Expr& e, const std::vector<BoxVar>& box, const Expr& holds = nullptr) {
  Expr s = an.simplify(e);
  ConstBound b = an.bound(e);
  ModularSet m = an.modular(e);
  test::forEachPoint(box, [&](const IntEnv& env) {
    if (holds && evaluate(holds, env) != 1) return true;
    auto want = evaluate(e, env);
    if (!want) return true;
    auto got = evaluate(s, env, {.wrapIndex = true});
    bool same = got == want;
    bool inside = *want >= b.min && *want <= b.max;
    bool residue =
        !e->dtype.isInteger() || (m.coeff == 0 ? *want == m.base : floorModulo(*want - m.base, m.coeff) == 0);
    if (same && inside && residue) return true;
    std::string at;
    for (const BoxVar& v : box) at += v.var->name + "=" + std::to_string(env.at(v.var)) + " ";
    ADD_FAILURE() << show(e) << "\n  simplified " << show(s) << "\n  at " << at << "\n  value " << *want
                  << " got " << (got ? std::to_string(*got) : "nothing") << "\n  bounds [" << b.min << ", "
                  << b.max << "] residue " << m.coeff << "k+" << m.base
                  << (holds ? "\n  where " + show(holds) : "");
    return false;
  });
}

std::vector<BoxVar> makeBox(DType t, int kind) {
  Var x = var("x", t), y = var("y", t), z = var("z", t);
  if (kind == 0) return {{x, 0, 7}, {y, 0, 7}, {z, 0, 7}};
  if (kind == 1) return {{x, -5, 5}, {y, 0, 3}, {z, -9, 2}};
  return {{x, 0, 31}, {y, 0, 3}, {z, -4, 4}};
}

void fuzz(unsigned seed, int count, int depth, DType t, bool bindRanges) {
  for (int i = 0; i < test::fuzzCount(count) && !testing::Test::HasFailure(); ++i) {
    auto box = makeBox(t, i % 3);
    Analyzer an;
    if (bindRanges)
      for (const BoxVar& b : box) an.bind(b.var, range(constant(t, b.lo), constant(t, b.hi - b.lo + 1)));
    test::RandomExprs gen(test::fuzzSeed(seed + unsigned(i)), box, t);
    checkAt(an, i % 3 == 0 ? gen.boolean(depth) : gen.integer(depth), box);
  }
}

TEST(ArithFuzz, BoundedInt64) {
  fuzz(1000, 1000, 3, kInt64, true);
}
TEST(ArithFuzz, BoundedInt32Deep) {
  fuzz(50000, 200, 5, kInt32, true);
}
TEST(ArithFuzz, UnknownRanges) {
  fuzz(90000, 800, 3, kInt64, false);
}
TEST(ArithFuzz, WrappingInt8) {
  fuzz(130000, 600, 3, DType::Int(8), true);
}
TEST(ArithFuzz, WrappingInt8Unknown) {
  fuzz(170000, 600, 3, DType::Int(8), false);
}

TEST(ArithFuzz, UnderConditions) {
  for (unsigned i = 0; i < unsigned(test::fuzzCount(600)) && !HasFailure(); ++i) {
    auto box = makeBox(kInt64, int(i % 3));
    Analyzer an;
    for (const BoxVar& b : box)
      an.bind(b.var, range(constant(kInt64, b.lo), constant(kInt64, b.hi - b.lo + 1)));
    test::RandomExprs gen(test::fuzzSeed(200000 + i), box);
    Expr condition = gen.boolean(2), e = i % 2 ? gen.boolean(3) : gen.integer(3);
    auto scope = an.assume(condition);
    checkAt(an, e, box, condition);
  }
}

/// What is proved holds everywhere; the share of true conditions that is proved must not fall.
TEST(ArithFuzz, ProofsAreSound) {
  int valid = 0, proved = 0;
  for (unsigned i = 0; i < unsigned(test::fuzzCount(1500)) && !HasFailure(); ++i) {
    auto box = makeBox(kInt64, int(i % 3));
    Analyzer an;
    for (const BoxVar& b : box)
      an.bind(b.var, range(constant(kInt64, b.lo), constant(kInt64, b.hi - b.lo + 1)));
    test::RandomExprs gen(test::fuzzSeed(300000 + i), box);
    Expr e = gen.boolean(2);
    bool always = true;
    test::forEachPoint(box, [&](const IntEnv& env) { return always = evaluate(e, env).value_or(1) != 0; });
    bool p = an.prove(e);
    EXPECT_TRUE(always || !p) << show(e);
    valid += always;
    proved += always && p;
  }
  EXPECT_GT(proved * 100, valid * 90) << proved << " of " << valid;
}

/// Simplification reaches a fixed point at once, nearly always: a second run must not make it larger.
TEST(ArithFuzz, Idempotent) {
  for (unsigned i = 0; i < unsigned(test::fuzzCount(800)) && !HasFailure(); ++i) {
    auto box = makeBox(kInt64, int(i % 3));
    Analyzer an;
    for (const BoxVar& b : box)
      an.bind(b.var, range(constant(kInt64, b.lo), constant(kInt64, b.hi - b.lo + 1)));
    test::RandomExprs gen(test::fuzzSeed(400000 + i), box);
    Expr e = gen.integer(3);
    Expr once = an.simplify(e), twice = an.simplify(once);
    EXPECT_LE(show(twice).size(), show(once).size() + 12) << show(e) << "\n"
                                                          << show(once) << "\n"
                                                          << show(twice);
  }
}

} // namespace
} // namespace bevel
