// Splits the notation's text into tokens, with Python's indentation and line joining.
#pragma once

#include "base/result.h"

#include <optional>

#include <string>
#include <string_view>
#include <vector>

namespace bevel::detail {

enum class TokenKind : uint8_t { kName, kInt, kFloat, kString, kOperator, kNewline, kIndent, kDedent, kEnd };

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string_view text{}; // in the source; a string with its quotes
  int line = 0, column = 0, endColumn = 0;
  bool is(std::string_view operatorOrName) const {
    return (kind == TokenKind::kName || kind == TokenKind::kOperator) && text == operatorOrName;
  }
};

/// Tokens of a text, ended by kEnd. Newlines and indentation inside brackets are not tokens; the text as a
/// whole may be indented. The tokens refer to the text.
Result<std::vector<Token>> tokenize(std::string_view text);

/// The value of a string token: quotes and escapes resolved. Nothing for a malformed escape.
std::optional<std::string> stringValue(std::string_view token);

} // namespace bevel::detail
