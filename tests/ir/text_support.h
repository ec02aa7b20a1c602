// What the text tests share: the corpus and the round trip.
#pragma once

#include "ir/parser.h"
#include "ir/printer.h"

#include <string>
#include <vector>

namespace bevel::test {

struct CorpusFile {
  std::string name, text;
};
/// tests/ir/corpus/*.txt and the fenced examples of docs/ir.md, by name.
std::vector<CorpusFile> corpus();
std::vector<CorpusFile> documentExamples();

/// "" when print(node) parses to an equal node that prints equally; else what went wrong.
std::string roundTripFault(const NodeRef& node);

} // namespace bevel::test
