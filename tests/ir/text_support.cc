// Corpus and round trip of the text tests.
#include "tests/ir/text_support.h"

#include "base/file.h"

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
  auto ok = checkRoundTrip(node);
  return ok ? "" : ok.error().str();
}

} // namespace bevel::test
