// Reads the TVMScript notation (docs/ir.md): older and current TVM spellings, and what ir/printer.h prints.
//
// One parser serves files, strings and Python decorators (which pass their source and captured constants).
// The text is not trusted: nesting is bounded and every fault is an error with file, line, column, the line
// and a hint.
#pragma once

#include "base/result.h"
#include "ir/graph.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bevel {

/// The arguments of an operator in order: values, then attributes.
struct OpSignature {
  struct Attr {
    std::string name;
    bool list; // of numbers: one number is a list of one
  };
  std::vector<std::string> inputs;
  std::vector<Attr> attrs;
  bool variadic = false; // the last input is any number of values, or a tuple of them
};

struct ParseOptions {
  std::string file;  // for errors and origins
  int firstLine = 1; // line of the text's first line in that file
  /// Names that the surrounding program defines: IntImm, FloatImm and StringImm stand for Python's numbers
  /// and strings, a List for a list; a Constant, Buffer, Var or any other node for itself.
  std::vector<std::pair<std::string, NodeRef>> captures;
  /// What `metadata["relax.expr.Constant"][i]` refers to (ir/constants.h reads them from a file).
  std::vector<Constant> constants;
  /// What the arguments of an operator are; nothing for operators that are not known. Without it positional
  /// arguments are values and keywords attributes.
  std::function<std::optional<OpSignature>(std::string_view op)> signatureOf;
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
