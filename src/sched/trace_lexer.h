// Tokens of a schedule script: names, numbers, strings and punctuation with their places.
#pragma once

#include "base/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace bevel {

struct ScriptToken {
  enum class Kind : uint8_t { kName, kInt, kFloat, kString, kPunct, kNewline, kEnd } kind;
  std::string text; // of a string: its value
  Span span;
  bool is(std::string_view punct) const { return kind == Kind::kPunct && text == punct; }
};

/// Newlines inside brackets are not tokens. Fails (kInvalid) on a character that starts no token, or an open
/// string.
Result<std::vector<ScriptToken>> scanScript(std::string_view text, const std::string& file);

} // namespace bevel
