// The pass runner, constants beside the text, and rendered errors.
#include "ir/pass.h"

#include "base/file.h"
#include "ir/build.h"
#include "ir/constants.h"
#include "ir/render.h"
#include "ir/structural.h"
#include "ir/verify.h"
#include "tests/ir/text_support.h"

#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>
#include <unistd.h>

namespace bevel {
namespace {

Module sample() {
  auto m = parseModule("@I.ir_module\nclass M:\n  @T.prim_func\n  def f(A: T.Buffer((8,), \"float32\")):\n   "
                       " for i in range(8):\n      A[i] = 1.0\n"
                       "  @R.function\n  def g(x: R.Tensor((2,), \"float32\")) -> R.Tensor((2,), "
                       "\"float32\"):\n    return x\n");
  BEVEL_ASSERT(m.has_value(), "sample");
  return *m;
}

Pass mark(const std::string& name) {
  return {name, "marks programs", nullptr,
          [name](const PrimFunc& f) -> Result<PrimFunc> { return withAttr(f, name, intImm(1)); }};
}
Pass nothing() {
  return {"nothing", "changes nothing", [](const Module& m) -> Result<Module> { return m; }};
}
Pass refuses() {
  return {"refuses", "fails", nullptr,
          [](const PrimFunc&) -> Result<PrimFunc> { return fail(ErrorCode::kUnsupported, "no"); }};
}

struct TempDir {
  std::string path =
      (std::filesystem::temp_directory_path() / ("bevel_ir_test_" + std::to_string(::getpid()))).string();
  TempDir() { std::filesystem::create_directories(path); }
  ~TempDir() { std::filesystem::remove_all(path); }
};

TEST(Passes, RunInOrderWithTimings) {
  std::vector<PassTiming> timings;
  std::vector<std::string> printed;
  PassOptions options;
  options.timings = &timings, options.printChanged = true, options.verifyEach = true,
  options.roundTripEach = true;
  options.print = [&](const std::string& title, const std::string&) { printed.push_back(title); };
  auto m = runPasses({mark("a"), nothing(), mark("b")}, sample(), options);
  ASSERT_TRUE(m.has_value()) << m.error().str();
  auto f = cast<PrimFuncNode>((*m)->find("f"));
  EXPECT_EQ(attrInt(f->attrs, "a") + attrInt(f->attrs, "b"), 2);
  ASSERT_EQ(timings.size(), 3u);
  EXPECT_TRUE(timings[0].changed);
  EXPECT_FALSE(timings[1].changed);
  EXPECT_EQ(printed, (std::vector<std::string>{"after a", "after b"}));
  EXPECT_NE(timingTable(timings).find("nothing"), std::string::npos);
}

TEST(Passes, StopAfterDisableAndSelect) {
  PassOptions options;
  options.stopAfter = "a", options.disabled = {"a"};
  auto m = runPasses({mark("a"), mark("b")}, sample(), options);
  ASSERT_TRUE(m.has_value());
  EXPECT_TRUE(structuralEqual(*m, sample()));
  options.stopAfter = "zz";
  auto unknown = runPasses({mark("a")}, sample(), options);
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().code, ErrorCode::kUsage);
  Pass needed = mark("b");
  needed.needed = true;
  options = {};
  options.disabled = {"b"};
  EXPECT_FALSE(runPasses({mark("a"), needed}, sample(), options).has_value());
  auto chosen = selectPasses({mark("a"), mark("b"), nothing()}, "b, nothing");
  ASSERT_TRUE(chosen.has_value());
  EXPECT_EQ((*chosen)[0].name, "b");
  EXPECT_FALSE(selectPasses({mark("a")}, "a,x").has_value());
}

TEST(Passes, FailuresNameThePassAndTheFunction) {
  auto m = runPasses({mark("a"), refuses()}, sample());
  ASSERT_FALSE(m.has_value());
  EXPECT_EQ(m.error().notes, (std::vector<std::string>{"in function 'f'", "in pass 'refuses'"}));
  Pass breaks = {"breaks", "", nullptr, [](const PrimFunc& f) -> Result<PrimFunc> {
                   auto copy = mutableCopy(f);
                   copy->body = nullptr;
                   return PrimFunc(copy);
                 }};
  PassOptions options;
  options.verifyEach = true;
  auto broken = runPasses({breaks}, sample(), options);
  ASSERT_FALSE(broken.has_value());
  EXPECT_EQ(broken.error().notes.back(), "after pass 'breaks'");
}

/// Programs that run at once come back in the order of the module, and the first of the faults is told.
TEST(Passes, ProgramsAtOnce) {
  Module many = make<const ModuleNode>();
  auto f = cast<PrimFuncNode>(sample()->find("f"));
  for (int64_t i = 0; i < 50; ++i)
    many = withFunction(many, "f" + std::to_string(i), withAttr(f, "i", intImm(i)));
  PassOptions options;
  options.threads = 8;
  auto twice = [](const PrimFunc& g) -> Result<PrimFunc> {
    int64_t i = attrInt(g->attrs, "i");
    if (i == 20 || i == 40) return g;
    return withAttr(g, "i", intImm(2 * i));
  };
  auto m = runPasses({{"twice", "", nullptr, twice}}, many, options);
  ASSERT_TRUE(m.has_value());
  for (int64_t i = 0; i < 50; ++i) {
    auto g = cast<PrimFuncNode>((*m)->functions[size_t(i)]);
    EXPECT_EQ(attrInt(g->attrs, "i"), i == 20 || i == 40 ? i : 2 * i);
    EXPECT_EQ((*m)->names[size_t(i)]->name, "f" + std::to_string(i));
  }
  auto fails = [](const PrimFunc& g) -> Result<PrimFunc> {
    if (attrInt(g->attrs, "i") >= 7) return fail(ErrorCode::kUnsupported, "no");
    return g;
  };
  auto failed = runPasses({{"fails", "", nullptr, fails}}, many, options);
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().notes, (std::vector<std::string>{"in function 'f7'", "in pass 'fails'"}));
}

TEST(Passes, DumpEveryStage) {
  TempDir dir;
  PassOptions options;
  options.dumpDir = dir.path + "/stages";
  ASSERT_TRUE(runPasses({mark("a"), nothing(), mark("a")}, sample(), options).has_value());
  for (const char* name : {"input.txt", "a.txt", "nothing.txt", "a_2.txt"}) {
    auto m = readModule(dir.path + "/stages/" + name);
    EXPECT_TRUE(m.has_value()) << name << (m ? "" : m.error().str());
  }
  EXPECT_EQ(*readFile(dir.path + "/stages/order"), "input.txt\na.txt\nnothing.txt\na_2.txt\n");
}

TEST(ConstantFiles, ModulesWithWeights) {
  TempDir dir;
  GraphVar v = make<const GraphVarNode>("v", nullptr);
  Array<NodeRef> bindings;
  Array<GraphExpr> leaves;
  for (DType t : {kFloat32, DType::Float(16), DType::Int(4), DType::BFloat16(), kBool, kInt64,
                  DType{TypeCode::kFloat8E4M3FN, 8, 1}, DType{TypeCode::kComplex, 64, 1}}) {
    auto tensor = TensorObject::zeros(t, {3, 7});
    for (int64_t i = 0; i < tensor->byteSize(); ++i)
      tensor->mutableBytes()[i] = std::byte(t.isBool() ? i & 1 : i * 37);
    GraphVar x = make<const GraphVarNode>("x", tensorType(t, {3, 7}));
    bindings.push_back(
        make<const VarBindingNode>(x, make<const ConstantNode>(tensor, "weight of " + t.str())));
    leaves.push_back(x);
  }
  auto block = make<const BindingBlockNode>(bindings, false);
  GraphExpr result = make<const TupleNode>(leaves);
  Function f = make<const FunctionNode>(
      Array<GraphVar>{}, make<const SeqExprNode>(Array<BindingBlock>{block}, result), result->type);
  Module m = withFunction(make<const ModuleNode>(), "main", f);
  std::string path = dir.path + "/m.txt";
  ASSERT_TRUE(writeModule(path, m).has_value());
  auto again = readModule(path);
  ASSERT_TRUE(again.has_value()) << again.error().str();
  EXPECT_TRUE(structuralEqual(m, *again)) << firstDifference(m, *again);
  auto* first = cast<FunctionNode>((*again)->find("main"))->body->blocks[0]->bindings[0].as<VarBindingNode>();
  EXPECT_EQ(first->value.as<ConstantNode>()->name, "weight of float32");
  std::filesystem::remove(constantsPath(path));
  EXPECT_FALSE(readModule(path).has_value());
}

std::string headerFault(const std::string& dir, const std::string& header, size_t data,
                        int64_t claimed = -1) {
  std::string bytes(8, '\0');
  uint64_t n = claimed < 0 ? header.size() : uint64_t(claimed);
  for (int i = 0; i < 8; ++i) bytes[size_t(i)] = char(n >> (8 * i));
  bytes += header + std::string(data, 'x');
  BEVEL_ASSERT(writeFile(dir + "/h.safetensors", bytes).has_value(), "write");
  auto r = readSafetensors(dir + "/h.safetensors");
  return r ? "" : r.error().message;
}

TEST(ConstantFiles, HostileHeaders) {
  TempDir dir;
  auto entry = [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return "{\"a\":{\"dtype\":" + dtype + ",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}}";
  };
  EXPECT_EQ(headerFault(dir.path, entry("\"F32\"", "[2]", "[0,8]"), 8), "");
  EXPECT_EQ(headerFault(dir.path, entry("\"F32\"", "[]", "[1,5]"), 8), "") << "not aligned";
  EXPECT_EQ(headerFault(dir.path, "{}", 0), "");
  for (const std::string& header :
       {entry("\"F32\"", "[2]", "[0,9]"), entry("\"F32\"", "[3]", "[0,8]"), entry("\"F32\"", "[2]", "[8,0]"),
        entry("\"F32\"", "[2]", "[4294967296,4294967304]"), entry("\"F32\"", "[-2]", "[0,8]"),
        entry("\"F32\"", "[9223372036854775807,9223372036854775807]", "[0,8]"),
        entry("\"F32\"", "[4611686018427387906]", "[0,8]"), entry("\"F99\"", "[2]", "[0,8]"),
        entry("7", "[2]", "[0,8]"), entry("\"F32\"", "{}", "[0,8]"), entry("\"F32\"", "[2]", "[0]"),
        entry("\"F32\"", "[1.5]", "[0,8]"), std::string("{\"a\":7}"), std::string("["), std::string("[]"),
        std::string("{\"__metadata__\":{\"a\":1}}"), std::string(100000, '['),
        std::string("{\"a\":") + std::string(100000, '{')})
    EXPECT_NE(headerFault(dir.path, header, 8), "") << header.substr(0, 200);
  EXPECT_NE(headerFault(dir.path,
                        "{\"a\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]},\"b\":{\"dtype\":"
                        "\"U8\",\"shape\":[4],\"data_offsets\":[4,8]}}",
                        8),
            "")
      << "overlap";
  EXPECT_NE(headerFault(dir.path, "{}", 0, 1 << 20), "");
  EXPECT_NE(headerFault(dir.path, "{}", 0, INT64_MAX), "");
}

TEST(Render, UnderlinesTheIr) {
  Buffer a = buffer("A", kFloat32, {intImm(8)});
  Var i = var("i");
  auto origin = make<OriginObject>();
  origin->nodes = {"/layer1/Add"};
  Expr bad = load(a, {intImm(9)});
  auto placed = mutableCopy(cast<LoadNode>(bad));
  placed->origin = origin;
  PrimFunc f = make<const PrimFuncNode>(
      Array<Var>{a->data}, Array<Buffer>{a},
      forLoop(i, intImm(8), store(a, Expr(placed) + constantFloat(kFloat32, 1), {i})));
  auto fault = verify(f);
  ASSERT_FALSE(fault.has_value());
  Error error = fault.error();
  error.nodes = {Ref<const Object>(placed.get())};
  RenderOptions options;
  options.within = f;
  EXPECT_EQ(render(error, options),
            "error: index 9 lies outside dimension 0 of buffer 'A', which has 8 elements\n"
            "  | def main(A: T.Buffer((T.int64(8),), \"float32\")):\n"
            "  |     for i in range(T.int64(8)):\n"
            "  |         A[i] = A[9] + T.float32(1.0)\n"
            "  |                ^^^^\n"
            "  model node: /layer1/Add\n");
  options.within = nullptr;
  EXPECT_NE(render(error, options).find("A[9]"), std::string::npos);
  options.color = true;
  EXPECT_NE(render(error, options).find("\033["), std::string::npos);
}

TEST(Render, ShowsTheSource) {
  auto m = parseModule("@T.prim_func\ndef f():\n    T.evaluate(q)\n", "m.txt");
  ASSERT_FALSE(m.has_value());
  EXPECT_EQ(render(m.error()),
            "m.txt:3:16: error: undefined variable 'q'\n  3 |     T.evaluate(q)\n    |                ^\n");
}

} // namespace
} // namespace bevel
