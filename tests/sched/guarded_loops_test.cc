// Loops whose iterations stand under conditions (triangles, bands, prefix sums, padded layouts), scheduled and
// lowered: the interpreter gives the same results after every pass. What only the partition of loops and the
// solver of conditions see together.
#include "tests/dice.h"
#include "tests/loop/lower_support.h"
#include "tests/loop/lowered_programs.h"
#include "tests/sched/support.h"

#include <fmt/format.h>

namespace bevel::testing {
namespace {

using test::Dims;

struct GuardedLoops {
  const char *name, *program, *script;
  std::vector<Dims> runs = {{}};
};

/// The program scheduled, and lowered pass by pass: "" or what differs.
std::string loweringFault(const PrimFunc& f, const char* script, const Dims& dims) {
  auto sch = Schedule::create(f);
  if (!sch) return sch.error().str();
  if (Status applied = runScript(*sch, script); !applied) return applied.error().str();
  Sizes sizes(dims.begin(), dims.end());
  if (std::string wrong = difference(f, sch->func(), sizes); !wrong.empty()) return wrong;
  return test::lowerDifference(sch->func(), dims);
}

class GuardedLowering : public ::testing::TestWithParam<GuardedLoops> {};

TEST_P(GuardedLowering, KeepsResults) {
  PrimFunc f = test::parsed(GetParam().program);
  ASSERT_TRUE(f);
  for (const Dims& dims : GetParam().runs) EXPECT_EQ(loweringFault(f, GetParam().script, dims), "");
}

const GuardedLoops kGuardedLoops[] = {
    {"PrefixSum", R"(
@T.prim_func
def main(A: T.Buffer((6, 17), "float32"), B: T.Buffer((6, 17), "float32")):
    for i, j, k in T.grid(6, 17, 17):
        with T.sblock("B"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            T.where(k <= j)
            with T.init():
                B[vi, vj] = T.float32(0)
            B[vi, vj] = B[vi, vj] + A[vi, vk]
)",
     R"(
b = sch.get_sblock("B")
i, j, k = sch.get_loops(b)
sch.split(j, [None, 4])
)"},
    {"CausalProduct", R"(
@T.prim_func
def main(A: T.Buffer((17, 8), "float32"), B: T.Buffer((8, 17), "float32"), C: T.Buffer((17, 17), "float32")):
    for i, j, k in T.grid(17, 17, 8):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            T.where(j <= i)
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)",
     R"(
b = sch.get_sblock("C")
i, j, k = sch.get_loops(b)
sch.split(i, [None, 4])
)"},
    {"BandInACorner", R"(
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32")):
    for i, j in T.grid(20, 20):
        with T.sblock("B"):
            vi = T.axis.spatial(16, i)
            vj = T.axis.spatial(16, j)
            T.where(i < 16 and j < 16 and j < i + 3)
            B[vi, vj] = A[vi, vj]
)",
     ""},
    {"PaddedLayoutThenSplit", R"(
@T.prim_func
def main(A: T.Buffer((30, 16), "float32"), B: T.Buffer((16, 70), "float32"), C: T.Buffer((30, 70), "float32")):
    Y = T.sblock_alloc_buffer((30, 70), "float32")
    for i, j, k in T.grid(30, 70, 16):
        with T.sblock("Y"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                Y[vi, vj] = T.float32(0)
            Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T.grid(30, 70):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.max(Y[vi, vj], T.float32(0))
)",
     R"(
b = sch.get_sblock("Y")
sch.transform_layout(b, ("write", 0), lambda i, j: (j // 16, i, j % 16), pad_value=0.0)
p = sch.get_sblock("Y_pad")
ls = sch.get_loops(p)
sch.split(ls[0], [None, 7])
)"},
    {"Triangle", R"(
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32")):
    for i in range(16):
        for j in range(i + 1):
            with T.sblock("B"):
                vi = T.axis.spatial(16, i)
                vj = T.axis.spatial(16, j)
                B[vi, vj] = A[vi, vj]
)",
     R"(
b = sch.get_sblock("B")
i, j = sch.get_loops(b)
sch.split(j, [None, 4])
)"},
    {"TriangleSplitOutside", R"(
@T.prim_func
def main(A: T.Buffer((17, 17), "float32"), B: T.Buffer((17, 17), "float32")):
    for i in range(17):
        for j in range(i, 17):
            with T.sblock("B"):
                vi = T.axis.spatial(17, i)
                vj = T.axis.spatial(17, j)
                B[vi, vj] = A[vi, vj]
)",
     R"(
b = sch.get_sblock("B")
i, j = sch.get_loops(b)
sch.split(i, [None, 4])
)"},
    {"StrictlyLowerInTiles", R"(
@T.prim_func
def main(A: T.Buffer((18, 18), "float32"), B: T.Buffer((18, 18), "float32")):
    for i, j in T.grid(18, 18):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.where(j < i)
            B[vi, vj] = A[vi, vj]
)",
     R"(
b = sch.get_sblock("B")
i, j = sch.get_loops(b)
i0, i1 = sch.split(i, [None, 4])
j0, j1 = sch.split(j, [None, 4])
sch.reorder(i0, j0, i1, j1)
)"},
    {"StrictlyUpperVectorised", R"(
@T.prim_func
def main(A: T.Buffer((18, 18), "float32"), B: T.Buffer((18, 18), "float32")):
    for i, j in T.grid(18, 18):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.where(i < j)
            B[vi, vj] = A[vi, vj]
)",
     R"(
b = sch.get_sblock("B")
i, j = sch.get_loops(b)
j0, j1 = sch.split(j, [None, 4])
sch.vectorize(j1)
)"},
    {"BandOfSymbolicSize",
     R"(
@T.prim_func
def main(a: T.handle, b: T.handle):
    n = T.int64()
    m = T.int64()
    A = T.match_buffer(a, (n, m), "float32")
    B = T.match_buffer(b, (n, m), "float32")
    for i, j in T.grid(n, m):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.where(i - 2 <= j and j <= i + 2)
            B[vi, vj] = A[vi, vj]
)",
     R"(
b = sch.get_sblock("B")
i, j = sch.get_loops(b)
i0, i1 = sch.split(i, [None, 4])
j0, j1 = sch.split(j, [None, 8])
sch.reorder(i0, j0, i1, j1)
)",
     {{{"n", 0}, {"m", 3}}, {{"n", 1}, {"m", 1}}, {{"n", 9}, {"m", 21}}, {{"n", 21}, {"m", 7}}}},
    {"EmptyRange", R"(
@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
    for i, j in T.grid(8, 8):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.where(i < 3 and 5 <= i and j < 4)
            B[vi, vj] = A[vi, vj]
)",
     R"(
b = sch.get_sblock("B")
i, j = sch.get_loops(b)
sch.split(i, [None, 3])
)"},
    {"NegativeBounds", R"(
@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
    for i in range(-6, 12):
        for j in range(-4, 9):
            with T.sblock("B"):
                vi = T.axis.spatial(8, i)
                vj = T.axis.spatial(8, j)
                T.where(0 <= i and i < 8 and 0 <= j and j < 8 and i + j < 7 and -3 <= i - j)
                B[vi, vj] = A[vi, vj]
)",
     ""},
    {"PackedTriangle", R"(
@T.prim_func
def main(A: T.Buffer((15, 15), "float32"), B: T.Buffer((15,), "float32")):
    for i in range(15):
        for j in range(i + 1):
            for k in range(j, i + 1):
                with T.sblock("B"):
                    vi = T.axis.spatial(15, i)
                    vj = T.axis.reduce(15, j)
                    vk = T.axis.reduce(15, k)
                    with T.init():
                        B[vi] = T.float32(0)
                    B[vi] = B[vi] + A[vj, vk]
)",
     R"(
b = sch.get_sblock("B")
i, j, k = sch.get_loops(b)
sch.split(k, [None, 4])
sch.split(j, [None, 3])
)"},
};

INSTANTIATE_TEST_SUITE_P(Programs, GuardedLowering, ::testing::ValuesIn(kGuardedLoops),
                         [](const auto& info) { return info.param.name; });

/// A copy under conditions that are linear in the loops, a block that reads it, and a script that splits loops
/// and takes one step more.
class RandomGuards {
public:
  explicit RandomGuards(uint64_t seed) : dice_(seed) {}

  std::string program() {
    static const std::vector<const char*> ranges = {"i + 1", "T.max(18 - i, 0)", "n", "T.min(n, 19)"};
    std::string range = dice_.oneIn(2) ? "19" : dice_.pick(ranges);
    std::string where = "j < 19";
    for (int64_t c = dice_.upTo(4); c-- > 0;) where += " and " + condition();
    return fmt::format(R"(
@T.prim_func
def main(a: T.handle, b: T.handle, c: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n, 19), "int32")
    B = T.match_buffer(b, (n, 19), "int32")
    C = T.match_buffer(c, (n, 19), "int32")
    for i in T.serial(n):
        for j in T.serial({}):
            with T.sblock("B"):
                vi = T.axis.spatial(n, i)
                vj = T.axis.spatial({}, j)
                T.where({})
                B[vi, vj] = A[vi, vj] + 1
    for i in T.serial(n):
        for j in T.serial({}):
            with T.sblock("C"):
                vi = T.axis.spatial(n, i)
                vj = T.axis.spatial({}, j)
                T.where(j < 19)
                C[vi, vj] = B[vi, vj] * 2
)",
                       range, dice_.oneIn(2) ? "19" : range, where, range, dice_.oneIn(2) ? "19" : range);
  }
  std::string script() {
    static const std::vector<const char*> steps = {
        "",
        "",
        "sch.cache_write(b, 0, \"local\")\n",
        "sch.cache_read(c, 0, \"local\")\n",
        "sch.compute_at(b, k)\n",
        "sch.reverse_compute_at(c, i)\n",
        "sch.reverse_compute_inline(c)\n",
        "sch.transform_block_layout(b, lambda i, j: (j, i))\n",
        "sch.transform_layout(b, (\"read\", 0), lambda i, j: (j, i))\n"};
    std::string text = "b = sch.get_sblock(\"B\")\nc = sch.get_sblock(\"C\")\ni, j = sch.get_loops(b)\n"
                       "k, l = sch.get_loops(c)\n";
    std::string step = dice_.pick(steps);
    bool first = dice_.oneIn(2);
    if (first) text += step;
    if (dice_.upTo(3)) text += fmt::format("i, i1 = sch.split(i, [None, {}])\n", 2 + dice_.upTo(4));
    if (dice_.upTo(3)) text += fmt::format("j, j1 = sch.split(j, [None, {}])\n", 2 + dice_.upTo(4));
    return first ? text : text + step;
  }

private:
  std::string condition() {
    static const std::vector<const char*> ops = {"<", "<=", ">", ">=", "=="};
    const char* op = ops[size_t(dice_.upTo(dice_.oneIn(6) ? 5 : 4))];
    return fmt::format("{} {} {}", side(), op, side());
  }
  std::string side() {
    static const std::vector<const char*> sides = {
        "i", "j", "i * 2", "j * 3", "i + j", "i - j", "n - 1 - i", "n - j", "i * 2 - j", "n", "0"};
    return fmt::format("{} + {}", dice_.pick(sides), dice_.upTo(11) - 5);
  }
  Dice dice_;
};

TEST(GuardedLowering, RandomConditions) {
  size_t scheduledPrograms = 0;
  for (uint64_t seed : fuzzSeeds(60)) {
    RandomGuards random(hashMix(seed + 5));
    std::string program = random.program(), script = random.script();
    PrimFunc f = test::parsed(program);
    ASSERT_TRUE(f) << program;
    auto sch = Schedule::create(f);
    ASSERT_TRUE(sch.has_value()) << sch.error().str() << program;
    if (Status done = runScript(*sch, script); !done) {
      EXPECT_NE(done.error().code, ErrorCode::kInternal) << done.error().str() << program << script;
      continue;
    }
    ++scheduledPrograms;
    for (int64_t n : {0, 1, 7, 13}) {
      std::string fault = loweringFault(f, script.c_str(), {{"n", n}});
      ASSERT_EQ(fault, "") << "seed " << seed << " n " << n << "\n" << program << script;
    }
  }
  EXPECT_GT(scheduledPrograms, 12u);
}

} // namespace
} // namespace bevel::testing
