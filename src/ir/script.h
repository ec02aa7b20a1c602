// Reads schedule scripts: one call a line, `a, b = sch.split(loop=i, factors=[None, 32])`, with the lexer and the
// expressions of the IR's notation. What a call does is the caller's: nothing here knows a step.
#pragma once

#include "base/function_ref.h"
#include "base/result.h"
#include "ir/expr.h"

namespace bevel {

/// A call with its values: variables (handles), IntImm, FloatImm, StringImm, List, Dict, Lambda; null is None.
struct ScriptCall {
  std::string name;
  std::vector<NodeRef> args;
  std::vector<std::pair<std::string, NodeRef>> named;
  std::vector<std::string> targets; // names on the left
  bool asList = false;              // one name for what may be a list
};
/// Gives the result: a variable, a List of variables, or null for none.
using ScriptHandler = FunctionRef<Result<NodeRef>(const ScriptCall&)>;

/// Reads line by line and stops at the first fault, which has its place. Lines that start with '#', and the
/// lines "from …", "import …", "def …" and "return …" of a Python file are skipped; indentation does not matter.
Status parseScript(std::string_view text, const std::string& file, ScriptHandler handler);

} // namespace bevel
