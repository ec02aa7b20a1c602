// Small programs that lowering once changed, for the tests of lowering and of code generation.
#pragma once

#include "tests/loop/lowered_programs.h"

namespace bevel::test {

// Only the first iteration writes what all read.
inline const char* const kWrittenInOneIteration = R"(
@T.prim_func
def main(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    S = T.sblock_alloc_buffer((1,), "int32")
    for i in range(4):
        with T.sblock("W"):
            T.where(i == 0)
            S[0] = A[0]
        with T.sblock("R"):
            vi = T.axis.spatial(4, i)
            B[vi] = S[0] + vi
)";

// The second write of an iteration leaves an element of the one before.
inline const char* const kWrittenInPart = R"(
@T.prim_func
def main(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    S = T.sblock_alloc_buffer((2,), "int32")
    for i in range(4):
        for j in range(2):
            with T.sblock("W"):
                vi, vj = T.axis.remap("SS", [i, j])
                if vi == 0:
                    S[vj] = A[vj]
        for j in range(2):
            with T.sblock("W2"):
                vi, vj = T.axis.remap("SS", [i, j])
                if vj == vi % 2:
                    S[vj] = A[vi] + 100
        with T.sblock("R"):
            vi = T.axis.spatial(4, i)
            B[vi] = S[0] + S[1]
)";

// Every lane reads the value that it wrote itself to the one element of J.
inline const char* const kHandedOnByLanes = R"(
@T.prim_func
def main(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    J = T.sblock_alloc_buffer((1,), "int32")
    for i in T.vectorized(8):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            J[0] = 7 - vi
            B[vi] = A[J[0]]
    for i in T.vectorized(8):
        with T.sblock("C"):
            vi = T.axis.spatial(8, i)
            if vi % 2 == 0:
                J[0] = 1
            else:
                J[0] = 2
            C[vi] = J[0] + vi
)";

// The writes of an iteration leave every other element as it was.
inline const char* const kWrittenWithHoles = R"(
@T.prim_func
def main(A: T.Buffer((4,), "int32"), B: T.Buffer((4, 4), "int32")):
    S = T.sblock_alloc_buffer((4,), "int32")
    for i in range(4):
        for j in range(2):
            with T.sblock("W"):
                vi, vj = T.axis.remap("SS", [i, j])
                if vi == 0:
                    S[vj * 2 + 1] = A[vj]
                S[vj * 2] = A[vi]
        for j in range(4):
            with T.sblock("R"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = S[vj]
)";

// Each step reads what the step before, of another row, wrote.
inline const char* const kReadBeforeWritten = R"(
@T.prim_func
def main(A: T.Buffer((4,), "int32"), B: T.Buffer((3, 4), "int32")):
    S = T.sblock_alloc_buffer((4,), "int32")
    for j in range(4):
        with T.sblock("I"):
            vj = T.axis.spatial(4, j)
            S[vj] = A[vj]
    for i in range(3):
        for j in range(4):
            with T.sblock("W"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = S[3 - vj]
                S[vj] = A[vj] + vi
)";

// The first iteration writes, but for the first row only.
inline const char* const kFirstOfTriangle = R"(
@T.prim_func
def main(A: T.Buffer((4,), "int32"), B: T.Buffer((2, 4), "int32")):
    S = T.sblock_alloc_buffer((4,), "int32")
    for j in range(4):
        with T.sblock("I"):
            vj = T.axis.spatial(4, j)
            S[vj] = A[vj] * 10
    for i in range(2):
        for v in range(4):
            for w in range(v + 1):
                with T.sblock("W"):
                    vi, vv, vw = T.axis.remap("SSS", [i, v, w])
                    if vv == 0:
                        S[vw] = A[vw] + vi
                    B[vi, vw] = S[vw]
                    if vv == 3:
                        S[vw] = 7
)";

// The body writes what its condition reads.
inline const char* const kMaskOfWhatIsWritten = R"(
@T.prim_func
def main(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    for i in T.vectorized(8):
        with T.sblock("W"):
            vi = T.axis.spatial(8, i)
            if A[vi] > 0:
                A[vi] = -1
                B[vi] = 5
            else:
                A[vi] = 1
                C[vi] = 6
)";

// The condition no longer holds where it is asked again.
inline const char* const kConditionChanges = R"(
@T.prim_func
def main(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    for i in range(8):
        with T.sblock("W"):
            vi = T.axis.spatial(8, i)
            if A[vi] > 0:
                A[vi] = A[vi] - 2
                if A[vi] > 0:
                    B[vi] = 5
                else:
                    B[vi] = 6
)";

// Two shapes of one memory.
inline const char* const kTwoViews = R"(
@T.prim_func
def main(A: T.Buffer((T.int64(4), T.int64(4)), "int32"), C: T.Buffer((T.int64(16),), "int32")):
    A1 = T.decl_buffer((T.int64(2), T.int64(8)), "int32", data=A.data)
    for i in range(T.int64(16)):
        C[i] = A1[i // T.int64(8), i % T.int64(8)] + A[i // T.int64(4), i % T.int64(4)] * 100
)";
inline const char* const kTwoSmallViews = R"(
@T.prim_func
def main(A: T.Buffer((4, 4), "int32"), C: T.Buffer((16,), "int32")):
    A1 = T.decl_buffer((2, 8), "int32", data=A.data)
    for i in range(16):
        C[i] = A1[i // 8, i % 8] + A[i // 4, i % 4] * 100
)";
inline const char* const kViewOfAllocated = R"(
@T.prim_func
def main(A: T.Buffer((4, 4), "int32"), C: T.Buffer((16,), "int32")):
    with T.sblock("root"):
        B = T.sblock_alloc_buffer((4, 4), "int32")
        B1 = T.decl_buffer((16,), "int32", data=B.data)
        for i, j in T.grid(4, 4):
            with T.sblock("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]
        for i in range(16):
            with T.sblock("C"):
                vi = T.axis.spatial(16, i)
                C[vi] = B1[15 - vi]
)";
// In a loop, so that the memory could be one for each iteration; and of two types.
inline const char* const kViewOfAllocatedInLoop = R"(
@T.prim_func
def main(A: T.Buffer((3, 4), "int32"), C: T.Buffer((3, 4), "float32"), D: T.Buffer((3, 4), "int32")):
    for i in range(3):
        with T.sblock("row"):
            vi = T.axis.spatial(3, i)
            B = T.sblock_alloc_buffer((2, 2), "int32", scope="local")
            B1 = T.decl_buffer((4,), "float32", data=B.data, scope="local")
            for j in range(4):
                with T.sblock("B"):
                    vj = T.axis.spatial(4, j)
                    B[vj // 2, vj % 2] = A[vi, vj]
            for j in range(4):
                with T.sblock("D"):
                    vj = T.axis.spatial(4, j)
                    D[vi, vj] = B[1 - vj // 2, vj % 2]
            for j in range(4):
                with T.sblock("C"):
                    vj = T.axis.spatial(4, j)
                    B1[vj] = T.float32(2)
                    C[vi, vj] = B1[vj]
)";

// A size that is below zero for small n.
inline const char* const kNegativeSize = R"(
@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n,), "int32")
    C = T.match_buffer(c, (n,), "int32")
    B = T.sblock_alloc_buffer((n - 50,), "int32")
    D = T.sblock_alloc_buffer((n,), "int32")
    for i in range(n):
        with T.sblock("D"):
            vi = T.axis.spatial(n, i)
            D[vi] = A[vi] + 1
    for i in range(n - 50):
        with T.sblock("B"):
            vi = T.axis.spatial(n - 50, i)
            B[vi] = A[vi]
    for i in range(n - 50):
        with T.sblock("E"):
            vi = T.axis.spatial(n - 50, i)
            A[vi] = B[n - 51 - vi]
    for i in range(n):
        with T.sblock("C"):
            vi = T.axis.spatial(n, i)
            C[vi] = D[n - 1 - vi]
)";

// Arithmetic on loaded values wraps, also as an index.
inline const char* const kIndexWraps = R"(
@T.prim_func
def main(I: T.Buffer((1,), "int32"), A: T.Buffer((8,), "int32"), C: T.Buffer((2,), "int32")):
    for i in range(1):
        with T.sblock("W"):
            vi = T.axis.spatial(1, i)
            C[vi] = A[T.min(T.max((I[vi] + 65536) * 65536, 0), 7)]
            x: T.int32 = I[vi] + 65536
            C[vi + 1] = A[T.min(T.max(x * 65536, 0), 7)]
)";

// An axis is bound once, though the block writes where its value came from.
inline const char* const kAxisFromMemory = R"(
@T.prim_func
def main(I: T.Buffer((4,), "int32"), C: T.Buffer((16,), "int32")):
    for i in range(4):
        with T.sblock("W"):
            vi = T.axis.spatial(16, T.max(T.min(I[i], 3), 0) + i * 4)
            vj = T.axis.spatial(4, i)
            I[vj] = 2
            C[vi] = 7
)";

// The index is another element after the store to I.
inline const char* const kIndexFromMemory = R"(
@T.prim_func
def main(I: T.Buffer((4,), "int32"), A: T.Buffer((4,), "int32"), C: T.Buffer((4, 4), "int32")):
    for i in range(4):
        with T.sblock("W"):
            vi = T.axis.spatial(4, i)
            S = T.sblock_alloc_buffer((4,), "int32")
            for j in range(4):
                S[j] = A[j]
            S[T.max(T.min(I[0], 3), 0)] = 100
            I[0] = T.max(T.min(I[0], 2), 0) + 1
            S[T.max(T.min(I[0], 3), 0)] = 200
            for j in range(4):
                C[vi, j] = S[j]
)";

// Blocks in the body of a while loop, with memory of their own.
// The inner condition reads past the end where the outer one does not hold; the inner loop keeps the lanes apart.
inline const char* const kConditionUnderCondition = R"(
@T.prim_func
def main(A: T.Buffer((8,), "int32"), B: T.Buffer((4,), "float32"), C: T.Buffer((8,), "int32")):
    for i in T.vectorized(5):
        with T.sblock("B"):
            v = T.axis.spatial(4, i)
            T.where(i < 4)
            if v != 2 or A[(v + 1) % 4] > A[v * 2 + v % 2]:
                B[v] = T.float32(1)
                for j in range(4 - v):
                    C[v] = j
)";

inline const char* const kBlocksInWhile = R"(
@T.prim_func
def main(A: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32")):
    N = T.sblock_alloc_buffer((1,), "int32")
    N[0] = 0
    for j in range(4):
        C[j] = 0
    while N[0] < 4:
        N[0] = N[0] + 1
        with T.sblock("step"):
            S = T.sblock_alloc_buffer((4,), "int32")
            for j in range(4):
                with T.sblock("S"):
                    vj = T.axis.spatial(4, j)
                    S[vj] = A[3 - vj] + N[0]
            for j in range(4):
                with T.sblock("C"):
                    vj = T.axis.spatial(4, j)
                    C[vj] = C[vj] + S[3 - vj]
)";

inline std::vector<ScheduledProgram> loweringCases() {
  return {
      {"written_in_one_iteration", kWrittenInOneIteration},
      {"written_in_part", kWrittenInPart},
      {"written_with_holes", kWrittenWithHoles},
      {"handed_on_by_lanes", kHandedOnByLanes},
      {"read_before_written", kReadBeforeWritten},
      {"first_of_triangle", kFirstOfTriangle},
      {"mask_of_what_is_written", kMaskOfWhatIsWritten},
      {"condition_changes", kConditionChanges},
      {"two_views", kTwoViews},
      {"two_small_views", kTwoSmallViews},
      {"view_of_allocated", kViewOfAllocated},
      {"view_of_allocated_in_loop", kViewOfAllocatedInLoop},
      {"negative_size", kNegativeSize, {{{"n", 40}}, {{"n", 0}}, {{"n", 61}}, {{"n", 5}}}},
      {"index_wraps", kIndexWraps},
      {"axis_from_memory", kAxisFromMemory},
      {"index_from_memory", kIndexFromMemory},
      {"blocks_in_while", kBlocksInWhile},
      {"condition_under_condition", kConditionUnderCondition},
  };
}

} // namespace bevel::test
