// What debuggers and profilers see of kernels compiled in this process: the interfaces by which gdb and perf
// learn of them.
#include "llvm_support.h"

#include "base/file.h"

#include <cstdlib>
#include <filesystem>

// gdb's JIT interface, as its manual gives it.
extern "C" {
struct jit_code_entry {
  jit_code_entry *next, *previous;
  const char* symfile;
  uint64_t size;
};
struct jit_descriptor {
  uint32_t version, action;
  jit_code_entry *relevant, *first;
};
extern jit_descriptor __jit_debug_descriptor;
}

using namespace bevel;
using namespace bevel::test;

namespace {

Origin origin(const char* node) {
  auto o = make<OriginObject>();
  o->nodes = {node};
  return Origin(o);
}

/// Z = relu(X * 3), as two ONNX nodes fused into one kernel.
KernelSource fusedKernel() {
  Var n = var("n"), i = var("i"), j = var("j");
  Buffer x = buffer("X", kFloat32, {n}), y = buffer("Y", kFloat32, {n}), z = buffer("Z", kFloat32, {n});
  Stmt multiply = withOrigin(store(y, load(x, {i}) * constantFloat(kFloat32, 3), {i}), origin("/layer1/Mul"));
  Stmt relu =
      withOrigin(store(z, max(load(y, {j}), constantFloat(kFloat32, 0)), {j}), origin("/layer1/Relu"));
  PrimFunc f = flatFunction({x, y, z}, seq({forLoop(i, n, multiply), forLoop(j, n, relu)}));
  auto both = make<OriginObject>();
  both->nodes = {"/layer1/Mul", "/layer1/Relu"};
  return {"debugged_kernel", withOrigin(f, Origin(both))};
}

TEST(LlvmDebug, GdbLearnsOfKernelsAndNodes) {
  auto module = jit({fusedKernel()});
  ASSERT_TRUE(module);
  std::string_view shown;
  for (jit_code_entry* e = __jit_debug_descriptor.first; e; e = e->next)
    if (std::string_view text(e->symfile, e->size); text.find("debugged_kernel") != text.npos) shown = text;
  ASSERT_FALSE(shown.empty());
  using namespace std::string_view_literals;
  EXPECT_NE(shown.find("debugged_kernel [/layer1/Mul, /layer1/Relu]\0"sv), shown.npos);
  EXPECT_NE(shown.find("\0/layer1/Mul\0"sv), shown.npos);
  EXPECT_NE(shown.find("\0/layer1/Relu\0"sv), shown.npos);
  EXPECT_NE(shown.find("debugged_kernel.bevel\0"sv), shown.npos);
}

TEST(LlvmDebug, PerfLearnsOfKernelsAndLines) {
  namespace fs = std::filesystem;
  std::string folder = (fs::temp_directory_path() / "bevel-perf-XXXXXX").string();
  ASSERT_TRUE(mkdtemp(folder.data()));
  setenv("JITDUMPDIR", folder.c_str(), 1);
  setenv("BEVEL_PERF", "1", 1);
  auto module = jit({fusedKernel()});
  unsetenv("BEVEL_PERF");
  unsetenv("JITDUMPDIR");
  ASSERT_TRUE(module);
  std::string dump;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".dump") {
      auto bytes = readFile(entry.path().string());
      ASSERT_TRUE(bytes) << bytes.error().str();
      dump = *bytes;
    }
  fs::remove_all(folder);
  using namespace std::string_view_literals;
  EXPECT_NE(dump.find("debugged_kernel\0"sv), dump.npos);
  EXPECT_NE(dump.find("debugged_kernel.bevel\0"sv), dump.npos);
}

} // namespace
