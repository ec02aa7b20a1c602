// Operators and converters of a program that uses the library: closures, registered after the importer has run.
#include "driver/compile.h"
#include "driver/session.h"

#include "base/file.h"
#include "graph/op.h"
#include "import/onnx_context.h"
#include "import/onnx_model_support.h"
#include "ops/ops.h"

#include <filesystem>
#include <gtest/gtest.h>
#include <unistd.h>

namespace bevel {
namespace {

using namespace test;

// Compiles a model and runs it on x.
Result<Tensor> runModel(const OnnxGraph& g, const Tensor& x) {
  std::string path =
      (std::filesystem::temp_directory_path() / ("bevel_user_operator_" + std::to_string(getpid()) + ".onnx"))
          .string();
  BEVEL_CHECK(writeFile(path, std::string_view(serialize(g, 18))));
  BuildOptions options;
  options.useCache = false;
  auto compiled = compileFile(path, options);
  std::filesystem::remove(path);
  if (!compiled) return fail(std::move(compiled.error()));
  BEVEL_TRY(auto program, load(*compiled));
  BEVEL_TRY(auto session, Session::create(program, 1));
  BEVEL_CHECK(session->setInput(0, HostValue{x}));
  BEVEL_CHECK(session->run());
  BEVEL_TRY(HostValue y, session->output(0));
  return y.tensor;
}

OnnxGraph chain(std::vector<OnnxNode> nodes) {
  OnnxGraph g;
  g.inputs = {{"x", {"4"}}};
  g.nodes = std::move(nodes);
  g.outputs = {g.nodes.back().outputs[0]};
  return g;
}

TEST(UserOperators, CapturingClosuresAreImportedCompiledAndRun) {
  registerOps();
  Tensor x = TensorObject::of(kFloat32, {4}, std::vector<double>{-1, 0, 0.5, 2});
  OnnxGraph user =
      chain({{"Scaled", {"x"}, {"a"}, {}, "user", ""}, {"ScaledTwice", {"a"}, {"y"}, {}, "user", ""}});
  ASSERT_TRUE(runModel(chain({{"Relu", {"x"}, {"y"}, {}, "", ""}}), x)); // the importer's tables are made
  auto before = runModel(user, x);
  ASSERT_FALSE(before);
  EXPECT_EQ(before.error().code, ErrorCode::kUnsupported);

  auto factor = std::make_shared<double>(3); // state of the program
  auto inferred = std::make_shared<int>(0);
  Op op = {.name = "user.scaled",
           .doc = "x times a number of the program",
           .inputs = {"x"},
           .infer = [inferred](const OpCall& call, InferContext&) -> Result<Type> {
             ++*inferred;
             return call.type(0);
           },
           .compute = [factor](const OpCall&, const TeTensors& in) -> Result<TeTensors> {
             return TeTensors{te::compute(in[0].shape(), "scaled", [&](const Array<Var>& i) {
               return in[0](Array<Expr>{i[0]}) * constantFloat(kFloat32, *factor);
             })};
           },
           .onnx = {{"Scaled", 1, 1 << 20, "user"}}};
  ASSERT_TRUE(OpRegistry::global().tryAdd(op));
  std::string name = op.name;
  onnx::Conversion twice{"ScaledTwice", 1,
                         [name](onnx::Node& n) -> Result<onnx::Values> {
                           BEVEL_TRY(GraphExpr once, n.emit(name, {n.x(0)}));
                           return n.emit(name, {once});
                         },
                         0, "user"};
  ASSERT_TRUE(onnx::addConversion(twice));
  auto again = onnx::addConversion(twice);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::kUsage);

  auto y = runModel(user, x);
  ASSERT_TRUE(y) << y.error().str();
  EXPECT_GE(*inferred, 3);
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ((*y)->asDouble(i), 27 * x->asDouble(i));
}

} // namespace
} // namespace bevel
