// Which programs only give their input another shape.
#include "loop/view.h"
#include "tests/loop/lowered_programs.h"

namespace bevel {
namespace {

using namespace test;

// B[axes] = A[index], both of the given shapes; axes are named i, j, k.
bool viewOf(const std::string& from, const std::string& to, const std::string& extents,
            const std::string& store, const std::string& load, const std::string& symbols = "") {
  std::string text =
      "@T.prim_func\ndef main(a: T.handle, b: T.handle):\n" + symbols + "    A = T.match_buffer(a, (" + from +
      "), \"float32\")\n    B = T.match_buffer(b, (" + to + "), \"float32\")\n    for x, y, z in T.grid(" +
      extents +
      "):\n        with T.sblock(\"B\"):\n            i, j, k = T.axis.remap(\"SSS\", [x, y, z])\n"
      "            B[" +
      store + "] = " + load + "\n";
  return isView(parsed(text));
}

TEST(View, ReshapesAreViews) {
  EXPECT_TRUE(viewOf("2, 3, 4", "2, 3, 4", "2, 3, 4", "i, j, k", "A[i, j, k]"));
  EXPECT_TRUE(viewOf("24,", "2, 3, 4", "2, 3, 4", "i, j, k", "A[i * 12 + j * 4 + k]"));
  EXPECT_TRUE(viewOf("6, 4", "2, 3, 4", "2, 3, 4", "i, j, k", "A[i * 3 + j, k]"));
  EXPECT_TRUE(viewOf("2, 1, 3, 4, 1", "2, 3, 4", "2, 3, 4", "i, j, k", "A[i, 0, j, k, 0]"));
  EXPECT_TRUE(viewOf("8, 3", "2, 3, 4", "2, 3, 4", "i, j, k",
                     "A[(i * 12 + j * 4 + k) // 3, (i * 12 + j * 4 + k) % 3]"));
}

TEST(View, SymbolicDimensions) {
  std::string n = "    n = T.int64()\n", nm = n + "    m = T.int64()\n";
  EXPECT_TRUE(viewOf("n, 12", "n, 3, 4", "n, 3, 4", "i, j, k", "A[i, j * 4 + k]", n));
  EXPECT_TRUE(viewOf("n * m, 4", "n, m, 4", "n, m, 4", "i, j, k", "A[i * m + j, k]", nm));
  EXPECT_TRUE(viewOf("3, n, 4", "3, n, 4", "3, n, 4", "i, j, k", "A[i, j, k]", n));
  EXPECT_FALSE(viewOf("3, n, 4", "n, 3, 4", "n, 3, 4", "i, j, k", "A[j, i, k]", n));
  EXPECT_FALSE(viewOf("3, m, 4", "3, n, 4", "3, n, 4", "i, j, k", "A[i, j, k]", nm));
}

TEST(View, OtherOrdersAndValuesAreNot) {
  EXPECT_FALSE(viewOf("3, 2, 4", "2, 3, 4", "2, 3, 4", "i, j, k", "A[j, i, k]"));     // transposed
  EXPECT_FALSE(viewOf("2, 5, 4", "2, 3, 4", "2, 3, 4", "i, j, k", "A[i, j, k]"));     // with gaps
  EXPECT_FALSE(viewOf("5, 3, 4", "2, 3, 4", "2, 3, 4", "i, j, k", "A[i, j, k]"));     // a part
  EXPECT_FALSE(viewOf("5, 3, 4", "2, 3, 4", "2, 3, 4", "i, j, k", "A[i + 1, j, k]")); // not from the start
  EXPECT_FALSE(viewOf("3, 4", "2, 3, 4", "2, 3, 4", "i, j, k", "A[j, k]"));           // repeated
  EXPECT_FALSE(viewOf("2, 3, 4", "2, 3, 4", "2, 3, 4", "i, j, k", "A[i, j, 3 - k]")); // mirrored
  EXPECT_FALSE(viewOf("2, 3, 4", "2, 3, 4", "2, 3, 4", "i, j, k", "A[i, j, k] + T.float32(1)"));
}

} // namespace
} // namespace bevel
