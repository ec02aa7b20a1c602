// Algorithms of operators.
#include "tests/select/support.h"

namespace bevel::test {
namespace {

TEST(Algorithm, WindowsApartBecomePixels) {
  struct Case {
    const char* op;
    Ints x, w, strides;
  };
  std::vector<Case> cases = {{"nn.conv_transpose2d", {2, 3, 4, 5}, {3, 7, 2, 3}, {2, 3}},
                             {"nn.conv_transpose1d", {1, 5, 4}, {5, 1, 4}, {4}}};
  for (const Case& k : cases) {
    Values values;
    Graph g;
    Array<Expr> shape = dims(k.x);
    shape.set(shape.size() - 1, var("w"));
    GraphVar x = g.input("x", shape);
    g.begin();
    Module before = g.end({g.op(k.op, {x, values.constant(k.w)}, {{"strides", ints(k.strides)}})});
    Module after = checkPass(modelAlgorithm, before, {values.tensor(k.x)});
    EXPECT_EQ(countCalls(after, k.op), 0);
    checkPass(modelLayout, after, {values.tensor(k.x)});
  }
}

TEST(Algorithm, OverlapPaddingAndGroupsStay) {
  Values values;
  Graph g;
  GraphVar x = g.input("x", dims({1, 4, 3, 3}));
  g.begin();
  GraphExpr overlap =
      g.op("nn.conv_transpose2d", {x, values.constant({4, 2, 3, 2})}, {{"strides", ints({2, 2})}});
  GraphExpr padded = g.op("nn.conv_transpose2d", {x, values.constant({4, 2, 2, 2})},
                          {{"strides", ints({2, 2})}, {"padding", ints({0, 1})}});
  GraphExpr grouped = g.op("nn.conv_transpose2d", {x, values.constant({4, 2, 2, 2})},
                           {{"strides", ints({2, 2})}, {"groups", intImm(2)}});
  Module after = checkPass(modelAlgorithm, g.end({overlap, padded, grouped}), {values.tensor({1, 4, 3, 3})});
  EXPECT_EQ(countCalls(after, "nn.conv_transpose2d"), 3);
}

} // namespace
} // namespace bevel::test
