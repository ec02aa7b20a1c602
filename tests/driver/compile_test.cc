// Modules compiled and run in this process: dimensions, branches, loops, tuples, constants, packed functions.
#include "ir/parser.h"
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

// A module of tensor programs alone: each is a function, its written parameters are the results.
constexpr const char* kPrograms = R"(
@I.ir_module
class Module:
    @T.prim_func
    def main(C: T.Buffer((4,), "float32"), A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.sblock("C"):
                vi = T.axis.spatial(4, i)
                C[vi] = A[vi] + B[vi] * T.float32(2)
    @T.prim_func
    def accumulate(a: T.handle, s: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n, 3), "float32")
        S = T.match_buffer(s, (n,), "float32")
        for i, j in T.grid(n, 3):
            with T.sblock("S"):
                vi, vj = T.axis.remap("SR", [i, j])
                S[vi] = S[vi] + A[vi, vj]
    @T.prim_func
    def part(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32"), k: T.int32):
        for i in range(2):
            B[i + k] = A[i]
    @T.prim_func
    def filled(b: T.handle, n: T.int64):
        B = T.match_buffer(b, (n,), "float32")
        for i in range(n):
            with T.sblock("B"):
                vi = T.axis.spatial(n, i)
                B[vi] = T.float32(7)
    @T.prim_func(private=True)
    def hidden(A: T.Buffer((4,), "float32")):
        for i in range(4):
            A[i] = T.float32(1)
)";

class Programs : public ::testing::TestWithParam<bool> {
protected:
  void SetUp() override {
    auto module = parseModule(kPrograms);
    ASSERT_TRUE(module) << module.error().str();
    BuildOptions options;
    options.optimize = GetParam();
    options.useCache = false;
    auto compiled = compileModule(*module, options, "main");
    ASSERT_TRUE(compiled) << compiled.error().str();
    auto program = load(*compiled);
    ASSERT_TRUE(program) << program.error().str();
    program_ = *program;
    ASSERT_EQ(bevel_instance_create(program_->model(), nullptr, &instance_), BEVEL_OK);
  }
  void TearDown() override { bevel_instance_release(instance_); }

  std::vector<double> call(const char* name, const std::vector<HostValue>& inputs) {
    std::vector<bevel_value> args;
    for (const HostValue& v : inputs) args.push_back(*toRuntime(v));
    bevel_value result = {};
    int32_t f = bevel_model_find_function(program_->model(), name);
    EXPECT_EQ(bevel_model_num_inputs(program_->model(), f), int32_t(inputs.size()));
    int32_t status = bevel_call(instance_, f, args.data(), int32_t(args.size()), &result, 1);
    for (bevel_value& v : args) bevel_release(&v);
    EXPECT_EQ(status, BEVEL_OK) << bevel_last_error();
    if (status) return {};
    Tensor tensor = fromRuntime(result)->tensor;
    bevel_release(&result);
    std::vector<double> out;
    for (int64_t i = 0; i < tensor->size(); ++i) out.push_back(tensor->asDouble(i));
    return out;
  }

  std::shared_ptr<Executable> program_;
  bevel_instance* instance_ = nullptr;
};

TEST_P(Programs, AreFunctionsOfTheLibrary) {
  EXPECT_EQ(bevel_model_num_functions(program_->model()), 4);
  EXPECT_STREQ(bevel_model_function_name(program_->model(), 0), "main");
  using V = std::vector<double>;
  HostValue a = floats({4}, 1), b = floats({4}, 10);
  EXPECT_EQ(call("main", {a, b}), (V{21, 24, 27, 30}));
  // What is read before it is written is an input too, and stays as it was.
  HostValue s = floats({2}, 100);
  EXPECT_EQ(call("accumulate", {floats({2, 3}), s}), (V{103, 113}));
  EXPECT_EQ(s.tensor->asDouble(0), 100);
  // So is what is written in part.
  EXPECT_EQ(call("part", {a, b, ints({1})}), (V{10, 1, 2, 13}));
  EXPECT_EQ(call("filled", {ints({3})}), (V{7, 7, 7}));
}
INSTANTIATE_TEST_SUITE_P(Compile, Programs, ::testing::Bool());

TEST(Compile, ProgramsThatCannotBeFunctions) {
  EXPECT_NE(run("@T.prim_func\ndef main(A: T.Buffer((4,), \"float32\"), x: T.float32):\n    A[0] = x\n", {})
                .error.find("parameter 'x' is float32, which cannot come from outside"),
            std::string::npos);
  EXPECT_NE(run("@T.prim_func\ndef main(A: T.Buffer((4,), \"float32\")):\n    T.evaluate(0)\n", {})
                .error.find("the program writes none of its parameters"),
            std::string::npos);
}

// A program may carry a target of its own: its section of the image says so.
TEST(Compile, ProgramsForSeveralTargets) {
  std::string text = R"(
@I.ir_module
class Module:
    @T.prim_func
    def plus(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        T.func_attr({"target": "x86-64"})
        for i in range(64):
            with T.sblock("B"):
                vi = T.axis.spatial(64, i)
                B[vi] = A[vi] + T.float32(1)
    @R.function
    def main(x: R.Tensor((64,), "float32")):
        cls = Module
        with R.dataflow():
            lv = R.call_tir(cls.plus, (x,), out_sinfo=R.Tensor((64,), "float32"))
            gv = R.multiply(lv, lv)
            R.output(gv)
        return gv
)";
  auto module = parseModule(text);
  ASSERT_TRUE(module) << module.error().str();
  BuildOptions options;
  options.target = *Target::parse("x86-64-v3");
  auto compiled = compileModule(*module, options, "main");
  ASSERT_TRUE(compiled) << compiled.error().str();
  std::vector<uint64_t> block = compiled->program.image->finish();
  const char* base = reinterpret_cast<const char*>(block.data());
  auto* header = reinterpret_cast<const bevel_image_header*>(base);
  ASSERT_EQ(header->targets.count, 2u);
  auto* targets = reinterpret_cast<const bevel_target_entry*>(base + header->targets.offset);
  auto word = [&](uint32_t at) {
    return std::string(at == BEVEL_NO_STRING ? "" : base + header->strings.offset + at);
  };
  EXPECT_EQ(word(targets[0].name), "x86-64-v3");
  EXPECT_NE(word(targets[0].features).find("avx2"), std::string::npos);
  EXPECT_EQ(word(targets[1].name), "x86-64");
  EXPECT_EQ(word(targets[1].features), "");
  options.target = *Target::parse("aarch64");
  EXPECT_NE(compileModule(*module, options, "main").error().message.find("it is for x86-64"),
            std::string::npos);
}

// A library for more than this processor has is refused when it is loaded, not when it runs.
TEST(Compile, LibraryForAnotherProcessor) {
  auto module = parseModule(kPrograms);
  ASSERT_TRUE(module);
  std::string stem =
      (std::filesystem::temp_directory_path() / ("bevel_v4_" + std::to_string(getpid()))).string();
  BuildOptions options;
  options.target = *Target::parse("x86-64-v4");
  auto compiled = compileModule(*module, options, "main");
  ASSERT_TRUE(compiled) << compiled.error().str();
  ASSERT_TRUE(writeLibrary(*compiled, stem + ".so"));
  bevel_model* model = nullptr;
  int32_t status = bevel_model_load((stem + ".so").c_str(), &model);
  if (options.target.runsOn(Target::host())) {
    EXPECT_EQ(status, BEVEL_OK) << bevel_last_error();
  } else {
    EXPECT_EQ(status, BEVEL_ERROR_REFUSED);
    EXPECT_NE(std::string(bevel_last_error()).find("is for x86-64-v4 and needs"), std::string::npos)
        << bevel_last_error();
    EXPECT_NE(std::string(bevel_last_error()).find("avx512f"), std::string::npos) << bevel_last_error();
  }
  bevel_model_release(model);
  std::filesystem::remove(stem + ".so"), std::filesystem::remove(stem + ".h");
}

TEST(Compile, FeaturesThatCodeNeeds) {
  auto of = [](const char* target) { return " " + *requiredFeatures(*Target::parse(target)) + " "; };
  EXPECT_EQ(of("x86-64"), "  ");
  EXPECT_EQ(of("x86-64-v2"), " popcnt sse3 sse4.1 sse4.2 ssse3 ");
  for (const char* name : {" avx2 ", " fma ", " f16c ", " bmi2 "}) {
    EXPECT_NE(of("x86-64-v3").find(name), std::string::npos) << name;
    EXPECT_NE(of("haswell").find(name), std::string::npos) << name;
  }
  EXPECT_NE(of("x86-64-v3,features=-fma").find(" avx2 "), std::string::npos);
  EXPECT_EQ(of("x86-64-v3,features=-fma").find(" fma "), std::string::npos);
  EXPECT_NE(of("x86-64-v3,features=+avxvnni").find(" avxvnni "), std::string::npos);
  EXPECT_NE(of("x86-64-v4").find(" avx512vl "), std::string::npos);
  EXPECT_EQ(of("aarch64"), "  ");
}

} // namespace
} // namespace bevel
