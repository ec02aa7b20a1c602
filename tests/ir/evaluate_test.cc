// Scalar operations on the host, constants of every dtype, and the types of expressions whose operands change.
#include "ir/evaluate.h"

#include "ir/build.h"
#include "ir/structural.h"

#include <gtest/gtest.h>

#include <cmath>

namespace bevel {
namespace {

const BinaryOp kIntOps[] = {BinaryOp::kAdd,   BinaryOp::kSub,      BinaryOp::kMul,      BinaryOp::kDiv,
                            BinaryOp::kMod,   BinaryOp::kFloorDiv, BinaryOp::kFloorMod, BinaryOp::kMin,
                            BinaryOp::kMax,   BinaryOp::kEq,       BinaryOp::kNe,       BinaryOp::kLt,
                            BinaryOp::kLe,    BinaryOp::kGt,       BinaryOp::kGe,       BinaryOp::kBitAnd,
                            BinaryOp::kBitOr, BinaryOp::kBitXor};

// The result over unbounded integers, by definitions that differ from those of the product: quotients by counting
// down from the real quotient.
int64_t unbounded(BinaryOp op, int64_t a, int64_t b) {
  auto down = [&] { return int64_t(std::floor(double(a) / double(b))); };
  auto toZero = [&] { return int64_t(std::trunc(double(a) / double(b))); };
  switch (op) {
  case BinaryOp::kAdd:
    return a + b;
  case BinaryOp::kSub:
    return a - b;
  case BinaryOp::kMul:
    return a * b;
  case BinaryOp::kDiv:
    return toZero();
  case BinaryOp::kMod:
    return a - toZero() * b;
  case BinaryOp::kFloorDiv:
    return down();
  case BinaryOp::kFloorMod:
    return a - down() * b;
  case BinaryOp::kMin:
    return b < a ? b : a;
  case BinaryOp::kMax:
    return b < a ? a : b;
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
  case BinaryOp::kBitAnd:
    return a & b;
  case BinaryOp::kBitOr:
    return a | b;
  default:
    return a ^ b;
  }
}

TEST(Evaluate, EveryPairOfSmallIntegers) {
  for (DType t : {DType::Int(4), DType::UInt(4), DType::Int(8), DType::UInt(8)}) {
    int64_t low = minValue(t), high = maxValue(t), size = high - low + 1;
    for (BinaryOp op : kIntOps)
      for (int64_t a = low; a <= high; ++a)
        for (int64_t b = low; b <= high; ++b) {
          auto r = evaluateInt(op, a, b, t);
          bool divides = op >= BinaryOp::kDiv && op <= BinaryOp::kFloorMod;
          ASSERT_EQ(r.has_value(), !divides || b != 0);
          if (!r) continue;
          int64_t whole = unbounded(op, a, b);
          ASSERT_EQ(r->exact, whole >= low && whole <= high) << kBinaryNames[int(op)] << " " << a << " " << b;
          ASSERT_EQ((r->value - whole) % size, 0)
              << kBinaryNames[int(op)] << " " << a << " " << b << " " << t.str();
          ASSERT_TRUE(r->value >= low && r->value <= high);
          ASSERT_EQ(exactInt(op, a, b, t), r->exact ? std::optional(whole) : std::nullopt);
        }
  }
}

TEST(Evaluate, ShiftsMoveBitsOut) {
  for (DType t : {DType::Int(8), DType::UInt(8)})
    for (int64_t a = minValue(t); a <= maxValue(t); ++a)
      for (int64_t n = 0; n < 8; ++n) {
        int64_t scaled = a * (int64_t(1) << n);
        auto left = evaluateInt(BinaryOp::kShl, a, n, t), right = evaluateInt(BinaryOp::kShr, a, n, t);
        EXPECT_EQ(left->exact, scaled >= minValue(t) && scaled <= maxValue(t));
        EXPECT_EQ((left->value - scaled) % 256, 0);
        EXPECT_EQ(right->value, int64_t(std::floor(double(a) / double(int64_t(1) << n))));
      }
  for (int64_t n : {int64_t(-1), int64_t(8), INT64_MAX}) {
    EXPECT_FALSE(exactInt(BinaryOp::kShl, 1, n, DType::Int(8)));
    EXPECT_EQ(evaluateInt(BinaryOp::kShl, 1, n, DType::Int(8))->value, 0);
    EXPECT_EQ(evaluateInt(BinaryOp::kShr, -1, n, DType::Int(8))->value, -1);
    EXPECT_EQ(evaluateInt(BinaryOp::kShr, 255, n, DType::UInt(8))->value, 0);
  }
}

TEST(Evaluate, EdgesOf64Bits) {
  DType u = DType::UInt(64);
  int64_t top = -1; // 2^64 - 1, wrapped
  EXPECT_FALSE(exactInt(BinaryOp::kAdd, INT64_MAX, 1, kInt64));
  EXPECT_EQ(evaluateInt(BinaryOp::kAdd, INT64_MAX, 1, kInt64)->value, INT64_MIN);
  EXPECT_FALSE(exactInt(BinaryOp::kDiv, INT64_MIN, -1, kInt64));
  EXPECT_EQ(exactInt(BinaryOp::kMod, INT64_MIN, -1, kInt64), 0);
  EXPECT_FALSE(exactInt(BinaryOp::kFloorDiv, INT64_MIN, -1, kInt64));
  EXPECT_FALSE(exactInt(BinaryOp::kMul, INT64_MIN, INT64_MIN, kInt64));
  EXPECT_EQ(exactInt(BinaryOp::kAdd, INT64_MAX, 1, u), INT64_MIN);
  EXPECT_FALSE(exactInt(BinaryOp::kAdd, top, 1, u));
  EXPECT_FALSE(exactInt(BinaryOp::kMul, top, top, u));
  EXPECT_EQ(evaluateInt(BinaryOp::kMul, top, top, u)->value, 1);
  EXPECT_EQ(exactInt(BinaryOp::kDiv, top, 2, u), INT64_MAX);
  EXPECT_EQ(exactInt(BinaryOp::kLt, 0, top, u), 1);
  EXPECT_EQ(exactInt(BinaryOp::kMax, 0, top, u), top);
  EXPECT_EQ(exactInt(BinaryOp::kShr, top, 63, u), 1);
  EXPECT_FALSE(exactInt(BinaryOp::kSub, 0, 1, u));
}

const DType kIntegers[] = {kBool,           DType::Int(2),  DType::UInt(2), DType::Int(4),   DType::UInt(4),
                           DType::Int(8),   DType::UInt(8), DType::Int(16), DType::UInt(16), DType::Int(32),
                           DType::UInt(32), DType::Int(64), DType::UInt(64)};
const double kDoubles[] = {0.0,     -0.0,   0.5,    -0.5,  1.0,    -1.0,     2.9,       -2.9, 127.5,
                           -129.0,  255.0,  256.0,  1e5,   -1e5,   4e9,      -4e9,      1e18, 9.3e18,
                           -9.3e18, 1.8e19, 1.9e19, 1e300, -1e300, INFINITY, -INFINITY, NAN};

TEST(Constants, FloatsAsEveryInteger) {
  for (DType t : kIntegers)
    for (double v : kDoubles) {
      Expr e = constantFloat(t, v);
      ASSERT_TRUE(e.is<IntImmNode>() && e->dtype == t);
      int64_t got = e.as<IntImmNode>()->value;
      bool wide = t.isUInt() && t.bits == 64;
      long double low = t.isBool() ? 0 : t.isInt() ? -std::exp2l(t.bits - 1) : 0;
      long double high = t.isBool() ? 1 : std::exp2l(t.isInt() ? t.bits - 1 : t.bits) - 1;
      using Real = long double;
      Real want = t.isBool()      ? v != 0
                  : std::isnan(v) ? 0
                                  : std::max(low, std::min(high, Real(std::trunc(v))));
      Real value = wide ? Real(uint64_t(got)) : Real(got);
      EXPECT_EQ(value, want) << t.str() << " of " << v;
      EXPECT_EQ(castTo(t, make<const FloatImmNode>(DType::Float(64), v))->dtype, t);
    }
}

TEST(Constants, AreValuesOfTheirFloatType) {
  struct Case {
    DType dtype;
    int64_t value;
    double held;
  };
  DType half = DType::Float(16), e5m2{TypeCode::kFloat8E5M2, 8, 1}, e2m1{TypeCode::kFloat4E2M1FN, 4, 1};
  const Case cases[] = {{half, -3, -3},
                        {half, 2049, 2048},
                        {half, 70000, INFINITY},
                        {DType::BFloat16(), 257, 256},
                        {kFloat32, 16777217, 16777216},
                        {kFloat32, INT64_MAX, 9223372036854775808.0},
                        {DType::Float(64), 16777217, 16777217},
                        {e5m2, 9, 8},
                        {e2m1, 5, 4}};
  for (const Case& c : cases)
    EXPECT_EQ(constant(c.dtype, c.value).as<FloatImmNode>()->value, c.held)
        << c.dtype.str() << " " << c.value;
}

TEST(Constants, OfUint64AboveInt64KeepTheirValue) {
  Var n = var("n", kInt64);
  Expr big = constant(DType::UInt(64), INT64_MIN); // 2^63
  EXPECT_TRUE(select(boolImm(true), big, constant(DType::UInt(64), 1)).as<IntImmNode>());
  EXPECT_FALSE(binary(BinaryOp::kAdd, big, big).as<IntImmNode>()); // wraps: no constant
  EXPECT_EQ(asConst(binary(BinaryOp::kLt, constant(DType::UInt(64), 1), big)), 1);
  EXPECT_FALSE(castTo(kFloat32, big).as<FloatImmNode>());
}

// What an expression over x has for a type once x is y must be what building it over y gives.
struct TypeCase {
  const char* name;
  DType from, to;
  Expr (*build)(const Expr&);
};

Expr mathsOf(Intrin op, const Expr& x) {
  return call(op, {x});
}

const DType kVec = DType::Float(32, 4);
const TypeCase kTypeCases[] = {
    {"unary", kFloat32, DType::Float(64),
     [](const Expr& x) -> Expr { return make<const UnaryNode>(UnaryOp::kNeg, x); }},
    {"comparison", kFloat32, kVec,
     [](const Expr& x) -> Expr { return make<const BinaryNode>(BinaryOp::kLt, x, x); }},
    {"sum", kFloat32, kVec,
     [](const Expr& x) -> Expr { return make<const BinaryNode>(BinaryOp::kAdd, x, x); }},
    {"select", kInt32, kInt64,
     [](const Expr& x) -> Expr { return make<const SelectNode>(boolImm(true), x, x); }},
    {"let", kInt32, kInt64,
     [](const Expr& x) -> Expr { return make<const LetNode>(var("t", kInt32), intImm(1, kInt32), x); }},
    {"cast", kFloat32, kVec,
     [](const Expr& x) -> Expr { return make<const CastNode>(DType::Int(8, x->dtype.lanes), x); }},
    {"ramp", kInt32, kInt64, [](const Expr& x) -> Expr { return make<const RampNode>(x, x, 4); }},
    {"broadcast", kInt32, kInt64, [](const Expr& x) -> Expr { return make<const BroadcastNode>(x, 4); }},
    {"shuffle", DType::Float(32, 4), DType::Float(16, 4),
     [](const Expr& x) -> Expr {
       return make<const ShuffleNode>(Array<Expr>{x}, Array<Expr>{intImm(0), intImm(2)});
     }},
    {"exp", kFloat32, DType::Float(64), [](const Expr& x) { return mathsOf(Intrin::kExp, x); }},
    {"exp of lanes", kFloat32, kVec, [](const Expr& x) { return mathsOf(Intrin::kExp, x); }},
    {"isnan", kFloat32, kVec, [](const Expr& x) { return mathsOf(Intrin::kIsNan, x); }},
    {"exp2_int", kInt32, DType::Int(32, 8), [](const Expr& x) { return mathsOf(Intrin::kFastExp2Int, x); }},
    {"vector_reduce", kVec, DType::Float(64, 4),
     [](const Expr& x) { return mathsOf(Intrin::kVectorReduceAdd, x); }},
    {"if_then_else", kInt32, kInt64,
     [](const Expr& x) { return callAs(x->dtype, Intrin::kIfThenElse, {boolImm(true), x, x}); }},
    {"reinterpret of lanes", kFloat32, kVec,
     [](const Expr& x) { return callAs(DType::Int(32, x->dtype.lanes), Intrin::kReinterpret, {x}); }},
    {"popcount to another type", DType::UInt(64), DType::UInt(64, 2),
     [](const Expr& x) { return callAs(DType::Int(8, x->dtype.lanes), Intrin::kPopcount, {x}); }},
    {"call_extern states its type", kInt32, kInt64,
     [](const Expr& x) { return callAs(kFloat32, Intrin::kCallExtern, {str("f"), x}); }},
};

TEST(Types, FollowTheOperands) {
  for (const TypeCase& c : kTypeCases) {
    Var x = var("x", c.from), y = var("y", c.to);
    Expr mapped = substitute(c.build(x), VarMap{{x, y}});
    EXPECT_EQ(mapped->dtype.str(), c.build(y)->dtype.str()) << c.name;
  }
}

TEST(Types, OfReductionsFollowTheirSource) {
  auto reduction = [](const Expr& source) {
    Var a = var("a", source->dtype), b = var("b", source->dtype);
    auto combiner = make<const CombinerNode>(Array<Var>{a}, Array<Var>{b}, Array<Expr>{a},
                                             Array<Expr>{constant(source->dtype, 0)});
    return make<const ReduceNode>(combiner, Array<IterVar>{}, Array<Expr>{source}, Array<Expr>{}, nullptr, 0);
  };
  Var x = var("x", kFloat32), y = var("y", DType::Float(64));
  EXPECT_EQ(substitute(Expr(reduction(x)), VarMap{{x, y}})->dtype, DType::Float(64));
}

TEST(Types, OfLoadsFollowTheirIndex) {
  Buffer b = buffer("B", kFloat32, {intImm(8)});
  Var i = var("i", kInt32);
  Expr mapped =
      substitute(load(b, {i}), VarMap{{i, make<const RampNode>(intImm(0, kInt32), intImm(1, kInt32), 4)}});
  EXPECT_EQ(mapped->dtype, DType::Float(32, 4));
}

TEST(Types, OfGraphValuesFollowTheirParts) {
  Var n = var("n", kInt64);
  VarMap map{{n, intImm(8)}};
  auto shape = substitute(make<const ShapeExprNode>(Array<Expr>{n}), map);
  EXPECT_TRUE(same(shape->type, make<const ShapeTypeNode>(Array<Expr>{intImm(8)})));
  auto prim = substitute(make<const PrimValueNode>(n), map);
  EXPECT_TRUE(same(prim->type, make<const PrimTypeNode>(kInt64, intImm(8))));
  auto tuple = make<const TupleNode>(Array<GraphExpr>{make<const PrimValueNode>(n)});
  auto item = substitute(make<const TupleGetNode>(tuple, 0), map);
  EXPECT_TRUE(same(item->type, make<const PrimTypeNode>(kInt64, intImm(8))));
}

} // namespace
} // namespace bevel
