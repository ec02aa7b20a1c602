// Every operator on its own test cases: the tensor program, interpreted, against its oracle.
#include "ops/op_spec_support.h"
#include "ops/ops.h"
#include "ops/oracle.h"

#include <gtest/gtest.h>

namespace bevel {
namespace {

class OpCases : public testing::TestWithParam<std::string> {};

std::vector<std::string> operatorsWithTests() {
  registerOps();
  std::vector<std::string> names;
  for (const Op* op : OpRegistry::global().all())
    if (op->compute && test::findOracle(op->name)) names.push_back(op->name);
  return names;
}

TEST_P(OpCases, ComputeAgreesWithOracle) {
  const Op* op = findOp(GetParam());
  ASSERT_FALSE(op->tests.empty()) << "an operator needs test cases";
  for (const std::string& spec : op->tests)
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      SCOPED_TRACE(spec);
      auto c = test::parseOpCase(op->name, spec, seed);
      ASSERT_TRUE(c) << c.error().str();
      auto expected = test::evaluate(c->call, c->inputs);
      ASSERT_TRUE(expected) << expected.error().str();
      auto actual = test::interpretCall(*c);
      ASSERT_TRUE(actual) << actual.error().str();
      ASSERT_EQ(expected->size(), actual->size());
      for (size_t i = 0; i < actual->size(); ++i)
        EXPECT_EQ(test::difference(*(*expected)[i], *(*actual)[i]), "") << "result " << i;
    }
}

INSTANTIATE_TEST_SUITE_P(All, OpCases, testing::ValuesIn(operatorsWithTests()), [](const auto& info) {
  std::string name;
  for (char c : info.param) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
});

TEST(Ops, EveryTensorExpressionHasAnOracle) {
  registerOps();
  for (const Op* op : OpRegistry::global().all())
    if (op->compute && !op->name.starts_with("t.")) {
      EXPECT_TRUE(test::findOracle(op->name)) << op->name;
    }
}

TEST(Ops, EveryEntryIsDocumented) {
  registerOps();
  for (const Op* op : OpRegistry::global().all()) {
    if (op->name.starts_with("t."))
      continue; // registered by the graph tests of the same binary, for inference only
    EXPECT_GT(op->doc.size(), 3u) << op->name;
    EXPECT_TRUE(op->compute || op->decompose || !op->packed.empty()) << op->name << " cannot be computed";
  }
}

TEST(Ops, UserOperatorsAreRefusedTwice) {
  Op op = {.name = "user.twice", .doc = "x + x", .inputs = {"x"}, .infer = findOp("nn.relu")->infer};
  EXPECT_TRUE(OpRegistry::global().tryAdd(op));
  auto again = OpRegistry::global().tryAdd(op);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::kUsage);
}

} // namespace
} // namespace bevel
