// Scheduled programs (tests/loop/lowered_programs.h), programs that were once wrong, and random text through
// lowering and machine code against the reference interpreter, on one and on three threads, for this machine and for
// ones without wide vectors.
#include "llvm_support.h"

#include "ir/printer.h"
#include "loop/interpreter.h"
#include "loop/kernel_signature.h"
#include "loop/lower.h"
#include "tests/loop/lowering_cases.h"
#include "tests/loop/random_nest.h"

#include <cstring>

using namespace bevel;
using namespace bevel::test;

namespace {

/// "" when machine code and interpreter agree on every parameter, else what differs.
std::string runDifference(const PrimFunc& f, const PrimFunc& lowered, bevel_kernel kernel, const Dims& dims) {
  auto expected = makeArguments(f, dims);
  if (auto status = bevel::testing::interpretNest(f, expected); !status)
    return "interpreter: " + status.error().str();
  std::vector<int64_t> dimValues;
  for (const Var& v : kernelDims(lowered)) dimValues.push_back(evaluate(v, dims));
  for (int threads : {1, 3}) {
    auto actual = makeArguments(f, dims);
    std::vector<void*> pointers;
    for (auto& t : actual) pointers.push_back(t->mutableBytes());
    int64_t bytes =
        evaluate(workspaceBytes(lowered), dims) + threads * evaluate(workspacePerThreadBytes(lowered), dims);
    auto workspace = TensorObject::zeros(DType::UInt(8), {std::max<int64_t>(bytes, 1)});
    std::memset(workspace->mutableBytes(), 0x7f, size_t(bytes));
    Context ctx(threads);
    if (int32_t status = ctx.run(kernel, pointers, dimValues, workspace->mutableBytes()))
      return "status " + std::to_string(status) + ": " + ctx.message;
    for (size_t i = 0; i < actual.size(); ++i)
      if (!identical(*actual[i], *expected[i]))
        return "parameter " + std::to_string(i) + " differs on " + std::to_string(threads) + " threads\n" +
               print(lowered);
  }
  return "";
}

class LlvmLowered : public ::testing::TestWithParam<ScheduledProgram> {};

TEST_P(LlvmLowered, EqualsTheInterpreter) {
  PrimFunc f = parsed(GetParam().text);
  ASSERT_TRUE(f);
  for (const char* target : {"host", "x86-64"}) {
    Target machine = *Target::parse(target);
    auto lowered = lower(f, machine);
    ASSERT_TRUE(lowered.has_value()) << lowered.error().str();
    auto module = jit({{"kernel", *lowered}}, machine);
    ASSERT_TRUE(module);
    for (const Dims& dims : GetParam().runs)
      EXPECT_EQ(runDifference(f, *lowered, module->kernel("kernel"), dims), "") << target;
  }
}
INSTANTIATE_TEST_SUITE_P(Programs, LlvmLowered, ::testing::ValuesIn(scheduledPrograms()),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Cases, LlvmLowered, ::testing::ValuesIn(loweringCases()),
                         [](const auto& info) { return info.param.name; });

TEST(LlvmLoweredFuzz, RandomText) {
  for (uint64_t seed : bevel::testing::fuzzSeeds(30)) {
    std::string text = bevel::testing::RandomNest(seed).make();
    PrimFunc f = parsed(text);
    ASSERT_TRUE(f) << text;
    auto lowered = lower(f, Target::host());
    ASSERT_TRUE(lowered.has_value()) << lowered.error().str() << text;
    auto module = jit({{"kernel", *lowered}});
    ASSERT_TRUE(module) << text;
    for (int64_t n : {0, 1, 5}) {
      Dims dims = {{"n", n}, {"l", (n + int64_t(seed)) % 4}};
      auto arguments = makeArguments(f, dims);
      if (!bevel::testing::interpretNest(f, arguments)) continue; // reads what nothing wrote
      EXPECT_EQ(runDifference(f, *lowered, module->kernel("kernel"), dims), "") << "seed " << seed << "\n"
                                                                                << text;
    }
  }
}

} // namespace
