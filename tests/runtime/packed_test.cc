// Packed functions: registered by name, called from the host, from the virtual machine and from kernels.
#include "tests/runtime/support.h"

using namespace bevel;
using namespace bevel::image;

namespace {
/// Adds `self` to an integer.
int32_t addSelf(const bevel_ctx*, void* self, const bevel_value* args, int32_t n, bevel_value* result) {
  if (n != 1 || args[0].kind != BEVEL_INT) return bevel_fail(BEVEL_ERROR_REFUSED, "one integer, please");
  *result = intValue(args[0].v.i + *static_cast<int64_t*>(self));
  return BEVEL_OK;
}

/// env.double(x, out): destination passing on float32 tensors.
int32_t doubleInto(const bevel_ctx*, void*, const bevel_value* args, int32_t n, bevel_value*) {
  if (n != 2 || args[0].kind != BEVEL_TENSOR || args[1].kind != BEVEL_TENSOR) return BEVEL_ERROR_REFUSED;
  auto *x = bevel_tensor_view(args[0].v.tensor), *out = bevel_tensor_view(args[1].v.tensor);
  for (int64_t i = 0; i < x->shape[0]; ++i)
    static_cast<float*>(out->data)[i] = 2 * static_cast<const float*>(x->data)[i];
  return BEVEL_OK;
}
} // namespace

TEST(Packed, RegistersOverridesAndUnregisters) {
  static int deleted;
  deleted = 0;
  int64_t one = 1, ten = 10;
  auto deleter = [](void*) { ++deleted; };
  bevel_value arg = intValue(5), result;
  EXPECT_EQ(bevel_call_packed("test.add", &arg, 1, &result), BEVEL_ERROR_MISSING);
  ASSERT_EQ(bevel_register_packed("test.add", addSelf, &one, deleter, 0), BEVEL_OK);
  ASSERT_EQ(bevel_call_packed("test.add", &arg, 1, &result), BEVEL_OK);
  EXPECT_EQ(result.v.i, 6);
  EXPECT_EQ(bevel_register_packed("test.add", addSelf, &ten, deleter, 0), BEVEL_ERROR_USAGE);
  EXPECT_EQ(deleted, 0) << "a refused registration leaves self to the caller";
  ASSERT_EQ(bevel_register_packed("test.add", addSelf, &ten, deleter, 1), BEVEL_OK);
  EXPECT_EQ(deleted, 1);
  ASSERT_EQ(bevel_call_packed("test.add", &arg, 1, &result), BEVEL_OK);
  EXPECT_EQ(result.v.i, 15);
  EXPECT_EQ(bevel_call_packed("test.add", nullptr, 0, &result), BEVEL_ERROR_REFUSED);
  EXPECT_STREQ(bevel_last_error(), "one integer, please");
  EXPECT_EQ(bevel_register_packed("vm.add", addSelf, &one, nullptr, 1), BEVEL_ERROR_USAGE);
  ASSERT_EQ(bevel_unregister_packed("test.add"), BEVEL_OK);
  EXPECT_EQ(deleted, 2);
  EXPECT_EQ(bevel_unregister_packed("test.add"), BEVEL_ERROR_MISSING);
}

TEST(Packed, TheMachineCallsWhatIsRegisteredNow) {
  TestModel m;
  FunctionBuilder& f = m.image.addFunction("main");
  uint32_t x = f.addParam({.name = "x", .kind = BEVEL_PARAM_ANY});
  f.addResult({.name = "y", .kind = BEVEL_PARAM_ANY});
  f.ret({reg(f.builtinTo("test.late", {reg(x)}, "/Custom"))});
  TestInstance run(m.load());
  bevel_value arg = intValue(1), result;
  EXPECT_EQ(bevel_call(run, 0, &arg, 1, &result, 1), BEVEL_ERROR_MISSING);
  int64_t one = 1, ten = 10;
  ASSERT_EQ(bevel_register_packed("test.late", addSelf, &one, nullptr, 0), BEVEL_OK);
  ASSERT_EQ(bevel_call(run, 0, &arg, 1, &result, 1), BEVEL_OK) << bevel_last_error();
  EXPECT_EQ(result.v.i, 2);
  ASSERT_EQ(bevel_register_packed("test.late", addSelf, &ten, nullptr, 1), BEVEL_OK);
  ASSERT_EQ(bevel_call(run, 0, &arg, 1, &result, 1), BEVEL_OK);
  EXPECT_EQ(result.v.i, 11);
  arg = {BEVEL_NONE, 0, {}};
  EXPECT_EQ(bevel_call(run, 0, &arg, 1, &result, 1), BEVEL_ERROR_REFUSED);
  bevel_unregister_packed("test.late");
}

// main(x): y = (x + x) + (x + f(x + x)) where the arena's one place is used again after the call of f.
void expectCopyOfPlannedMemory(bevel_packed function) {
  ASSERT_EQ(bevel_register_packed("test.identity", function, nullptr, nullptr, 0), BEVEL_OK);
  TestModel m;
  uint32_t add = m.addKernel({.name = "add", .numBuffers = 3, .numDims = 1}, addKernel);
  FunctionBuilder& f = m.image.addFunction("main");
  uint32_t x = f.addParam({.name = "x", .dtype = kF32, .dims = {2}});
  f.addResult({.name = "y", .dtype = kF32, .dims = {2}});
  uint32_t arena = f.builtinTo("vm.alloc_storage", {imm(8)});
  uint32_t first = f.builtinTo("vm.alloc_tensor", {reg(arena), imm(0), imm(kF32), imm(2)});
  f.kernel(add, {reg(x), reg(x), reg(first), imm(2)});
  uint32_t same = f.builtinTo("test.identity", {reg(first)});
  uint32_t second = f.builtinTo("vm.alloc_tensor", {reg(arena), imm(0), imm(kF32), imm(2)});
  f.kernel(add, {reg(x), reg(same), reg(second), imm(2)}); // the plan sees no use of `first` any more
  uint32_t y = f.builtinTo("vm.alloc_output", {imm(0), imm(kF32), imm(2)});
  f.kernel(add, {reg(same), reg(second), reg(y), imm(2)});
  f.ret({reg(y)});
  TestInstance run(m.load());
  View in(std::vector<float>{1, 10});
  bevel_set_input(run, 0, in);
  ASSERT_EQ(bevel_run(run), BEVEL_OK) << bevel_last_error();
  EXPECT_EQ(elements<float>(bevel_output(run, 0)), (std::vector<float>{5, 50}));
  bevel_unregister_packed("test.identity");
}

TEST(Packed, AReturnedArgumentIsACopyOfPlannedMemory) {
  expectCopyOfPlannedMemory(
      [](const bevel_ctx*, void*, const bevel_value* args, int32_t, bevel_value* result) -> int32_t {
        bevel_retain(&args[0]);
        *result = args[0];
        return BEVEL_OK;
      });
}

TEST(Packed, AnArgumentReturnedByDlpackIsACopyOfPlannedMemory) {
  expectCopyOfPlannedMemory(
      [](const bevel_ctx*, void*, const bevel_value* args, int32_t, bevel_value* result) -> int32_t {
        DLManagedTensor* managed = nullptr;
        if (int32_t status = bevel_tensor_to_dlpack(args[0].v.tensor, &managed)) return status;
        result->kind = BEVEL_TENSOR;
        return bevel_tensor_from_dlpack(managed, &result->v.tensor);
      });
}

TEST(Packed, TheInstanceThatCallsCannotBeRunOrChanged) {
  static bevel_instance* caller;
  static int32_t statuses[3];
  auto again = [](const bevel_ctx*, void*, const bevel_value*, int32_t, bevel_value* result) -> int32_t {
    statuses[0] = bevel_run(caller);
    statuses[1] = bevel_select_function(caller, 0);
    statuses[2] = bevel_set_output(caller, 0, nullptr);
    *result = intValue(7);
    return BEVEL_OK;
  };
  ASSERT_EQ(bevel_register_packed("test.again", again, nullptr, nullptr, 0), BEVEL_OK);
  TestModel m;
  FunctionBuilder& f = m.image.addFunction("main");
  uint32_t x = f.addParam({.name = "x", .kind = BEVEL_PARAM_ANY});
  f.addResult({.name = "x", .kind = BEVEL_PARAM_ANY});
  f.addResult({.name = "y", .kind = BEVEL_PARAM_ANY});
  uint32_t y = f.builtinTo("test.again", {});
  f.ret({reg(x), reg(y)});
  TestInstance run(m.load());
  caller = run;
  View in(std::vector<float>{1, 2});
  bevel_set_input(run, 0, in);
  ASSERT_EQ(bevel_run(run), BEVEL_OK) << bevel_last_error();
  for (int32_t status : statuses) EXPECT_EQ(status, BEVEL_ERROR_USAGE);
  EXPECT_EQ(elements<float>(bevel_output(run, 0)), (std::vector<float>{1, 2}));
  bevel_value result;
  ASSERT_EQ(bevel_output_value(run, 1, &result), BEVEL_OK) << bevel_last_error();
  EXPECT_EQ(result.v.i, 7);
  bevel_unregister_packed("test.again");
}

TEST(Packed, FailuresNameTheNode) {
  TestModel m;
  FunctionBuilder& f = m.image.addFunction("main");
  f.packed("test.named", {str("x")}, BEVEL_NO_REGISTER, "/Custom_7");
  f.ret({});
  int64_t one = 1;
  ASSERT_EQ(bevel_register_packed("test.named", addSelf, &one, nullptr, 0), BEVEL_OK);
  TestInstance run(m.load());
  EXPECT_EQ(bevel_run(run), BEVEL_ERROR_REFUSED);
  EXPECT_STREQ(bevel_last_error(), "'main', call of 'test.named' (/Custom_7): one integer, please");
  bevel_unregister_packed("test.named");
}

TEST(Packed, DestinationPassing) {
  ASSERT_EQ(bevel_register_packed("env.double", doubleInto, nullptr, nullptr, 0), BEVEL_OK);
  TestModel m;
  FunctionBuilder& f = m.image.addFunction("main");
  uint32_t x = f.addParam({.name = "x", .dtype = kF32, .dims = {3}});
  f.addResult({.name = "y", .dtype = kF32, .dims = {3}});
  uint32_t y = f.builtinTo("vm.alloc_output", {imm(0), imm(kF32), imm(3)});
  f.builtin("env.double", {reg(x), reg(y)});
  f.ret({reg(y)});
  TestInstance run(m.load());
  View in(std::vector<float>{1, 2, 3});
  bevel_set_input(run, 0, in);
  ASSERT_EQ(bevel_run(run), BEVEL_OK) << bevel_last_error();
  EXPECT_EQ(elements<float>(bevel_output(run, 0)), (std::vector<float>{2, 4, 6}));
  bevel_unregister_packed("env.double");
}

TEST(Packed, KernelsPassViews) {
  ASSERT_EQ(bevel_register_packed("env.double", doubleInto, nullptr, nullptr, 0), BEVEL_OK);
  TestModel m;
  auto kernel = [](const bevel_ctx* ctx, void* const* buffers, const int64_t* dims, void*) -> int32_t {
    int64_t shape = dims[0];
    DLTensor views[2];
    bevel_value args[2];
    for (int i = 0; i < 2; ++i) {
      views[i] = {buffers[i], {kDLCPU, 0}, 1, {BEVEL_FLOAT_CODE, 32, 1}, &shape, nullptr, 0};
      args[i] = {BEVEL_VIEW, 0, {}};
      args[i].v.view = &views[i];
    }
    return ctx->call_packed(ctx, "env.double", args, 2, nullptr);
  };
  uint32_t k = m.addKernel({.name = "k", .numBuffers = 2, .numDims = 1}, kernel);
  FunctionBuilder& f = m.image.addFunction("main");
  uint32_t x = f.addParam({.name = "x", .dtype = kF32, .dims = {3}});
  f.addResult({.name = "y", .dtype = kF32, .dims = {3}});
  uint32_t y = f.builtinTo("vm.alloc_output", {imm(0), imm(kF32), imm(3)});
  f.kernel(k, {reg(x), reg(y), imm(3)});
  f.ret({reg(y)});
  TestInstance run(m.load());
  View in(std::vector<float>{1, 2, 3});
  bevel_set_input(run, 0, in);
  ASSERT_EQ(bevel_run(run), BEVEL_OK) << bevel_last_error();
  EXPECT_EQ(elements<float>(bevel_output(run, 0)), (std::vector<float>{2, 4, 6}));
  bevel_unregister_packed("env.double");
  EXPECT_EQ(bevel_run(run), BEVEL_ERROR_MISSING);
  EXPECT_STREQ(bevel_last_error(), "'main', kernel 'k': no packed function 'env.double' is registered");
}
