// The virtual machine: kernels, symbolic shapes, memory, control flow, errors, profile.
#include "tests/runtime/support.h"

#include <atomic>
#include <thread>

using namespace bevel;
using namespace bevel::image;

TEST(Vm, AddsWithASymbolicDimension) {
  TestModel m;
  buildAdd(m);
  TestInstance run(m.load());
  for (int64_t n : {3, 0, 1, 17, 5}) {
    std::vector<float> a(size_t(n), 1.5f), b(size_t(n), 2.0f);
    View x(a), y(b);
    ASSERT_EQ(bevel_set_input(run, 0, x), BEVEL_OK);
    ASSERT_EQ(bevel_set_input(run, 1, y), BEVEL_OK);
    ASSERT_EQ(bevel_run(run), BEVEL_OK) << bevel_last_error();
    EXPECT_EQ(elements<float>(bevel_output(run, 0)), std::vector<float>(size_t(n), 3.5f));
    EXPECT_EQ(shapeOf(bevel_output(run, 0)), std::vector<int64_t>{n});
  }
  EXPECT_EQ(bevel_output(run, 1), nullptr);
  EXPECT_EQ(bevel_output(run, -1), nullptr);
}

TEST(Vm, ListsWhatTheModelTakesAndYields) {
  TestModel m;
  buildAdd(m);
  bevel_model* model = m.load();
  EXPECT_STREQ(bevel_model_target(model), "test");
  ASSERT_EQ(bevel_model_num_functions(model), 1);
  EXPECT_STREQ(bevel_model_function_name(model, 0), "main");
  EXPECT_EQ(bevel_model_function_name(model, 1), nullptr);
  EXPECT_EQ(bevel_model_find_function(model, "main"), 0);
  EXPECT_EQ(bevel_model_find_function(model, "other"), -1);
  EXPECT_EQ(bevel_model_num_inputs(model, 0), 2);
  bevel_param p;
  ASSERT_EQ(bevel_model_input(model, 0, 1, &p), BEVEL_OK);
  EXPECT_STREQ(p.name, "y");
  EXPECT_EQ(p.rank, 1);
  EXPECT_EQ(p.dims[0], -1);
  EXPECT_STREQ(p.dim_names[0], "n");
  EXPECT_EQ(p.has_default, 0);
  EXPECT_EQ(bevel_model_input(model, 0, 2, &p), BEVEL_ERROR_USAGE);
  EXPECT_EQ(bevel_model_output(model, 1, 0, &p), BEVEL_ERROR_USAGE);
}

TEST(Vm, SaysWhichInputDoesNotFit) {
  TestModel m;
  buildAdd(m);
  TestInstance run(m.load());
  View x(std::vector<float>{1, 2}), y(std::vector<float>{1, 2, 3});
  EXPECT_EQ(bevel_run(run), BEVEL_ERROR_REFUSED);
  EXPECT_STREQ(bevel_last_error(), "input 'x' of 'main' is not set: expected float32[n]");
  bevel_set_input(run, 0, x);
  bevel_set_input(run, 1, y);
  EXPECT_EQ(bevel_run(run), BEVEL_ERROR_REFUSED);
  EXPECT_STREQ(
      bevel_last_error(),
      "input 'y' of 'main': expected float32[n], given float32[3]: dimension 0 is 3 and should be 2");
  View<double> wrong(std::vector<double>{1, 2});
  bevel_set_input(run, 1, wrong);
  EXPECT_EQ(bevel_run(run), BEVEL_ERROR_REFUSED);
  EXPECT_STREQ(bevel_last_error(), "input 'y' of 'main': expected float32[n], given float64[2]");
  View matrix(std::vector<float>{1, 2}, {1, 2});
  bevel_set_input(run, 1, matrix);
  EXPECT_EQ(bevel_run(run), BEVEL_ERROR_REFUSED);
  EXPECT_EQ(bevel_set_input(run, 2, x), BEVEL_ERROR_USAGE);
  bevel_set_input(run, 1, x);
  EXPECT_EQ(bevel_run(run), BEVEL_OK) << "a failed run leaves the instance usable: " << bevel_last_error();
}

TEST(Vm, WritesIntoMemoryOfTheCallers) {
  TestModel m;
  buildAdd(m);
  TestInstance run(m.load());
  View x(std::vector<float>{1, 2, 3}), y(std::vector<float>{10, 20, 30}), out(std::vector<float>(3));
  bevel_set_input(run, 0, x);
  bevel_set_input(run, 1, y);
  ASSERT_EQ(bevel_set_output(run, 0, out), BEVEL_OK);
  ASSERT_EQ(bevel_run(run), BEVEL_OK) << bevel_last_error();
  EXPECT_EQ(out.data, (std::vector<float>{11, 22, 33}));
  EXPECT_EQ(bevel_output(run, 0)->data, out.data.data());

  View strided(std::vector<float>(6, -1), {3}); // every second element
  int64_t stride = 2;
  strided.tensor.strides = &stride;
  ASSERT_EQ(bevel_set_output(run, 0, strided), BEVEL_OK);
  ASSERT_EQ(bevel_run(run), BEVEL_OK) << bevel_last_error();
  EXPECT_EQ(strided.data, (std::vector<float>{11, -1, 22, -1, 33, -1}));

  View small(std::vector<float>(2));
  ASSERT_EQ(bevel_set_output(run, 0, small), BEVEL_OK);
  EXPECT_EQ(bevel_run(run), BEVEL_ERROR_REFUSED);
  EXPECT_STREQ(bevel_last_error(),
               "output 'sum' of 'main' is float32[3], the memory given for it is float32[2]");
}

TEST(Vm, ReadsStridedInputsByACopyAtEachRun) {
  TestModel m;
  buildAdd(m);
  TestInstance run(m.load());
  View x(std::vector<float>{1, 0, 2, 0, 3, 0}, {3}), y(std::vector<float>{0, 0, 0});
  int64_t stride = 2;
  x.tensor.strides = &stride;
  bevel_set_input(run, 0, x);
  bevel_set_input(run, 1, y);
  ASSERT_EQ(bevel_run(run), BEVEL_OK) << bevel_last_error();
  EXPECT_EQ(elements<float>(bevel_output(run, 0)), (std::vector<float>{1, 2, 3}));
  x.data[2] = 7;
  ASSERT_EQ(bevel_run(run), BEVEL_OK);
  EXPECT_EQ(elements<float>(bevel_output(run, 0)), (std::vector<float>{1, 7, 3}));
}

TEST(Vm, KeepsMemoryBetweenRuns) {
  TestModel m;
  buildAdd(m);
  TestInstance run(m.load());
  View x(std::vector<float>{1, 2, 3});
  bevel_set_input(run, 0, x);
  bevel_set_input(run, 1, x);
  ASSERT_EQ(bevel_run(run), BEVEL_OK);
  void* first = bevel_output(run, 0)->data;
  EXPECT_EQ(bevel_instance_memory(run), 12u);
  ASSERT_EQ(bevel_run(run), BEVEL_OK);
  EXPECT_EQ(bevel_output(run, 0)->data, first);
  bevel_value kept; // while somebody holds it, the next run must not write there
  ASSERT_EQ(bevel_output_value(run, 0, &kept), BEVEL_OK);
  x.data[0] = 5;
  ASSERT_EQ(bevel_run(run), BEVEL_OK);
  EXPECT_NE(bevel_output(run, 0)->data, first);
  EXPECT_EQ(elements<float>(bevel_tensor_view(kept.v.tensor)), (std::vector<float>{2, 4, 6}));
  bevel_release(&kept);
}

/// main(x: float32[n]) = ((x + x) + x), the temporary at an offset of an arena whose size a shape kernel
/// computes.
static void buildArena(TestModel& m) {
  uint32_t add = m.addKernel({.name = "add", .numBuffers = 3, .numDims = 1}, addKernel);
  uint32_t size = m.addKernel({.name = "arena_size", .numBuffers = 1},
                              [](const bevel_ctx*, void* const* buffers, const int64_t*, void*) -> int32_t {
                                auto* heap = static_cast<int64_t*>(buffers[0]);
                                heap[1] = 64 + 4 * heap[0];
                                return BEVEL_OK;
                              });
  FunctionBuilder& f = m.image.addFunction("main");
  uint32_t x = f.addParam({.name = "x", .dtype = kF32, .dims = {"n"}});
  f.addResult({.name = "y", .dtype = kF32, .dims = {"n"}});
  uint32_t n = f.newSlot(), bytes = f.newSlot();
  f.builtin("vm.match_shape", {reg(x), imm(0), imm(-1), imm(1), imm(BEVEL_DIM_BIND), imm(n)});
  f.kernel(size, {heap()});
  uint32_t arena = f.builtinTo("vm.alloc_storage", {slot(bytes)});
  uint32_t t = f.builtinTo("vm.alloc_tensor", {reg(arena), imm(64), imm(kF32), slot(n)});
  f.kernel(add, {reg(x), reg(x), reg(t), slot(n)});
  uint32_t y = f.builtinTo("vm.alloc_output", {imm(0), imm(kF32), slot(n)});
  f.kernel(add, {reg(t), reg(x), reg(y), slot(n)});
  f.ret({reg(y)});
}

TEST(Vm, PlansAnArenaByASymbolicSize) {
  TestModel m;
  buildArena(m);
  TestInstance run(m.load());
  for (size_t n : {4, 2, 100, 3, 0}) {
    View x(std::vector<float>(n, 2.0f));
    bevel_set_input(run, 0, x);
    ASSERT_EQ(bevel_run(run), BEVEL_OK) << bevel_last_error();
    EXPECT_EQ(elements<float>(bevel_output(run, 0)), std::vector<float>(n, 6.0f));
  }
}

TEST(Vm, CopiesAResultThatLiesInTheArena) {
  TestModel m;
  uint32_t add = m.addKernel({.name = "add", .numBuffers = 3, .numDims = 1}, addKernel);
  FunctionBuilder& f = m.image.addFunction("main");
  uint32_t x = f.addParam({.name = "x", .dtype = kF32, .dims = {2}});
  f.addResult({.name = "y", .dtype = kF32, .dims = {2}});
  uint32_t arena = f.builtinTo("vm.alloc_storage", {imm(8)});
  uint32_t t = f.builtinTo("vm.alloc_tensor", {reg(arena), imm(0), imm(kF32), imm(2)});
  f.kernel(add, {reg(x), reg(x), reg(t), imm(2)});
  f.ret({reg(t)});
  TestInstance run(m.load());
  View one(std::vector<float>{1, 2}), two(std::vector<float>{3, 4});
  bevel_value first, a = one.value(), b = two.value(), second;
  ASSERT_EQ(bevel_call(run, 0, &a, 1, &first, 1), BEVEL_OK) << bevel_last_error();
  ASSERT_EQ(bevel_call(run, 0, &b, 1, &second, 1), BEVEL_OK) << bevel_last_error();
  EXPECT_EQ(elements<float>(bevel_tensor_view(first.v.tensor)), (std::vector<float>{2, 4}));
  EXPECT_EQ(elements<float>(bevel_tensor_view(second.v.tensor)), (std::vector<float>{6, 8}));
  bevel_release(&first);
  bevel_release(&second);
}

TEST(Vm, AnOutputThatIsAnInputIsACopy) {
  TestModel m;
  FunctionBuilder& f = m.image.addFunction("main");
  uint32_t x = f.addParam({.name = "x", .dtype = kF32, .dims = {"n"}});
  f.addResult({.name = "y", .dtype = kF32, .dims = {"n"}});
  f.ret({reg(x)});
  TestInstance run(m.load());
  View data(std::vector<float>{1, 2});
  bevel_set_input(run, 0, data);
  ASSERT_EQ(bevel_run(run), BEVEL_OK);
  data.data[0] = 9;
  EXPECT_EQ(elements<float>(bevel_output(run, 0)), (std::vector<float>{1, 2}));
}

/// main(x: float32[n]) = (x reversed, x).
static void buildReverse(TestModel& m) {
  auto reverse = [](const bevel_ctx*, void* const* buffers, const int64_t* dims, void*) -> int32_t {
    for (int64_t i = 0; i < dims[0]; ++i)
      static_cast<float*>(buffers[1])[i] = static_cast<const float*>(buffers[0])[dims[0] - 1 - i];
    return BEVEL_OK;
  };
  uint32_t k = m.addKernel({.name = "reverse", .numBuffers = 2, .numDims = 1}, reverse);
  FunctionBuilder& f = m.image.addFunction("main");
  uint32_t x = f.addParam({.name = "x", .dtype = kF32, .dims = {3}});
  for (const char* name : {"y", "z"}) f.addResult({.name = name, .dtype = kF32, .dims = {3}});
  uint32_t y = f.builtinTo("vm.alloc_output", {imm(0), imm(kF32), imm(3)});
  f.kernel(k, {reg(x), reg(y), imm(3)});
  f.ret({reg(y), reg(x)});
}

TEST(Vm, AnOutputMayLieInMemoryOfAnInput) {
  TestModel m;
  buildReverse(m);
  TestInstance run(m.load());
  int64_t forward = 1, two = 2, back = -1;
  struct Case {
    ptrdiff_t input, output;
    int64_t* stride; // of the output
  };
  for (Case c : {Case{0, 0, &forward}, Case{0, 1, &forward}, Case{2, 0, &forward}, Case{1, 0, &two},
                 Case{0, 2, &back}}) {
    View data(std::vector<float>{1, 2, 3, 4, 5}, {3}), out(std::vector<float>(3));
    DLTensor in = data.tensor, target = data.tensor;
    in.data = data.data.data() + c.input;
    target.data = data.data.data() + c.output;
    target.strides = c.stride;
    std::vector<float> x(data.data.begin() + c.input, data.data.begin() + c.input + 3);
    ASSERT_EQ(bevel_set_input(run, 0, &in), BEVEL_OK);
    ASSERT_EQ(bevel_set_output(run, 0, &target), BEVEL_OK);
    ASSERT_EQ(bevel_run(run), BEVEL_OK) << bevel_last_error();
    for (int64_t i = 0; i < 3; ++i)
      EXPECT_EQ(data.data[size_t(c.output + i * *c.stride)], x[size_t(2 - i)])
          << "input at " << c.input << ", output at " << c.output << ", stride " << *c.stride;
    EXPECT_EQ(elements<float>(bevel_output(run, 1)), x) << "as it was before the run";
  }
}

TEST(Vm, BranchesOnATensor) {
  TestModel m;
  FunctionBuilder& f = m.image.addFunction("main");
  uint32_t c = f.addParam({.name = "c", .dtype = kBoolType});
  f.addResult({.name = "y", .kind = BEVEL_PARAM_ANY});
  auto otherwise = f.newLabel();
  f.branchUnless(c, otherwise);
  f.ret({imm(1)});
  f.bind(otherwise);
  f.ret({imm(2)});
  TestInstance run(m.load());
  for (uint8_t truth : {1, 0}) {
    View<uint8_t> condition({truth}, {});
    condition.tensor.dtype = {BEVEL_BOOL_CODE, 8, 1};
    bevel_value result, arg = condition.value();
    ASSERT_EQ(bevel_call(run, 0, &arg, 1, &result, 1), BEVEL_OK) << bevel_last_error();
    EXPECT_EQ(result.v.i, truth ? 1 : 2);
  }
}

/// Integer functions of a host, for as long as the object lives.
struct HostArithmetic {
  HostArithmetic() {
    EXPECT_EQ(bevel_register_packed("test.sum", sum, nullptr, nullptr, 0), BEVEL_OK);
    EXPECT_EQ(bevel_register_packed("test.less", less, nullptr, nullptr, 0), BEVEL_OK);
  }
  ~HostArithmetic() {
    bevel_unregister_packed("test.sum");
    bevel_unregister_packed("test.less");
  }
  static int32_t sum(const bevel_ctx*, void*, const bevel_value* args, int32_t, bevel_value* result) {
    *result = intValue(args[0].v.i + args[1].v.i);
    return BEVEL_OK;
  }
  static int32_t less(const bevel_ctx*, void*, const bevel_value* args, int32_t, bevel_value* result) {
    *result = intValue(args[0].v.i < args[1].v.i);
    return BEVEL_OK;
  }
};

TEST(Vm, Loops) {
  HostArithmetic host;
  TestModel m;
  FunctionBuilder& f = m.image.addFunction("main"); // 0 + 1 + … + n - 1
  uint32_t n = f.addParam({.name = "n", .kind = BEVEL_PARAM_ANY});
  f.addResult({.name = "y", .kind = BEVEL_PARAM_ANY});
  uint32_t i = f.builtinTo("vm.move", {imm(0)}), total = f.builtinTo("vm.move", {imm(0)});
  uint32_t more = f.newRegister();
  auto head = f.newLabel(), end = f.newLabel();
  f.bind(head);
  f.packed("test.less", {reg(i), reg(n)}, more);
  f.branchUnless(more, end);
  f.packed("test.sum", {reg(total), reg(i)}, total);
  f.packed("test.sum", {reg(i), imm(1)}, i);
  f.jump(head);
  f.bind(end);
  f.ret({reg(total)});
  TestInstance run(m.load());
  for (int64_t count : {3, 0, 7}) {
    bevel_value result, arg = intValue(count);
    ASSERT_EQ(bevel_call(run, 0, &arg, 1, &result, 1), BEVEL_OK) << bevel_last_error();
    EXPECT_EQ(result.v.i, count * (count - 1) / 2);
  }
}

TEST(Vm, CallsFunctionsAndStopsEndlessRecursion) {
  HostArithmetic host;
  TestModel m;
  FunctionBuilder& f = m.image.addFunction("main"); // main(n) = n == 0 ? 0 : n + main(n - 1)
  uint32_t n = f.addParam({.name = "n", .kind = BEVEL_PARAM_ANY});
  f.addResult({.name = "y", .kind = BEVEL_PARAM_ANY});
  auto zero = f.newLabel();
  f.branchUnless(n, zero);
  uint32_t less = f.builtinTo("test.sum", {reg(n), imm(-1)}), rest = f.newRegister();
  f.function(0, {reg(less)}, rest);
  f.packed("test.sum", {reg(n), reg(rest)}, rest);
  f.ret({reg(rest)});
  f.bind(zero);
  f.ret({imm(0)});
  TestInstance run(m.load());
  bevel_value result, arg = intValue(10);
  ASSERT_EQ(bevel_call(run, 0, &arg, 1, &result, 1), BEVEL_OK) << bevel_last_error();
  EXPECT_EQ(result.v.i, 55);
  arg = intValue(-1);
  EXPECT_EQ(bevel_call(run, 0, &arg, 1, &result, 1), BEVEL_ERROR_REFUSED);
  EXPECT_STREQ(bevel_last_error(), "'main': calls are nested too deeply");
  arg = intValue(4);
  ASSERT_EQ(bevel_call(run, 0, &arg, 1, &result, 1), BEVEL_OK) << bevel_last_error();
  EXPECT_EQ(result.v.i, 10);
}

TEST(Vm, HandlesListsAndOptionals) {
  TestModel m;
  FunctionBuilder& f = m.image.addFunction("main");
  uint32_t list = f.addParam({.name = "list", .kind = BEVEL_PARAM_LIST, .dtype = kF32});
  uint32_t optional =
      f.addParam({.name = "optional", .kind = BEVEL_PARAM_OPTIONAL, .dtype = kF32, .unknownRank = true});
  for (int i = 0; i < 3; ++i) f.addResult({.name = "r", .kind = BEVEL_PARAM_ANY});
  uint32_t last = f.builtinTo("vm.tuple_get", {reg(list), imm(1)});
  uint32_t pair = f.builtinTo("vm.tuple", {reg(last), reg(list)});
  f.ret({reg(last), reg(pair), reg(optional)});
  TestInstance run(m.load());
  View one(std::vector<float>{1}), two(std::vector<float>{2});
  bevel_value args[2], item = one.value(), results[3];
  args[1] = {BEVEL_NONE, 0, {}};
  ASSERT_EQ(bevel_list_new(&args[0]), BEVEL_OK);
  ASSERT_EQ(bevel_list_append(&args[0], &item), BEVEL_OK);
  item = two.value();
  ASSERT_EQ(bevel_list_append(&args[0], &item), BEVEL_OK);
  EXPECT_EQ(bevel_list_append(&args[0], &args[0]), BEVEL_ERROR_USAGE);
  ASSERT_EQ(bevel_call(run, 0, args, 2, results, 3), BEVEL_OK) << bevel_last_error();
  EXPECT_EQ(elements<float>(bevel_tensor_view(results[0].v.tensor)), std::vector<float>{2});
  ASSERT_EQ(bevel_list_size(&results[1]), 2);
  ASSERT_EQ(bevel_list_get(&results[1], 0, &item), BEVEL_OK);
  EXPECT_EQ(elements<float>(bevel_tensor_view(item.v.tensor)), std::vector<float>{2});
  EXPECT_EQ(bevel_list_size(&args[0]), 2) << "the caller's list is left alone";
  EXPECT_EQ(results[2].kind, BEVEL_NONE);
  for (bevel_value& r : results) bevel_release(&r);
  args[1] = intValue(3); // no list
  std::swap(args[0], args[1]);
  EXPECT_EQ(bevel_call(run, 0, args, 2, results, 3), BEVEL_ERROR_REFUSED);
  EXPECT_STREQ(bevel_last_error(), "input 'list' of 'main': expected a list, given an integer");
  bevel_release(&args[1]);
}

TEST(Vm, UsesConstantsDefaultsAndText) {
  TestModel m;
  std::vector<float> weights = {1, 2, 3};
  int64_t three = 3, two = 2;
  uint32_t w = m.image.addConstant("w", kF32, {&three, 1}, std::as_bytes(std::span(weights)));
  std::vector<std::string> words = {"hello", ""};
  auto bytes = ImageBuilder::encodeTexts(words);
  uint32_t text = m.image.addConstant("text", kText, {&two, 1}, bytes);
  uint32_t add = m.addKernel({.name = "add", .numBuffers = 3, .numDims = 1}, addKernel);
  FunctionBuilder& f = m.image.addFunction("main");
  uint32_t x = f.addParam({.name = "x", .dtype = kF32, .dims = {3}, .defaultConstant = w});
  f.addResult({.name = "y", .dtype = kF32, .dims = {3}});
  f.addResult({.name = "t", .dtype = kText, .dims = {2}});
  uint32_t y = f.builtinTo("vm.alloc_output", {imm(0), imm(kF32), imm(3)});
  f.kernel(add, {reg(x), constant(w), reg(y), imm(3)});
  f.ret({reg(y), constant(text)});
  TestInstance run(m.load());
  ASSERT_EQ(bevel_run(run), BEVEL_OK) << bevel_last_error();
  EXPECT_EQ(elements<float>(bevel_output(run, 0)), (std::vector<float>{2, 4, 6}));
  bevel_value t;
  ASSERT_EQ(bevel_output_value(run, 1, &t), BEVEL_OK);
  const char* data;
  size_t size;
  ASSERT_EQ(bevel_tensor_string(t.v.tensor, 0, &data, &size), BEVEL_OK);
  EXPECT_EQ(std::string(data, size), "hello");
  ASSERT_EQ(bevel_tensor_string(t.v.tensor, 1, &data, &size), BEVEL_OK);
  EXPECT_EQ(size, 0u);
  EXPECT_EQ(bevel_tensor_string(t.v.tensor, 2, &data, &size), BEVEL_ERROR_USAGE);
  bevel_release(&t);
}

TEST(Vm, ShapesAndSlots) {
  TestModel m;
  FunctionBuilder& f = m.image.addFunction("main");
  uint32_t x = f.addParam({.name = "x", .dtype = kF32, .dims = {"a", "b"}});
  uint32_t s = f.addParam({.name = "s", .dtype = kI64, .dims = {2}});
  for (int i = 0; i < 3; ++i) f.addResult({.name = "r", .kind = BEVEL_PARAM_ANY});
  uint32_t p = f.newSlot(), q = f.newSlot();
  f.builtin("vm.load_slots", {reg(s), imm(p), imm(2)});
  uint32_t reshaped = f.builtinTo("vm.reshape", {reg(x), slot(p), slot(q)});
  uint32_t shape = f.builtinTo("vm.shape_of", {reg(reshaped)});
  f.builtin("vm.set_slot", {imm(p), imm(-7)});
  uint32_t made = f.builtinTo("vm.make_shape", {slot(p), imm(int64_t(1) << 62), slot(q)});
  f.ret({reg(reshaped), reg(shape), reg(made)});
  TestInstance run(m.load());
  View data(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3});
  View<int64_t> to({3, 2});
  bevel_value args[] = {data.value(), to.value()}, results[3];
  ASSERT_EQ(bevel_call(run, 0, args, 2, results, 3), BEVEL_OK) << bevel_last_error();
  EXPECT_EQ(shapeOf(bevel_tensor_view(results[0].v.tensor)), (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(elements<float>(bevel_tensor_view(results[0].v.tensor)), data.data);
  EXPECT_EQ(elements<int64_t>(bevel_tensor_view(results[1].v.tensor)), (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(elements<int64_t>(bevel_tensor_view(results[2].v.tensor)),
            (std::vector<int64_t>{-7, int64_t(1) << 62, 2}));
  for (bevel_value& r : results) bevel_release(&r);
  to.data = {4, 2};
  EXPECT_EQ(bevel_call(run, 0, args, 2, results, 3), BEVEL_ERROR_REFUSED);
  EXPECT_STREQ(bevel_last_error(), "cannot reshape float32[2, 3] to [4, 2]: another number of elements");
}

TEST(Vm, TellsWhichKernelFailedAndForWhichNodes) {
  TestModel m;
  uint32_t loud = m.addKernel({.name = "loud", .origins = "/Gather_3"},
                              [](const bevel_ctx* ctx, void* const*, const int64_t*, void*) -> int32_t {
                                ctx->fail(ctx, "index 7 is out of range");
                                return BEVEL_ERROR_REFUSED;
                              });
  uint32_t quiet =
      m.addKernel({.name = "quiet"}, [](const bevel_ctx*, void* const*, const int64_t*, void*) -> int32_t {
        return BEVEL_ERROR_INTERNAL;
      });
  FunctionBuilder& first = m.image.addFunction("first");
  first.kernel(loud, {});
  first.ret({});
  FunctionBuilder& second = m.image.addFunction("second");
  second.kernel(quiet, {});
  second.ret({});
  FunctionBuilder& third = m.image.addFunction("third");
  third.packed("nobody.registered.this", {}, BEVEL_NO_REGISTER);
  third.ret({});
  FunctionBuilder& fourth = m.image.addFunction("fourth");
  fourth.builtin("vm.check_equal", {imm(1), imm(2), str("the model says no")});
  fourth.ret({});
  TestInstance run(m.load());
  EXPECT_EQ(bevel_call(run, 0, nullptr, 0, nullptr, 0), BEVEL_ERROR_REFUSED);
  EXPECT_STREQ(bevel_last_error(), "'first', kernel 'loud' (/Gather_3): index 7 is out of range");
  EXPECT_EQ(bevel_call(run, 1, nullptr, 0, nullptr, 0), BEVEL_ERROR_INTERNAL);
  EXPECT_STREQ(bevel_last_error(), "'second', kernel 'quiet': returned status 1");
  EXPECT_EQ(bevel_call(run, 2, nullptr, 0, nullptr, 0), BEVEL_ERROR_MISSING);
  EXPECT_EQ(bevel_call(run, 3, nullptr, 0, nullptr, 0), BEVEL_ERROR_REFUSED);
  EXPECT_STREQ(bevel_last_error(), "the model says no: 1 is not 2");
}

/// Each thread sums its part into its own workspace; the dynamic workspace is larger at each call.
TEST(Vm, GivesWorkspaces) {
  TestModel m;
  auto kernel = [](const bevel_ctx* ctx, void* const* buffers, const int64_t* dims,
                   void* workspace) -> int32_t {
    struct Env {
      int64_t* sums;
      void* base;
    } env = {static_cast<int64_t*>(workspace), workspace};
    if (reinterpret_cast<uintptr_t>(workspace) % 64) return BEVEL_ERROR_INTERNAL;
    for (int t = 0; t < ctx->num_threads; ++t) env.sums[8 + 8 * t] = 0;
    int32_t status = ctx->parallel_for(
        ctx,
        [](const bevel_ctx* own, void* e, int64_t begin, int64_t end) -> int32_t {
          for (int64_t i = begin; i < end; ++i) static_cast<Env*>(e)->sums[8 + 8 * own->thread_id] += i;
          return BEVEL_OK;
        },
        &env, dims[0]);
    int64_t sum = 0;
    for (int t = 0; t < ctx->num_threads; ++t) sum += env.sums[8 + 8 * t];
    *static_cast<int64_t*>(buffers[0]) = sum;
    return status;
  };
  uint32_t fixed = m.addKernel(
      {.name = "fixed", .numBuffers = 1, .numDims = 1, .workspaceShared = 64, .workspacePerThread = 64},
      kernel);
  uint32_t dynamic =
      m.addKernel({.name = "dynamic", .numBuffers = 1, .numDims = 1, .dynamicWorkspace = true}, kernel);
  FunctionBuilder& f = m.image.addFunction("main");
  uint32_t n = f.addParam({.name = "n", .dtype = kI64, .dims = {1}});
  f.addResult({.name = "a", .dtype = kI64});
  f.addResult({.name = "b", .dtype = kI64});
  uint32_t s = f.newSlot();
  f.builtin("vm.load_slots", {reg(n), imm(s), imm(1)});
  uint32_t a = f.builtinTo("vm.alloc_output", {imm(0), imm(kI64)}),
           b = f.builtinTo("vm.alloc_output", {imm(1), imm(kI64)});
  f.kernel(fixed, {reg(a), slot(s)});
  f.kernel(dynamic, {reg(b), slot(s), imm(64), slot(s)});
  f.ret({reg(a), reg(b)});
  bevel_model* model = m.load();
  for (int threads : {1, 2, 5}) {
    TestInstance run(model, threads);
    for (int64_t count : {64, 128, 1024}) {
      View<int64_t> in({count});
      bevel_set_input(run, 0, in);
      ASSERT_EQ(bevel_run(run), BEVEL_OK) << bevel_last_error();
      EXPECT_EQ(*elements<int64_t>(bevel_output(run, 0)).data(), count * (count - 1) / 2);
      EXPECT_EQ(*elements<int64_t>(bevel_output(run, 1)).data(), count * (count - 1) / 2);
    }
  }
}

TEST(Vm, ProfilesEachCall) {
  TestModel m;
  buildAdd(m);
  bevel_model* model = m.load();
  TestInstance run(model, 1, true), off(model);
  View x(std::vector<float>{1, 2, 3});
  bevel_set_input(run, 0, x);
  bevel_set_input(run, 1, x);
  EXPECT_EQ(bevel_profile_num_rows(run), 0);
  for (int i = 0; i < 4; ++i) ASSERT_EQ(bevel_run(run), BEVEL_OK);
  ASSERT_EQ(bevel_profile_num_rows(run), 4);
  bevel_profile_entry row;
  ASSERT_EQ(bevel_profile_row(run, 3, &row), BEVEL_OK);
  EXPECT_STREQ(row.function, "main");
  EXPECT_STREQ(row.callee, "add");
  EXPECT_STREQ(row.origins, "/Add_1");
  EXPECT_STREQ(row.flops_text, "n");
  EXPECT_EQ(row.kind, BEVEL_CALLEE_KERNEL);
  EXPECT_EQ(row.calls, 4u);
  EXPECT_GT(row.nanoseconds, 0u);
  ASSERT_EQ(row.num_dims, 1);
  EXPECT_EQ(row.dims[0], 3);
  EXPECT_EQ(bevel_profile_row(run, 4, &row), BEVEL_ERROR_USAGE);
  bevel_profile_reset(run);
  EXPECT_EQ(bevel_profile_num_rows(run), 0);
  EXPECT_EQ(bevel_profile_num_rows(off), 0);
}

TEST(Vm, OneModelServesManyThreads) {
  TestModel m;
  buildArena(m);
  bevel_model* model = m.load();
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      TestInstance run(model, 1 + t % 2);
      for (size_t i = 0; i < 200; ++i) {
        size_t n = (i * 7 + size_t(t)) % 50;
        View x(std::vector<float>(n, float(t)));
        bevel_set_input(run, 0, x);
        if (bevel_run(run) || elements<float>(bevel_output(run, 0)) != std::vector<float>(n, 3.0f * float(t)))
          ++wrong;
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}
