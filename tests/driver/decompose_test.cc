// The pass "decompose": operators that users define by others become those.
#include "driver/pipeline.h"

#include "graph/block_builder.h"
#include "graph/op.h"
#include "ir/parser.h"
#include "ir/structural.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

namespace bevel {
namespace {

std::string function(const std::string& body) {
  return R"(@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
        with R.dataflow():
)" + body +
         R"(            R.output(gv)
        return gv
)";
}

TEST(Decompose, CompositeOperatorsBecomeTheirDefinition) {
  registerOps();
  auto cube = [](const OpCall& c, BlockBuilder& b) -> Result<GraphExpr> {
    BEVEL_TRY(GraphExpr square, b.emit(opCall("multiply", {c.args[0], c.args[0]})));
    return GraphExpr(opCall("multiply", {square, c.args[0]}));
  };
  Op op = {.name = "user.cube",
           .doc = "x * x * x",
           .inputs = {"x"},
           .infer = findOp("nn.relu")->infer,
           .decompose = cube};
  ASSERT_TRUE(OpRegistry::global().tryAdd(op));
  auto before = parseModule(function("            gv: R.Tensor((4,), dtype=\"float32\") = R.user.cube(x)\n"));
  auto after =
      parseModule(function("            lv: R.Tensor((4,), dtype=\"float32\") = R.multiply(x, x)\n"
                           "            gv: R.Tensor((4,), dtype=\"float32\") = R.multiply(lv, x)\n"));
  ASSERT_TRUE(before && after);
  PipelineContext context{BuildOptions()};
  auto passes = selectPasses(knownPasses(context), "decompose");
  ASSERT_TRUE(passes);
  PassOptions options;
  options.verifyEach = true;
  auto got = runPasses(*passes, *before, options);
  ASSERT_TRUE(got) << got.error().str();
  EXPECT_TRUE(structuralEqual(*got, *after)) << firstDifference(*got, *after);
}

} // namespace
} // namespace bevel
