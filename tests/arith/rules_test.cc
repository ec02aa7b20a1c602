// Every rule of the table, checked at all values of small ranges that its stated condition admits, and
// applied by the engine.
#include "arith/analyzer.h"
#include "arith/rules.h"
#include "ir/structural.h"
#include "tests/arith/random_expr.h"

#include <gtest/gtest.h>

namespace bevel {
namespace {

using test::BoxVar;
using test::show;

bool mentions(const Expr& side, const std::string& name) {
  return side && usesAnyVar(side, [&](const VarNode* v) { return v->name == name; });
}
bool mentions(const Rule& r, const std::string& name) {
  return mentions(r.pattern, name) || mentions(r.replacement, name) || mentions(r.condition, name);
}

std::string text(const Rule& r) {
  return show(r.pattern) + " -> " + show(r.replacement) + (r.condition ? " if " + show(r.condition) : "");
}

struct Names {
  std::unordered_map<std::string, Expr> values;
  std::vector<BoxVar> box;
};

Names wildcards(const Rule& r, DType t, int64_t lo, int64_t hi) {
  Names n;
  for (const char* name : {"x", "y", "z", "w"})
    if (mentions(r, name)) {
      n.box.push_back({var(name, t), lo, hi});
      n.values[name] = n.box.back().var;
    }
  for (const char* name : {"p", "q", "r"})
    if (mentions(r, name)) {
      n.box.push_back({var(name, kBool), 0, 1});
      n.values[name] = n.box.back().var;
    }
  return n;
}

/// Checks one rule for all its constants in [-span, span]; returns how many (constants, point) pairs were
/// compared.
int64_t checkRule(const Rule& r, DType t, int64_t span, int64_t lo, int64_t hi) {
  Names n = wildcards(r, t, lo, hi);
  std::vector<std::string> constants;
  for (const char* c : {"c1", "c2", "c3"})
    if (mentions(r, c)) constants.push_back(c);
  std::vector<int64_t> values(constants.size(), -span);
  int64_t compared = 0;
  const int lanes = 4;
  while (true) {
    for (size_t i = 0; i < constants.size(); ++i) n.values[constants[i]] = constant(t, values[i]);
    Expr pattern = RuleEngine::instantiate(r.pattern, n.values, lanes);
    Expr replacement = RuleEngine::instantiate(r.replacement, n.values, lanes);
    Expr condition = r.condition ? RuleEngine::instantiate(r.condition, n.values, lanes) : boolImm(true);
    if (pattern && replacement && condition) {
      bool failed = false;
      test::forEachPoint(n.box, [&](const IntEnv& env) {
        if (evaluate(condition, env) != 1) return true;
        for (int lane = 0; lane < (pattern->dtype.lanes > 1 ? lanes : 1); ++lane) {
          auto want = evaluate(pattern, env, {.lane = lane});
          if (!want) continue;
          ++compared;
          auto got = evaluate(replacement, env, {.wrapIndex = true, .lane = lane});
          if (got == want) continue;
          std::string at;
          for (const BoxVar& b : n.box) at += b.var->name + "=" + std::to_string(env.at(b.var)) + " ";
          ADD_FAILURE() << text(r) << "\n  " << show(pattern) << " against " << show(replacement) << " at "
                        << at;
          failed = true;
          return false;
        }
        return true;
      });
      if (failed) return compared;
    }
    size_t k = 0;
    for (; k < values.size(); ++k) {
      if (++values[k] <= span) break;
      values[k] = -span;
    }
    if (k == values.size()) return compared;
  }
}

TEST(ArithRules, HoldExhaustively) {
  for (const Rule& r : RuleEngine::rules()) {
    bool many = mentions(r, "w") || (mentions(r, "c3") && mentions(r, "x"));
    int64_t compared = checkRule(r, kInt64, many ? 3 : 5, many ? -3 : -5, many ? 3 : 5);
    EXPECT_GT(compared, 0) << text(r) << ": its condition never held";
  }
}

/// Rules for all integers hold when the arithmetic wraps: eight-bit values at the ends of the range.
TEST(ArithRules, HoldForWrappingTypes) {
  for (const Rule& r : RuleEngine::rules()) {
    if (r.domain != RuleDomain::kInt) continue;
    checkRule(r, DType::Int(8), 2, 124, 127);
    checkRule(r, DType::Int(8), 2, -128, -125);
    checkRule(r, DType::UInt(8), 2, 253, 255);
  }
}

/// The engine matches what is in the table (each pattern is changed by it).
TEST(ArithRules, Fire) {
  for (const Rule& r : RuleEngine::rules()) {
    Names n = wildcards(r, kInt64, 0, 1);
    bool fired = false;
    for (int64_t a = -4; a <= 4 && !fired; ++a)
      for (int64_t b = -4; b <= 4 && !fired; ++b)
        for (int64_t c = -2; c <= 4 && !fired; c += 2) {
          n.values["c1"] = constant(kInt64, a);
          n.values["c2"] = constant(kInt64, b);
          n.values["c3"] = constant(kInt64, c);
          Expr pattern = RuleEngine::instantiate(r.pattern, n.values);
          Analyzer an;
          for (const BoxVar& v : n.box)
            if (mentions(r.condition, "x") && v.var->dtype == kInt64)
              an.bind(v.var, range(intImm(0), intImm(1)));
          for (const BoxVar& v : n.box)
            if (mentions(r.condition, "y") && v.var->name == "y") an.bind(v.var, ConstBound{1, 9});
          if (pattern) fired = RuleEngine::apply(pattern, an) != nullptr;
        }
    EXPECT_TRUE(fired) << text(r);
  }
}

/// Rules for all dtypes do not touch float arithmetic that is not exact.
TEST(ArithRules, FloatsOnlyExactly) {
  Analyzer an;
  Var x = var("x", kFloat32), y = var("y", kFloat32);
  auto raw = [](BinaryOp op, Expr a, Expr b) -> Expr { return make<const BinaryNode>(op, a, b); };
  Expr one = constantFloat(kFloat32, 1), zero = constantFloat(kFloat32, 0),
       minusZero = constantFloat(kFloat32, -0.0);
  EXPECT_EQ(an.simplify(raw(BinaryOp::kMul, x, one)), Expr(x));
  EXPECT_EQ(an.simplify(raw(BinaryOp::kDiv, x, one)), Expr(x));
  EXPECT_EQ(an.simplify(raw(BinaryOp::kAdd, x, minusZero)), Expr(x));
  EXPECT_EQ(an.simplify(raw(BinaryOp::kSub, x, zero)), Expr(x));
  for (const Expr& e : {raw(BinaryOp::kAdd, x, zero),                       // -0.0 + 0.0 is 0.0
                        raw(BinaryOp::kSub, x, minusZero),                  // the same
                        raw(BinaryOp::kSub, x, x),                          // NaN and infinities
                        raw(BinaryOp::kMul, x, zero),                       //
                        raw(BinaryOp::kDiv, x, x),                          //
                        raw(BinaryOp::kEq, x, x),                           // false for NaN
                        raw(BinaryOp::kLe, x, x),                           //
                        raw(BinaryOp::kSub, raw(BinaryOp::kAdd, x, y), y),  // rounds
                        raw(BinaryOp::kMin, raw(BinaryOp::kMax, x, y), x)}) // NaN
    EXPECT_EQ(an.simplify(e), e) << show(e);
  Expr notLess =
      make<const UnaryNode>(UnaryOp::kNot, raw(BinaryOp::kLt, x, y)); // y <= x fails on NaN, this holds
  EXPECT_EQ(an.simplify(notLess), notLess);
}

} // namespace
} // namespace bevel
