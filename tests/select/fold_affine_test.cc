// Folding of batch norms and per-channel constants into weights.
#include "tests/select/support.h"

namespace bevel::test {
namespace {

// conv (any kind) → batch norm → relu, odd channel counts.
struct Case {
  const char* op;
  Ints x, w;
  std::vector<std::pair<std::string, NodeRef>> attrs;
  int64_t outputs;
};

TEST(FoldAffine, BatchNormBehindConvolution) {
  std::vector<Case> cases = {
      {"nn.conv2d",
       {2, 3, 7, 6},
       {5, 3, 3, 2},
       {{"strides", ints({2, 1})}, {"padding", ints({1, 0, 2, 1})}},
       5},
      {"nn.conv2d", {1, 6, 5, 5}, {4, 3, 3, 3}, {{"groups", intImm(2)}, {"dilation", ints({2, 1})}}, 4},
      {"nn.conv2d", {1, 5, 5, 5}, {5, 1, 3, 3}, {{"groups", intImm(5)}}, 5},
      {"nn.conv1d", {2, 3, 9}, {24, 3, 3}, {}, 24},
      {"nn.conv_transpose2d", {1, 4, 3, 3}, {4, 3, 2, 2}, {{"strides", ints({2, 2})}}, 3},
      {"nn.conv_transpose2d", {1, 4, 3, 3}, {4, 3, 2, 2}, {{"groups", intImm(2)}}, 6},
  };
  for (const Case& k : cases) {
    Values values;
    Graph g;
    GraphVar x = g.input("x", dims(k.x));
    g.begin();
    GraphExpr y = g.op(k.op, {x, values.constant(k.w)}, k.attrs);
    Ints c = {k.outputs};
    y = g.op("nn.batch_norm",
             {y, values.constant(c), values.constant(c), values.constant(c), values.constant(c, 0.5, 2)});
    Module after = checkPass(foldAffine, g.end({g.op("nn.relu", {y})}), {values.tensor(k.x)});
    EXPECT_EQ(countCalls(after, "nn.batch_norm"), 0) << k.op;
    EXPECT_EQ(countCalls(after, "add"), 1);
    EXPECT_EQ(countCalls(after, "multiply"), 0);
    EXPECT_EQ(countCalls(after, k.op), 1);
  }
}

TEST(FoldAffine, ChainOfConstantsBecomesOneBias) {
  Values values;
  Graph g;
  GraphVar x = g.input("x", dims({1, 3, 4, 4}));
  g.begin();
  GraphExpr y = g.op("nn.conv2d", {x, values.constant({5, 3, 1, 1})});
  y = g.op("add", {y, values.constant({1, 5, 1, 1})});
  y = g.op("multiply", {values.constant({5, 1, 1}), y});
  y = g.op("subtract", {scalarConstant(2), y});
  y = g.op("divide", {y, scalarConstant(3)});
  y = g.op("subtract", {y, values.constant({5, 1, 1})});
  Module after = checkPass(foldAffine, g.end({y}), {values.tensor({1, 3, 4, 4})});
  EXPECT_EQ(countCalls(after, "add"), 1);
  for (const char* gone : {"multiply", "subtract", "divide"}) EXPECT_EQ(countCalls(after, gone), 0);
}

TEST(FoldAffine, ScalarFactorInFront) {
  Values values;
  Graph g;
  GraphVar x = g.input("x", dims({1, 3, 5, 5}));
  g.begin();
  GraphExpr y = g.op(
      "nn.conv2d", {g.op("divide", {g.op("nn.relu", {x}), scalarConstant(6)}), values.constant({5, 3, 3, 3})},
      {{"padding", ints({1, 1})}});
  y = g.op("multiply", {scalarConstant(3), g.op("nn.relu", {y})});
  GraphExpr z = g.op("add", {y, g.op("nn.conv2d", {y, values.constant({5, 5, 1, 1})})}); // y is used again
  Module after = checkPass(foldAffine, g.end({z}), {values.tensor({1, 3, 5, 5})});
  EXPECT_EQ(countCalls(after, "divide"), 0);
  EXPECT_EQ(countCalls(after, "multiply"), 1);
}

TEST(FoldAffine, MatmulWithConstantWeights) {
  Values values;
  Graph g;
  GraphVar x = g.input("x", dims({2, 3, 4}));
  g.begin();
  GraphExpr y = g.op("matmul", {x, values.constant({4, 7})});
  y = g.op("add", {y, values.constant({7})});
  y = g.op("multiply", {y, scalarConstant(0.125)});
  Module after = checkPass(foldAffine, g.end({y}), {values.tensor({2, 3, 4})});
  EXPECT_EQ(countCalls(after, "multiply"), 0);
  EXPECT_EQ(countCalls(after, "add"), 1);
}

TEST(FoldAffine, LoneBatchNormOfSymbolicWidth) {
  Values values;
  Var w = var("w");
  Graph g;
  GraphVar x = g.input("x", {intImm(2), intImm(3), w});
  g.begin();
  GraphExpr y = g.op("nn.batch_norm", {x, values.constant({3}), values.constant({3}), values.constant({3}),
                                       values.constant({3}, 0.5, 2)});
  Module after = checkPass(foldAffine, g.end({y}), {values.tensor({2, 3, 5})});
  EXPECT_EQ(countCalls(after, "nn.batch_norm"), 0);
  EXPECT_EQ(countCalls(after, "multiply"), 1);
  EXPECT_EQ(countCalls(after, "add"), 1);
}

TEST(FoldAffine, RefusesWhatItMust) {
  Values values;
  Graph g;
  GraphVar x = g.input("x", dims({1, 3, 4, 5})), s = g.input("s", dims({5, 1, 1}));
  g.begin();
  GraphExpr y = g.op("nn.conv2d", {x, values.constant({5, 3, 1, 1})});
  GraphExpr twice = g.op("multiply", {y, values.constant({5, 1, 1})}); // y is used again
  GraphExpr along = g.op(
      "multiply", {g.op("nn.conv2d", {x, values.constant({5, 3, 1, 1})}), values.constant({5})}); // width
  GraphExpr dynamic = g.op("multiply", {g.op("nn.conv2d", {x, values.constant({5, 3, 1, 1})}), s});
  GraphExpr wider = g.op("multiply", {g.op("nn.conv2d", {x, values.constant({5, 3, 1, 1})}),
                                      values.constant({2, 5, 1, 1})}); // batch
  Module after = checkPass(foldAffine, g.end({y, twice, along, dynamic, wider}),
                           {values.tensor({1, 3, 4, 5}), values.tensor({5, 1, 1})});
  EXPECT_EQ(countCalls(after, "multiply"), 4);
}

TEST(FoldAffine, VarianceOfZeroWithoutEpsilonStays) {
  Values values;
  Graph g;
  GraphVar x = g.input("x", dims({1, 1, 2}));
  g.begin();
  GraphExpr zero = values.constant({1}, 0, 0);
  GraphExpr y = g.op("nn.batch_norm", {x, values.constant({1}), zero, zero, zero},
                     {{"epsilon", constantFloat(DType::Float(64), 0)}});
  auto after = foldAffine(g.end({y}));
  ASSERT_TRUE(after);
  EXPECT_EQ(countCalls(*after, "nn.batch_norm"), 1);
}

} // namespace
} // namespace bevel::test
