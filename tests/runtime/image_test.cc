// Images are checked when loaded: damaged and hostile ones are refused or run to an error, never to a crash.
#include "runtime/cpu.h"
#include "tests/runtime/support.h"

#include <cstring>
#include <unistd.h>

using namespace bevel;
using namespace bevel::image;

/// Read by the address sanitizer: an allocation of a damaged size should fail, as malloc does, and not end
/// the process.
extern "C" const char* __asan_default_options() {
  return "allocator_may_return_null=1";
}

namespace {

int32_t nothing(const bevel_ctx*, void* const*, const int64_t*, void*) {
  return BEVEL_OK;
}

/// A little of everything: constants, text, several functions, branches, lists, a kernel that does nothing
/// (so that a damaged call cannot harm).
void buildSample(TestModel& m) {
  static const std::vector<float> weights(20, 1.0f);
  static const auto words = ImageBuilder::encodeTexts(std::vector<std::string>{"one", "two"});
  int64_t dims[] = {4, 5}, two = 2;
  uint32_t w = m.image.addConstant("w", kF32, dims, std::as_bytes(std::span(weights)));
  uint32_t t = m.image.addConstant("words", kText, {&two, 1}, words);
  uint32_t k = m.addKernel(
      {.name = "kernel", .numBuffers = 2, .numDims = 1, .workspaceShared = 64, .origins = "/a;/b"}, nothing);
  uint32_t d = m.addKernel({.name = "dynamic", .numBuffers = 1, .dynamicWorkspace = true}, nothing);
  static const std::vector<float> code(3, 1.0f); // of a device that no machine has; nothing calls its kernel
  uint32_t device =
      m.image.addTarget({.name = "other", .device = kDLExtDev, .code = std::as_bytes(std::span(code))});
  m.addKernel(
      {.name = "there", .numBuffers = 1, .numDims = 1, .target = device, .launch = {4, 1, -1, 32, 1, 1, 256}},
      nullptr);
  FunctionBuilder& helper = m.image.addFunction("helper");
  helper.setPrivate();
  uint32_t a = helper.addParam({.name = "a", .dtype = kF32, .dims = {"n", 5}});
  helper.addResult({.name = "b", .dtype = kF32, .dims = {"n", 5}});
  helper.ret({reg(a)});
  FunctionBuilder& f = m.image.addFunction("main");
  uint32_t x = f.addParam({.name = "x", .dtype = kF32, .dims = {"n", 5}, .defaultConstant = w});
  f.addResult({.name = "y", .dtype = kF32, .dims = {"n", 5}});
  f.addResult({.name = "words", .dtype = kText, .dims = {2}});
  uint32_t n = f.newSlot(), s = f.newSlot();
  f.builtin("vm.match_shape",
            {reg(x), imm(0), imm(kF32), imm(2), imm(BEVEL_DIM_BIND), imm(n), imm(BEVEL_DIM_EQUAL), imm(5)});
  uint32_t arena = f.builtinTo("vm.alloc_storage", {imm(256)});
  uint32_t u = f.builtinTo("vm.alloc_tensor", {reg(arena), imm(64), imm(kF32), slot(n), imm(5)});
  f.kernel(k, {reg(x), reg(u), slot(n)});
  f.kernel(d, {heap(), imm(8), slot(s)}, "/c");
  uint32_t r = f.newRegister();
  f.function(0, {reg(x)}, r);
  auto skip = f.newLabel();
  uint32_t c = f.builtinTo("vm.move", {imm(int64_t(1) << 60)});
  f.branchUnless(c, skip);
  uint32_t list = f.builtinTo("vm.tuple", {reg(r), flt(0.5), str("text")});
  f.packed("vm.tuple_get", {reg(list), imm(0)}, r);
  f.bind(skip);
  f.ret({reg(r), constant(t)});
}

/// Loads the bytes as an image and, where that works, runs it (with a bound on memory: damaged sizes may be
/// large).
int32_t tryImage(const bevel_image& good, const void* bytes, uint64_t size) {
  bevel_image image = good;
  image.image = bytes, image.image_size = size;
  bevel_model* model = nullptr;
  int32_t status = bevel_model_from_image(&image, nullptr, &model);
  if (status) {
    EXPECT_EQ(model, nullptr);
    EXPECT_STRNE(bevel_last_error(), "");
    return status;
  }
  TestInstance run(model);
  status = bevel_run(run);
  bevel_model_release(model);
  return status;
}

/// A copy that ends where its heap block ends, so that the address sanitizer sees every read beyond.
struct Exact {
  Exact(const void* from, size_t size) : data(aligned_alloc(8, (size + 7) / 8 * 8)) {
    memcpy(data, from, size);
  }
  ~Exact() { free(data); }
  void* data;
};

} // namespace

TEST(Image, TheSampleRuns) {
  TestModel m;
  buildSample(m);
  const bevel_image& good = m.build();
  EXPECT_EQ(tryImage(good, good.image, good.image_size), BEVEL_OK) << bevel_last_error();
}

TEST(Image, TruncatedAtEveryByte) {
  TestModel m;
  buildSample(m);
  const bevel_image& good = m.build();
  for (uint64_t size = 0; size < good.image_size; ++size) {
    Exact copy(good.image, size_t(size));
    EXPECT_EQ(tryImage(good, copy.data, size), BEVEL_ERROR_REFUSED) << size;
  }
}

TEST(Image, DamagedBytes) {
  TestModel m;
  buildSample(m);
  const bevel_image& good = m.build();
  size_t size = good.image_size, refused = 0;
  Exact copy(good.image, size);
  auto* bytes = static_cast<uint8_t*>(copy.data);
  // Endless loops are possible in damaged code; the sample's jumps only go forward, and a jump word that is
  // damaged to go back is the only way to one, so the code's jump words keep their low bits.
  auto* header = static_cast<const bevel_image_header*>(good.image);
  size_t code = header->code.offset, end = code + header->code.count * 8;
  for (size_t at = 0; at < size; ++at) {
    bool inCode = at >= code && at < end;
    for (uint8_t pattern : {0xff, 0x01, 0x80, 0x10}) {
      uint8_t before = bytes[at];
      bytes[at] ^= pattern;
      uint64_t word;
      memcpy(&word, bytes + at / 8 * 8, 8);
      bool mayLoop =
          inCode && ((word & 0xff) == BEVEL_OP_JUMP || (word & 0xff) == BEVEL_OP_BRANCH || word < 64);
      if (!mayLoop) refused += tryImage(good, bytes, size) != BEVEL_OK;
      bytes[at] = before;
    }
  }
  EXPECT_GT(refused, size / 2);
}

TEST(Image, OtherVersionsAndFormsAreRefused) {
  TestModel m;
  buildSample(m);
  bevel_image image = m.build();
  auto* header = reinterpret_cast<bevel_image_header*>(m.block().data());
  header->abi_version = BEVEL_ABI_VERSION + 1;
  EXPECT_EQ(tryImage(image, image.image, image.image_size), BEVEL_ERROR_REFUSED);
  EXPECT_NE(std::string(bevel_last_error()).find("compile the model again"), std::string::npos);
  header->abi_version = BEVEL_ABI_VERSION;
  bevel_model* model;
  image.num_kernels = 1;
  EXPECT_EQ(bevel_model_from_image(&image, nullptr, &model), BEVEL_ERROR_REFUSED);
  image.num_kernels = 3;
  image.size = 8;
  EXPECT_EQ(bevel_model_from_image(&image, nullptr, &model), BEVEL_ERROR_REFUSED);
  image.size = sizeof image;
  image.weights_size = 63;
  EXPECT_EQ(bevel_model_from_image(&image, nullptr, &model), BEVEL_ERROR_REFUSED);
  image.weights = nullptr;
  for (const char* file : {"../weights", "/etc/passwd", "..", ""}) {
    image.weights_file = file;
    EXPECT_EQ(bevel_model_from_image(&image, nullptr, &model), BEVEL_ERROR_REFUSED) << file;
  }
  image.weights_file = "no-such-file.weights";
  EXPECT_EQ(bevel_model_from_image(&image, nullptr, &model), BEVEL_ERROR_MISSING);
  EXPECT_EQ(bevel_model_load("/no/such/model.so", &model), BEVEL_ERROR_MISSING);
  EXPECT_EQ(bevel_model_from_image(nullptr, nullptr, &model), BEVEL_ERROR_USAGE);
}

/// main calls kernel `spec` of a section.
struct OfSection {
  TestModel m;
  explicit OfSection(const TargetSpec& target, KernelSpec spec, bevel_kernel kernel = nothing) {
    spec.target = m.image.addTarget(target);
    uint32_t k = m.addKernel(spec, kernel);
    FunctionBuilder& f = m.image.addFunction("main");
    f.addResult({.name = "y", .kind = BEVEL_PARAM_ANY});
    f.kernel(k, {});
    f.ret({imm(1)});
  }
  std::string fault() {
    const bevel_image& image = m.build();
    return tryImage(image, image.image, image.image_size) == BEVEL_OK ? "" : bevel_last_error();
  }
};

TEST(Image, SectionsThatCannotRun) {
  auto processor = [](const char* features) {
    return OfSection({.name = "fast", .features = features}, {.name = "k"}).fault();
  };
  EXPECT_EQ(processor(""), "");
  EXPECT_EQ(processor("never_made nor_this"),
            "kernel 'k' is for fast and needs never_made, nor_this, which this processor "
            "does not have: compile the model for a lesser target");
  std::vector<std::byte> code(5);
  auto device = [&](std::vector<int64_t> launch, uint32_t type = kDLExtDev, bool hasCode = true) {
    TargetSpec target{.name = "there", .device = type};
    if (hasCode) target.code = code;
    return OfSection(target, {.name = "k", .launch = launch}, nullptr).fault();
  };
  EXPECT_EQ(device({1, 1, 1, 1, 1, 1, 0}),
            "kernel 'k' is for there and needs a device of type 12, which this run time does not have");
  const char* extents = "malformed image: the extents of a launch";
  EXPECT_EQ(device({0, 1, 1, 1, 1, 1, 0}), extents);
  EXPECT_EQ(device({1, 1, 1, 1, 1, -1, 0}), extents) << "no such dim";
  EXPECT_EQ(device({1, 1, INT64_MAX, 1, 1, 1, 0}), extents);
  EXPECT_EQ(device({1, 1, 1, 1, 1, 1, -1}), extents);
  EXPECT_EQ(device({1, 1, 1}), "malformed image: a launch outside of its section");
  EXPECT_EQ(device({}), "malformed image: a launch outside of its section");
  EXPECT_EQ(device({1, 1, 1, 1, 1, 1, 0}, kDLCPU), "malformed image: a section's code");
  EXPECT_EQ(device({1, 1, 1, 1, 1, 1, 0}, kDLExtDev, false), "malformed image: a section's code");
  EXPECT_EQ(device({1, 1, 1, 1, 1, 1, 0}, kDLCPU, false), "malformed image: the launch of a CPU's kernel");
}

TEST(Image, HostileSections) {
  auto fault = [](auto damage) {
    TestModel m;
    buildSample(m);
    bevel_image image = m.build();
    char* base = reinterpret_cast<char*>(m.block().data());
    auto* header = reinterpret_cast<bevel_image_header*>(base);
    damage(header, reinterpret_cast<bevel_target_entry*>(base + header->targets.offset),
           reinterpret_cast<bevel_kernel_entry*>(base + header->kernels.offset));
    return tryImage(image, image.image, image.image_size) == BEVEL_OK ? "" : std::string(bevel_last_error());
  };
  using H = bevel_image_header*;
  using T = bevel_target_entry*;
  using K = bevel_kernel_entry*;
  EXPECT_EQ(fault([](H, T, K) {}), "");
  EXPECT_EQ(fault([](H h, T, K) { h->targets.count = 0; }), "malformed image: no target");
  EXPECT_EQ(fault([](H h, T, K) { h->targets.count = UINT64_MAX / 8; }),
            "malformed image: a section lies outside");
  EXPECT_EQ(fault([](H h, T, K) { h->bytes.count = h->image_size; }),
            "malformed image: a section lies outside");
  EXPECT_EQ(fault([](H, T t, K) { t[1].code = UINT64_MAX; }), "malformed image: code outside of its section");
  EXPECT_EQ(fault([](H, T t, K) { t[1].code_size = UINT64_MAX; }),
            "malformed image: code outside of its section");
  EXPECT_EQ(fault([](H, T t, K) { t[1].code_size = 13; }), "malformed image: code outside of its section");
  EXPECT_EQ(fault([](H, T t, K) { t[0].features = 1 << 30; }),
            "malformed image: text outside of its section");
  EXPECT_EQ(fault([](H, T, K k) { k[0].target = 2; }), "malformed image: a kernel of no section");
  EXPECT_EQ(fault([](H, T, K k) { k[2].launch = UINT64_MAX - 1; }),
            "malformed image: a launch outside of its section");
}

TEST(Cpu, MissingFeatures) {
  auto old = [](std::string_view name) { return name == "sse3" || name == "avx"; };
  auto none = [](std::string_view) { return false; };
  EXPECT_EQ(rt::missingFeatures("", none), "");
  EXPECT_EQ(rt::missingFeatures("avx sse3", old), "");
  EXPECT_EQ(rt::missingFeatures("avx avx2 fma sse3", old), "avx2, fma");
  EXPECT_EQ(rt::missingFeatures("avx avx2", none), "avx, avx2");
  EXPECT_EQ(rt::missingFeatures("no_such_feature"), "no_such_feature");
}

TEST(Image, ReadsWeightsFromAFile) {
  TestModel m;
  buildSample(m);
  bevel_image image = m.build();
  std::string name = "bevel-weights-" + std::to_string(getpid()), path = testing::TempDir() + name;
  FILE* file = fopen(path.c_str(), "wb");
  ASSERT_TRUE(file);
  fwrite(image.weights, 1, size_t(image.weights_size), file);
  fclose(file);
  image.weights = nullptr, image.weights_file = name.c_str();
  bevel_model* model = nullptr;
  ASSERT_EQ(bevel_model_from_image(&image, testing::TempDir().c_str(), &model), BEVEL_OK)
      << bevel_last_error();
  {
    TestInstance run(model);
    ASSERT_EQ(bevel_run(run), BEVEL_OK) << bevel_last_error();
    EXPECT_EQ(elements<float>(bevel_output(run, 0)), std::vector<float>(20, 1.0f));
  }
  bevel_model_release(model);
  remove(path.c_str());
}

/// Code that a compiler would never write.
TEST(Image, HostileCode) {
  auto status = [](auto write) {
    TestModel m;
    int64_t two = 2;
    static const std::vector<float> pair = {1, 2};
    m.image.addConstant("w", kF32, {&two, 1}, std::as_bytes(std::span(pair)));
    FunctionBuilder& f = m.image.addFunction("main");
    f.addResult({.name = "y", .kind = BEVEL_PARAM_ANY});
    write(f);
    const bevel_image& image = m.build();
    return tryImage(image, image.image, image.image_size);
  };
  using F = FunctionBuilder;
  auto builtin = [&](const char* name, F::Args args) {
    return status([&](F& f) { f.ret({reg(f.builtinTo(name, args))}); });
  };
  EXPECT_EQ(status([](F& f) { f.ret({imm(1)}); }), BEVEL_OK);
  EXPECT_NE(status([](F&) {}), BEVEL_OK) << "no code";
  EXPECT_NE(status([](F& f) { f.ret({}); }), BEVEL_OK) << "other results";
  EXPECT_NE(status([](F& f) { f.ret({reg(0)}); }), BEVEL_OK) << "no such register";
  EXPECT_NE(status([](F& f) { f.ret({slot(0)}); }), BEVEL_OK) << "no such slot";
  EXPECT_NE(status([](F& f) { f.ret({constant(1)}); }), BEVEL_OK) << "no such constant";
  EXPECT_NE(status([](F& f) { f.jump(f.newLabel()); }), BEVEL_OK) << "a jump to nowhere";
  EXPECT_NE(builtin("vm.no_such_builtin", {}), BEVEL_OK);
  EXPECT_NE(builtin("vm.alloc_storage", {imm(-1)}), BEVEL_OK);
  EXPECT_NE(builtin("vm.alloc_storage", {imm(int64_t(1) << 55)}), BEVEL_OK);
  EXPECT_NE(builtin("vm.alloc_storage", {}), BEVEL_OK);
  EXPECT_NE(builtin("vm.alloc_tensor", {none(), imm(0), imm(kF32), imm(INT64_MAX), imm(INT64_MAX)}),
            BEVEL_OK);
  EXPECT_NE(builtin("vm.alloc_tensor", {none(), imm(0), imm(kF32), imm(-1)}), BEVEL_OK);
  EXPECT_NE(builtin("vm.alloc_tensor", {none(), imm(0), imm(77)}), BEVEL_OK);
  EXPECT_NE(builtin("vm.alloc_output", {imm(0), imm(kText), imm(INT64_MAX / 64)}), BEVEL_OK);
  EXPECT_NE(builtin("vm.reshape", {constant(0), imm(3)}), BEVEL_OK);
  EXPECT_NE(builtin("vm.load_slots", {constant(0), imm(0), imm(2)}), BEVEL_OK);
  EXPECT_NE(builtin("vm.set_slot", {imm(0), imm(2)}), BEVEL_OK);
  EXPECT_NE(builtin("vm.match_shape", {constant(0), imm(0), imm(-1), imm(1)}), BEVEL_OK);
  EXPECT_NE(builtin("vm.match_shape", {constant(0), imm(0), imm(-1), imm(1), imm(BEVEL_DIM_BIND), imm(9)}),
            BEVEL_OK);
  EXPECT_NE(builtin("vm.match_shape", {imm(0), imm(0), imm(-1), imm(-1)}), BEVEL_OK);
  EXPECT_NE(builtin("vm.tuple_get", {imm(0), imm(0)}), BEVEL_OK);
  EXPECT_NE(status([](F& f) {
              uint32_t list = f.builtinTo("vm.tuple", {imm(1)});
              f.ret({reg(f.builtinTo("vm.tuple_get", {reg(list), imm(1)}))});
            }),
            BEVEL_OK);
  EXPECT_NE(status([](F& f) { // lists nested without end
              uint32_t list = f.builtinTo("vm.tuple", {});
              auto again = f.newLabel();
              f.bind(again);
              f.packed("vm.tuple", {reg(list)}, list);
              f.jump(again);
            }),
            BEVEL_OK);
  EXPECT_NE(status([](F& f) { // views in an arena that is too small
              uint32_t arena = f.builtinTo("vm.alloc_storage", {imm(8)});
              f.ret({reg(f.builtinTo("vm.alloc_tensor", {reg(arena), imm(4), imm(kF32), imm(2)}))});
            }),
            BEVEL_OK);
}
