// Single passes and small behaviours: views, pragmas, sub-byte types, guards, bounds, the kernel's signature.
#include "arith/analyzer.h"
#include "ir/build.h"
#include "ir/parser.h"
#include "ir/printer.h"
#include "ir/structural.h"
#include "loop/block_scope.h"
#include "loop/dependence.h"
#include "loop/index_bounds.h"
#include "loop/kernel_signature.h"
#include "loop/lower.h"
#include "loop/passes/passes.h"
#include "loop/te.h"
#include "target/target.h"
#include "tests/loop/lower_support.h"
#include "tests/loop/lowered_programs.h"

#include <gtest/gtest.h>

namespace bevel {
namespace {

using test::lowerDifference;

PrimFunc parsed(const std::string& text) {
  auto node = parseFunction(text);
  EXPECT_TRUE(node.has_value()) << (node ? "" : node.error().str());
  return node ? cast<PrimFuncNode>(*node) : PrimFunc();
}

template <class T> int count(const NodeRef& root) {
  int n = 0;
  walk(root, [&](const NodeRef& x) {
    n += x.is<T>();
    return true;
  });
  return n;
}

For findLoop(const PrimFunc& f, const std::string& name) {
  For found;
  walk(f->body, [&](const NodeRef& n) {
    if (const auto* l = n.as<ForNode>(); l && l->var->name == name) found = For(l);
    return true;
  });
  return found;
}

TEST(LowerPass, EmptyReductionGivesTheIdentity) {
  te::Tensor a = te::placeholder({intImm(3), intImm(0)}, kFloat32, "A");
  IterVar r = te::reduceAxis(intImm(0), "k");
  te::Tensor c =
      te::compute({intImm(3)}, "C", [&](const Array<Var>& i) { return te::sum(a({i[0], r->var}), {r}); });
  auto lowered = lower(te::createPrimFunc({a, c}), Target::host());
  ASSERT_TRUE(lowered.has_value());
  auto out = test::runCopy(*lowered, test::makeArguments(*lowered));
  ASSERT_TRUE(out.has_value()) << out.error().str();
  for (int i = 0; i < 3; ++i) EXPECT_EQ((*out)[1]->asDouble(i), 0);
}

TEST(LowerPass, MatchBufferView) {
  PrimFunc f = parsed(R"(
@T.prim_func
def main(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (16, 8), "float32")
    C = T.match_buffer(c, (16, 8), "float32")
    with T.sblock("root"):
        for i in range(4):
            with T.sblock("tile"):
                v = T.axis.spatial(4, i)
                T.reads(A[v * 4:v * 4 + 4, 0:8])
                T.writes(C[v * 4:v * 4 + 4, 0:8])
                s = T.int64()
                o = T.int64()
                X = T.match_buffer(A[v * 4:v * 4 + 4, 0:8], (4, 8), "float32", strides=[s, 1], elem_offset=o)
                Y = T.match_buffer(C[v * 4:v * 4 + 4, 0:8], (4, 8), "float32")
                for x, y in T.grid(4, 8):
                    Y[x, y] = X[x, 7 - y] + T.Cast("float32", s)
)");
  ASSERT_TRUE(f);
  auto out = lowerMatchBuffer(f, Target::host());
  ASSERT_TRUE(out.has_value()) << out.error().str();
  EXPECT_EQ(count<MatchBufferNode>((*out)->body), 0);
  auto lowered = lower(f, Target::host());
  ASSERT_TRUE(lowered.has_value());
  auto arguments = test::makeArguments(f);
  auto result = test::runCopy(*lowered, arguments);
  ASSERT_TRUE(result.has_value()) << result.error().str();
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 8; ++j)
      EXPECT_EQ((*result)[1]->asDouble(i * 8 + j), arguments[0]->asDouble(i * 8 + 7 - j) + 8);
}

TEST(LowerPass, AutoUnrollPragma) {
  PrimFunc f = parsed(R"(
@T.prim_func
def main(a: T.handle):
    A = T.match_buffer(a, (8, 4, 100), "int32")
    with T.sblock("root"):
        for i in T.serial(8, annotations={"pragma_auto_unroll_max_step": 16}):
            for j in range(4):
                for k in range(100):
                    with T.sblock("A"):
                        x, y, z = T.axis.remap("SSS", [i, j, k])
                        A[x, y, z] = x + y
            for j in range(4):
                with T.sblock("B"):
                    x, y = T.axis.remap("SS", [i, j])
                    A[x, y, 0] = x * y
)");
  ASSERT_TRUE(f);
  EXPECT_EQ(lowerDifference(f), "");
  auto lowered = lower(f, Target::host());
  ASSERT_TRUE(lowered.has_value());
  EXPECT_TRUE(findLoop(*lowered, "i"));
  EXPECT_TRUE(findLoop(*lowered, "k"));
}

TEST(LowerPass, SubByteParameters) {
  for (const char* type : {"int4", "uint4"}) {
    std::string text = R"(
@T.prim_func
def main(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (13,), "TYPE")
    B = T.match_buffer(b, (13,), "TYPE")
    C = T.match_buffer(c, (13,), "int32")
    with T.sblock("root"):
        for i in range(13):
            with T.sblock("B"):
                v = T.axis.spatial(13, i)
                B[v] = A[12 - v] + A[v]
        for i in range(13):
            with T.sblock("C"):
                v = T.axis.spatial(13, i)
                C[v] = T.Cast("int32", B[v]) * 3
)";
    text.replace(text.find("TYPE"), 4, type);
    text.replace(text.find("TYPE"), 4, type);
    PrimFunc f = parsed(text);
    ASSERT_TRUE(f);
    EXPECT_EQ(lowerDifference(f), "") << type;
  }
}

TEST(LowerPass, LargeBuffersHaveWideIndices) {
  PrimFunc f = parsed(R"(
@T.prim_func
def main(a: T.handle):
    A = T.match_buffer(a, (65536, 65536), "int8")
    with T.sblock("root"):
        for i in range(65536):
            with T.sblock("A"):
                v = T.axis.spatial(65536, i)
                A[v, v] = T.int8(1)
)");
  ASSERT_TRUE(f);
  auto lowered = lower(f, Target::host());
  ASSERT_TRUE(lowered.has_value()) << lowered.error().str();
  EXPECT_EQ(test::flatFormFaults(*lowered), "");
}

TEST(LowerPass, RegisterBufferMustHaveConstantSlots) {
  PrimFunc f = parsed(R"(
@T.prim_func
def main(a: T.handle, n: T.int64):
    A = T.match_buffer(a, (64,), "float32")
    with T.sblock("root"):
        R = T.sblock_alloc_buffer((64,), "float32", scope="register")
        for i in range(64):
            with T.sblock("R"):
                v = T.axis.opaque(64, i)
                R[(v * n) % 64] = A[v]
        for i in range(64):
            with T.sblock("A"):
                v = T.axis.opaque(64, i)
                A[v] = R[63 - v]
)");
  ASSERT_TRUE(f);
  auto lowered = lower(f, Target::host());
  ASSERT_FALSE(lowered.has_value());
  EXPECT_NE(lowered.error().message.find("register buffer \"R\""), std::string::npos)
      << lowered.error().str();
}

TEST(LowerPass, ThreadBindingIsRefused) {
  PrimFunc f = parsed(R"(
@T.prim_func
def main(a: T.handle):
    A = T.match_buffer(a, (64,), "float32")
    with T.sblock("root"):
        for i in T.thread_binding(64, thread="threadIdx.x"):
            with T.sblock("A"):
                v = T.axis.spatial(64, i)
                A[v] = T.float32(1)
)");
  ASSERT_TRUE(f);
  auto lowered = lower(f, Target::host());
  ASSERT_FALSE(lowered.has_value());
  EXPECT_EQ(lowered.error().code, ErrorCode::kUnsupported);
}

TEST(LowerPass, ViewsOfAllocatedNibblesByAnotherTypeAreRefused) {
  PrimFunc f = parsed(R"(
@T.prim_func
def main(A: T.Buffer((8,), "int4"), C: T.Buffer((4,), "uint8")):
    with T.sblock("root"):
        S = T.sblock_alloc_buffer((8,), "int4")
        V = T.decl_buffer((4,), "uint8", data=S.data)
        for i in range(8):
            S[i] = A[i]
        for i in range(4):
            C[i] = V[i]
)");
  ASSERT_TRUE(f);
  auto lowered = lower(f, Target::host());
  ASSERT_FALSE(lowered.has_value());
  EXPECT_EQ(lowered.error().code, ErrorCode::kUnsupported) << lowered.error().str();
  EXPECT_NE(lowered.error().message.find("buffer 'V'"), std::string::npos) << lowered.error().str();
}

TEST(LowerPass, WorkspacePerThread) {
  PrimFunc f = parsed(R"(
@T.prim_func
def main(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (8, 1000), "float32")
    C = T.match_buffer(c, (8, 1000), "float32")
    with T.sblock("root"):
        T1 = T.sblock_alloc_buffer((8, 1000), "float32")
        for i in T.parallel(8):
            for j in range(1000):
                with T.sblock("T"):
                    x, y = T.axis.remap("SS", [i, j])
                    T1[x, y] = A[x, y] * T.float32(2)
            for j in range(1000):
                with T.sblock("C"):
                    x, y = T.axis.remap("SS", [i, j])
                    C[x, y] = T1[x, 999 - y]
)");
  ASSERT_TRUE(f);
  EXPECT_EQ(lowerDifference(f), "");
  auto lowered = lower(f, Target::host());
  ASSERT_TRUE(lowered.has_value());
  EXPECT_TRUE(isConst(workspaceBytes(*lowered), 0));
  EXPECT_TRUE(isConst(workspacePerThreadBytes(*lowered), 4032)) << print(*lowered);
}

TEST(LowerPass, KernelSignature) {
  PrimFunc f = parsed(R"(
@T.prim_func
def main(a: T.handle, k: T.int64, c: T.handle):
    n = T.int64()
    m = T.int64()
    A = T.match_buffer(a, (m, k, n), "float32")
    C = T.match_buffer(c, (n,), "float32")
    with T.sblock("root"):
        for i in range(n):
            with T.sblock("C"):
                v = T.axis.spatial(n, i)
                C[v] = T.float32(0)
)");
  ASSERT_TRUE(f);
  auto check = [](const PrimFunc& g) {
    std::string names;
    for (const Var& v : kernelDims(g)) names += v->name + " ";
    EXPECT_EQ(names, "m n k ");
    EXPECT_EQ(kernelBuffers(g), (std::vector<size_t>{0, 2}));
    EXPECT_EQ(kernelOutputs(g), (std::vector<size_t>{2}));
  };
  check(f);
  auto lowered = lower(f, Target::host());
  ASSERT_TRUE(lowered.has_value());
  check(*lowered);
}

TEST(Bounds, ProvedOrReported) {
  const char* text = R"(
@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n,), "float32")
    C = T.match_buffer(c, (n,), "float32")
    with T.sblock("root"):
        for o, i in T.grid((n + 7) // 8, 8):
            with T.sblock("C"):
                v = T.axis.spatial(n, o * 8 + i)
                T.where(o * 8 + i < n)
                C[v] = A[v]
)";
  PrimFunc f = parsed(text);
  ASSERT_TRUE(f);
  EXPECT_TRUE(verifyBounds(f).has_value());
  auto dissolved = lower(f, Target::host(), {.stopAfter = "convert_blocks"});
  ASSERT_TRUE(dissolved.has_value());
  EXPECT_TRUE(verifyBounds(*dissolved).has_value());
  std::string broken = text;
  broken.replace(broken.find("A[v]"), 4, "A[v + 1]");
  Status status = verifyBounds(parsed(broken));
  ASSERT_FALSE(status.has_value());
  EXPECT_NE(status.error().message.find("\"A\""), std::string::npos) << status.error().message;
}

TEST(Bounds, MaskedLanes) {
  const std::string text = R"(
@T.prim_func
def main(A: T.Buffer((50,), "float32"), B: T.Buffer((50,), "float32")):
    for i in range(4):
        B.vstore([T.Ramp(i * 16, 1, 16)], T.Broadcast(T.float32(1), 16), predicate=MASK)
)";
  auto with = [&](const std::string& mask) {
    std::string program = text;
    return verifyBounds(parsed(program.replace(program.find("MASK"), 4, mask)));
  };
  EXPECT_TRUE(with("T.Ramp(i * 16, 1, 16) < T.Broadcast(50, 16)"));
  EXPECT_TRUE(with("T.Ramp(0, 1, 16) < T.Broadcast(2, 16)"));
  EXPECT_FALSE(with("T.Ramp(i * 16, 1, 16) < T.Broadcast(51, 16)"));
  EXPECT_FALSE(with("T.Ramp(0, 1, 16) < T.Broadcast(3, 16)"));
}

TEST(Bounds, RegionsOfViews) {
  auto with = [](const std::string& where) {
    return verifyBounds(parsed(R"(
@T.prim_func
def main(B: T.Buffer((100,), "float32"), I: T.Buffer((10,), "int32")):
    for i in range(10):
        with T.sblock("V"):
            vi = T.axis.spatial(10, i)
            T.reads(I[vi])
            T.writes(B[0:100])
            V = T.match_buffer(B[)" +
                               where + ":" + where + R"( + 10], (10,), "float32", offset_factor=1)
            V[0] = T.float32(1)
)"));
  };
  EXPECT_TRUE(with("vi * 10"));
  EXPECT_TRUE(with("T.max(T.min(I[vi], 90), 0)"));
  EXPECT_FALSE(with("I[vi]"));
  EXPECT_FALSE(with("T.max(T.min(I[vi], 91), 0)"));
}

TEST(Dependence, Loops) {
  auto check = [](const std::string& store, bool free) {
    PrimFunc f = parsed(R"(
@T.prim_func
def main(a: T.handle, b: T.handle):
    A = T.match_buffer(a, (64,), "int32")
    B = T.match_buffer(b, (64,), "int32")
    for i in range(16):
        for j in range(2):
            )" + store + "\n");
    ASSERT_TRUE(f);
    For loop = findLoop(f, "i");
    EXPECT_EQ(checkIndependent(AccessModel(loop), loop).has_value(), free) << store;
  };
  check("A[i * 2 + j] = B[i]", true);
  check("A[i * 2 + j] = A[i * 2 + j] + 1", true);
  check("A[i + j] = B[i]", false);
  check("A[i // 2] = B[i]", false);
  check("A[j] = B[i]", false);
  check("A[i + 1] = A[i]", false);
  check("A[i % 8 * 2 + i // 8 + j * 16] = B[i]", true);
  check("A[B[i]] = j", false);
  check("T.evaluate(T.call_extern(\"int32\", \"f\", A[i]))", false);
}

TEST(Dependence, BlockKinds) {
  te::Tensor a = te::placeholder({intImm(4), intImm(5)}, kFloat32, "A");
  IterVar r = te::reduceAxis(intImm(5), "k");
  te::Tensor c =
      te::compute({intImm(4)}, "C", [&](const Array<Var>& i) { return te::sum(a({i[0], r->var}), {r}); });
  te::Tensor d = te::compute({intImm(4)}, "D",
                             [&](const Array<Var>& i) { return c({i[0]}) + constantFloat(kFloat32, 1); });
  PrimFunc f = te::createPrimFunc({a, d});
  ScopeInfo scope(cast<BlockRealizeNode>(f->body));
  ASSERT_EQ(scope.blocks.size(), 2u);
  EXPECT_TRUE(checkReductionBlock(scope, 0).has_value());
  EXPECT_FALSE(checkCompleteBlock(scope, 0).has_value());
  EXPECT_TRUE(checkCompleteBlock(scope, 1).has_value());
  EXPECT_EQ(scope.producers(1), std::vector<int>{0});
  EXPECT_EQ(scope.consumers(0), std::vector<int>{1});
}

TEST(Regions, RelaxedOverInnerLoops) {
  PrimFunc f = parsed(R"(
@T.prim_func
def main(a: T.handle, b: T.handle):
    A = T.match_buffer(a, (100, 40), "float32")
    B = T.match_buffer(b, (100,), "float32")
    for o in range(4):
        for i in range(32):
            for k in range(40):
                if o * 32 + i < 100:
                    B[o * 32 + i] = B[o * 32 + i] + A[o * 32 + i, k]
)");
  ASSERT_TRUE(f);
  Analyzer analyzer;
  Regions r = accessedRegions(findLoop(f, "o"), analyzer);
  ASSERT_EQ(r.reads.size(), 2u);
  EXPECT_EQ(print(r.writes[0]), "B[0:100]\n");
  EXPECT_EQ(print(r.reads[1]), "A[0:100, 0:40]\n");
  For inner = findLoop(f, "i");
  Regions tile = accessedRegions(inner, analyzer);
  EXPECT_TRUE(isConst(tile.reads[1]->region[1]->extent, 40));
}

} // namespace
} // namespace bevel
