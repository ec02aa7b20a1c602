// Small programs that lowering once changed: the results after every pass must be those of the text.
#include "loop/lower.h"
#include "tests/loop/lower_support.h"
#include "tests/loop/lowering_cases.h"

namespace bevel {
namespace {

using namespace test;

class LowerCases : public ::testing::TestWithParam<ScheduledProgram> {};

TEST_P(LowerCases, KeepsResults) {
  PrimFunc f = parsed(GetParam().text);
  ASSERT_TRUE(f);
  for (const Dims& dims : GetParam().runs) EXPECT_EQ(lowerDifference(f, dims), "");
}
INSTANTIATE_TEST_SUITE_P(Programs, LowerCases, ::testing::ValuesIn(loweringCases()),
                         [](const auto& info) { return info.param.name; });

} // namespace
} // namespace bevel
