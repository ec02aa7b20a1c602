// Lowering of scheduled programs in text form: micro-kernels, private tiles, reductions between spatial
// loops, small types.
#include "ir/build.h"
#include "ir/parser.h"
#include "ir/printer.h"
#include "ir/structural.h"
#include "loop/lower.h"
#include "tests/loop/lower_support.h"

#include <gtest/gtest.h>

namespace bevel {
namespace {

using test::lowerDifference;

PrimFunc parsed(const std::string& text) {
  auto node = parseFunction(text);
  EXPECT_TRUE(node.has_value()) << (node ? "" : node.error().str());
  return node ? cast<PrimFuncNode>(*node) : PrimFunc();
}

// A register-tiled matmul with tails in both directions.
std::string microKernel() {
  return R"(
@T.prim_func
def main(a: T.handle, b: T.handle, c: T.handle):
    m = T.int64()
    A = T.match_buffer(a, (M, 10), "float32")
    B = T.match_buffer(b, (NB, 10, 16), "float32")
    C = T.match_buffer(c, (M, N), "float32")
    with T.sblock("root"):
        acc = T.sblock_alloc_buffer((M, NP), "float32", scope="register")
        for io in T.parallel((M + 5) // 6):
            for jo in range(NB):
                for ii in T.unroll(6):
                    for ji in T.vectorized(16):
                        with T.sblock("init"):
                            i = T.axis.spatial(M, io * 6 + ii)
                            j = T.axis.spatial(NP, jo * 16 + ji)
                            T.where(io * 6 + ii < M and jo * 16 + ji < N)
                            acc[i, j] = T.float32(0)
                for k in range(10):
                    for ii in T.unroll(6):
                        for ji in T.vectorized(16):
                            with T.sblock("update"):
                                i = T.axis.spatial(M, io * 6 + ii)
                                j = T.axis.spatial(NP, jo * 16 + ji)
                                r = T.axis.reduce(10, k)
                                T.where(io * 6 + ii < M and jo * 16 + ji < N)
                                acc[i, j] = acc[i, j] + A[i, r] * B[j // 16, r, j % 16]
                for ii in T.unroll(6):
                    for ji in T.vectorized(16):
                        with T.sblock("write"):
                            i = T.axis.spatial(M, io * 6 + ii)
                            j = T.axis.spatial(N, jo * 16 + ji)
                            T.where(io * 6 + ii < M and jo * 16 + ji < N)
                            C[i, j] = acc[i, j]
)";
}
std::string replaceAll(std::string s, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = s.find(from, at)) != std::string::npos; at += to.size())
    s.replace(at, from.size(), to);
  return s;
}
std::string microKernelOf(const std::string& m, int n) {
  std::string text = microKernel();
  int blocks = (n + 15) / 16;
  text = replaceAll(text, "NB", std::to_string(blocks));
  text = replaceAll(text, "NP", std::to_string(blocks * 16));
  text = replaceAll(text, "N)", std::to_string(n) + ")");
  text = replaceAll(text, "(N,", "(" + std::to_string(n) + ",");
  text = replaceAll(text, "< N", "< " + std::to_string(n));
  return replaceAll(replaceAll(text, "(M", "(" + m), "< M", "< " + m);
}

TEST(LowerText, MicroKernelWithTails) {
  for (int n : {16, 17, 30}) {
    for (int m : {1, 6, 7, 13}) {
      PrimFunc f = parsed(microKernelOf(std::to_string(m), n));
      ASSERT_TRUE(f);
      EXPECT_EQ(lowerDifference(f), "") << m << " " << n;
    }
    PrimFunc f = parsed(microKernelOf("m", n));
    for (int m : {0, 1, 6, 7, 13}) EXPECT_EQ(lowerDifference(f, {{"m", m}}), "") << m << " " << n;
  }
}

// The inner reduction loop of a micro-kernel has no condition and no mask.
TEST(LowerText, MicroKernelInnerLoopHasNoBranches) {
  PrimFunc f = parsed(microKernelOf("m", 30));
  auto lowered = lowerUntil(f, "plan_workspace");
  ASSERT_TRUE(lowered.has_value()) << lowered.error().str();
  int loopsOverK = 0;
  walk((*lowered)->body, [&](const NodeRef& n) {
    const auto* loop = n.as<ForNode>();
    if (!loop || loop->var->name != "k") return true;
    ++loopsOverK;
    walk(loop->body, [&](const NodeRef& x) {
      EXPECT_FALSE(x.is<IfNode>() || x.is<SelectNode>()) << print(loop->body);
      if (const auto* l = x.as<LoadNode>()) {
        EXPECT_FALSE(l->predicate) << print(x);
      }
      if (const auto* s = x.as<StoreNode>()) {
        EXPECT_FALSE(s->predicate) << print(x);
        EXPECT_EQ(s->buffer->scope, "register");
      }
      return true;
    });
    return true;
  });
  EXPECT_EQ(loopsOverK, 1) << print(*lowered);
}

// Shared case 17: three elementwise stages, producers computed in the consumer's tile, symbolic length.
const char* kChain = R"(
@T.prim_func
def main(a: T.handle, b: T.handle, e: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    E = T.match_buffer(e, (n,), "float32")
    with T.sblock("root"):
        C = T.sblock_alloc_buffer((n,), "float32")
        D = T.sblock_alloc_buffer((n,), "float32")
        for o in range((n + 31) // 32):
            for c in range(32):
                with T.sblock("C"):
                    i = T.axis.spatial(n, o * 32 + c)
                    T.where(o * 32 + c < n)
                    C[i] = A[i] + B[i]
            for d in range(32):
                with T.sblock("D"):
                    i = T.axis.spatial(n, o * 32 + d)
                    T.where(o * 32 + d < n)
                    D[i] = C[i] * T.float32(2)
            for x in T.vectorized(32):
                with T.sblock("E"):
                    i = T.axis.spatial(n, o * 32 + x)
                    T.where(o * 32 + x < n)
                    E[i] = D[i] + A[i]
)";

TEST(LowerText, ChainWithSymbolicTail) {
  PrimFunc f = parsed(kChain);
  ASSERT_TRUE(f);
  for (int n : {0, 1, 7, 1000, 1024}) EXPECT_EQ(lowerDifference(f, {{"n", n}}), "") << n;
  // Each tile has its own C and D: on the stack, not n elements in the workspace.
  auto lowered = lowerUntil(f, "plan_workspace");
  ASSERT_TRUE(lowered.has_value());
  walk((*lowered)->body, [&](const NodeRef& n) {
    if (const auto* a = n.as<AllocNode>()) {
      EXPECT_EQ(a->buffer->scope, "local") << print(*lowered);
    }
    return true;
  });
}

TEST(LowerText, ReductionInitInTheTail) {
  PrimFunc f = parsed(R"(
@T.prim_func
def main(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (101, 101), "float32")
    C = T.match_buffer(c, (101,), "float32")
    with T.sblock("root"):
        S = T.sblock_alloc_buffer((101,), "float32")
        for o, i in T.grid(2, 100):
            for k in range(101):
                with T.sblock("S"):
                    v = T.axis.spatial(101, o * 100 + i)
                    r = T.axis.reduce(101, k)
                    T.where(o * 100 + i < 101)
                    with T.init():
                        S[v] = T.float32(0)
                    S[v] = S[v] + A[v, r]
            with T.sblock("C"):
                v = T.axis.spatial(101, o * 100 + i)
                T.where(o * 100 + i < 101)
                C[v] = S[v] * T.float32(2)
)");
  ASSERT_TRUE(f);
  EXPECT_EQ(lowerDifference(f), "");
}

// Shared case 19: the outer reduction loop lies between spatial loops; the accumulator must outlive it.
TEST(LowerText, AllocationOutsideOfReductionLoop) {
  PrimFunc f = parsed(R"(
@T.prim_func
def main(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (8, 12, 8), "float32")
    C = T.match_buffer(c, (8, 8), "float32")
    with T.sblock("root"):
        S = T.sblock_alloc_buffer((8, 8), "float32", scope="local")
        for io, ko, ii in T.grid(2, 3, 4):
            for j in range(8):
                for ki in range(4):
                    with T.sblock("S"):
                        v0 = T.axis.spatial(8, io * 4 + ii)
                        v1 = T.axis.spatial(8, j)
                        r = T.axis.reduce(12, ko * 4 + ki)
                        with T.init():
                            S[v0, v1] = T.float32(0)
                        S[v0, v1] = S[v0, v1] + A[v0, r, v1]
            for j in range(8):
                with T.sblock("C"):
                    v0 = T.axis.spatial(8, io * 4 + ii)
                    v1 = T.axis.spatial(8, j)
                    C[v0, v1] = S[v0, v1]
)");
  ASSERT_TRUE(f);
  EXPECT_EQ(lowerDifference(f), "");
  auto planned = lowerUntil(f, "plan_allocations");
  ASSERT_TRUE(planned.has_value());
  bool insideReduction = false;
  walk((*planned)->body, [&](const NodeRef& n) {
    const auto* loop = n.as<ForNode>();
    if (loop && loop->var->name == "ko")
      walk(loop->body, [&](const NodeRef& x) { return insideReduction |= x.is<AllocNode>(), true; });
    return true;
  });
  EXPECT_FALSE(insideReduction) << print(*planned);
}

// What an iteration reads of the one before stays outside of the loop.
TEST(LowerText, CarriedValueStaysOutside) {
  PrimFunc f = parsed(R"(
@T.prim_func
def main(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (16,), "int32")
    C = T.match_buffer(c, (16,), "int32")
    with T.sblock("root"):
        S = T.sblock_alloc_buffer((17,), "int32")
        for t in range(16):
            with T.sblock("S"):
                v = T.axis.spatial(16, t)
                S[v + 1] = A[v]
            with T.sblock("C"):
                v = T.axis.spatial(16, t)
                C[v] = S[v + 1] + T.if_then_else(v > 0, S[v], 0)
)");
  ASSERT_TRUE(f);
  EXPECT_EQ(lowerDifference(f), "");
}

TEST(LowerText, SmallTypes) {
  for (const char* type : {"float16", "bfloat16", "int8", "uint8"}) {
    PrimFunc f = parsed(replaceAll(R"(
@T.prim_func
def main(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (19,), "TYPE")
    B = T.match_buffer(b, (19,), "TYPE")
    C = T.match_buffer(c, (19,), "TYPE")
    with T.sblock("root"):
        for o in range(5):
            for i in T.vectorized(4):
                with T.sblock("C"):
                    v = T.axis.spatial(19, o * 4 + i)
                    T.where(o * 4 + i < 19)
                    C[v] = T.max(A[v] * B[v] + A[v], B[v])
)",
                                   "TYPE", type));
    ASSERT_TRUE(f);
    EXPECT_EQ(lowerDifference(f), "") << type;
  }
}

TEST(LowerText, IntegerDivisionOfEverySign) {
  PrimFunc f = parsed(R"(
@T.prim_func
def main(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (40,), "int32")
    C = T.match_buffer(b, (40, 4), "int32")
    D = T.match_buffer(c, (40, 4), "int32")
    with T.sblock("root"):
        for i in range(40):
            with T.sblock("C"):
                v = T.axis.spatial(40, i)
                C[v, 0] = A[v] // 8
                C[v, 1] = A[v] // 10
                C[v, 2] = A[v] // -3
                C[v, 3] = (A[v] + 9) // 10
                D[v, 0] = A[v] % 8
                D[v, 1] = A[v] % 10
                D[v, 2] = A[v] % -3
                D[v, 3] = T.truncmod(A[v], 3)
)");
  ASSERT_TRUE(f);
  EXPECT_EQ(lowerDifference(f), "");
}

TEST(LowerText, VectorConditionsAndGathers) {
  PrimFunc f = parsed(R"(
@T.prim_func
def main(a: T.handle, i: T.handle, c: T.handle):
    A = T.match_buffer(a, (30,), "float32")
    I = T.match_buffer(i, (8,), "int32")
    C = T.match_buffer(c, (5, 8), "float32")
    with T.sblock("root"):
        for r in range(5):
            for j in T.vectorized(8):
                with T.sblock("C"):
                    v = T.axis.spatial(5, r)
                    w = T.axis.spatial(8, j)
                    C[v, w] = T.if_then_else(w * 3 - v >= 2 and w * 3 - v < 25, A[w * 3 - v - 2], T.float32(1)) + A[w // 3 + v] + T.if_then_else(v < 3, A[7 - w], A[v]) + T.Cast("float32", w) + A[T.max(I[w], 0)]
)");
  ASSERT_TRUE(f);
  EXPECT_EQ(lowerDifference(f), "");
}

// A condition that is the same for all lanes guards what the lanes share: with it false, no lane loads A[-2].
TEST(LowerText, UniformConditionBesideALaneCondition) {
  PrimFunc f = parsed(R"(
@T.prim_func
def main(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (10,), "float32")
    C = T.match_buffer(c, (5, 4), "float32")
    with T.sblock("root"):
        for r in range(5):
            for j in T.vectorized(4):
                with T.sblock("C"):
                    v, w = T.axis.remap("SS", [r, j])
                    C[v, w] = T.if_then_else(v >= 1 and w >= 1, A[v * 2 - 2], A[v * 2]) + T.if_then_else(v + w >= 7, A[v + 5], T.float32(2))
)");
  ASSERT_TRUE(f);
  EXPECT_EQ(lowerDifference(f), "");
}

TEST(LowerText, WorkspaceIsShared) {
  PrimFunc f = parsed(R"(
@T.prim_func
def main(a: T.handle, e: T.handle):
    A = T.match_buffer(a, (4096,), "float32")
    E = T.match_buffer(e, (4096,), "float32")
    with T.sblock("root"):
        B = T.sblock_alloc_buffer((4096,), "float32")
        C = T.sblock_alloc_buffer((4096,), "float32")
        D = T.sblock_alloc_buffer((4096,), "float32")
        for i in range(4096):
            with T.sblock("B"):
                v = T.axis.spatial(4096, i)
                B[v] = A[4095 - v]
        for i in range(4096):
            with T.sblock("C"):
                v = T.axis.spatial(4096, i)
                C[v] = B[4095 - v] + T.float32(1)
        for i in range(4096):
            with T.sblock("D"):
                v = T.axis.spatial(4096, i)
                D[v] = C[4095 - v] + T.float32(1)
        for i in range(4096):
            with T.sblock("E"):
                v = T.axis.spatial(4096, i)
                E[v] = D[4095 - v]
)");
  ASSERT_TRUE(f);
  EXPECT_EQ(lowerDifference(f), "");
  auto lowered = lowerUntil(f, "plan_workspace");
  ASSERT_TRUE(lowered.has_value());
  EXPECT_EQ(attrInt((*lowered)->attrs, "workspace_bytes"),
            2 * 4096 * 4); // three buffers, two alive at a time
}

} // namespace
} // namespace bevel
