// Channels last regions: results stay, and transposes appear only at their borders.
#include "tests/select/support.h"

namespace bevel::test {
namespace {

using Attrs = std::vector<std::pair<std::string, NodeRef>>;

GraphExpr conv(Graph& g, Values& values, const GraphExpr& x, const Ints& weight, Attrs attrs = {}) {
  return g.op("nn.conv2d", {x, values.constant(weight)}, std::move(attrs));
}

// conv → bias → relu with kernel 3 and padding 1.
GraphExpr block(Graph& g, Values& values, const GraphExpr& x, int64_t in, int64_t out) {
  GraphExpr y = conv(g, values, x, {out, in, 3, 3}, {{"padding", ints({1, 1})}});
  return g.op("nn.relu", {g.op("add", {y, values.constant({out, 1, 1})})});
}

TEST(Layout, ConvolutionsOfAllKinds) {
  struct Case {
    const char* op;
    Ints x, w;
    Attrs attrs;
  };
  std::vector<Case> cases = {
      {"nn.conv2d",
       {2, 3, 7, 6},
       {24, 3, 3, 3},
       {{"strides", ints({2, 2})}, {"padding", ints({0, 1, 2, 1})}}},
      {"nn.conv2d", {1, 5, 7, 9}, {8, 5, 3, 2}, {{"dilation", ints({2, 3})}}},
      {"nn.conv2d", {1, 24, 5, 5}, {24, 1, 3, 3}, {{"groups", intImm(24)}, {"padding", ints({1, 1, 1, 1})}}},
      {"nn.conv2d", {1, 4, 5, 5}, {8, 1, 3, 3}, {{"groups", intImm(4)}}},
      {"nn.conv2d", {1, 6, 5, 5}, {9, 2, 3, 3}, {{"groups", intImm(3)}}},
      {"nn.conv1d", {2, 3, 9}, {8, 3, 3}, {{"padding", ints({1, 2})}}},
      {"nn.conv3d", {1, 2, 4, 3, 5}, {8, 2, 2, 2, 2}, {}},
      {"nn.conv_transpose2d",
       {1, 3, 3, 4},
       {3, 9, 3, 2},
       {{"strides", ints({2, 2})}, {"padding", ints({1, 0, 0, 1})}}},
      {"nn.conv_transpose2d", {1, 4, 3, 4}, {4, 5, 2, 2}, {{"groups", intImm(2)}}},
  };
  for (const Case& k : cases) {
    Values values;
    Graph g;
    GraphVar x = g.input("x", dims(k.x));
    g.begin();
    Module after =
        checkPass(modelLayout, g.end({g.op(k.op, {x, values.constant(k.w)}, k.attrs)}), {values.tensor(k.x)});
    EXPECT_EQ(countCalls(after, "permute_dims"), 2) << k.op;
    EXPECT_EQ(attrInt(cast<FunctionNode>(after->find("main"))->attrs, "channels_last"), 1);
  }
}

TEST(Layout, FewOutputsStartNoRegion) {
  Values values;
  Graph g;
  GraphVar x = g.input("x", dims({1, 3, 5, 5}));
  g.begin();
  Module after =
      checkPass(modelLayout, g.end({conv(g, values, x, {5, 3, 3, 3})}), {values.tensor({1, 3, 5, 5})});
  EXPECT_EQ(countCalls(after, "permute_dims"), 0);
}

TEST(Layout, ResidualBlocksOfSymbolicWidth) {
  Values values;
  Var w = var("w");
  Graph g;
  GraphVar x = g.input("x", {intImm(1), intImm(3), intImm(8), w});
  g.begin();
  GraphExpr y = block(g, values, x, 3, 8);
  GraphExpr z = block(g, values, y, 8, 8);
  y = g.op("nn.relu", {g.op("add", {z, y})});
  y = g.op("nn.max_pool", {y},
           {{"kernel", ints({2, 2})}, {"strides", ints({2, 2})}, {"ceil_mode", intImm(1)}});
  y = g.op("nn.avg_pool", {block(g, values, y, 8, 5)},
           {{"kernel", ints({3, 1})}, {"padding", ints({1, 0, 1, 0})}});
  y = g.op("nn.prelu", {y, values.constant({5, 1, 1})});
  Module before = g.end({y});
  for (int64_t width : {5, 12}) {
    Module after = checkPass(modelLayout, before, {values.tensor({1, 3, 8, width})});
    EXPECT_EQ(countCalls(after, "permute_dims"), 2);
  }
}

TEST(Layout, SqueezeAndExcite) {
  for (bool byMean : {false, true}) {
    Values values;
    Graph g;
    GraphVar x = g.input("x", dims({2, 3, 6, 5}));
    g.begin();
    GraphExpr y = block(g, values, x, 3, 24);
    GraphExpr s = byMean ? g.op("mean", {y}, {{"axis", ints({2, 3})}, {"keepdims", intImm(1)}})
                         : g.op("nn.avg_pool", {y}, {{"kernel", ints({6, 5})}});
    s = g.op("nn.relu", {conv(g, values, s, {6, 24, 1, 1})});
    s = g.op("sigmoid", {g.op("add", {conv(g, values, s, {24, 6, 1, 1}), values.constant({1, 24, 1, 1})})});
    y = conv(g, values, g.op("multiply", {y, s}), {16, 24, 1, 1});
    Module after = checkPass(modelLayout, g.end({y}), {values.tensor({2, 3, 6, 5})});
    EXPECT_EQ(countCalls(after, "permute_dims"), 2);
  }
}

TEST(Layout, ConcatSlicesPadsAndReductions) {
  Values values;
  Graph g;
  GraphVar x = g.input("x", dims({1, 3, 6, 7}));
  g.begin();
  GraphExpr y = block(g, values, x, 3, 8);
  GraphExpr low = g.op("strided_slice", {y, shapeOf(dims({0})), shapeOf(dims({4})), shapeOf(dims({1}))},
                       {{"axes", ints({1})}});
  GraphExpr high =
      g.op("strided_slice", {y, shapeOf(dims({0, 4})), shapeOf(dims({1, 8})), shapeOf(dims({1, 2}))});
  GraphExpr wide = g.op("concat", {low, high, y}, {{"axis", intImm(-3)}});
  GraphExpr tall = g.op("concat", {wide, wide}, {{"axis", intImm(2)}});
  GraphExpr padded = g.op("nn.pad", {tall, shapeOf(dims({0, 1, 2, 0, 0, 0, 0, 3})), scalarConstant(0.5)});
  GraphExpr tiled =
      g.op("tile", {g.op("flip", {padded}, {{"axis", intImm(-1)}}), shapeOf(dims({1, 1, 2, 1}))});
  GraphExpr soft = g.op("nn.softmax", {tiled}, {{"axis", intImm(1)}});
  GraphExpr best = g.op("astype", {g.op("argmax", {soft}, {{"axis", intImm(1)}, {"keepdims", intImm(0)}})},
                        {{"dtype", str("float32")}});
  GraphExpr rows = g.op("sum", {soft}, {{"axis", ints({2})}}), all = g.op("max", {soft}),
            channels = g.op("mean", {soft}, {{"axis", ints({2, 3})}});
  GraphExpr rowsBack = g.op("nn.relu", {rows});
  Module after =
      checkPass(modelLayout, g.end({best, rowsBack, all, channels}), {values.tensor({1, 3, 6, 7})});
  EXPECT_EQ(countCalls(after, "permute_dims"), 2); // at the input, and of the one result that is not whole
}

TEST(Layout, BroadcastsOfLowerRankAndLogicalOperands) {
  Values values;
  Graph g;
  GraphVar x = g.input("x", dims({2, 3, 4, 5})), row = g.input("row", dims({4, 5})),
           other = g.input("other", dims({2, 8, 4, 5}));
  g.begin();
  GraphExpr y = block(g, values, x, 3, 8);
  y = g.op("multiply", {y, values.constant({5})});
  y = g.op("add", {row, y});
  y = g.op("subtract", {other, y});
  y = g.op("clip", {y, scalarConstant(-0.5), scalarConstant(2)});
  y = g.op("where", {g.op("greater", {y, values.constant({8, 4, 1})}), y, g.op("negative", {y})});
  Module after = checkPass(modelLayout, g.end({y}),
                           {values.tensor({2, 3, 4, 5}), values.tensor({4, 5}), values.tensor({2, 8, 4, 5})});
  EXPECT_EQ(countCalls(after, "nn.conv2d"), 1);
  EXPECT_EQ(countCalls(after, "permute_dims"), 3); // x, other and the result; row gets an axis only
}

TEST(Layout, FlattenBehindGlobalPoolingIsAView) {
  Values values;
  Graph g;
  GraphVar x = g.input("x", dims({2, 3, 5, 5}));
  g.begin();
  GraphExpr y = g.op("nn.avg_pool", {block(g, values, x, 3, 24)}, {{"kernel", ints({5, 5})}});
  y = g.op("matmul", {g.op("reshape", {y, shapeOf(dims({2, 24}))}), values.constant({24, 10})});
  Module after = checkPass(modelLayout, g.end({y}), {values.tensor({2, 3, 5, 5})});
  EXPECT_EQ(countCalls(after, "permute_dims"), 1);
}

// Patch embedding, and text recognition: the transposes of the model cancel.
TEST(Layout, TransposesOfTheModelCancel) {
  Values values;
  Var w = var("w");
  Graph g;
  GraphVar x = g.input("x", {intImm(1), intImm(3), intImm(4), w});
  g.begin();
  GraphExpr y = conv(g, values, x, {16, 3, 4, 1}); // height one
  y = g.op("permute_dims", {g.op("squeeze", {y}, {{"axis", ints({2})}})}, {{"axes", ints({0, 2, 1})}});
  y = g.op("matmul", {y, values.constant({16, 5})});
  Module after = checkPass(modelLayout, g.end({y}), {values.tensor({1, 3, 4, 7})});
  EXPECT_EQ(countCalls(after, "permute_dims"), 1);

  Graph h;
  GraphVar image = h.input("x", dims({1, 3, 8, 12}));
  h.begin();
  y = conv(h, values, image, {16, 3, 4, 4}, {{"strides", ints({4, 4})}});
  y = h.op("permute_dims", {h.op("reshape", {y, shapeOf(dims({1, 16, 6}))})}, {{"axes", ints({0, 2, 1})}});
  y = h.op("matmul", {y, values.constant({16, 5})});
  after = checkPass(modelLayout, h.end({y}), {values.tensor({1, 3, 8, 12})});
  EXPECT_EQ(countCalls(after, "permute_dims"), 1);
}

TEST(Layout, ChannelShuffleAndDepthToSpace) {
  Values values;
  Graph g;
  GraphVar x = g.input("x", dims({1, 3, 4, 5}));
  g.begin();
  GraphExpr y = block(g, values, x, 3, 24);
  y = g.op("permute_dims", {g.op("reshape", {y, shapeOf(dims({1, 3, 8, 4, 5}))})},
           {{"axes", ints({0, 2, 1, 3, 4})}});
  y = block(g, values, g.op("reshape", {y, shapeOf(dims({1, 24, 4, 5}))}), 24, 12);
  y = g.op("permute_dims", {g.op("reshape", {y, shapeOf(dims({1, 2, 2, 3, 4, 5}))})},
           {{"axes", ints({0, 3, 4, 1, 5, 2})}});
  y = block(g, values, g.op("reshape", {y, shapeOf(dims({1, 3, 8, 10}))}), 3, 8);
  Module after = checkPass(modelLayout, g.end({y}), {values.tensor({1, 3, 4, 5})});
  EXPECT_EQ(countCalls(after, "permute_dims"), 4); // both ends, and one inside each
}

// A transformer behind the convolution keeps its transposes: none is added.
TEST(Layout, AttentionBehindAConvolution) {
  Values values;
  Graph g;
  GraphVar x = g.input("x", dims({2, 3, 4, 4}));
  g.begin();
  GraphExpr y = conv(g, values, x, {8, 3, 2, 2}, {{"strides", ints({2, 2})}});
  y = g.op("permute_dims", {g.op("reshape", {y, shapeOf(dims({2, 8, 4}))})}, {{"axes", ints({0, 2, 1})}});
  auto heads = [&](const Ints& axes) {
    GraphExpr h = g.op("matmul", {y, values.constant({8, 8})});
    return g.op("permute_dims", {g.op("reshape", {h, shapeOf(dims({2, 4, 2, 4}))})}, {{"axes", ints(axes)}});
  };
  GraphExpr scores = g.op("nn.softmax", {g.op("matmul", {heads({0, 2, 1, 3}), heads({0, 2, 3, 1})})});
  y = g.op("permute_dims", {g.op("matmul", {scores, heads({0, 2, 1, 3})})}, {{"axes", ints({0, 2, 1, 3})}});
  y = g.op("matmul", {g.op("reshape", {y, shapeOf(dims({2, 4, 8}))}), values.constant({8, 8})});
  Module after = checkPass(modelLayout, g.end({y}), {values.tensor({2, 3, 4, 4})});
  EXPECT_EQ(countCalls(after, "permute_dims"), 5); // the input's and the four of attention
}

TEST(Layout, Resize) {
  Values values;
  Graph g;
  GraphVar x = g.input("x", dims({1, 3, 4, 5}));
  g.begin();
  GraphExpr y = block(g, values, x, 3, 8);
  y = g.op("image.resize_axis", {y, shapeOf(dims({8}))}, {{"axis", intImm(2)}, {"mode", str("linear")}});
  y = g.op("image.resize_axis", {y, shapeOf(dims({7}))}, {{"axis", intImm(-1)}});
  Module after = checkPass(modelLayout, g.end({block(g, values, y, 8, 8)}), {values.tensor({1, 3, 4, 5})});
  EXPECT_EQ(countCalls(after, "permute_dims"), 2);
}

TEST(Layout, TakeAndUnknownOperators) {
  Values values;
  Graph g;
  GraphVar x = g.input("x", dims({1, 3, 4, 5}));
  g.begin();
  GraphExpr y = block(g, values, x, 3, 8);
  GraphExpr rows = make<const ConstantNode>(TensorObject::of(kInt64, {3}, std::vector<int64_t>{2, 0, 3}));
  GraphExpr one = make<const ConstantNode>(TensorObject::of(kInt64, {}, std::vector<int64_t>{4}));
  GraphExpr some = g.op("take", {y, rows}, {{"axis", intImm(2)}}),
            column = g.op("take", {y, one}, {{"axis", intImm(3)}});
  GraphExpr running = g.op("cumsum", {y}, {{"axis", intImm(3)}});
  checkPass(modelLayout, g.end({some, column, running}), {values.tensor({1, 3, 4, 5})}, 1e-4);
}

} // namespace
} // namespace bevel::test
