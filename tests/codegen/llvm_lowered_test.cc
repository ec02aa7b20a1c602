// Scheduled programs through lowering and machine code against the reference interpreter, on one and on three
// threads.
#include "llvm_support.h"

#include "arith/analyzer.h"
#include "ir/parser.h"
#include "ir/printer.h"
#include "ir/structural.h"
#include "loop/interpreter.h"
#include "loop/kernel_signature.h"
#include "loop/lower.h"

#include <cstring>

using namespace bevel;
using namespace bevel::test;

namespace {

using Dims = std::vector<std::pair<std::string, int64_t>>;

int64_t evaluate(const Expr& e, const Dims& dims) {
  VarMap values;
  walk(e, [&](const NodeRef& n) {
    const auto* v = n.as<VarNode>();
    for (const auto& [name, value] : dims)
      if (v && v->name == name) values[Var(v)] = constant(v->dtype, value);
    return true;
  });
  return asConst(Analyzer().simplify(substitute(e, values))).value_or(-1);
}

/// Small integers for every buffer, so that float arithmetic is exact whatever its order.
std::vector<Ref<TensorObject>> makeTensors(const PrimFunc& f, const Dims& dims) {
  std::vector<Ref<TensorObject>> out;
  uint64_t state = 99;
  for (const Buffer& b : f->buffers) {
    std::vector<int64_t> shape;
    for (const Expr& d : b->shape) shape.push_back(evaluate(d, dims));
    out.push_back(TensorObject::zeros(b->dtype, shape));
    for (int64_t i = 0; i < out.back()->size(); ++i) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      int64_t value = int64_t(state >> 60) - 4;
      if (b->dtype.isFloat())
        out.back()->setDouble(i, double(value));
      else
        out.back()->setInt(i, value);
    }
  }
  return out;
}

/// "" when machine code and interpreter agree on every parameter, else what differs.
std::string jitDifference(const PrimFunc& f, const Dims& dims = {}, const char* target = "host") {
  auto expected = makeTensors(f, dims);
  if (auto status = interpret(f, expected); !status) return "interpreter: " + status.error().str();
  Target machine = *Target::parse(target);
  auto lowered = lower(f, machine);
  if (!lowered) return "lower: " + lowered.error().str();
  CompileOptions options;
  options.useCache = false;
  KernelSource source{"kernel", *lowered};
  auto module = compileJit(std::span(&source, 1), machine, options);
  if (!module) return module.error().str() + "\n" + print(*lowered);
  std::vector<int64_t> dimValues;
  for (const Var& v : kernelDims(*lowered)) dimValues.push_back(evaluate(v, dims));
  for (int threads : {1, 3}) {
    auto actual = makeTensors(f, dims);
    std::vector<void*> pointers;
    for (auto& t : actual) pointers.push_back(t->mutableBytes());
    int64_t bytes = evaluate(workspaceBytes(*lowered), dims) +
                    threads * evaluate(workspacePerThreadBytes(*lowered), dims);
    auto workspace = TensorObject::zeros(DType::UInt(8), {std::max<int64_t>(bytes, 1)});
    std::memset(workspace->mutableBytes(), 0x7f, size_t(bytes));
    Context ctx(threads);
    if (int32_t status = ctx.run((*module)->kernel("kernel"), pointers, dimValues, workspace->mutableBytes()))
      return "status " + std::to_string(status) + ": " + ctx.message;
    for (size_t i = 0; i < actual.size(); ++i)
      if (!identical(*actual[i], *expected[i]))
        return "parameter " + std::to_string(i) + " differs on " + std::to_string(threads) + " threads\n" +
               print(*lowered);
  }
  return "";
}

std::string replaceAll(std::string s, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = s.find(from, at)) != std::string::npos; at += to.size())
    s.replace(at, from.size(), to);
  return s;
}

PrimFunc parsed(const std::string& text) {
  auto node = parseFunction(text);
  EXPECT_TRUE(node.has_value()) << (node ? "" : node.error().str());
  return node ? cast<PrimFuncNode>(*node) : PrimFunc();
}

// C[M, 30] = A[M, 10] * B, six rows by two vectors of eight, tails in both directions.
const char* kMicroKernel = R"(
@T.prim_func
def main(a: T.handle, b: T.handle, c: T.handle):
    m = T.int64()
    A = T.match_buffer(a, (m, 10), "float32")
    B = T.match_buffer(b, (2, 10, 16), "float32")
    C = T.match_buffer(c, (m, 30), "float32")
    with T.sblock("root"):
        acc = T.sblock_alloc_buffer((m, 32), "float32", scope="register")
        for io in T.parallel((m + 5) // 6):
            for jo in range(2):
                for ii in T.unroll(6):
                    for ji in T.vectorized(16):
                        with T.sblock("init"):
                            i = T.axis.spatial(m, io * 6 + ii)
                            j = T.axis.spatial(32, jo * 16 + ji)
                            T.where(io * 6 + ii < m and jo * 16 + ji < 30)
                            acc[i, j] = T.float32(0)
                for k in range(10):
                    for ii in T.unroll(6):
                        for ji in T.vectorized(16):
                            with T.sblock("update"):
                                i = T.axis.spatial(m, io * 6 + ii)
                                j = T.axis.spatial(32, jo * 16 + ji)
                                r = T.axis.reduce(10, k)
                                T.where(io * 6 + ii < m and jo * 16 + ji < 30)
                                acc[i, j] = acc[i, j] + A[i, r] * B[j // 16, r, j % 16]
                for ii in T.unroll(6):
                    for ji in T.vectorized(16):
                        with T.sblock("write"):
                            i = T.axis.spatial(m, io * 6 + ii)
                            j = T.axis.spatial(30, jo * 16 + ji)
                            T.where(io * 6 + ii < m and jo * 16 + ji < 30)
                            C[i, j] = acc[i, j]
)";

} // namespace

TEST(LlvmLowered, MicroKernelWithTails) {
  PrimFunc f = parsed(kMicroKernel);
  ASSERT_TRUE(f);
  for (int64_t m : {0, 1, 6, 13, 61}) EXPECT_EQ(jitDifference(f, {{"m", m}}), "") << m;
}

TEST(LlvmLowered, ChainInTilesOfSymbolicLength) {
  PrimFunc f = parsed(R"(
@T.prim_func
def main(a: T.handle, b: T.handle, e: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    E = T.match_buffer(e, (n,), "float32")
    with T.sblock("root"):
        C = T.sblock_alloc_buffer((n,), "float32")
        for o in T.parallel((n + 31) // 32):
            for c in range(32):
                with T.sblock("C"):
                    i = T.axis.spatial(n, o * 32 + c)
                    T.where(o * 32 + c < n)
                    C[i] = A[i] + B[i]
            for x in T.vectorized(32):
                with T.sblock("E"):
                    i = T.axis.spatial(n, o * 32 + x)
                    T.where(o * 32 + x < n)
                    E[i] = T.max(C[i] * A[i], T.float32(0))
)");
  ASSERT_TRUE(f);
  for (int64_t n : {0, 1, 31, 32, 100, 1024}) EXPECT_EQ(jitDifference(f, {{"n", n}}), "") << n;
  EXPECT_EQ(jitDifference(f, {{"n", 77}}, "x86-64"), "");
}

TEST(LlvmLowered, PerThreadWorkspace) {
  PrimFunc f = parsed(R"(
@T.prim_func
def main(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (7, 40000), "int32")
    C = T.match_buffer(c, (7, 40000), "int32")
    with T.sblock("root"):
        S = T.sblock_alloc_buffer((7, 40000), "int32")
        for o in T.parallel(7):
            for i in range(40000):
                with T.sblock("S"):
                    u = T.axis.spatial(7, o)
                    v = T.axis.spatial(40000, i)
                    S[u, v] = A[u, 39999 - v] * 3
            for i in range(40000):
                with T.sblock("C"):
                    u = T.axis.spatial(7, o)
                    v = T.axis.spatial(40000, i)
                    C[u, v] = S[u, 39999 - v] + S[u, v]
)");
  ASSERT_TRUE(f);
  EXPECT_EQ(jitDifference(f), "");
}

TEST(LlvmLowered, SmallTypes) {
  for (const char* type : {"float16", "bfloat16", "int8", "uint8", "int64", "float64"}) {
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
    EXPECT_EQ(jitDifference(f), "") << type;
    EXPECT_EQ(jitDifference(f, {}, "x86-64-v2"), "") << type;
  }
}

TEST(LlvmLowered, DivisionConditionsAndGathers) {
  PrimFunc f = parsed(R"(
@T.prim_func
def main(a: T.handle, i: T.handle, c: T.handle, d: T.handle):
    A = T.match_buffer(a, (30,), "float32")
    I = T.match_buffer(i, (8,), "int32")
    C = T.match_buffer(c, (5, 8), "float32")
    D = T.match_buffer(d, (8, 6), "int32")
    with T.sblock("root"):
        for r in range(5):
            for j in T.vectorized(8):
                with T.sblock("C"):
                    v = T.axis.spatial(5, r)
                    w = T.axis.spatial(8, j)
                    C[v, w] = T.if_then_else(w * 3 - v >= 2 and w * 3 - v < 25, A[w * 3 - v - 2], T.float32(1)) + A[w // 3 + v] + T.if_then_else(v < 3, A[7 - w], A[v]) + T.Cast("float32", w) + A[T.max(I[w], 0)]
        for j in range(8):
            with T.sblock("D"):
                w = T.axis.spatial(8, j)
                D[w, 0] = I[w] // 8
                D[w, 1] = I[w] // -3
                D[w, 2] = I[w] % 10
                D[w, 3] = I[w] % -3
                D[w, 4] = T.truncmod(I[w], 3)
                D[w, 5] = T.truncdiv(I[w], 3)
)");
  ASSERT_TRUE(f);
  EXPECT_EQ(jitDifference(f), "");
}
