// Lowering of scheduled programs in text form (lowered_programs.h): the interpreter gives the same results
// after every pass; and what lowering makes of some of them.
#include "ir/build.h"
#include "ir/printer.h"
#include "loop/lower.h"
#include "target/target.h"
#include "tests/loop/lower_support.h"
#include "tests/loop/lowered_programs.h"

namespace bevel {
namespace {

using namespace test;

class LowerText : public ::testing::TestWithParam<ScheduledProgram> {};

TEST_P(LowerText, KeepsResults) {
  PrimFunc f = parsed(GetParam().text);
  ASSERT_TRUE(f);
  for (const Dims& dims : GetParam().runs) EXPECT_EQ(lowerDifference(f, dims), "");
}
INSTANTIATE_TEST_SUITE_P(Programs, LowerText, ::testing::ValuesIn(scheduledPrograms()),
                         [](const auto& info) { return info.param.name; });

PrimFunc loweredUntil(const char* program, const char* pass) {
  auto lowered = lower(parsed(scheduledProgram(program).text), Target::host(), {.stopAfter = pass});
  EXPECT_TRUE(lowered.has_value()) << (lowered ? "" : lowered.error().str());
  return lowered ? *lowered : PrimFunc();
}

// The inner reduction loop of a micro-kernel has no condition and no mask.
TEST(LowerShape, MicroKernelInnerLoopHasNoBranches) {
  PrimFunc lowered = loweredUntil("micro_kernel_30", "plan_workspace");
  ASSERT_TRUE(lowered);
  int loopsOverK = 0;
  walk(lowered->body, [&](const NodeRef& n) {
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
  EXPECT_EQ(loopsOverK, 1) << print(lowered);
}

// Each tile has buffers of its own: on the stack, not as long as the input in the workspace.
TEST(LowerShape, TilesOfAChainAreLocal) {
  PrimFunc lowered = loweredUntil("chain", "plan_workspace");
  ASSERT_TRUE(lowered);
  int buffers = 0;
  walk(lowered->body, [&](const NodeRef& n) {
    if (const auto* a = n.as<AllocNode>()) {
      ++buffers;
      EXPECT_EQ(a->buffer->scope, "local") << print(lowered);
    }
    return true;
  });
  EXPECT_EQ(buffers, 2);
}

TEST(LowerShape, AllocationOutsideOfReductionLoop) {
  PrimFunc planned = loweredUntil("reduction_between", "plan_allocations");
  ASSERT_TRUE(planned);
  bool inside = false, found = false;
  walk(planned->body, [&](const NodeRef& n) {
    found |= n.is<AllocNode>();
    const auto* loop = n.as<ForNode>();
    if (loop && loop->var->name == "ko")
      walk(loop->body, [&](const NodeRef& x) { return inside |= x.is<AllocNode>(), true; });
    return true;
  });
  EXPECT_TRUE(found && !inside) << print(planned);
}

TEST(LowerShape, WorkspaceIsShared) {
  PrimFunc lowered = loweredUntil("three_buffers", "plan_workspace");
  ASSERT_TRUE(lowered);
  EXPECT_EQ(attrInt(lowered->attrs, "workspace_bytes"), 2 * 4096 * 4);
}

} // namespace
} // namespace bevel
