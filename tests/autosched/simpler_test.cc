// What is done where a schedule cannot be lowered: the next simpler one is taken and says so, or, where the suites ask
// for it, the compile fails.
#include "autosched/autosched.h"
#include "loop/lower.h"
#include "tests/loop/lowered_programs.h"
#include "tests/sched/support.h"

#include <cstdlib>

namespace bevel::testing {
namespace {

const char* const kCarried = R"(@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n,), "float32")
    C = T.match_buffer(c, (n,), "float32")
    B = T.sblock_alloc_buffer((n,), "float32")
    for i in range(n):
        with T.sblock("B"):
            vi = T.axis.spatial(n, i)
            B[vi] = A[vi] * T.float32(2)
    for i in range(n):
        with T.sblock("C"):
            vi = T.axis.spatial(n, i)
            C[vi] = B[n - 1 - vi] + T.float32(1)
)";

/// Registers cannot hold a buffer whose size only the run knows.
const auto registers = [](const PrimFunc& f, const Target&) -> Result<DefaultSchedule> {
  BEVEL_TRY(Schedule sch, Schedule::create(f));
  Status done = runScript(sch, "b = sch.get_sblock(\"B\")\nsch.set_scope(b, 0, \"register\")\n");
  if (!done) return fail(std::move(done.error()));
  return DefaultSchedule{sch.func(), sch.trace(), {}};
};
const auto plain = [](const PrimFunc& f, const Target&) -> Result<DefaultSchedule> {
  return DefaultSchedule{f, {}, {}};
};

class Strictness {
public:
  explicit Strictness(const char* value) : before_(std::getenv(kName) ? std::getenv(kName) : "") {
    setenv(kName, value, 1);
  }
  ~Strictness() { setenv(kName, before_.c_str(), 1); }

private:
  static constexpr const char* kName = "BEVEL_STRICT_SCHEDULE";
  std::string before_;
};

Target target() {
  return *Target::parse("x86-64-v3");
}

TEST(SimplerSchedules, TheNextOneIsTakenAndSaysSo) {
  Strictness relaxed("0");
  PrimFunc f = test::parsed(kCarried);
  auto made = firstLowerable(f, target(), {{"all rules", registers}, {"plain loops", plain}});
  ASSERT_TRUE(made) << made.error().str();
  EXPECT_TRUE(made->simpler);
  ASSERT_EQ(made->why.size(), 1u);
  EXPECT_TRUE(made->why[0].starts_with("a schedule with all rules cannot be lowered: register buffer \"B\""))
      << made->why[0];
  EXPECT_TRUE(structuralEqual(made->function, f));
  EXPECT_TRUE(lower(made->function, target()));
}

TEST(SimplerSchedules, AScheduleThatCanBeLoweredIsKept) {
  PrimFunc f = test::parsed(kCarried);
  auto made = firstLowerable(f, target(), {{"plain loops", plain}, {"all rules", registers}});
  ASSERT_TRUE(made) << made.error().str();
  EXPECT_FALSE(made->simpler);
  EXPECT_TRUE(made->why.empty());
}

TEST(SimplerSchedules, TheSuitesFail) {
  Strictness strict("1");
  auto made =
      firstLowerable(test::parsed(kCarried), target(), {{"all rules", registers}, {"plain loops", plain}});
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().str().find("a schedule with all rules cannot be lowered"), std::string::npos)
      << made.error().str();
}

} // namespace
} // namespace bevel::testing
