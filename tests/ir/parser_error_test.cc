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
  options.signatureOf = [](std::string_view op) -> std::optional<OpSignature> {
    if (op != "sum") return std::nullopt;
    return OpSignature{{"x"}, {{"axis", true}}};
  };
  auto f =
      parseFunction("@T.prim_func\ndef f(A: T.Buffer((N, N * 2), dtype)):\n    A[N - 1, 0] = 1.5\n", options);
  ASSERT_TRUE(f.has_value()) << f.error().str();
  EXPECT_NE(print(*f).find("A: T.Buffer((16, 32), \"float16\")"), std::string::npos) << print(*f);
  auto g = parseFunction(
      "@R.function\ndef g(x: R.Tensor(shape, \"float32\")):\n    y = R.sum(R.add(x, W), 1)\n    return y\n",
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
