// Modules compiled and run in this process: dimensions, branches, loops, tuples, constants, packed functions.
#include "tests/driver/support.h"

namespace bevel {
namespace {

Ran runOnce(const std::string& text, const std::vector<HostValue>& inputs, bool optimize) {
  BuildOptions options;
  options.optimize = optimize;
  return runText(text, inputs, options);
}

// Runs the function "main" of a text module with and without optimisation; both must agree.
Ran run(const std::string& text, const std::vector<HostValue>& inputs) {
  Ran plain = runOnce(text, inputs, false), fast = runOnce(text, inputs, true);
  EXPECT_EQ(plain.error, fast.error);
  EXPECT_EQ(plain.outputs.size(), fast.outputs.size());
  for (size_t i = 0; i < std::min(plain.outputs.size(), fast.outputs.size()); ++i) {
    const Tensor &a = plain.outputs[i].tensor, &b = fast.outputs[i].tensor;
    EXPECT_EQ(!a, !b) << "output " << i;
    if (!a || !b) continue;
    EXPECT_EQ(a->shape, b->shape);
    EXPECT_EQ(a->dtype, b->dtype);
    for (int64_t k = 0; k < std::min(a->size(), b->size()); ++k)
      EXPECT_NEAR(a->asDouble(k), b->asDouble(k), 1e-5 * (1 + std::abs(a->asDouble(k))))
          << "output " << i << " element " << k;
  }
  return fast;
}

HostValue scalarBool(bool b) {
  return {TensorObject::of<int>(kBool, {}, {b}), false, {}};
}
HostValue ints(std::vector<int64_t> values) {
  return {TensorObject::of<int64_t>(kInt64, {int64_t(values.size())}, values), false, {}};
}

std::string module(const std::string& functions) {
  return "@I.ir_module\nclass Module:\n" + functions;
}

TEST(Compile, ChainWithSymbolicDimension) {
  std::string text = module(R"(
    @R.function
    def main(x: R.Tensor(("n", 5), dtype="float32"), y: R.Tensor((5,), dtype="float32")) -> R.Tensor(("n", 5), dtype="float32"):
        n = T.int64()
        with R.dataflow():
            lv: R.Tensor((n, 5), dtype="float32") = R.add(x, y)
            gv: R.Tensor((n, 5), dtype="float32") = R.nn.relu(lv)
            R.output(gv)
        return gv
)");
  for (int64_t n : {0, 1, 3, 17}) {
    Ran r = run(text, {floats({n, 5}, -6), floats({5}, 1, 0)});
    ASSERT_EQ(r.error, "");
    ASSERT_EQ(r.outputs[0].tensor->shape, (std::vector<int64_t>{n, 5}));
    for (int64_t i = 0; i < n * 5; ++i)
      EXPECT_EQ(r.outputs[0].tensor->asDouble(i), std::max(0.0, double(i) - 5));
  }
}

TEST(Compile, MatmulThenSoftmax) {
  std::string text = module(R"(
    @R.function
    def main(x: R.Tensor(("m", 19), dtype="float32"), w: R.Tensor((19, 37), dtype="float32")) -> R.Tensor(("m", 37), dtype="float32"):
        m = T.int64()
        with R.dataflow():
            lv: R.Tensor((m, 37), dtype="float32") = R.matmul(x, w)
            gv: R.Tensor((m, 37), dtype="float32") = R.nn.softmax(lv, axis=-1)
            R.output(gv)
        return gv
)");
  Ran r = run(text, {floats({7, 19}, -0.3, 0.01), floats({19, 37}, 0.2, -0.001)});
  ASSERT_EQ(r.error, "");
  double sum = 0;
  for (int64_t i = 0; i < 37; ++i) sum += r.outputs[0].tensor->asDouble(i);
  EXPECT_NEAR(sum, 1, 1e-5);
}

TEST(Compile, BranchesAndTuples) {
  std::string text = module(R"(
    @R.function
    def main(c: R.Tensor((), dtype="bool"), x: R.Tensor((3,), dtype="float32")) -> R.Tuple(R.Tensor((3,), dtype="float32"), R.Tensor((3,), dtype="float32")):
        if c:
            a: R.Tensor((3,), dtype="float32") = R.add(x, x)
            r: R.Tensor((3,), dtype="float32") = R.add(a, x)
        else:
            r: R.Tensor((3,), dtype="float32") = R.negative(x)
        s: R.Tensor((3,), dtype="float32") = R.multiply(r, r)
        return (r, s)
)");
  for (bool c : {true, false}) {
    Ran r = run(text, {scalarBool(c), floats({3}, 1)});
    ASSERT_EQ(r.error, "");
    ASSERT_EQ(r.outputs.size(), 2u);
    for (int64_t i = 0; i < 3; ++i) {
      double want = (c ? 3 : -1) * double(i + 1);
      EXPECT_EQ(r.outputs[0].tensor->asDouble(i), want);
      EXPECT_EQ(r.outputs[1].tensor->asDouble(i), want * want);
    }
  }
}

TEST(Compile, ShapesReadFromTensors) {
  std::string text = module(R"(
    @R.function
    def main(x: R.Tensor(("n",), dtype="float32"), s: R.Tensor((2,), dtype="int64")) -> R.Tensor(ndim=2, dtype="float32"):
        n = T.int64()
        a = T.int64()
        b = T.int64()
        t: R.Shape(ndim=2) = R.tensor_to_shape(s)
        u: R.Shape([a, b]) = R.match_cast(t, R.Shape([a, b]))
        gv: R.Tensor((a, b), dtype="float32") = R.reshape(x, R.shape([a, b]))
        return gv
)");
  Ran r = run(text, {floats({12}), ints({3, 4})});
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.outputs[0].tensor->shape, (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(r.outputs[0].tensor->asDouble(11), 11);
  EXPECT_NE(run(text, {floats({12}), ints({5, 4})}).error, "");
}

TEST(Compile, InputsThatDoNotFitAreRefused) {
  std::string text = module(R"(
    @R.function
    def main(x: R.Tensor(("n", "n"), dtype="float32")) -> R.Tensor(("n", "n"), dtype="float32"):
        n = T.int64()
        gv: R.Tensor((n, n), dtype="float32") = R.exp(x)
        return gv
)");
  EXPECT_EQ(run(text, {floats({2, 2})}).error, "");
  EXPECT_NE(run(text, {floats({2, 3})}).error, "");
  EXPECT_NE(run(text, {floats({4})}).error, "");
  EXPECT_NE(run(text, {ints({1})}).error, "");
}

TEST(Compile, ArgumentsReturnedAsTheyAre) {
  std::string text = module(R"(
    @R.function
    def main(x: R.Tensor((2,), dtype="float32")) -> R.Tuple(R.Tensor((2,), dtype="float32"), R.Tensor((2,), dtype="float32")):
        return (x, x)
)");
  Ran r = run(text, {floats({2}, 5)});
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.outputs[1].tensor->asDouble(1), 6);
}

} // namespace
} // namespace bevel
