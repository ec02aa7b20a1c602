// Arithmetic in machine code against C++ and base/tensor.h, scalar and in vectors, at the extremes of every
// type.
#include "llvm_support.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

using namespace bevel;
using namespace bevel::test;

namespace {

using ValueFunction = std::function<Expr(Expr, Expr)>;

/// out_k[i] = f_k(a[i], b[i]) for n elements, `lanes` at a time (n must be a multiple), for several k in one
/// kernel.
PrimFunc mapKernels(DType in, const std::vector<std::pair<DType, ValueFunction>>& functions, int lanes) {
  Var n = var("n"), i = var("i");
  Expr base = i * lanes;
  std::vector<Buffer> buffers = {buffer("A", in, {n}), buffer("B", in, {n})};
  std::vector<Stmt> stores;
  for (const auto& [out, f] : functions) {
    buffers.push_back(buffer("C" + std::to_string(buffers.size()), out, {n}));
    Expr value = f(loadVector(buffers[0], base, lanes), loadVector(buffers[1], base, lanes));
    stores.push_back(storeVector(buffers.back(), value, base, lanes));
  }
  return flatFunction(buffers, forLoop(i, truncdiv(n, intImm(lanes)), seq(stores)));
}

PrimFunc mapKernel(DType in, DType out, int lanes, const ValueFunction& f) {
  return mapKernels(in, {{out, f}}, lanes);
}

std::vector<int64_t> interesting(DType t) {
  int64_t low = minValue(t), high = maxValue(t);
  std::vector<int64_t> v = {0,  1,  2,   3,   5,       7,       8,    31,       32,
                            63, 64, 100, low, low + 1, low + 7, high, high - 1, high / 2};
  if (t.isInt())
    for (int64_t x : {-1, -2, -3, -5, -7, -8, -31, -32, -64, -100}) v.push_back(x);
  if (t.isUInt() && t.bits == 64) v.push_back(-1); // 2^64 - 1
  std::erase_if(v, [&](int64_t x) { return !(t.bits == 64 || (x >= low && x <= high)); });
  return v;
}

/// What the header of llvm_expr.cc promises, for values of the type held in 64 bits.
int64_t expectedInt(BinaryOp op, DType t, int64_t a, int64_t b) {
  __int128 x = t.isInt() ? __int128(a) : __int128(uint64_t(a)),
           y = t.isInt() ? __int128(b) : __int128(uint64_t(b));
  __int128 r = 0;
  switch (op) {
  case BinaryOp::kDiv:
    r = y == 0 ? 0 : x / y;
    break;
  case BinaryOp::kMod:
    r = y == 0 ? 0 : x % y;
    break;
  case BinaryOp::kFloorDiv:
    r = y == 0 ? 0 : x / y - ((x % y != 0) && ((x < 0) != (y < 0)));
    break;
  case BinaryOp::kFloorMod:
    r = y == 0 ? 0 : ((x % y) + y) % y;
    break;
  case BinaryOp::kAdd:
    r = x + y;
    break;
  case BinaryOp::kSub:
    r = x - y;
    break;
  case BinaryOp::kMul:
    r = __int128(uint64_t(x) * uint64_t(y));
    break;
  case BinaryOp::kMin:
    r = x < y ? x : y;
    break;
  case BinaryOp::kMax:
    r = x < y ? y : x;
    break;
  case BinaryOp::kShl:
    r = y < 0 || y >= t.bits ? 0 : __int128(uint64_t(x) << int(y));
    break;
  default:
    r = y < 0 || y >= t.bits ? (x < 0 ? -1 : 0) : x >> int(y);
    break; // kShr
  }
  uint64_t bits = uint64_t(r);
  if (t.bits < 64) {
    bits <<= 64 - t.bits;
    return t.isInt() ? int64_t(bits) >> (64 - t.bits) : int64_t(bits >> (64 - t.bits));
  }
  return int64_t(bits);
}

const BinaryOp kIntOps[] = {BinaryOp::kAdd, BinaryOp::kSub,      BinaryOp::kMul, BinaryOp::kDiv,
                            BinaryOp::kMod, BinaryOp::kFloorDiv, BinaryOp::kMin, BinaryOp::kFloorMod,
                            BinaryOp::kMax, BinaryOp::kShl,      BinaryOp::kShr};

float fromBits(uint32_t b) {
  return std::bit_cast<float>(b);
}

} // namespace

TEST(LlvmArith, IntegersMatchCAtTheExtremes) {
  const DType types[] = {DType::Int(8),  DType::Int(16),  kInt32,          kInt64,
                         DType::UInt(8), DType::UInt(16), DType::UInt(32), DType::UInt(64)};
  std::vector<KernelSource> kernels;
  for (DType t : types)
    for (int lanes : {1, 4}) {
      std::vector<std::pair<DType, ValueFunction>> functions;
      for (BinaryOp op : kIntOps)
        functions.emplace_back(t, [=](Expr a, Expr b) { return make<const BinaryNode>(op, a, b); });
      kernels.push_back({t.str() + "x" + std::to_string(lanes), mapKernels(t, functions, lanes)});
    }
  auto module = jit(kernels);
  ASSERT_TRUE(module);
  for (DType t : types) {
    std::vector<int64_t> values = interesting(t), av, bv;
    for (int64_t a : values)
      for (int64_t b : values) av.push_back(a), bv.push_back(b);
    while (av.size() % 4) av.push_back(1), bv.push_back(1);
    auto n = int64_t(av.size());
    auto a = TensorObject::of(t, {n}, av), b = TensorObject::of(t, {n}, bv);
    for (int lanes : {1, 4}) {
      std::vector<void*> pointers = {a->mutableBytes(), b->mutableBytes()};
      std::vector<Ref<TensorObject>> results;
      for (size_t k = 0; k < std::size(kIntOps); ++k) {
        results.push_back(TensorObject::zeros(t, {n}));
        pointers.push_back(results[k]->mutableBytes());
      }
      Context ctx;
      ASSERT_EQ(ctx.run(module->kernel(t.str() + "x" + std::to_string(lanes)), pointers, {n}), 0);
      for (size_t k = 0; k < std::size(kIntOps); ++k)
        for (int64_t i = 0; i < n; ++i)
          ASSERT_EQ(results[k]->asInt(i), expectedInt(kIntOps[k], t, av[size_t(i)], bv[size_t(i)]))
              << kBinaryNames[int(kIntOps[k])] << " " << t.str() << " x" << lanes << ": " << av[size_t(i)]
              << ", " << bv[size_t(i)];
    }
  }
}

TEST(LlvmArith, DivisionByConstants) {
  std::vector<KernelSource> kernels;
  const BinaryOp ops[] = {BinaryOp::kDiv, BinaryOp::kMod, BinaryOp::kFloorDiv, BinaryOp::kFloorMod};
  const int64_t divisors[] = {-7, -2, -1, 0, 1, 3, 8};
  for (BinaryOp op : ops)
    for (int64_t d : divisors)
      kernels.push_back({"d" + std::to_string(int(op)) + "_" + std::to_string(d),
                         mapKernel(kInt32, kInt32, 1, [&](Expr a, Expr) {
                           return make<const BinaryNode>(op, a, constant(kInt32, d));
                         })});
  auto module = jit(kernels);
  ASSERT_TRUE(module);
  std::vector<int64_t> values = interesting(kInt32);
  auto n = int64_t(values.size());
  auto a = TensorObject::of(kInt32, {n}, values), c = TensorObject::zeros(kInt32, {n});
  for (BinaryOp op : ops)
    for (int64_t d : divisors) {
      Context ctx;
      auto kernel = module->kernel("d" + std::to_string(int(op)) + "_" + std::to_string(d));
      ASSERT_EQ(ctx.run(kernel, {a->mutableBytes(), a->mutableBytes(), c->mutableBytes()}, {n}), 0);
      for (int64_t i = 0; i < n; ++i)
        ASSERT_EQ(c->asInt(i), expectedInt(op, kInt32, values[size_t(i)], d))
            << values[size_t(i)] << " by " << d;
    }
}

TEST(LlvmArith, MinMaxPropagateNan) {
  float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  std::vector<float> values = {nan, -inf, -1, -0.f, 0, 2, inf, 1e-40f}, av, bv;
  for (float a : values)
    for (float b : values) av.push_back(a), bv.push_back(b);
  std::vector<KernelSource> kernels;
  for (int lanes : {1, 8}) {
    std::string suffix = std::to_string(lanes);
    kernels.push_back(
        {"max" + suffix, mapKernel(kFloat32, kFloat32, lanes, [](Expr a, Expr b) { return max(a, b); })});
    kernels.push_back(
        {"min" + suffix, mapKernel(kFloat32, kFloat32, lanes, [](Expr a, Expr b) { return min(a, b); })});
    kernels.push_back({"relu" + suffix, mapKernel(kFloat32, kFloat32, lanes, [&](Expr a, Expr) {
                         return max(a, constantFloat(kFloat32.withLanes(lanes), 0));
                       })});
    kernels.push_back({"cap" + suffix, mapKernel(kFloat32, kFloat32, lanes, [&](Expr a, Expr) {
                         return min(constantFloat(kFloat32.withLanes(lanes), 1), a);
                       })});
  }
  for (const char* target : {"x86-64-v2", "host"}) {
    auto module = jit(kernels, *Target::parse(target));
    ASSERT_TRUE(module);
    auto check = [&](const std::string& name, auto reference) {
      std::vector<float> out(av.size());
      Context ctx;
      ASSERT_EQ(ctx.run(module->kernel(name), {av.data(), bv.data(), out.data()}, {int64_t(av.size())}), 0);
      for (size_t i = 0; i < av.size(); ++i) {
        float expected = reference(av[i], bv[i]);
        if (std::isnan(expected))
          EXPECT_TRUE(std::isnan(out[i])) << name << " " << av[i] << ", " << bv[i];
        else
          EXPECT_EQ(out[i], expected) << name << " " << av[i] << ", " << bv[i];
      }
    };
    auto nanOr = [&](float a, float b, float r) { return std::isnan(a) || std::isnan(b) ? nan : r; };
    for (std::string lanes : {"1", "8"}) {
      check("max" + lanes, [&](float a, float b) { return nanOr(a, b, a > b ? a : b); });
      check("min" + lanes, [&](float a, float b) { return nanOr(a, b, a < b ? a : b); });
      check("relu" + lanes, [&](float a, float) { return nanOr(a, 0, a > 0 ? a : 0); });
      check("cap" + lanes, [&](float a, float) { return nanOr(a, 0, a < 1 ? a : 1); });
    }
  }
}

TEST(LlvmArith, ReluIsOneInstruction) {
  PrimFunc f = mapKernel(kFloat32, kFloat32, 8,
                         [](Expr a, Expr) { return max(a, constantFloat(kFloat32.withLanes(8), 0)); });
  auto text = llvmText({"relu", f}, *Target::parse("x86-64-v3"), LlvmStage::kAssembly);
  ASSERT_TRUE(text) << text.error().str();
  EXPECT_NE(text->find("vmaxps"), std::string::npos);
  EXPECT_EQ(text->find("vcmpunord"), std::string::npos);
  EXPECT_EQ(text->find("vblend"), std::string::npos);
}

namespace {

/// What a cast means (ir/expr.h), computed through double and int64; good for all pairs but 64-bit integers
/// to floats.
bool sameValue(const TensorObject& t, int64_t i, double expected) {
  double got = t.asDouble(i);
  return std::isnan(expected) ? std::isnan(got) : got == expected;
}

double expectedCast(DType from, DType to, const TensorObject& x, int64_t i) {
  if (from == to) return x.asDouble(i); // nothing is rounded or saturated
  if (to.isFloat()) {
    double v = from.isFloat() ? x.asDouble(i) : double(x.asInt(i));
    return decodeFloat(to, encodeFloat(to, v));
  }
  if (to.isBool()) return from.isFloat() ? x.asDouble(i) != 0 : x.asInt(i) != 0;
  if (!from.isFloat()) {
    uint64_t bits = uint64_t(x.asInt(i)) << (64 - to.bits);
    return to.isInt() ? double(int64_t(bits) >> (64 - to.bits)) : double(bits >> (64 - to.bits));
  }
  double v = std::trunc(x.asDouble(i));
  if (std::isnan(v)) return 0;
  return std::clamp(v, double(minValue(to)), double(maxValue(to)));
}

/// The reference goes through int64 and double, which cannot hold everything.
bool isReferenceExact(DType from, DType to, const TensorObject& x, int64_t i) {
  if (from.bits == 64 && !from.isFloat() && std::fabs(double(x.asInt(i))) > 9e15 && from == to) return false;
  if (to.isUInt() && to.bits == 64 && (from.isFloat() ? x.asDouble(i) > 9e18 : x.asInt(i) < 0)) return false;
  if (from.isUInt() && from.bits == 64 && to.isFloat() && x.asInt(i) < 0) return false;
  if (!from.isFloat() && from.bits == 64 && to.isFloat() && std::fabs(double(x.asInt(i))) > 9e15)
    return false;
  bool tie = std::fabs(std::remainder(std::log2(std::fabs(x.asDouble(i))), 1)) > 0.4999;
  return !(to.code == TypeCode::kFloat8E8M0FNU && tie);
}

Ref<TensorObject> castInputs(DType t) {
  if (!t.isFloat()) return TensorObject::of(t, {int64_t(interesting(t).size())}, interesting(t));
  if (t.bits == 8) {
    std::vector<uint8_t> all(256);
    for (int i = 0; i < 256; ++i) all[size_t(i)] = uint8_t(i);
    auto x = TensorObject::zeros(t, {256});
    std::memcpy(x->mutableBytes(), all.data(), 256);
    return x;
  }
  std::vector<double> values = {0,
                                -0.0,
                                0.5,
                                -0.5,
                                1.5,
                                2.5,
                                -1.5,
                                127,
                                127.6,
                                128,
                                -128.9,
                                255.5,
                                256,
                                -1,
                                65504,
                                65519.9,
                                65520,
                                65536,
                                1e-8,
                                3e-8,
                                5.9e-8,
                                6.0e-5,
                                6.2e-5,
                                448,
                                464,
                                465,
                                57344,
                                61440,
                                61441,
                                240,
                                248,
                                249,
                                1e10,
                                -1e10,
                                2147483647.0,
                                2147483648.0,
                                -2147483648.0,
                                4294967296.0,
                                9.3e18,
                                -9.3e18,
                                1e30,
                                1.00048828125,
                                1.0009765625,
                                1.00146484375,
                                1.0004882813,
                                INFINITY,
                                -INFINITY,
                                NAN,
                                1e-40,
                                1.4e-45,
                                6.0,
                                5.0,
                                0.25,
                                0.75,
                                7.5e-3,
                                1.953125e-3,
                                9.765625e-4,
                                9.77e-4};
  for (int i = 0; i < 400; ++i) values.push_back(std::ldexp(1 + i * 0.0137, i % 60 - 30) * (i % 2 ? -1 : 1));
  return TensorObject::of(t, {int64_t(values.size())}, values);
}

} // namespace

TEST(LlvmArith, CastsBetweenAllTypes) {
  const DType types[] = {kBool,
                         DType::Int(8),
                         DType::Int(16),
                         kInt32,
                         kInt64,
                         DType::UInt(8),
                         DType::UInt(16),
                         DType::UInt(32),
                         DType::UInt(64),
                         DType::Float(16),
                         DType::BFloat16(),
                         kFloat32,
                         DType::Float(64),
                         {TypeCode::kFloat8E4M3FN, 8, 1},
                         {TypeCode::kFloat8E4M3FNUZ, 8, 1},
                         {TypeCode::kFloat8E5M2, 8, 1},
                         {TypeCode::kFloat8E5M2FNUZ, 8, 1},
                         {TypeCode::kFloat8E8M0FNU, 8, 1}};
  std::vector<KernelSource> kernels;
  for (DType from : types)
    for (int lanes : {1, 8}) {
      std::vector<std::pair<DType, ValueFunction>> functions;
      for (DType to : types)
        functions.emplace_back(to,
                               [=](Expr a, Expr) { return make<const CastNode>(to.withLanes(lanes), a); });
      kernels.push_back({from.str() + "x" + std::to_string(lanes), mapKernels(from, functions, lanes)});
    }
  for (const char* target : {"x86-64-v2", "host"}) {
    auto module = jit(kernels, *Target::parse(target));
    ASSERT_TRUE(module);
    for (DType from : types)
      for (int lanes : {1, 8}) {
        auto x = castInputs(from);
        std::vector<void*> pointers = {x->mutableBytes(), x->mutableBytes()};
        std::vector<Ref<TensorObject>> results;
        for (DType to : types) {
          results.push_back(TensorObject::zeros(to, {x->size()}));
          pointers.push_back(results.back()->mutableBytes());
        }
        Context ctx;
        ASSERT_EQ(ctx.run(module->kernel(from.str() + "x" + std::to_string(lanes)), pointers, {x->size()}),
                  0);
        for (size_t k = 0; k < std::size(types); ++k)
          for (int64_t i = 0; i < x->size() / lanes * lanes; ++i) {
            if (!isReferenceExact(from, types[k], *x, i)) continue;
            ASSERT_TRUE(sameValue(*results[k], i, expectedCast(from, types[k], *x, i)))
                << from.str() << " to " << types[k].str() << " x" << lanes << " on " << target << ": "
                << x->asDouble(i) << " gave " << results[k]->asDouble(i) << " instead of "
                << expectedCast(from, types[k], *x, i);
          }
      }
  }
}

TEST(LlvmArith, MachineMaths) {
  auto f32 = [](Intrin op) {
    return mapKernel(kFloat32, kFloat32, 8, [=](Expr a, Expr b) {
      return op == Intrin::kCopySign ? call(op, {a, b})
             : op == Intrin::kFma    ? call(op, {a, b, a})
                                     : call(op, {a});
    });
  };
  struct Case {
    Intrin op;
    float (*reference)(float, float);
  };
  const Case cases[] = {
      {Intrin::kSqrt, [](float a, float) { return std::sqrt(a); }},
      {Intrin::kFloor, [](float a, float) { return std::floor(a); }},
      {Intrin::kCeil, [](float a, float) { return std::ceil(a); }},
      {Intrin::kTrunc, [](float a, float) { return std::trunc(a); }},
      {Intrin::kRound, [](float a, float) { return std::round(a); }},
      {Intrin::kNearbyInt, [](float a, float) { return std::nearbyint(a); }},
      {Intrin::kFabs, [](float a, float) { return std::fabs(a); }},
      {Intrin::kCopySign, [](float a, float b) { return std::copysign(a, b); }},
      {Intrin::kFma, [](float a, float b) { return std::fma(a, b, a); }},
      {Intrin::kRsqrt, [](float a, float) { return 1 / std::sqrt(a); }},
  };
  std::vector<KernelSource> kernels;
  for (const Case& c : cases) kernels.push_back({intrinInfo(c.op).name, f32(c.op)});
  std::vector<float> a = {
      0,    -0.f,   0.5f, -0.5f,  1.5f,     2.5f,      -2.5f, 0.49999997f,          -0.49999997f, 8388607.5f,
      1e9f, -1e20f, 4,    1e-42f, INFINITY, -INFINITY, NAN,   fromBits(0x4b000001), 3.9999998f,   7};
  while (a.size() % 8) a.push_back(float(a.size()) + 0.25f);
  std::vector<float> b(a.rbegin(), a.rend()), out(a.size());
  for (const char* target : {"x86-64", "host"}) {
    auto module = jit(kernels, *Target::parse(target));
    ASSERT_TRUE(module);
    for (const Case& c : cases) {
      Context ctx;
      ASSERT_EQ(ctx.run(module->kernel(intrinInfo(c.op).name), {a.data(), b.data(), out.data()},
                        {int64_t(a.size())}),
                0);
      for (size_t i = 0; i < a.size(); ++i) {
        float expected = c.reference(a[i], b[i]);
        if (std::isnan(expected))
          EXPECT_TRUE(std::isnan(out[i])) << intrinInfo(c.op).name << " of " << a[i];
        else
          EXPECT_EQ(std::bit_cast<uint32_t>(out[i]), std::bit_cast<uint32_t>(expected))
              << intrinInfo(c.op).name << " of " << a[i];
      }
    }
  }
}

TEST(LlvmArith, IntegerIntrinsicsAndReductions) {
  auto one = [](Intrin op, DType out) {
    return mapKernel(kInt32, out, 8, [=](Expr a, Expr b) {
      Array<NodeRef> args = {a};
      if (op == Intrin::kMulHigh) args.push_back(b);
      return callAs(out.withLanes(8), op, args);
    });
  };
  Buffer x = buffer("X", kFloat32, dims({12})), y = buffer("Y", kFloat32, dims({4}));
  std::vector<Stmt> reduce;
  const Intrin reductions[] = {Intrin::kVectorReduceAdd, Intrin::kVectorReduceMul, Intrin::kVectorReduceMin,
                               Intrin::kVectorReduceMax};
  for (int i = 0; i < 4; ++i)
    reduce.push_back(
        store(y, callAs(kFloat32, reductions[i], {loadVector(x, intImm(0), i < 2 ? 12 : 7)}), {intImm(i)}));
  auto module = jit({{"popcount", one(Intrin::kPopcount, kInt32)},
                     {"clz", one(Intrin::kClz, kInt64)},
                     {"abs", one(Intrin::kAbs, kInt32)},
                     {"mulhigh", one(Intrin::kMulHigh, kInt32)},
                     {"reduce", flatFunction({x, y}, seq(reduce))},
                     {"saturate", mapKernel(kFloat32, DType::Int(8), 8, [](Expr a, Expr) {
                        return callAs(DType::Int(8, 8), Intrin::kSaturatingRound, {a});
                      })}});
  ASSERT_TRUE(module);
  std::vector<int32_t> a = {0, 1, -1, INT32_MIN, INT32_MAX, 12345, -77, 1 << 20},
                       b = {5, -9, 1 << 30, INT32_MIN, INT32_MAX, 99999, 123456789, 4096}, o(8);
  std::vector<int64_t> wide(8);
  Context ctx;
  auto run = [&](const char* name, void* out) {
    return ctx.run(module->kernel(name), {a.data(), b.data(), out}, {8});
  };
  ASSERT_EQ(run("popcount", o.data()), 0);
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(o[i], std::popcount(uint32_t(a[i])));
  ASSERT_EQ(run("clz", wide.data()), 0);
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(wide[i], std::countl_zero(uint32_t(a[i])));
  ASSERT_EQ(run("abs", o.data()), 0);
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(o[i], a[i] < 0 ? int32_t(0u - uint32_t(a[i])) : a[i]);
  ASSERT_EQ(run("mulhigh", o.data()), 0);
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(o[i], int32_t(int64_t(a[i]) * b[i] >> 32));
  std::vector<float> xv = {1, 2, -3, 4, 0.5f, 6, -7, 8, 1, 2, 1, 0.25f}, yv(4);
  ASSERT_EQ(ctx.run(module->kernel("reduce"), {xv.data(), yv.data()}), 0);
  EXPECT_EQ(yv,
            (std::vector<float>{15.75f, 1.f * 2 * -3 * 4 * 0.5f * 6 * -7 * 8 * 1 * 2 * 1 * 0.25f, -7, 6}));
  std::vector<float> s = {0.5f, 1.5f, -0.5f, 126.5f, 127.5f, -129, NAN, INFINITY};
  std::vector<int8_t> s8(8);
  ASSERT_EQ(ctx.run(module->kernel("saturate"), {s.data(), s.data(), s8.data()}, {8}), 0);
  EXPECT_EQ(s8, (std::vector<int8_t>{0, 2, 0, 126, 127, -128, 0, 127}));
}

TEST(LlvmArith, TranscendentalsAreClose) {
  std::vector<KernelSource> kernels = {
      {"exp32", mapKernel(kFloat32, kFloat32, 8, [](Expr a, Expr) { return call(Intrin::kExp, {a}); })},
      {"tanh64", mapKernel(DType::Float(64), DType::Float(64), 4,
                           [](Expr a, Expr) { return call(Intrin::kTanh, {a}); })},
      {"erf16", mapKernel(DType::Float(16), DType::Float(16), 8,
                          [](Expr a, Expr) { return call(Intrin::kErf, {a}); })},
      {"sigmoid64", mapKernel(DType::Float(64), DType::Float(64), 1,
                              [](Expr a, Expr) { return call(Intrin::kSigmoid, {a}); })}};
  auto module = jit(kernels);
  ASSERT_TRUE(module);
  auto check = [&](const char* name, DType t, double tolerance, double (*reference)(double)) {
    std::vector<double> values;
    for (int i = -40; i < 40; ++i) values.push_back(i * 0.11);
    auto x = TensorObject::of(t, {80}, values), y = TensorObject::zeros(t, {80});
    Context ctx;
    ASSERT_EQ(ctx.run(module->kernel(name), {x->mutableBytes(), x->mutableBytes(), y->mutableBytes()}, {80}),
              0);
    for (int i = 0; i < 80; ++i)
      EXPECT_NEAR(y->asDouble(i), reference(x->asDouble(i)),
                  tolerance * std::max(1.0, reference(x->asDouble(i))));
  };
  check("exp32", kFloat32, 3e-7, [](double v) { return std::exp(v); });
  check("tanh64", DType::Float(64), 1e-15, [](double v) { return std::tanh(v); });
  check("erf16", DType::Float(16), 1e-3, [](double v) { return std::erf(v); });
  check("sigmoid64", DType::Float(64), 1e-15, [](double v) { return 1 / (1 + std::exp(-v)); });
}
