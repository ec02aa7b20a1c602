// Simplifications and patterns of graph functions.
#include "tests/select/support.h"

#include <gtest/gtest-spi.h>

namespace bevel::test {
namespace {

// x * factor.
Module scaled(double factor) {
  Graph g;
  GraphVar x = g.input("x", dims({3}));
  g.begin();
  return g.end({g.op("multiply", {x, scalarConstant(factor)})});
}

TEST(CheckPass, FailsWhereAPassMakesNanOrOtherValues) {
  std::vector<Tensor> inputs = {Values().tensor({3})};
  auto nan = [](const Module&) -> Result<Module> { return scaled(NAN); };
  EXPECT_NONFATAL_FAILURE(checkPass(nan, scaled(2), inputs), "nan");
  auto other = [](const Module&) -> Result<Module> { return scaled(2.001); };
  EXPECT_NONFATAL_FAILURE(checkPass(other, scaled(2), inputs), "element");
  auto same = [](const Module& m) -> Result<Module> { return m; };
  checkPass(same, scaled(NAN), inputs); // NaN that is expected
}

TEST(SimplifyGraph, NeutralElementsAndPowers) {
  Values values;
  Graph g;
  GraphVar x = g.input("x", dims({2, 3}));
  g.begin();
  GraphExpr y = g.op("multiply", {x, scalarConstant(1)});
  y = g.op("add", {scalarConstant(-0.0), y});
  y = g.op("divide", {g.op("subtract", {y, scalarConstant(0)}), scalarConstant(1)});
  std::vector<GraphExpr> results = {y};
  GraphExpr squares = g.op("multiply", {x, x});
  for (double p : {1.0, 2.0, 3.0, 0.5, -1.0, -0.5})
    results.push_back(g.op("power", {squares, scalarConstant(p)}));
  Module after = checkPass(simplifyGraph, g.end(Array<GraphExpr>(results)), {values.tensor({2, 3}, 0.5, 2)});
  for (const char* gone : {"add", "divide", "subtract", "power"})
    EXPECT_EQ(countCalls(after, gone), 0) << gone;
}

// -0 + 0 is 0, and x ^ 0.5 is 0 at -0 and infinite at -inf where a square root is not.
TEST(SimplifyGraph, SpecialValuesStay) {
  Graph g;
  GraphVar x = g.input("x", dims({6}));
  g.begin();
  GraphExpr sum = g.op("add", {x, scalarConstant(0)}), rest = g.op("subtract", {x, scalarConstant(-0.0)});
  GraphExpr root = g.op("power", {x, scalarConstant(0.5)}),
            inverse = g.op("power", {x, scalarConstant(-0.5)});
  Tensor special = TensorObject::of(kFloat32, {6}, std::vector<double>{-0.0, 0, -INFINITY, INFINITY, 4, -4});
  Module after = checkPass(simplifyGraph, g.end({sum, rest, root, inverse}), {special}, 0);
  EXPECT_EQ(countCalls(after, "subtract"), 1);
  EXPECT_EQ(countCalls(after, "power"), 0);
}

TEST(SimplifyGraph, KeepsWhatBroadcastsOrIsAnotherExponent) {
  Values values;
  Graph g;
  GraphVar x = g.input("x", dims({3}));
  g.begin();
  GraphExpr one = make<const ConstantNode>(TensorObject::of(kFloat32, {1, 1}, std::vector<double>{1}));
  GraphExpr wide = g.op("multiply", {x, one}); // [1, 3]
  GraphExpr root = g.op("power", {x, scalarConstant(0.25)}),
            reversed = g.op("subtract", {scalarConstant(0), x});
  Module after = checkPass(simplifyGraph, g.end({wide, root, reversed}), {values.tensor({3}, 0.5, 2)});
  EXPECT_EQ(countCalls(after, "multiply"), 1);
  EXPECT_EQ(countCalls(after, "power"), 1);
  EXPECT_EQ(countCalls(after, "subtract"), 1);
}

TEST(SimplifyGraph, ReshapesTransposesAndCasts) {
  Values values;
  Graph g;
  GraphVar x = g.input("x", dims({2, 3, 1, 4}));
  g.begin();
  GraphExpr merged = g.op("reshape", {g.op("reshape", {x, shapeOf(dims({6, 4}))}), shapeOf(dims({3, -1}))});
  GraphExpr back = g.op("permute_dims", {g.op("permute_dims", {x}, {{"axes", ints({1, 0, 3, 2})}})},
                        {{"axes", ints({1, 0, 3, 2})}});
  GraphExpr turned = g.op("permute_dims", {g.op("permute_dims", {x}, {{"axes", ints({1, 2, 3, 0})}})},
                          {{"axes", ints({1, 0, 3, 2})}});
  GraphExpr ones = g.op("permute_dims", {x}, {{"axes", ints({2, 0, 1, 3})}});
  GraphExpr same = g.op("squeeze", {g.op("expand_dims", {x}, {{"axis", ints({0})}})}, {{"axis", ints({0})}});
  GraphExpr cast =
      g.op("astype", {g.op("astype", {x}, {{"dtype", str("float64")}})}, {{"dtype", str("float32")}});
  GraphExpr narrow =
      g.op("astype", {g.op("astype", {x}, {{"dtype", str("float16")}})}, {{"dtype", str("float32")}});
  Module after = checkPass(simplifyGraph, g.end({merged, back, turned, ones, same, cast, narrow}),
                           {values.tensor({2, 3, 1, 4})}, 0);
  EXPECT_EQ(countCalls(after, "permute_dims"), 1);
  EXPECT_EQ(countCalls(after, "reshape"), 2);
  EXPECT_EQ(countCalls(after, "squeeze") + countCalls(after, "expand_dims"), 0);
  EXPECT_EQ(countCalls(after, "astype"), 2); // through half: not the same values
}

struct Norm {
  bool centred, reciprocal, scaled, shifted;
  bool first; // gamma before the norm in the product
};

GraphExpr exportedNorm(Graph& g, Values& values, const GraphExpr& x, const Norm& n, const Ints& axes,
                       const Ints& gamma) {
  auto mean = [&](const GraphExpr& e) {
    return g.op("mean", {e}, {{"axis", ints(axes)}, {"keepdims", intImm(1)}});
  };
  GraphExpr d = n.centred ? g.op("subtract", {x, mean(x)}) : x;
  GraphExpr v = mean(g.op("multiply", {d, d}));
  GraphExpr root = g.op("sqrt", {g.op("add", {v, scalarConstant(1e-3)})});
  GraphExpr y = n.reciprocal ? g.op("multiply", {d, g.op("reciprocal", {root})}) : g.op("divide", {d, root});
  if (n.scaled) {
    GraphExpr scale = values.constant(gamma);
    y = g.op("multiply", n.first ? Array<GraphExpr>{scale, y} : Array<GraphExpr>{y, scale});
  }
  if (n.shifted) y = g.op("add", {y, values.constant(gamma)});
  return y;
}

TEST(Patterns, Norms) {
  for (int bits = 0; bits < 32; ++bits) {
    Norm n{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0, (bits & 16) != 0};
    if (n.shifted && !n.scaled) continue;
    Values values;
    Graph g;
    Var length = var("n");
    GraphVar x = g.input("x", {length, intImm(5), intImm(7)});
    g.begin();
    Module before = g.end({exportedNorm(g, values, x, n, {-1}, {7})});
    Module after = checkPass(recognizePatterns, before, {values.tensor({3, 5, 7})});
    EXPECT_EQ(countCalls(after, n.centred ? "nn.layer_norm" : "nn.rms_norm"), 1) << bits;
    EXPECT_EQ(countCalls(after, "mean"), 0);
    EXPECT_EQ(countCalls(after, "multiply") + countCalls(after, "add"), 0);
  }
}

TEST(Patterns, NormOverTwoAxesAndOneThatIsNot) {
  Values values;
  Graph g;
  GraphVar x = g.input("x", dims({2, 3, 4}));
  g.begin();
  GraphExpr two = exportedNorm(g, values, x, {true, false, true, true, false}, {2, 1}, {3, 4});
  GraphExpr middle = exportedNorm(g, values, x, {true, false, true, true, false}, {1}, {3, 4});
  Module after = checkPass(recognizePatterns, g.end({two, middle}), {values.tensor({2, 3, 4})});
  EXPECT_EQ(countCalls(after, "nn.layer_norm"), 1);
  EXPECT_EQ(countCalls(after, "mean"), 2);
}

TEST(Patterns, UsesOutsideKeepTheChain) {
  Values values;
  Graph g;
  GraphVar x = g.input("x", dims({2, 4}));
  g.begin();
  auto mean = [&](const GraphExpr& e) {
    return g.op("mean", {e}, {{"axis", ints({1})}, {"keepdims", intImm(1)}});
  };
  GraphExpr d = g.op("subtract", {x, mean(x)});
  GraphExpr y = g.op(
      "divide", {d, g.op("sqrt", {g.op("add", {mean(g.op("multiply", {d, d})), scalarConstant(1e-5)})})});
  Module after = checkPass(recognizePatterns, g.end({y, d}), {values.tensor({2, 4})});
  EXPECT_EQ(countCalls(after, "nn.layer_norm"), 0);
}

TEST(Patterns, Softmax) {
  for (int64_t sumAxis : {1, 2}) {
    Values values;
    Graph g;
    GraphVar x = g.input("x", dims({2, 3, 5}));
    g.begin();
    auto kept = [](int64_t axis) {
      return std::vector<std::pair<std::string, NodeRef>>{{"axis", ints({axis})}, {"keepdims", intImm(1)}};
    };
    GraphExpr e = g.op("exp", {g.op("subtract", {x, g.op("max", {x}, kept(1))})});
    GraphExpr y = g.op("divide", {e, g.op("sum", {e}, kept(sumAxis))});
    Module after = checkPass(recognizePatterns, g.end({y}), {values.tensor({2, 3, 5})});
    EXPECT_EQ(countCalls(after, "nn.softmax"), sumAxis == 1); // the maximum of another axis is no softmax
  }
}

} // namespace
} // namespace bevel::test
