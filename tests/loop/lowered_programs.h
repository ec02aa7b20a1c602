// Scheduled programs that every stage below schedules must get right: the tests of lowering run them through
// the interpreter after each pass, those of code generation through machine code.
#pragma once

#include "arith/analyzer.h"
#include "ir/parser.h"
#include "ir/structural.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace bevel::test {

using Dims = std::vector<std::pair<std::string, int64_t>>; // values of symbolic dimensions, by name

struct ScheduledProgram {
  std::string name, text;
  std::vector<Dims> runs = {{}};
};

/// The value of an expression over symbolic dimensions.
inline int64_t evaluate(const Expr& e, const Dims& dims) {
  VarMap values;
  walk(e, [&](const NodeRef& n) {
    const auto* v = n.as<VarNode>();
    for (const auto& [name, value] : dims)
      if (v && v->name == name) values[Var(v)] = constant(v->dtype, value);
    return true;
  });
  return asConst(Analyzer().simplify(substitute(e, values))).value_or(-1);
}

/// Tensors for the parameters: small integers from a fixed sequence, so that float arithmetic is exact
/// whatever its order.
inline std::vector<Ref<TensorObject>> makeArguments(const PrimFunc& f, const Dims& dims = {}) {
  std::vector<Ref<TensorObject>> out;
  uint64_t state = 12345;
  for (const Buffer& b : f->buffers) {
    if (!b) continue;
    std::vector<int64_t> shape;
    for (const Expr& d : b->shape) shape.push_back(evaluate(d, dims));
    auto t = TensorObject::zeros(b->dtype, shape);
    for (int64_t i = 0; i < t->size(); ++i) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      int64_t value = int64_t(state >> 60) - 4;
      if (b->dtype.isFloat())
        t->setDouble(i, double(value));
      else
        t->setInt(i, value);
    }
    out.push_back(t);
  }
  return out;
}

inline PrimFunc parsed(const std::string& text) {
  auto node = parseFunction(text);
  EXPECT_TRUE(node.has_value()) << (node ? "" : node.error().str());
  return node ? cast<PrimFuncNode>(*node) : PrimFunc();
}

inline std::string replaceAll(std::string s, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = s.find(from, at)) != std::string::npos; at += to.size())
    s.replace(at, from.size(), to);
  return s;
}

/// C[m, n] = A[m, 10] * B, register tiles of six rows by two vectors of eight, with tails in both directions.
inline std::string microKernel(const std::string& m, int n) {
  std::string text = R"(
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
  int blocks = (n + 15) / 16;
  text = replaceAll(text, "NB", std::to_string(blocks));
  text = replaceAll(text, "NP", std::to_string(blocks * 16));
  text = replaceAll(text, "N)", std::to_string(n) + ")");
  text = replaceAll(text, "(N,", "(" + std::to_string(n) + ",");
  text = replaceAll(text, "< N", "< " + std::to_string(n));
  return replaceAll(replaceAll(text, "(M", "(" + m), "< M", "< " + m);
}

inline std::string vectorsOf(const std::string& type) {
  return replaceAll(R"(
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
                    "TYPE", type);
}

// Three elementwise stages in tiles of a symbolic length.
inline const char* const kChain = R"(
@T.prim_func
def main(a: T.handle, b: T.handle, e: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    E = T.match_buffer(e, (n,), "float32")
    with T.sblock("root"):
        C = T.sblock_alloc_buffer((n,), "float32")
        D = T.sblock_alloc_buffer((n,), "float32")
        for o in T.parallel((n + 31) // 32):
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

// The initialisation of a reduction is guarded in the tail like its update.
inline const char* const kReductionInTail = R"(
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
)";

// The outer reduction loop lies between spatial loops; the accumulator must outlive it.
inline const char* const kReductionBetween = R"(
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
)";

// An iteration reads what the one before has written.
inline const char* const kCarriedValue = R"(
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
)";

// Division and remainder of every sign.
inline const char* const kDivision = R"(
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
                D[v, 3] = T.truncmod(A[v], 3) + T.truncdiv(A[v], 3)
)";

// Conditions on lanes, and loads that are no vector of neighbours.
inline const char* const kConditionsAndGathers = R"(
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
)";

// A condition that is the same for all lanes guards what the lanes share: with it false, no lane loads A[-2].
inline const char* const kUniformCondition = R"(
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
)";

// Three buffers of which two are alive at a time.
inline const char* const kThreeBuffers = R"(
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
)";

// A buffer for each iteration of a parallel loop, too large for the stack.
inline const char* const kPrivateBuffer = R"(
@T.prim_func
def main(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (7, 1000), "int32")
    C = T.match_buffer(c, (7, 1000), "int32")
    with T.sblock("root"):
        S = T.sblock_alloc_buffer((7, 1000), "int32")
        for o in T.parallel(7):
            for i in range(1000):
                with T.sblock("S"):
                    u = T.axis.spatial(7, o)
                    v = T.axis.spatial(1000, i)
                    S[u, v] = A[u, 999 - v] * 3
            for i in range(1000):
                with T.sblock("C"):
                    u = T.axis.spatial(7, o)
                    v = T.axis.spatial(1000, i)
                    C[u, v] = S[u, 999 - v] + S[u, v]
)";

// Sums of tens with a tail: the number of sums is rounded up from a 32-bit length.
inline const char* const kCeilDivision = R"(
@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "int32")
    C = T.match_buffer(c, ((n + 9) // 10,), "int32")
    with T.sblock("root"):
        for o, i in T.grid((n + 9) // 10, 10):
            with T.sblock("C"):
                v = T.axis.spatial((n + 9) // 10, o)
                r = T.axis.reduce(10, i)
                T.where(o * 10 + i < n)
                with T.init():
                    C[v] = 0
                C[v] = C[v] + A[v * 10 + r]
)";

inline std::vector<ScheduledProgram> writtenPrograms() {
  return {
      {"ceil_division", kCeilDivision, {{{"n", 0}}, {{"n", 1}}, {{"n", 10}}, {{"n", 24}}}},
      {"chain", kChain, {{{"n", 0}}, {{"n", 1}}, {{"n", 7}}, {{"n", 32}}, {{"n", 1000}}, {{"n", 1024}}}},
      {"reduction_in_tail", kReductionInTail},
      {"reduction_between", kReductionBetween},
      {"carried_value", kCarriedValue},
      {"division", kDivision},
      {"conditions_and_gathers", kConditionsAndGathers},
      {"uniform_condition", kUniformCondition},
      {"three_buffers", kThreeBuffers},
      {"private_buffer", kPrivateBuffer},
  };
}

inline std::vector<ScheduledProgram> scheduledPrograms() {
  std::vector<ScheduledProgram> out = writtenPrograms();
  for (int n : {16, 17, 30}) {
    std::string name = "micro_kernel_" + std::to_string(n);
    for (int m : {1, 7}) out.push_back({name + "_" + std::to_string(m), microKernel(std::to_string(m), n)});
    out.push_back(
        {name, microKernel("m", n), {{{"m", 0}}, {{"m", 1}}, {{"m", 6}}, {{"m", 13}}, {{"m", 61}}}});
  }
  for (const char* type : {"float16", "bfloat16", "int8", "uint8", "int64", "float64"})
    out.push_back({std::string("vectors_of_") + type, vectorsOf(type)});
  return out;
}

inline ScheduledProgram scheduledProgram(const std::string& name) {
  for (const ScheduledProgram& p : scheduledPrograms())
    if (p.name == name) return p;
  ADD_FAILURE() << "no program is called " << name;
  return {};
}

} // namespace bevel::test
