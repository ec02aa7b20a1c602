// Corpus and round trip of the text tests.
#include "tests/ir/text_support.h"

#include "base/file.h"
#include "ir/structural.h"

#include <algorithm>
#include <filesystem>

namespace bevel::test {
namespace {

std::string read(const std::string& path) {
  auto text = readFile(path);
  BEVEL_ASSERT(text.has_value(), "cannot read " + path);
  return *text;
}

} // namespace

std::vector<CorpusFile> corpus() {
  std::vector<CorpusFile> files;
  for (const auto& entry : std::filesystem::directory_iterator(BEVEL_SOURCE_DIR "/tests/ir/corpus"))
    if (entry.path().extension() == ".txt")
      files.push_back({entry.path().filename().string(), read(entry.path().string())});
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return files;
}

std::vector<CorpusFile> documentExamples() {
  std::vector<CorpusFile> examples;
  std::string text = read(BEVEL_SOURCE_DIR "/docs/ir.md");
  const std::string open = "```python\n", close = "```";
  for (size_t at = text.find(open); at != std::string::npos; at = text.find(open, at)) {
    at += open.size();
    size_t end = text.find(close, at);
    examples.push_back(
        {"docs/ir.md example " + std::to_string(examples.size() + 1), text.substr(at, end - at)});
    at = end;
  }
  return examples;
}

std::string roundTripFault(const NodeRef& node) {
  std::vector<Constant> constants;
  PrintOptions print;
  print.constants = &constants;
  std::string text = bevel::print(node, print);
  ParseOptions parse;
  parse.constants = constants;
  NodeRef again;
  if (node.is<ModuleNode>()) {
    auto parsed = parseModule(text, parse);
    if (!parsed) return parsed.error().str() + "\nin\n" + text;
    again = *parsed;
  } else {
    auto parsed = parseFunction(text, parse);
    if (!parsed) return parsed.error().str() + "\nin\n" + text;
    again = *parsed;
  }
  if (!structuralEqual(node, again)) return "not equal: " + firstDifference(node, again) + "\nin\n" + text;
  if (!structuralEqual(again, node)) return "equality is not symmetric\nin\n" + text;
  if (structuralHash(node) != structuralHash(again)) return "equal, but hashed differently\nin\n" + text;
  if (bevel::print(again) != text)
    return "printed differently:\n" + bevel::print(again) + "\nagainst\n" + text;
  return "";
}

} // namespace bevel::test
