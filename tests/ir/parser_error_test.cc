// Errors of the parser: place, line, reason and hint.
#include "ir/build.h"
#include "ir/structural.h"
#include "tests/ir/text_support.h"

#include <gtest/gtest.h>

namespace bevel {
namespace {

std::string errorOf(std::string_view text) {
  auto m = parseModule(text, "m.txt");
  return m ? "no error" : m.error().str();
}

// The body of a tensor program over A, B (float32, 8) and n (int64).
std::string inProgram(std::string_view statements) {
  return errorOf(
      "@T.prim_func\ndef f(A: T.Buffer((8,), \"float32\"), B: T.Buffer((8, 8), \"float32\"), n: T.int64):\n" +
      std::string(statements));
}
std::string inGraph(std::string_view statements) {
  return errorOf("@I.ir_module\nclass M:\n  @R.function\n  def f(x: R.Tensor((2, 3), \"float32\"), y: "
                 "R.Tensor((\"n\",), \"float32\")):\n" +
                 std::string(statements));
}
void expectHas(const std::string& text, std::string_view part) {
  EXPECT_NE(text.find(part), std::string::npos) << text << "\nlacks: " << part;
}

TEST(ParserErrors, ShowPlaceLineAndHint) {
  EXPECT_EQ(inProgram("    for index in range(8):\n        A[index] = A[indx]\n"),
            "m.txt:4:22: error: undefined variable 'indx'\n"
            "  |         A[index] = A[indx]\n"
            "  |                      ^^^^\n"
            "  help: did you mean 'index'?");
}

TEST(ParserErrors, TensorPrograms) {
  expectHas(inProgram("    A[0] = T.exq(A[0])\n"), "m.txt:3:12: error: unknown function 'T.exq'");
  expectHas(inProgram("    A[0] = T.exq(A[0])\n"), "did you mean 'T.exp'?");
  expectHas(inProgram("    A[0] = T.pow(A[0])\n"), "T.pow takes 2 arguments, but 1 are given");
  expectHas(inProgram("    A[0] = n\n"), "type mismatch: the value stored is int64, expected float32");
  expectHas(inProgram("    A[0] = A[0] + n\n"), "type mismatch: float32 and int64");
  expectHas(inProgram("    A[0, 0] = 1.0\n"), "buffer 'A' has 1 dimensions, but 2 indices are given");
  expectHas(inProgram("    A[A[0]] = 1.0\n"), "an index is an integer, not float32");
  expectHas(inProgram("    if n:\n        pass\n"), "the condition is int64, expected bool");
  expectHas(inProgram("    assert 0 < n < 8, \"m\"\n"), "comparisons do not chain here");
  expectHas(inProgram("    A[0] = 1.0 if n > 0 else 2.0\n"), "conditional expressions");
  expectHas(inProgram("    T.evaluate(n / 2)\n"), "use '//' (rounds down)");
  expectHas(inProgram("    T.evaluate(1 // 0)\n"), "division by zero");
  expectHas(inProgram("    T.evaluate(T.int8(300))\n"), "this integer does not fit int8");
  expectHas(inProgram("    T.evaluate(99999999999999999999)\n"), "does not fit 64 bits");
  expectHas(inProgram("    T.evaluate(9223372036854775807 + 1)\n"), "does not fit int64");
  expectHas(inProgram("    for i in T.grid(2, 3):\n        pass\n"),
            "T.grid has 2 extents for 1 loop variables");
  expectHas(inProgram("    for i in T.gird(2):\n        pass\n"), "cannot loop over 'T.gird'");
  expectHas(inProgram("    vi = T.axis.spatial(8, 0)\n"), "belongs directly into a block");
  expectHas(inProgram("    for i in range(8):\n        with T.sblock(\"b\"):\n            vi, vj = "
                      "T.axis.remap(\"S\", [i])\n"),
            "expected 2 values");
  expectHas(inProgram("    with T.sblock(\"b\"):\n        vi, vj = T.axis.remap(\"SS\", [n, n])\n"),
            "T.axis.remap takes loop variables");
  expectHas(inProgram("    for i in range(8):\n        with T.sblock(\"b\"):\n            vi = "
                      "T.axis.spatial(8, i)\n            T.where(vi < 3)\n"),
            "uses the block's axis 'vi'");
  expectHas(inProgram("    C = T.match_buffer(n, (8,), \"float32\")\n"),
            "takes a parameter of type T.handle");
  expectHas(inProgram("    C = T.alloc_buffer((8,), \"float23\")\n"), "unknown dtype 'float23'");
  expectHas(inProgram("    C = T.alloc_buffer((-8,), \"float32\")\n"), "a dimension is negative");
  expectHas(inProgram("    C = T.alloc_buffer((8,), \"float32\", scoop=\"local\")\n"),
            "has no argument 'scoop'");
  expectHas(inProgram("    n + 1\n"), "this expression has no effect");
  expectHas(inProgram("    [x for x in A]\n"), "undefined variable 'x'");
  expectHas(inProgram("    A[0] = \"text\n"), "this string is never closed");
  expectHas(inProgram("    A[0] = (1.0\n"), "'(' is never closed");
  expectHas(inProgram("    A[0] = 1.0)\n"), "')' closes nothing");
  expectHas(inProgram("    A[0] = 1.0 $ 2\n"), "unexpected character");
  expectHas(inProgram("    A[0] = 1.0\n  A[1] = 2.0\n"), "this indentation matches no enclosing one");
}

TEST(ParserErrors, GraphFunctions) {
  expectHas(inGraph("    return cls.g(x)\n"), "the module has no function 'g'");
  expectHas(inGraph("    lv = R.call_tir(cls.f, (x,))\n    return lv\n"), "states the type of its result");
  expectHas(inGraph("    with R.dataflow():\n      lv = R.add(x, x)\n      R.output(x)\n    return lv\n"),
            "'x' is not bound in this dataflow block");
  expectHas(inGraph("    lv: R.Tensor((m,), \"float32\") = R.add(x, x)\n    return lv\n"),
            "undefined variable 'm'");
  expectHas(inGraph("    for i in range(3):\n      pass\n    return x\n"), "graph functions have no loops");
  expectHas(inGraph("    if x:\n      a = R.add(x, x)\n    return x\n"), "has an 'else'");
  expectHas(inGraph("    if x:\n      a = R.add(x, x)\n    else:\n      b = R.add(x, x)\n    return x\n"),
            "the branches end with different names, 'a' and 'b'");
  expectHas(inGraph("    a = (x, y)\n    b = a[2]\n    return b\n"), "index 2 is outside a tuple of 2");
  expectHas(inGraph("    a = R.const([[1, 2], [3]], \"int64\")\n    return a\n"), "different lengths");
  expectHas(inGraph("    a = metadata[\"relax.expr.Constant\"][7]\n    return a\n"),
            "the text refers to constant 7, but 0 are given");
  expectHas(inGraph("    a = R.add(x, x)\n"), "returns nothing");
  expectHas(errorOf("@R.function\ndef f(x: R.Tensor((2,), \"float32\"), x: R.Object):\n    return x\n"),
            "two parameters are named 'x'");
  ParseOptions options;
  options.operators = {"add", "nn.relu"};
  auto m =
      parseModule("@R.function\ndef f(x: R.Tensor((2,), \"float32\")):\n    return R.nn.rely(x)\n", options);
  ASSERT_FALSE(m.has_value());
  expectHas(m.error().str(), "unknown operator 'nn.rely'");
  expectHas(m.error().str(), "did you mean 'nn.relu'?");
}

TEST(ParserErrors, Modules) {
  expectHas(errorOf(""), "the text holds no module");
  expectHas(errorOf("x = 1\n"), "expected a module class or a function");
  expectHas(errorOf("@T.prim_fun\ndef f():\n    pass\n"), "unknown decorator 'prim_fun'");
  expectHas(errorOf("def f():\n    pass\n"), "has no decorator");
  expectHas(errorOf("@I.ir_module\nclass M:\n  @T.prim_func\n  def f():\n    pass\n  @T.prim_func\n  def "
                    "f():\n    pass\n"),
            "function 'f' is defined twice");
}

TEST(ParserErrors, SeveralAtOnce) {
  std::vector<Error> errors;
  ParseOptions options;
  options.errors = &errors;
  auto m =
      parseModule("@T.prim_func\ndef f(A: T.Buffer((8,), \"float32\")):\n    A[0] = a\n    x: T.int32 = b\n  "
                  "  T.evaluate(x)\n    for i in range(c):\n        A[0] = d + A[i]\n    A[9] = 1.0\n",
                  options);
  ASSERT_FALSE(m.has_value());
  ASSERT_EQ(errors.size(), 4u) << m.error().str(); // x and i bring no more
  EXPECT_EQ(errors[0].span.line, 3);
  EXPECT_EQ(errors[1].span.line, 4);
  EXPECT_EQ(errors[2].span.line, 6);
  EXPECT_EQ(errors[3].span.line, 7);
  EXPECT_EQ(m.error().notes.size(), 3u);
}

TEST(ParserErrors, HostileDepth) {
  auto repeat = [](std::string_view s, int n) {
    std::string out;
    for (int i = 0; i < n; ++i) out += s;
    return out;
  };
  std::string head = "@T.prim_func\ndef f(A: T.Buffer((8,), \"float32\"), n: T.int32):\n";
  EXPECT_NE(errorOf(head + "    T.evaluate(" + repeat("(", 100000) + "n" + repeat(")", 100000) + ")\n"),
            "no error");
  EXPECT_NE(errorOf(head + "    T.evaluate(" + repeat("-", 100000) + "n)\n"), "no error");
  EXPECT_NE(errorOf(head + "    T.evaluate(" + repeat("not ", 100000) + "n)\n"), "no error");
  EXPECT_NE(errorOf(head + "    T.evaluate(n" + repeat(" + n", 100000) + ")\n"), "no error");
  EXPECT_NE(errorOf(head + "    T.evaluate(" + repeat("T.exp(", 100000) + ")\n"), "no error");
  std::string loops, indent = "    ";
  for (int i = 0; i < 2000; ++i) loops += indent + "for i in range(2):\n", indent += " ";
  EXPECT_NE(errorOf(head + loops + indent + "pass\n"), "no error");
  std::string lets;
  for (int i = 0; i < 10000; ++i) lets += "    x" + std::to_string(i) + " = n + " + std::to_string(i) + "\n";
  EXPECT_NE(errorOf(head + lets), "no error");
  std::string elifs = "    if n > 0:\n        pass\n" + repeat("    elif n > 0:\n        pass\n", 5000);
  EXPECT_NE(errorOf(head + elifs), "no error");
  // What is only long is read.
  EXPECT_EQ(errorOf(head + repeat("    A[n] = 1.0\n", 3000)), "no error");
}

TEST(ParserErrors, CapturesAndHooks) {
  ParseOptions options;
  options.captures = {{"N", intImm(16)},
                      {"dtype", str("float16")},
                      {"shape", list({intImm(2), intImm(3)})},
                      {"W", make<const ConstantNode>(TensorObject::zeros(kFloat32, {40}))}};
  options.attributeAt = [](std::string_view op, size_t i) -> std::string {
    return op == "sum" && i == 1 ? "axis" : "";
  };
  auto f =
      parseFunction("@T.prim_func\ndef f(A: T.Buffer((N, N * 2), dtype)):\n    A[N - 1, 0] = 1.5\n", options);
  ASSERT_TRUE(f.has_value()) << f.error().str();
  EXPECT_NE(print(*f).find("A: T.Buffer((16, 32), \"float16\")"), std::string::npos) << print(*f);
  auto g = parseFunction(
      "@R.function\ndef g(x: R.Tensor(shape, \"float32\")):\n    y = R.sum(R.add(x, W), [1])\n    return y\n",
      options);
  ASSERT_TRUE(g.has_value()) << g.error().str();
  std::string text = print(*g);
  expectHas(text, "gv = R.add(x, metadata[\"relax.expr.Constant\"][0])");
  expectHas(text, "y = R.sum(gv, axis=[1])");
}

TEST(ParserErrors, OriginsPointAtTheText) {
  auto m = parseModule(
      "@T.prim_func\ndef f(A: T.Buffer((8,), \"float32\")):\n    for i in range(8):\n        A[i] = 1.0\n",
      "m.txt");
  ASSERT_TRUE(m.has_value()) << m.error().str();
  auto* loop = cast<PrimFuncNode>((*m)->functions[0])->body.as<ForNode>();
  ASSERT_TRUE(loop && loop->origin && loop->body->origin);
  EXPECT_EQ(loop->origin->file, "m.txt");
  EXPECT_EQ(loop->origin->span.line, 3);
  EXPECT_EQ(loop->body->origin->span.line, 4);
}

} // namespace
} // namespace bevel
