// Reads the TVMScript notation (docs/ir.md): older and current TVM spellings, and what ir/printer.h prints.
//
// One parser serves files, strings and Python decorators (which pass their source and captured constants).
// The text is not trusted: nesting is bounded and every fault is an error with file, line, column, the line
// and a hint.
#pragma once

#include "base/result.h"
#include "ir/graph.h"

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bevel {

struct ParseOptions {
  std::string file;  // for errors and origins
  int firstLine = 1; // line of the text's first line in that file
  /// Names that the surrounding program defines: IntImm, FloatImm and StringImm stand for Python's numbers
  /// and strings, a List for a list; a Constant, Buffer, Var or any other node for itself.
  std::vector<std::pair<std::string, NodeRef>> captures;
  /// What `metadata["relax.expr.Constant"][i]` refers to (ir/constants.h reads them from a file).
  std::vector<Constant> constants;
  /// The attribute that the i-th positional argument of an operator is (counted over all arguments), or ""
  /// when it is a value. Without it only keyword attributes are read.
  std::function<std::string(std::string_view op, size_t i)> attributeAt;
  /// Functions of T need no prefix: min(x, 1) is T.min(x, 1).
  bool bareForms = false;
  /// Keeps where each statement and binding came from as its origin.
  bool origins = true;
  /// All errors, in order; the returned one is the first, with the others as notes.
  std::vector<Error>* errors = nullptr;
};

/// A class of functions (`@I.ir_module class …`), or bare functions, which become a module of their own.
Result<Module> parseModule(std::string_view text, const ParseOptions& options);
Result<Module> parseModule(std::string_view text, std::string file = "");
/// The single function of a text: a PrimFunc or a Function.
Result<NodeRef> parseFunction(std::string_view text, const ParseOptions& options);
Result<NodeRef> parseFunction(std::string_view text, std::string file = "");
/// An expression, type or graph value over the captured names.
Result<NodeRef> parseExpression(std::string_view text, const ParseOptions& options);

/// Prints, parses and compares: an error that shows the text and the difference where they are not inverse.
/// Well-formed modules and functions always pass; tests and the pass runner (PassOptions::roundTripEach)
/// check it.
Status checkRoundTrip(const NodeRef& moduleOrFunction);

} // namespace bevel
