// Damaged texts: the parser gives an error or a module that survives the round trip; it never crashes or
// hangs.
#include "ir/verify.h"
#include "tests/ir/text_support.h"

#include <gtest/gtest.h>
#include <random>

namespace bevel {
namespace {

const std::vector<std::string> kPieces = {"(",
                                          ")",
                                          "[",
                                          "]",
                                          "{",
                                          "}",
                                          ":",
                                          ",",
                                          "=",
                                          ".",
                                          "\n",
                                          "    ",
                                          "\"",
                                          "'",
                                          "#",
                                          "\\",
                                          "0",
                                          "-1",
                                          "1e999",
                                          "9223372036854775807",
                                          "T.",
                                          "R.",
                                          "None",
                                          "True",
                                          "for ",
                                          "if ",
                                          "else:",
                                          "with ",
                                          "lambda x: x",
                                          "T.grid(",
                                          "T.axis.remap(\"S\", [i])",
                                          "T.int64()",
                                          "\"n\"",
                                          "R.Tensor(",
                                          "T.Buffer((2,), ",
                                          "metadata[\"relax.expr.Constant\"][0]",
                                          "*",
                                          "**",
                                          "@",
                                          "\xff",
                                          "\xc3",
                                          "\t",
                                          std::string(1, '\0'),
                                          "<=",
                                          "T.handle",
                                          "cls.f",
                                          "A",
                                          "i",
                                          "x"};

std::string damaged(const std::string& text, std::mt19937& random) {
  std::string out = text;
  int changes = 1 + int(random() % 4);
  for (int c = 0; c < changes && !out.empty(); ++c) {
    size_t at = random() % out.size();
    const std::string& piece = kPieces[random() % kPieces.size()];
    switch (random() % 6) {
    case 0:
      out[at] = char(random() % 256);
      break;
    case 1:
      out.erase(at, 1 + random() % 12);
      break;
    case 2:
      out.insert(at, piece);
      break;
    case 3:
      out.insert(at, std::string(out, random() % out.size(), 1 + random() % 10));
      break;  // part of itself
    case 4: { // drop a line
      size_t begin = out.rfind('\n', at), end = out.find('\n', at);
      if (begin != std::string::npos && end != std::string::npos && end > begin)
        out.erase(begin, end - begin);
      break;
    }
    default:
      out.replace(at, std::min<size_t>(out.size() - at, 1 + random() % 6), piece);
    }
  }
  return out;
}

// One function of a corpus text, so that a damaged text is quick to read.
std::vector<std::string> functions() {
  std::vector<std::string> out;
  for (const auto& file : test::corpus()) {
    auto m = parseModule(file.text);
    if (!m) continue;
    for (size_t i = 0; i < (*m)->functions.size(); ++i) out.push_back(print((*m)->functions[i]));
    out.push_back(file.text);
  }
  return out;
}

TEST(ParserFuzz, DamagedTexts) {
  std::mt19937 random(20240607);
  std::vector<std::string> seeds = functions();
  ASSERT_FALSE(seeds.empty());
  int read = 0, refused = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string text = damaged(seeds[random() % seeds.size()], random);
    std::vector<Error> errors;
    ParseOptions options;
    options.errors = &errors;
    auto m = parseModule(text, options);
    if (!m) {
      ++refused;
      ASSERT_FALSE(m.error().message.empty()) << text;
      ASSERT_FALSE(errors.empty()) << text;
      continue;
    }
    ++read;
    if (i % 4 == 0) {
      ASSERT_EQ(test::roundTripFault(*m), "") << "of the damaged text\n" << text;
    }
    (void)verify(*m);
  }
  EXPECT_GT(read, 100);
  EXPECT_GT(refused, 1000);
}

TEST(ParserFuzz, RandomBytesAndTokens) {
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    int n = int(random() % 200);
    for (int k = 0; k < n; ++k) text += char(random() % (i % 2 ? 256 : 96) + (i % 2 ? 0 : 32));
    auto m = parseModule(text);
    ParseOptions options;
    auto e = parseExpression(text, options);
    ASSERT_TRUE(m.has_value() || !m.error().message.empty());
    ASSERT_TRUE(e.has_value() || !e.error().message.empty());
  }
}

} // namespace
} // namespace bevel
