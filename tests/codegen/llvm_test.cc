// Machine code from hand-built flat functions: memory, loops, tasks, failures, calls out.
#include "llvm_support.h"

#include "codegen/llvm.h"

#include <cmath>
#include <cstring>
#include <numeric>

using namespace bevel;
using namespace bevel::test;

namespace {

/// y[i] = x[i] * 2 + 1 for i < n, eight at a time, the tail masked.
PrimFunc maskedElementwise() {
  Var n = var("n");
  Buffer x = buffer("X", kFloat32, {n}), y = buffer("Y", kFloat32, {n});
  Var i = var("i");
  Expr base = i * 8;
  Expr mask = ramp(base, 8) < broadcast(n, 8);
  Expr value = loadVector(x, base, 8, mask) * broadcast(constantFloat(kFloat32, 2), 8) +
               broadcast(constantFloat(kFloat32, 1), 8);
  Stmt loop = forLoop(i, truncdiv(n + 7, constant(kInt64, 8)), storeVector(y, value, base, 8, mask));
  return flatFunction({x, y}, loop);
}

} // namespace

TEST(Llvm, MaskedTailTouchesNothingBeyond) {
  for (const char* target : {"x86-64-v2", "host"}) {
    auto module = jit({{"ew", maskedElementwise()}}, *Target::parse(target));
    ASSERT_TRUE(module);
    for (int n : {0, 1, 7, 8, 9, 31, 64, 97}) {
      std::vector<float> x(size_t(n) + 8, 100), y(size_t(n) + 8, -5);
      std::iota(x.begin(), x.begin() + n, 0.f);
      Context ctx;
      ASSERT_EQ(ctx.run(module->kernel("ew"), {x.data(), y.data()}, {n}), 0);
      for (int i = 0; i < n + 8; ++i)
        EXPECT_EQ(y[size_t(i)], i < n ? float(i) * 2 + 1 : -5) << i << " of " << n;
    }
  }
}

TEST(Llvm, RegisterTile) {
  // C[6, 16] += A[k, 6] * B[k, 16], accumulators in registers.
  Var k = var("K");
  Buffer a = buffer("A", kFloat32, {k * 6}), b = buffer("B", kFloat32, {k * 16}),
         c = buffer("C", kFloat32, dims({96}));
  Buffer acc = buffer("acc", kFloat32, dims({96}), "register");
  std::vector<Stmt> first, body, last;
  Var p = var("p");
  for (int i = 0; i < 6; ++i)
    for (int j = 0; j < 2; ++j) {
      Expr slot = intImm((i * 2 + j) * 8);
      first.push_back(storeVector(acc, broadcast(constantFloat(kFloat32, 0), 8), slot, 8));
      Expr product = broadcast(load(a, {p * 6 + i}), 8) * loadVector(b, p * 16 + j * 8, 8);
      body.push_back(storeVector(acc, loadVector(acc, slot, 8) + product, slot, 8));
      last.push_back(storeVector(c, loadVector(acc, slot, 8), intImm(i * 16 + j * 8), 8));
    }
  Stmt all = seq({seq(first), forLoop(p, k, seq(body)), seq(last)});
  Stmt scope = make<const AllocNode>(acc, all, dict({{"lanes", intImm(8)}}));
  auto module = jit({{"tile", flatFunction({a, b, c}, scope)}});
  ASSERT_TRUE(module);
  for (int n : {0, 1, 5, 64}) {
    std::vector<float> av(size_t(n) * 6), bv(size_t(n) * 16), cv(96, -1);
    for (size_t i = 0; i < av.size(); ++i) av[i] = float(i % 7) - 3;
    for (size_t i = 0; i < bv.size(); ++i) bv[i] = float(i % 5) - 2;
    Context ctx;
    ASSERT_EQ(ctx.run(module->kernel("tile"), {av.data(), bv.data(), cv.data()}, {n}), 0);
    for (int i = 0; i < 6; ++i)
      for (int j = 0; j < 16; ++j) {
        float expected = 0;
        for (int q = 0; q < n; ++q) expected += av[size_t(q * 6 + i)] * bv[size_t(q * 16 + j)];
        EXPECT_EQ(cv[size_t(i * 16 + j)], expected);
      }
  }
}

TEST(Llvm, ParallelLoopsAndThreadWorkspace) {
  // for i in parallel(n): tmp[0:4] = x[i*4 : i*4+4] (in this thread's workspace); y[i] = tmp[0] + 10 * tmp[3]
  // + n
  Var n = var("n"), i = var("i"), j = var("j");
  Buffer x = buffer("X", kInt32, {n * 4}), y = buffer("Y", kInt32, {n}),
         tmp = buffer("tmp", kInt32, dims({4}));
  Stmt fill = forLoop(j, intImm(4), store(tmp, load(x, {i * 4 + j}), {j}));
  Expr sum = load(tmp, {intImm(0)}) + load(tmp, {intImm(3)}) * constant(kInt32, 10) + castTo(kInt32, n);
  Stmt body = seq({fill, store(y, sum, {i})});
  body =
      make<const AllocNode>(tmp, body, dict({{"workspace_offset", intImm(64)}, {"per_thread", intImm(1)}}));
  PrimFunc f = flatFunction({x, y}, forLoop(i, n, body, ForKind::kParallel));
  f = withAttr(withAttr(f, "workspace_bytes", intImm(128)), "workspace_per_thread_bytes", intImm(128));
  auto module = jit({{"par", f}});
  ASSERT_TRUE(module);
  for (int threads = 1; threads <= 4; ++threads)
    for (int count : {0, 1, 3, 97}) {
      std::vector<int32_t> xv(size_t(count) * 4), yv(size_t(count), -1);
      std::iota(xv.begin(), xv.end(), 0);
      std::vector<std::byte> workspace(size_t(128 + 128 * threads), std::byte(0x55));
      Context ctx(threads);
      ASSERT_EQ(ctx.run(module->kernel("par"), {xv.data(), yv.data()}, {count}, workspace.data()), 0);
      for (int t = 0; t < count; ++t) EXPECT_EQ(yv[size_t(t)], t * 4 + 10 * (t * 4 + 3) + count);
      EXPECT_EQ(ctx.forks, threads > 1 && count > 0 ? 1 : 0);
      for (int t = 0; t < 192; ++t)
        EXPECT_EQ(workspace[size_t(t)], std::byte(0x55)) << "outside of the threads' parts";
    }
}

TEST(Llvm, NestedParallelIsSerialInside) {
  Var i = var("i"), j = var("j");
  Buffer y = buffer("Y", kInt64, dims({35}));
  Stmt inner = forLoop(j, intImm(7), store(y, i * 100 + j, {i * 7 + j}), ForKind::kParallel);
  auto module = jit({{"nest", flatFunction({y}, forLoop(i, intImm(5), inner, ForKind::kParallel))}});
  ASSERT_TRUE(module);
  std::vector<int64_t> out(35);
  Context ctx(3);
  ASSERT_EQ(ctx.run(module->kernel("nest"), {out.data()}), 0);
  EXPECT_EQ(ctx.forks, 1);
  for (int t = 0; t < 35; ++t) EXPECT_EQ(out[size_t(t)], t / 7 * 100 + t % 7);
}

TEST(Llvm, SharedWorkspaceLivesAcrossLoops) {
  Var i = var("i"), j = var("j"), n = var("n");
  Buffer y = buffer("Y", kInt64, {n}), tmp = buffer("tmp", kInt64, {n});
  Stmt body = seq({forLoop(i, n, store(tmp, i * i, {i}), ForKind::kParallel),
                   forLoop(j, n, store(y, load(tmp, {n - j - 1}), {j}))});
  body = make<const AllocNode>(tmp, body, dict({{"workspace_offset", intImm(64)}}));
  auto module = jit({{"shared", withAttr(flatFunction({y}, body), "workspace_bytes", n * 8 + 64)}});
  ASSERT_TRUE(module);
  std::vector<int64_t> out(9), workspace(8 + 9);
  Context ctx(2);
  ASSERT_EQ(ctx.run(module->kernel("shared"), {out.data()}, {9}, workspace.data()), 0);
  for (int t = 0; t < 9; ++t) EXPECT_EQ(out[size_t(t)], (8 - t) * (8 - t));
  EXPECT_EQ(workspace[8 + 3], 9);
}

TEST(Llvm, AssertAndFailReachTheCaller) {
  Var n = var("n"), i = var("i");
  Buffer x = buffer("X", kInt64, {n}), y = buffer("Y", kInt64, {n});
  Stmt check = make<const AssertNode>(load(x, {i}) < n, "index out of range");
  Stmt loop = forLoop(i, n, seq({check, store(y, load(x, {i}), {i})}), ForKind::kParallel);
  Var k = var("k");
  Stmt failing = make<const EvaluateNode>(callAs(DType::Void(), Intrin::kFail, {str("never negative")}));
  Stmt serial = forLoop(k, n, make<const IfNode>(load(x, {k}) < intImm(0), failing, store(y, k, {k})));
  auto module = jit({{"checked", flatFunction({x, y}, loop)}, {"fails", flatFunction({x, y}, serial)}});
  ASSERT_TRUE(module);
  std::vector<int64_t> good = {0, 1, 2, 3}, bad = {0, 1, 9, 3}, negative = {0, -1, 2, 3}, out(4, -1);
  for (int threads : {1, 2, 4}) {
    Context ctx(threads);
    EXPECT_EQ(ctx.run(module->kernel("checked"), {good.data(), out.data()}, {4}), 0);
    EXPECT_EQ(out, good);
    EXPECT_EQ(ctx.run(module->kernel("checked"), {bad.data(), out.data()}, {4}), BEVEL_ERROR_REFUSED);
    EXPECT_EQ(ctx.message, "index out of range");
    EXPECT_EQ(ctx.run(module->kernel("fails"), {negative.data(), out.data()}, {4}), BEVEL_ERROR_REFUSED);
    EXPECT_EQ(ctx.message, "never negative");
  }
}

TEST(Llvm, ScalarParametersAndWhile) {
  // y[0] = count of halvings of n until <= 1; y[1] = trunc(scale * 10); scale is a float parameter
  Buffer y = buffer("Y", kInt64, dims({2}));
  Var n = var("n", kInt32), scale = var("scale", kFloat32);
  Buffer state = buffer("state", kInt64, dims({1}), "local");
  Expr current = load(state, {intImm(0)});
  Stmt halve = seq({store(state, truncdiv(current, intImm(2)), {intImm(0)}),
                    store(y, load(y, {intImm(0)}) + 1, {intImm(0)})});
  Stmt body = seq({store(y, intImm(0), {intImm(0)}), store(state, castTo(kInt64, n), {intImm(0)}),
                   make<const WhileNode>(current > intImm(1), halve),
                   store(y, castTo(kInt64, scale * constantFloat(kFloat32, 10)), {intImm(1)})});
  PrimFunc f = make<const PrimFuncNode>(Array<Var>{y->data, n, scale}, Array<Buffer>{y, nullptr, nullptr},
                                        make<const AllocNode>(state, body));
  auto module = jit({{"scalars", f}});
  ASSERT_TRUE(module);
  std::vector<int64_t> out(2);
  double value = 2.75;
  int64_t bits;
  std::memcpy(&bits, &value, 8);
  Context ctx;
  ASSERT_EQ(ctx.run(module->kernel("scalars"), {out.data()}, {1000, bits}), 0);
  EXPECT_EQ(out, (std::vector<int64_t>{9, 27}));
}

TEST(Llvm, StridedReversedGatheredAndBool) {
  Buffer x = buffer("X", kInt32, dims({40})), index = buffer("I", kInt32, dims({8}));
  Buffer y = buffer("Y", kInt32, dims({40})), b = buffer("B", kBool, dims({8}));
  auto at = [](Expr i) { return Array<Expr>{std::move(i)}; };
  Expr gathered = make<const LoadNode>(x, at(castTo(DType::Int(64, 8), loadVector(index, intImm(0), 8))));
  Expr flags = make<const LoadNode>(b, at(ramp(intImm(0), 8)));
  std::vector<Stmt> body = {
      storeVector(y, make<const LoadNode>(x, at(ramp(intImm(1), 8, 2))), intImm(0), 8),
      storeVector(y, make<const LoadNode>(x, at(ramp(intImm(39), 8, -1))), intImm(8), 8),
      storeVector(y, make<const LoadNode>(x, at(ramp(intImm(2), 8, 5))), intImm(16), 8),
      storeVector(y, select(flags, gathered, broadcast(constant(kInt32, -1), 8)), intImm(24), 8),
      make<const StoreNode>(y, broadcast(load(x, {intImm(3)}), 4), at(ramp(intImm(32), 4, 2))),
      storeVector(b, loadVector(x, intImm(0), 8) < broadcast(constant(kInt32, 3), 8), intImm(0), 8),
  };
  PrimFunc f = flatFunction({x, index, y, b}, seq(body));
  for (const char* target : {"x86-64-v2", "host"}) {
    auto module = jit({{"memory", f}}, *Target::parse(target));
    ASSERT_TRUE(module);
    std::vector<int32_t> xv(40), iv = {7, 0, 39, 3, 3, 12, 1, 5}, yv(40, 77);
    std::iota(xv.begin(), xv.end(), 0);
    std::vector<uint8_t> bv = {1, 0, 1, 1, 0, 0, 1, 1}, before = bv;
    Context ctx;
    ASSERT_EQ(ctx.run(module->kernel("memory"), {xv.data(), iv.data(), yv.data(), bv.data()}), 0);
    for (int i = 0; i < 8; ++i) {
      EXPECT_EQ(yv[size_t(i)], 1 + 2 * i);
      EXPECT_EQ(yv[size_t(8 + i)], 39 - i);
      EXPECT_EQ(yv[size_t(16 + i)], 2 + 5 * i);
      EXPECT_EQ(yv[size_t(24 + i)], before[size_t(i)] ? iv[size_t(i)] : -1);
      EXPECT_EQ(yv[size_t(32 + i)], i % 2 == 0 ? 3 : 77);
      EXPECT_EQ(bv[size_t(i)], i < 3 ? 1 : 0);
    }
  }
}

TEST(Llvm, PackedAndExternCalls) {
  Buffer x = buffer("X", kFloat32, dims({2, 3})), y = buffer("Y", kInt64, dims({2}));
  Expr packed =
      callAs(kInt64, Intrin::kCallPacked, {str("my.sum"), x, intImm(5), constantFloat(kFloat32, 1.5)});
  auto sum = [](const bevel_value* args, int32_t count, bevel_value* result) -> int32_t {
    const DLTensor* t = args[0].v.view;
    bool asExpected = count == 3 && args[0].kind == BEVEL_VIEW && t->ndim == 2 && t->shape[0] == 2 &&
                      t->shape[1] == 3 && t->dtype.code == kDLFloat && t->dtype.bits == 32 &&
                      args[1].kind == BEVEL_INT && args[2].kind == BEVEL_FLOAT;
    if (!asExpected) return 7;
    const auto* data = static_cast<const float*>(t->data);
    result->kind = BEVEL_INT;
    result->v.i = int64_t(std::accumulate(data, data + 6, 0.f)) + args[1].v.i + int64_t(args[2].v.f * 10);
    return 0;
  };
  // Two functions of the C library: int ffs(int), and one that takes a pointer.
  Expr ffs = callAs(kInt32, Intrin::kCallExtern, {str("ffs"), constant(kInt32, 0x50)});
  Expr address = callAs(DType::Handle(), Intrin::kAddressOf, {load(y, {intImm(0)})});
  Stmt clear = make<const EvaluateNode>(
      callAs(DType::Handle(), Intrin::kCallExtern, {str("memset"), address, constant(kInt32, 1), intImm(1)}));
  PrimFunc f = flatFunction(
      {x, y}, seq({store(y, packed, {intImm(0)}), clear, store(y, castTo(kInt64, ffs), {intImm(1)})}));
  auto module = jit({{"calls", f}});
  ASSERT_TRUE(module);
  std::vector<float> xv = {1, 2, 3, 4, 5, 6};
  std::vector<int64_t> yv(2);
  Context ctx;
  ctx.packed = sum;
  ASSERT_EQ(ctx.run(module->kernel("calls"), {xv.data(), yv.data()}), 0);
  EXPECT_EQ(yv[0], 1) << "41 with its low byte set to 1";
  EXPECT_EQ(yv[1], 5);
  EXPECT_EQ(ctx.packedName, "my.sum");
  ctx.packed = nullptr;
  EXPECT_EQ(ctx.run(module->kernel("calls"), {xv.data(), yv.data()}), 5)
      << "the callee's status ends the kernel";
}

TEST(Llvm, RefusedConstructsAreNamed) {
  Buffer s = buffer("S", DType::String(), dims({1})), y = buffer("Y", kInt64, dims({4}));
  Var i = var("i");
  std::vector<KernelSource> bad = {
      {"strings", flatFunction({s}, store(s, make<const StringImmNode>("x"), {intImm(0)}))},
      {"vectorized", flatFunction({y}, forLoop(i, intImm(4), store(y, i, {i}), ForKind::kVectorized))},
      {"unbound", flatFunction({y}, store(y, var("ghost"), {intImm(0)}))},
      {"twoDims", flatFunction({y}, store(y, intImm(1), {intImm(0), intImm(0)}))},
  };
  for (const KernelSource& k : bad) {
    CompileOptions options;
    options.useCache = false;
    auto result = compileObjects(std::span(&k, 1), Target::host(), options);
    ASSERT_FALSE(result) << k.name;
    EXPECT_NE(result.error().message.find(k.name), std::string::npos);
  }
}
