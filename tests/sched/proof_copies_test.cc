// Copies into caches, and statements outside of blocks: small programs on which an unproved step changed
// the results.
#include "tests/sched/support.h"

namespace bevel::testing {
namespace {

// A step on the blocks B and C, with i the loop of C.
std::string fromBToC(const std::string& step) {
  return "b = sch.get_sblock(\"B\")\nc = sch.get_sblock(\"C\")\ni, = sch.get_loops(c)\n" + step + "\n";
}

// What comes after the last consumer is passed by nothing.
TEST(ProvedCopies, CacheReadBeforeACall) {
  auto parsed = parseFunction(R"(@T.prim_func
def main(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    for i in range(8):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
    with T.sblock("F"):
        T.evaluate(T.call_extern("int32", "refill"))
)");
  ASSERT_OK(parsed);
  Schedule sch = scheduleOf(cast<PrimFuncNode>(*parsed));
  EXPECT_OK(runScript(sch, "b = sch.get_sblock(\"B\")\nsch.cache_read(b, 0, \"local\")\n"));
}

// A copy inside of threads belongs to its iteration.
TEST(ProvedCopies, CacheReadUnderThreads) {
  constexpr const char* rows = R"(@T.prim_func
def main(A: T.Buffer((4, 8), "int32"), C: T.Buffer((4, 8), "int32")):
    B = T.sblock_alloc_buffer((4, 8), "int32")
    for i in range(4):
        for j in range(8):
            with T.sblock("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]
        for j in range(8):
            with T.sblock("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, 7 - vj]
)";
  Status done = scheduled(rows, R"(c = sch.get_sblock("C")
i, j = sch.get_loops(c)
sch.parallel(i)
sch.cache_read(c, 0, "local")
)");
  EXPECT_TRUE(done) << done.error().str();
  Status scratch = scheduled(R"(@T.prim_func
def main(A: T.Buffer((4, 8), "int32"), C: T.Buffer((4,), "int32")):
    B = T.sblock_alloc_buffer((8,), "int32")
    for i in range(4):
        for j in range(8):
            with T.sblock("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vj] = A[vi, vj]
        with T.sblock("C"):
            vi = T.axis.spatial(4, i)
            C[vi] = B[1] + B[6]
)",
                             R"(c = sch.get_sblock("C")
i, = sch.get_loops(c)
sch.parallel(i)
sch.cache_read(c, 0, "local")
)");
  EXPECT_TRUE(scratch) << scratch.error().str();
}

// The copy's axes run through what is read, so that it can be moved under a loop.
TEST(ProvedCopies, CopyOfAPartMoves) {
  constexpr const char* program = R"(@T.prim_func
def main(A: T.Buffer((12,), "int32"), B: T.Buffer((8,), "int32")):
    for i in range(8):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi + 2]
)";
  Status read = scheduled(program, R"(b = sch.get_sblock("B")
a = sch.cache_read(b, 0, "local")
i, = sch.get_loops(b)
i0, i1 = sch.split(i, [None, 3])
sch.compute_at(a, i0)
)");
  EXPECT_TRUE(read) << read.error().str();
  Status written = scheduled(R"(@T.prim_func
def main(A: T.Buffer((8,), "int32"), B: T.Buffer((12,), "int32")):
    for i in range(8):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            B[vi + 2] = A[vi]
    for i in range(2):
        with T.sblock("E"):
            vi = T.axis.spatial(2, i)
            B[vi * 11] = 0
)",
                             R"(b = sch.get_sblock("B")
w = sch.cache_write(b, 0, "local")
)");
  EXPECT_REFUSED(written, "also writes");
}

TEST(ProvedCopies, CacheWriteBackwards) {
  constexpr const char* program = R"(@T.prim_func
def main(A: T.Buffer((6,), "int32"), C: T.Buffer((8,), "int32")):
    B = T.sblock_alloc_buffer((8,), "int32")
    for i in range(2):
        with T.sblock("Z"):
            vi = T.axis.spatial(2, i)
            C[vi * 7] = 5
    for i in range(6):
        with T.sblock("B"):
            vi = T.axis.spatial(6, i)
            B[6 - vi] = A[vi]
    for i in range(6):
        with T.sblock("C"):
            vi = T.axis.spatial(6, i)
            C[vi + 1] = B[vi + 1]
)";
  Status done = scheduled(program, R"(b = sch.get_sblock("B")
w = sch.cache_write(b, 0, "local")
i, = sch.get_loops(w)
i0, i1 = sch.split(i, [None, 4])
)");
  EXPECT_TRUE(done) << done.error().str();
}

// A statement outside of blocks changes what the block reads, or sees what it writes.
TEST(ProvedCopies, StatementsOutsideOfBlocks) {
  constexpr const char* program = R"(@T.prim_func
def main(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    B = T.sblock_alloc_buffer((8,), "int32")
    for i in range(8):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] + 1
    A[3] = 100
    for i in range(8):
        with T.sblock("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi] * 2
)";
  for (const char* script :
       {"sch.compute_inline(b)", "sch.compute_at(b, i)", "sch.cache_read(b, 0, \"local\")"})
    EXPECT_REFUSED(scheduled(program, fromBToC(script).c_str()), "outside of blocks");
  constexpr const char* reader = R"(@T.prim_func
def main(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32"), D: T.Buffer((1,), "int32")):
    for i in range(8):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            C[vi] = A[vi] + 1
    D[0] = C[5]
)";
  EXPECT_REFUSED(scheduled(reader, "b = sch.get_sblock(\"B\")\nsch.cache_write(b, 0, \"local\")\n"),
                 "outside of blocks");
}

// The block's scope is a block itself, and what stands after that reads all of the buffer.
TEST(ProvedCopies, BufferUsedOutsideOfTheScope) {
  constexpr const char* program = R"(@T.prim_func
def main(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32"), D: T.Buffer((8,), "int32")):
    B = T.sblock_alloc_buffer((8,), "int32")
    with T.sblock("inner"):
        for i in range(8):
            with T.sblock("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] + 1
        for i in range(4):
            with T.sblock("C"):
                vi = T.axis.spatial(4, i)
                C[vi] = B[vi] * 2
    for i in range(8):
        with T.sblock("D"):
            vi = T.axis.spatial(8, i)
            D[vi] = B[vi]
)";
  for (const char* script : {"sch.compute_inline(b)", "sch.compute_at(b, i)"})
    EXPECT_REFUSED(scheduled(program, fromBToC(script).c_str()), "also used outside of block inner");
}

// The cache holds what the block writes, and no other elements of the buffer.
TEST(ProvedCopies, CacheWriteForAReaderOfMore) {
  const std::string program = R"(@T.prim_func
def main(A: T.Buffer((4,), "int32"), C: T.Buffer((8,), "int32"), D: T.Buffer((8,), "int32")):
    for i in range(4):
        with T.sblock("C"):
            vi = T.axis.spatial(4, i)
            C[vi + 2] = A[vi]
    for i in range(3):
        with T.sblock("D"):
            vi = T.axis.spatial(3, i)
            D[vi] = C[5 - vi]
)";
  const char* script = R"(c = sch.get_sblock("C")
d = sch.get_sblock("D")
sch.cache_write(c, 0, "local", [d])
)";
  EXPECT_OK(scheduled(program.c_str(), script));
  for (const char* place : {"C[vi + 1]", "C[vi + 4]", "C[D[vi]]"}) {
    std::string more = program;
    more.replace(more.find("C[5 - vi]"), 9, place);
    EXPECT_REFUSED(scheduled(more.c_str(), script),
                   "block D may read elements of buffer C that are not written");
  }
}

// What the block leaves alone stays as it was: no copy may take its place.
TEST(ProvedCopies, CacheWriteUnderACondition) {
  const std::string program = R"(@T.prim_func
def main(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    for i in range(8):
        with T.sblock("C"):
            vi = T.axis.spatial(8, i)
            if A[vi] > 3:
                C[vi] = A[vi]
)";
  const char* script = R"(c = sch.get_sblock("C")
sch.cache_write(c, 0, "local")
)";
  EXPECT_REFUSED(scheduled(program.c_str(), script), "writes buffer C only under a condition");
  EXPECT_OK(scheduled((program + "            else:\n                C[vi] = 0\n").c_str(), script));
}

// The producer writes the buffer from its end.
TEST(ProvedCopies, ReverseComputeAtAfterABackwardWriter) {
  const std::string program = R"(@T.prim_func
def main(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    B = T.sblock_alloc_buffer((8,), "int32")
    for i in range(8):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            B[7 - vi] = A[vi] + 1
    for i in range(8):
        with T.sblock("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi] * 2
)";
  constexpr const char* begin = R"(b = sch.get_sblock("B")
c = sch.get_sblock("C")
i, = sch.get_loops(b)
)";
  for (const char* move :
       {"sch.reverse_compute_at(c, i)\n", "i0, i1 = sch.split(i, [None, 4])\nsch.reverse_compute_at(c, i0)\n",
        "i0, i1 = sch.split(i, [None, 3])\nsch.reverse_compute_at(c, i0)\n"})
    EXPECT_OK(scheduled(program.c_str(), (begin + std::string(move)).c_str()));
  std::string part = program;
  part.replace(part.find("(8,), \"int32\")\n    for"), 5, "(9,),");
  EXPECT_REFUSED(scheduled(part.c_str(), (begin + std::string("sch.reverse_compute_at(c, i)\n")).c_str()),
                 "does not provably write all of buffer B");
}

// What a block inside accesses by the view is an access of the source.
TEST(ProvedCopies, ViewOfABlockAround) {
  constexpr const char* program = R"(@T.prim_func
def main(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    B = T.sblock_alloc_buffer((8,), "int32")
    with T.sblock("outer"):
        T.reads(A[0:8], B[0:8])
        T.writes(B[0:8], C[0:8])
        V = T.match_buffer(B[0:8], (8,), "int32")
        for i in range(8):
            with T.sblock("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] + 1
        for i in range(8):
            with T.sblock("W"):
                vi = T.axis.spatial(8, i)
                V[vi] = A[vi] * 5
        for i in range(8):
            with T.sblock("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[vi] * 2
)";
  for (const char* step :
       {"sch.compute_at(b, i)", "sch.compute_inline(b)", "sch.cache_write(b, 0, \"local\")"})
    EXPECT_REFUSED(scheduled(program, fromBToC(step).c_str()),
                   "V is a view of B in block outer, which contains block B");
  constexpr const char* own = R"(@T.prim_func
def main(A: T.Buffer((8, 8), "int32"), C: T.Buffer((8, 8), "int32")):
    for i in range(8):
        with T.sblock("C"):
            vi = T.axis.spatial(8, i)
            T.reads(A[vi, 0:8])
            T.writes(C[vi, 0:8])
            V = T.match_buffer(C[vi, 0:8], (8,), "int32", offset_factor=1)
            for j in range(8):
                V[j] = A[vi, 7 - j]
)";
  EXPECT_OK(scheduled(own, "c = sch.get_sblock(\"C\")\ni, = sch.get_loops(c)\nsch.parallel(i)\n"));
}

} // namespace
} // namespace bevel::testing
