// Decisions of the passes over a module: every alternative of each gives another module that computes the same, and
// the record of a compile gives its module again.
#include "ir/structural.h"
#include "select/decisions.h"
#include "tests/driver/support.h"

#include <set>

namespace bevel {
namespace {

// A convolution that fills vectors, one that does not, one whose windows are apart; chains that fuse, and one that
// could.
const char* const kModel = R"(@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((1, 3, 6, 6), "float32"), w: R.Tensor((8, 3, 3, 3), "float32"), v: R.Tensor((2, 8, 1, 1), "float32"), s: R.Tensor((16, 5), "float32")):
        with R.dataflow():
            a = R.nn.conv2d(x, w)
            b = R.nn.relu(R.add(a, R.const([[[0.5]]], "float32")))
            c = R.nn.conv2d(b, v)
            d = R.nn.conv_transpose2d(c, R.const([[[[1.0, 2.0], [3.0, 4.0]]], [[[0.5, 0.25], [2.0, 1.0]]]], "float32"), strides=[2, 2])
            e = R.exp(R.multiply(R.reshape(d, R.shape([4, 16])), R.const(-0.01, "float32")))
            f = R.tanh(R.matmul(e, s))
            R.output(f, c)
        return (f, c)
)";

double distance(const Ran& a, const Ran& b) {
  EXPECT_EQ(a.outputs.size(), b.outputs.size());
  double most = 0;
  for (size_t i = 0; i < std::min(a.outputs.size(), b.outputs.size()); ++i) {
    const Tensor &x = a.outputs[i].tensor, &y = b.outputs[i].tensor;
    if (!x || !y || x->shape != y->shape) return HUGE_VAL;
    for (int64_t k = 0; k < x->size(); ++k) {
      double d = std::abs(x->asDouble(k) - y->asDouble(k)) / (1 + std::abs(x->asDouble(k)));
      most = d <= most ? most : d == d ? d : HUGE_VAL;
    }
  }
  return most;
}

class ModuleChoices : public ::testing::Test {
protected:
  Ran run(NamedAnswers answers = {}, bool optimize = true) {
    BuildOptions options;
    options.target = *Target::parse("x86-64-v3");
    options.optimize = optimize;
    options.answers = std::move(answers);
    std::vector<HostValue> inputs = {floats({1, 3, 6, 6}, -1, 0.02), floats({8, 3, 3, 3}, -0.3, 0.003),
                                     floats({2, 8, 1, 1}, 0.5, -0.06), floats({16, 5}, -0.4, 0.01)};
    return runText(kModel, inputs, options);
  }
};

TEST_F(ModuleChoices, EveryAlternativeIsAnotherModuleThatIsRight) {
  Ran plain = run({}, false), made = run();
  ASSERT_EQ(made.error, "");
  EXPECT_LT(distance(plain, made), 1e-5);
  std::set<std::string> kinds;
  for (const DecisionReport& d : decisionsOf(made.decisions)) {
    kinds.insert(d.name.substr(0, d.name.find(" of ")));
    for (size_t other = 0; other < d.candidates.size(); ++other) {
      if (other == d.decision) continue;
      SCOPED_TRACE(d.name + ": " + d.candidates[other]);
      Ran result = run({{d.name, d.candidates[other]}});
      ASSERT_EQ(result.error, "");
      EXPECT_LT(distance(plain, result), 1e-5);
      EXPECT_FALSE(structuralEqual(result.module, made.module));
    }
  }
  EXPECT_EQ(kinds, (std::set<std::string>{"fusion", "layout", "pixel products"}));
}

TEST_F(ModuleChoices, TheRecordGivesTheModuleAgain) {
  Ran other =
      run({{"layout of nn.conv2d a", "channels first"}, {"pixel products of nn.conv_transpose2d d", "no"}});
  ASSERT_EQ(other.error, "");
  auto trace = Trace::parse(other.decisions.str());
  ASSERT_TRUE(trace.has_value()) << other.decisions.str();
  NamedAnswers answers;
  for (const DecisionReport& d : decisionsOf(*trace)) answers[d.name] = d.candidates[d.decision];
  Ran again = run(answers);
  ASSERT_EQ(again.error, "");
  EXPECT_TRUE(structuralEqual(again.module, other.module));
  EXPECT_EQ(again.decisions.str(), other.decisions.str());
}

} // namespace
} // namespace bevel
