// Compiling as a whole: threads and determinism, the on-disk cache, debug information, other targets, shared
// libraries.
#include "llvm_support.h"

#include "base/file.h"
#include "codegen/cache.h"
#include "codegen/link.h"
#include "ir/structural.h"
#include "runtime/abi/image.h"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <sys/resource.h>

using namespace bevel;
using namespace bevel::test;

namespace {

/// y[i] = x[i] * factor, and a different factor makes a different kernel.
PrimFunc scale(float factor, bool parallel = false) {
  Var n = var("n"), i = var("i");
  Buffer x = buffer("X", kFloat32, {n}), y = buffer("Y", kFloat32, {n});
  Stmt body = store(y, load(x, {i}) * constantFloat(kFloat32, factor), {i});
  return flatFunction({x, y}, forLoop(i, n, body, parallel ? ForKind::kParallel : ForKind::kSerial));
}

struct TemporaryFolder {
  std::string path;
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "bevel-test-XXXXXX").string();
    path = mkdtemp(name.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path); }
};

std::vector<KernelSource> manyKernels() {
  std::vector<KernelSource> kernels;
  for (int i = 0; i < 12; ++i) kernels.push_back({"scale" + std::to_string(i), scale(float(i), i % 2)});
  return kernels;
}

} // namespace

TEST(LlvmCompile, BytesDoNotDependOnThreads) {
  CompileOptions options;
  options.useCache = false;
  std::vector<KernelSource> kernels = manyKernels();
  options.threads = 1;
  auto serial = compileObjects(kernels, Target::host(), options);
  ASSERT_TRUE(serial) << serial.error().str();
  for (int threads : {2, 5}) {
    options.threads = threads;
    CompileStats stats;
    auto parallel = compileObjects(kernels, Target::host(), options, &stats);
    ASSERT_TRUE(parallel);
    EXPECT_EQ(*parallel, *serial);
    EXPECT_EQ(stats.compiled, 12);
  }
}

TEST(LlvmCompile, SeveralJitsAtOnce) {
  std::vector<std::thread> threads;
  std::vector<int> good(4, 0);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      auto module = jit({{"scale", scale(float(t + 1))}});
      if (!module) return;
      std::vector<float> x = {1, 2, 3}, y(3);
      Context ctx;
      good[size_t(t)] =
          ctx.run(module->kernel("scale"), {x.data(), y.data()}, {3}) == 0 && y[2] == 3 * float(t + 1);
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(good, std::vector<int>(4, 1));
}

TEST(LlvmCompile, NamesMustBeUnique) {
  std::vector<KernelSource> twice = {{"k", scale(1)}, {"k", scale(2)}};
  EXPECT_EQ(compileObjects(twice, Target::host()).error().code, ErrorCode::kUsage);
}

TEST(LlvmCompile, ForeignTargetIsNotJitted) {
  Target foreign = *Target::parse(Target::host().architecture().maxKeepsNaN ? "x86-64" : "aarch64");
  std::vector<KernelSource> kernels = {{"k", scale(1, true)}};
  EXPECT_EQ(compileJit(kernels, foreign).error().code, ErrorCode::kUsage);
  CompileOptions options;
  options.useCache = false;
  auto objects = compileObjects(kernels, foreign, options);
  ASSERT_TRUE(objects) << objects.error().str();
  EXPECT_EQ((*objects)[0].substr(0, 4), "\x7f"
                                        "ELF");
}

TEST(KernelCacheTest, FindsWhatWasStoredAndIgnoresDamage) {
  TemporaryFolder folder;
  KernelCache cache(folder.path + "/sub");
  CacheKey key = cacheKey("text"), other = cacheKey("text ");
  EXPECT_NE(key, other);
  EXPECT_NE(key, cacheKey("texu"));
  EXPECT_FALSE(cache.find(key));
  std::string bytes(1000, 'x');
  cache.store(key, bytes);
  EXPECT_EQ(cache.find(key), bytes);
  EXPECT_FALSE(cache.find(other));
  std::string file = *readFile(cache.path(key));
  for (size_t at : {size_t(0), size_t(9), size_t(30), size_t(39), file.size() - 1}) {
    std::string damaged = file;
    damaged[at] = char(damaged[at] ^ 1);
    ASSERT_TRUE(writeFile(cache.path(key), damaged));
    EXPECT_FALSE(cache.find(key)) << at;
  }
  for (size_t size : {size_t(0), size_t(39), size_t(40), file.size() - 1}) {
    ASSERT_TRUE(writeFile(cache.path(key), file.substr(0, size)));
    EXPECT_FALSE(cache.find(key)) << size;
  }
  ASSERT_TRUE(writeFile(cache.path(other), file));
  EXPECT_FALSE(cache.find(other)) << "a file under another key's name";
  cache.store(key, bytes);
  EXPECT_EQ(cache.find(key), bytes);
  EXPECT_FALSE(KernelCache("").enabled());
  EXPECT_FALSE(KernelCache("").find(key));
}

TEST(KernelCacheTest, TrimRemovesTheLeastRecentlyUsed) {
  TemporaryFolder folder;
  KernelCache cache(folder.path), small(folder.path, 4 * 4096);
  std::vector<CacheKey> keys;
  auto now = std::filesystem::file_time_type::clock::now();
  for (int i = 0; i < 5; ++i) {
    keys.push_back(cacheKey("k" + std::to_string(i)));
    cache.store(keys.back(), std::string(900, char('a' + i)));
    std::filesystem::last_write_time(cache.path(keys.back()), now - std::chrono::seconds(100 - i));
  }
  ASSERT_TRUE(cache.find(keys[0]));         // used just now
  small.store(cacheKey("newest"), "bytes"); // fits in when two have gone
  EXPECT_TRUE(cache.find(cacheKey("newest")));
  EXPECT_TRUE(cache.find(keys[0]));
  EXPECT_FALSE(cache.find(keys[1]));
  EXPECT_FALSE(cache.find(keys[2]));
  EXPECT_TRUE(cache.find(keys[3]));
  EXPECT_TRUE(cache.find(keys[4]));
}

/// What the folder's objects take on disk, in blocks of 4 KiB.
int64_t bytesIn(const std::string& folder) {
  int64_t total = 0;
  for (const auto& e : std::filesystem::directory_iterator(folder))
    if (e.path().extension() == ".o") total += (int64_t(e.file_size()) + 4095) / 4096 * 4096;
  return total;
}

// Each store is one of a new process: what the others stored counts.
TEST(KernelCacheTest, StaysBelowItsLimit) {
  TemporaryFolder folder;
  for (int i = 0; i < 20; ++i) {
    CacheKey key = cacheKey("k" + std::to_string(i));
    KernelCache(folder.path, 14000).store(key, std::string(1000, 'x'));
    EXPECT_LE(bytesIn(folder.path), 14000) << i;
    EXPECT_TRUE(KernelCache(folder.path).find(key)) << "the newest one stays";
  }
  CacheKey large = cacheKey("large");
  KernelCache(folder.path, 14000).store(large, std::string(14000, 'x'));
  EXPECT_FALSE(KernelCache(folder.path).find(large)) << "larger than the limit";
  std::filesystem::remove(folder.path + "/bevel-cache-size"); // counted anew
  KernelCache(folder.path, 14000).store(cacheKey("again"), std::string(1000, 'x'));
  EXPECT_LE(bytesIn(folder.path), 14000);
}

TEST(KernelCacheTest, ManyThreadsStayBelowTheLimit) {
  TemporaryFolder folder;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      KernelCache cache(folder.path, 80000);
      for (int i = 0; i < 30; ++i)
        cache.store(cacheKey(std::to_string(t) + "/" + std::to_string(i)), std::string(1000, 'x'));
    });
  for (std::thread& t : threads) t.join();
  EXPECT_LE(bytesIn(folder.path), 80000);
  EXPECT_GE(bytesIn(folder.path), 40000);
}

// Objects are run: nobody else may have been able to put them there.
TEST(KernelCacheTest, IsNotUsedWhereOthersMayWrite) {
  namespace fs = std::filesystem;
  TemporaryFolder folder;
  KernelCache cache(folder.path);
  CacheKey key = cacheKey("k");
  cache.store(key, "bytes");
  ASSERT_TRUE(cache.find(key));
  EXPECT_EQ(cache.refusal(), "");
  for (fs::perms open : {fs::perms::others_write, fs::perms::group_write}) {
    fs::permissions(folder.path, open, fs::perm_options::add);
    EXPECT_FALSE(cache.find(key));
    EXPECT_EQ(cache.refusal(), "others may write to it");
    cache.store(cacheKey("other"), "bytes");
    fs::permissions(folder.path, open, fs::perm_options::remove);
    EXPECT_FALSE(cache.find(cacheKey("other")));
    fs::permissions(cache.path(key), open, fs::perm_options::add);
    EXPECT_FALSE(cache.find(key)) << "a file that others may write to";
    fs::permissions(cache.path(key), open, fs::perm_options::remove);
    EXPECT_TRUE(cache.find(key));
  }
  KernelCache made(folder.path + "/new");
  made.store(key, "bytes");
  EXPECT_EQ(fs::status(folder.path + "/new").permissions(), fs::perms::owner_all);
  // Another user's folder: root gives one away, and for everybody else that of root is one.
  const bool root = geteuid() == 0;
  if (root) {
    ASSERT_EQ(chown(cache.path(key).c_str(), 12345, 12345), 0);
    EXPECT_FALSE(cache.find(key)) << "a file of another owner";
    ASSERT_EQ(chown(folder.path.c_str(), 12345, 12345), 0);
  }
  EXPECT_EQ(KernelCache(root ? folder.path : "/").refusal(), "it belongs to another user");
}

// Links and pipes of the cache's names are neither followed nor waited for.
TEST(KernelCacheTest, WritesThroughNothing) {
  namespace fs = std::filesystem;
  TemporaryFolder folder, elsewhere;
  KernelCache cache(folder.path);
  CacheKey key = cacheKey("k"), piped = cacheKey("p");
  std::string mine = elsewhere.path + "/mine";
  ASSERT_TRUE(writeFile(mine, std::string_view("precious")));
  fs::create_symlink(mine, cache.path(key));
  fs::create_symlink(mine, folder.path + "/bevel-cache-size");
  ASSERT_EQ(mkfifo(cache.path(piped).c_str(), 0600), 0);
  EXPECT_FALSE(cache.find(key));
  EXPECT_FALSE(cache.find(piped));
  cache.store(key, "bytes");
  cache.store(piped, "bytes");
  EXPECT_EQ(*readFile(mine), "precious");
  fs::remove(folder.path + "/bevel-cache-size");
  ASSERT_EQ(mkfifo((folder.path + "/bevel-cache-size").c_str(), 0600), 0);
  cache.store(key, "bytes");
  EXPECT_EQ(*readFile(mine), "precious");
}

TEST(KernelCacheTest, LeavesFilesThatAreNotItsOwn) {
  TemporaryFolder folder;
  KernelCache cache(folder.path, 5000);
  CacheKey key = cacheKey("k");
  auto old = std::filesystem::file_time_type::clock::now() - std::chrono::hours(100);
  std::vector<std::string> mine = {
      folder.path + "/model.onnx", folder.path + "/main.o", folder.path + "/a.o.abcdef",
      folder.path + "/trimmed",    cache.path(key),         cache.path(cacheKey("x")) + ".abcdef"};
  for (const std::string& path : mine) {
    ASSERT_TRUE(writeFile(path, std::string_view("my own work")));
    std::filesystem::last_write_time(path, old);
  }
  for (int i = 0; i < 10; ++i) cache.store(cacheKey(std::to_string(i)), "bytes");
  cache.store(key, "bytes");
  for (const std::string& path : mine) EXPECT_EQ(readFile(path).value_or(""), "my own work") << path;
}

TEST(KernelCacheTest, TrimRemovesWhatKilledStoresLeft) {
  TemporaryFolder folder;
  KernelCache cache(folder.path);
  CacheKey key = cacheKey("k");
  cache.store(key, "bytes");
  std::string old = cache.path(key) + ".aBcDe1", young = cache.path(key) + ".aBcDe2",
              foreign = folder.path + "/notes";
  for (const std::string& path : {old, young, foreign}) {
    ASSERT_TRUE(writeFile(path, std::string_view("BEVELKC1 half")));
    auto age = path == young ? std::chrono::minutes(1) : std::chrono::minutes(600);
    std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - age);
  }
  std::filesystem::remove(folder.path + "/bevel-cache-size"); // counted anew
  cache.store(cacheKey("next"), "bytes");
  EXPECT_TRUE(cache.find(key));
  EXPECT_FALSE(std::filesystem::exists(old));
  EXPECT_TRUE(std::filesystem::exists(young)) << "another process may be writing it";
  EXPECT_TRUE(std::filesystem::exists(foreign));
}

TEST(KernelCacheTest, SecondCompileComesFromDisk) {
  TemporaryFolder folder;
  KernelCache cache(folder.path);
  CompileOptions options;
  options.cache = &cache;
  std::vector<KernelSource> kernels = manyKernels();
  CompileStats cold, warm, changed;
  auto first = compileObjects(kernels, Target::host(), options, &cold);
  auto second = compileObjects(kernels, Target::host(), options, &warm);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(*first, *second);
  EXPECT_EQ(cold.compiled, 12);
  EXPECT_EQ(warm.fromCache, 12);
  kernels[3].function = scale(99);
  ASSERT_TRUE(compileObjects(kernels, Target::host(), options, &changed));
  EXPECT_EQ(changed.compiled, 1);
  ASSERT_TRUE(compileObjects(kernels, *Target::parse("x86-64-v2"), options, &changed));
  EXPECT_EQ(changed.compiled, 12) << "another target";
}

TEST(LlvmCompile, DebugInformationNamesNodesAndLines) {
  PrimFunc f = scale(3);
  auto origin = make<OriginObject>();
  origin->nodes = {"/layer1/Mul"};
  auto text = llvmText({"scale", withOrigin(f, Origin(origin))}, Target::host(), LlvmStage::kEmitted);
  ASSERT_TRUE(text) << text.error().str();
  EXPECT_NE(text->find("scale [/layer1/Mul]"), std::string::npos);
  EXPECT_NE(text->find("filename: \"scale.bevel\""), std::string::npos);
  EXPECT_NE(text->find("!DILocation(line: 6"), std::string::npos) << *text;
}

TEST(Link, SharedLibraryRunsAndHidesTheRest) {
  TemporaryFolder folder;
  CompileOptions options;
  options.useCache = false;
  std::vector<KernelSource> kernels = {{"twice", scale(2, true)}, {"thrice", scale(3)}};
  auto objects = compileObjects(kernels, Target::host(), options);
  ASSERT_TRUE(objects) << objects.error().str();
  std::string image = "not a real image", weights(100000, 'w'), more = "and more";
  auto bytes = [](const std::string& s) { return std::as_bytes(std::span(s.data(), s.size())); };
  std::string data = folder.path + "/data.o", library = folder.path + "/model.so";
  ASSERT_TRUE(writeDataObject({{"model_image", {bytes(image)}, 8},
                               {"model_weights", {bytes(weights), bytes(more)}, 64},
                               {"nothing", {}, 1}},
                              Target::host(), data));
  ImageTable table;
  table.imageSymbol = "model_image", table.imageSize = image.size();
  table.kernels = {"thrice", "twice"};
  table.weightsSymbol = "model_weights", table.weightsSize = weights.size() + more.size();
  auto tableObject = imageTableObject(table, Target::host());
  ASSERT_TRUE(tableObject) << tableObject.error().str();
  LinkJob job;
  job.objects = *objects;
  job.objects.push_back(*tableObject);
  job.files = {data};
  job.exports = {table.symbol, "twice"};
  job.soname = "model.so";
  job.allowUndefined = false;
  Status linked = linkSharedLibrary(job, Target::host(), library);
  ASSERT_TRUE(linked) << linked.error().str();
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(handle, nullptr) << dlerror();
  EXPECT_NE(dlsym(handle, "twice"), nullptr);
  EXPECT_EQ(dlsym(handle, "thrice"), nullptr);
  EXPECT_EQ(dlsym(handle, "model_weights"), nullptr);
  const auto* loaded = static_cast<const bevel_image*>(dlsym(handle, "bevel_image_v1"));
  ASSERT_NE(loaded, nullptr);
  EXPECT_EQ(loaded->size, sizeof(bevel_image));
  ASSERT_EQ(loaded->num_kernels, 2u);
  EXPECT_EQ(std::string(static_cast<const char*>(loaded->image), loaded->image_size), image);
  EXPECT_EQ(std::string(static_cast<const char*>(loaded->weights), loaded->weights_size), weights + more);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(loaded->weights) % 64, 0u);
  EXPECT_EQ(loaded->weights_file, nullptr);
  std::vector<float> x = {1, 2, 3}, y(3);
  Context ctx(2);
  ASSERT_EQ(ctx.run(loaded->kernels[0], {x.data(), y.data()}, {3}), 0);
  EXPECT_EQ(y, (std::vector<float>{3, 6, 9}));
  ASSERT_EQ(ctx.run(loaded->kernels[1], {x.data(), y.data()}, {3}), 0);
  EXPECT_EQ(y, (std::vector<float>{2, 4, 6}));
  dlclose(handle);
}

TEST(Link, MoreObjectsThanFilesMayBeOpen) {
  TemporaryFolder folder;
  LinkJob job;
  for (int i = 0; i < 100; ++i) {
    ImageTable table;
    table.symbol = "table_" + std::to_string(i);
    auto object = imageTableObject(table, Target::host());
    ASSERT_TRUE(object) << object.error().str();
    job.objects.push_back(*object + std::string(i % 2, '\0')); // odd sizes too
    job.exports.push_back(table.symbol);
  }
  rlimit before, few;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  few = before, few.rlim_cur = 64;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  Status linked = linkSharedLibrary(job, Target::host(), folder.path + "/x.so");
  setrlimit(RLIMIT_NOFILE, &before);
  ASSERT_TRUE(linked) << linked.error().str();
  void* handle = dlopen((folder.path + "/x.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(handle, nullptr) << dlerror();
  for (const std::string& symbol : job.exports) EXPECT_NE(dlsym(handle, symbol.c_str()), nullptr) << symbol;
  dlclose(handle);
}

TEST(Link, ErrorsNameTheSymbol) {
  TemporaryFolder folder;
  ImageTable table;
  table.kernels = {"missing_kernel"};
  auto object = imageTableObject(table, Target::host());
  ASSERT_TRUE(object);
  LinkJob job;
  job.objects = {*object};
  job.exports = {table.symbol};
  job.allowUndefined = false;
  Status linked = linkSharedLibrary(job, Target::host(), folder.path + "/x.so");
  ASSERT_FALSE(linked);
  EXPECT_NE(linked.error().str().find("missing_kernel"), std::string::npos);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path));
}

TEST(Link, ObjectsAndLibrariesNameTheirMachine) {
  const std::pair<const char*, int> machines[] = {{"x86-64-v3", 62}, {"aarch64", 183}, {"riscv64", 243}};
  for (auto [name, machine] : machines) {
    Target target = *Target::parse(name);
    TemporaryFolder folder;
    CompileOptions options;
    options.useCache = false;
    std::vector<KernelSource> kernels = {{"k", scale(2, true)}};
    auto objects = compileObjects(kernels, target, options);
    ASSERT_TRUE(objects) << objects.error().str();
    std::string image = "the image's bytes..", data = folder.path + "/data.o",
                library = folder.path + "/x.so";
    ASSERT_TRUE(writeDataObject({{"image", {std::as_bytes(std::span(image))}, 8}}, target, data));
    ImageTable table;
    table.imageSymbol = "image", table.imageSize = image.size();
    table.kernels = {"k"};
    auto tableObject = imageTableObject(table, target);
    ASSERT_TRUE(tableObject) << tableObject.error().str();
    LinkJob job;
    job.objects = *objects;
    job.objects.push_back(*tableObject);
    job.files = {data};
    job.exports = {table.symbol};
    Status linked = linkSharedLibrary(job, target, library);
    ASSERT_TRUE(linked) << name << ": " << linked.error().str();
    for (const std::string& bytes : {(*objects)[0], *tableObject, *readFile(data), *readFile(library)}) {
      ASSERT_GT(bytes.size(), 20u);
      EXPECT_EQ(uint8_t(bytes[18]) | uint8_t(bytes[19]) << 8, machine) << name; // e_machine
    }
  }
}

TEST(Link, TargetsWithoutElfAreRefused) {
  for (const char* text : {"wasm32", "x86-64,triple=s390x-unknown-linux-gnu"}) {
    Target target = *Target::parse(text);
    TemporaryFolder folder;
    Status linked = linkSharedLibrary({}, target, folder.path + "/x.so");
    ASSERT_FALSE(linked);
    EXPECT_EQ(linked.error().code, ErrorCode::kUnsupported);
    EXPECT_NE(linked.error().str().find(target.triple), std::string::npos) << linked.error().str();
    EXPECT_EQ(writeDataObject({}, target, folder.path + "/x.o").error().code, ErrorCode::kUnsupported);
    EXPECT_EQ(imageTableObject({}, target).error().code, ErrorCode::kUnsupported);
    EXPECT_TRUE(std::filesystem::is_empty(folder.path));
  }
}
