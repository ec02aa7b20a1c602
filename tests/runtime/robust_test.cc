// Arguments that make no sense, and files that are not whole.
#include "tests/runtime/support.h"

#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

using namespace bevel;
using namespace bevel::image;

TEST(Robust, NullText) {
  int64_t one = 1;
  bevel_tensor* tensor = nullptr;
  ASSERT_EQ(bevel_tensor_new({BEVEL_STRING_CODE, 0, 1}, 1, &one, &tensor), BEVEL_OK);
  EXPECT_EQ(bevel_tensor_set_string(tensor, 0, nullptr, 1), BEVEL_ERROR_USAGE);
  EXPECT_EQ(bevel_tensor_set_string(tensor, 0, nullptr, 0), BEVEL_OK);
  bevel_tensor_release(tensor);
}

// A part of a library that a full disk or a broken copy left is refused, whatever its length.
TEST(Robust, TruncatedLibrary) {
  std::filesystem::path whole = "/proc/self/exe",
                        cut = std::filesystem::temp_directory_path() / "bevel_cut_XXXXXX";
  std::string name = cut.string();
  int fd = mkstemp(name.data());
  ASSERT_GE(fd, 0);
  close(fd);
  std::filesystem::copy_file(whole, name, std::filesystem::copy_options::overwrite_existing);
  auto size = std::filesystem::file_size(name);
  for (uintmax_t length : {size / 2, size / 10, uintmax_t(100), uintmax_t(64), uintmax_t(3), uintmax_t(0)}) {
    std::filesystem::resize_file(name, length);
    bevel_model* model = nullptr;
    EXPECT_NE(bevel_model_load(name.c_str(), &model), BEVEL_OK) << length;
    EXPECT_NE(std::string(bevel_last_error()).find(name), std::string::npos) << bevel_last_error();
  }
  std::filesystem::remove(name);
}

// A run that is refused leaves the instance as it was before.
TEST(Robust, InstanceIsUsableAfterFailures) {
  TestModel m;
  FunctionBuilder& f = m.image.addFunction("main");
  uint32_t x = f.addParam({.name = "x", .kind = BEVEL_PARAM_ANY});
  f.addResult({.name = "y", .kind = BEVEL_PARAM_ANY});
  f.ret({reg(f.builtinTo("test.throws", {reg(x)}))});
  auto throws = [](const bevel_ctx*, void*, const bevel_value* args, int32_t,
                   bevel_value* result) -> int32_t {
    if (args[0].v.i == 0) throw std::bad_alloc();
    *result = args[0];
    return BEVEL_OK;
  };
  ASSERT_EQ(bevel_register_packed("test.throws", throws, nullptr, nullptr, 0), BEVEL_OK);
  TestInstance run(m.load());
  for (int i = 0; i < 3; ++i) {
    bevel_value bad = intValue(0), good = intValue(7), result = {};
    EXPECT_EQ(bevel_call(run, 0, &bad, 1, &result, 1), BEVEL_ERROR_MEMORY);
    ASSERT_EQ(bevel_call(run, 0, &good, 1, &result, 1), BEVEL_OK) << bevel_last_error();
    EXPECT_EQ(result.v.i, 7);
  }
  bevel_unregister_packed("test.throws");
}
