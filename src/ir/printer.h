// Prints any IR as text in the TVMScript notation (docs/ir.md), which ir/parser.h reads back to an equal
// node.
#pragma once

#include "ir/graph.h"

#include <string>
#include <unordered_map>
#include <vector>

namespace bevel {

/// Where a node's first appearance lies in the printed text: offsets in bytes.
struct PrintedRange {
  size_t begin = 0, end = 0;
};

struct PrintOptions {
  /// Collects the constants that the text refers to by number, `metadata["relax.expr.Constant"][i]`, in order
  /// (ir/constants.h keeps them beside the text): those of many elements.
  std::vector<Constant>* constants = nullptr;
  /// Starts a module with the `from tvm.script import …` lines.
  bool imports = false;
  /// Collects where each node was printed.
  std::unordered_map<const Object*, PrintedRange>* ranges = nullptr;
};

/// The text of a module, function, statement, expression, type or any other node. Names are made unique
/// within a function, by nothing but the order of appearance, so equal IR with equal names prints equally.
/// Never fails: malformed IR and nulls are shown as they are (a null as `None`).
std::string print(const NodeRef& node, const PrintOptions& options = {});

/// The shortest decimal text that reads back as the same value of this dtype: "0.1", "-0.0", "1e+30"; "nan",
/// "inf", "-inf".
std::string floatText(double value, DType dtype);
/// The text as a Python string literal in double quotes.
std::string quoted(std::string_view text);
/// True for a name that Python and this notation let a variable have.
bool isIdentifier(std::string_view text);
/// The text as such a name: what a name cannot hold becomes an underscore; `otherwise` stands for nothing,
/// and before a digit.
std::string toIdentifier(std::string_view text, std::string_view otherwise);

} // namespace bevel
