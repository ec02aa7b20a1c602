// The lexer.
#include "ir/lexer.h"

namespace bevel::detail {
namespace {

bool isDigit(char c) {
  return c >= '0' && c <= '9';
}
bool isNameStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool isNamePart(char c) {
  return isNameStart(c) || isDigit(c);
}
bool isHex(char c) {
  return isDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

class Lexer {
public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Result<std::vector<Token>> run() {
    while (pos_ < text_.size() && !failed_) {
      if (atLineStart_ && brackets_.empty()) {
        if (!indentation()) continue;
      }
      next();
    }
    if (!failed_ && !brackets_.empty()) {
      const Token& open = brackets_.back();
      error("'" + std::string(open.text) + "' is never closed", open.line, open.column, open.column + 1);
    }
    if (failed_) return fail(std::move(error_));
    finish();
    return std::move(tokens_);
  }

private:
  char at(size_t i) const { return i < text_.size() ? text_[i] : '\0'; }
  int column(size_t pos) const { return int(pos - lineStart_) + 1; }

  void error(std::string message, int line, int column, int end, std::string hint = "") {
    if (failed_) return;
    failed_ = true;
    error_ = Error(ErrorCode::kInvalid, std::move(message));
    error_.span = {line, column, end};
    error_.hint = std::move(hint);
  }
  void errorHere(std::string message, size_t begin, std::string hint = "") {
    error(std::move(message), line_, column(begin), column(pos_ > begin ? pos_ : begin + 1), std::move(hint));
  }

  void push(TokenKind kind, size_t begin) {
    tokens_.push_back({kind, text_.substr(begin, pos_ - begin), line_, column(begin), column(pos_)});
  }

  void newLine() {
    ++line_;
    lineStart_ = pos_;
  }

  // Measures the indentation of a line; false when the line holds nothing (it is skipped).
  bool indentation() {
    int width = 0;
    size_t p = pos_;
    for (; p < text_.size(); ++p) {
      if (text_[p] == ' ')
        ++width;
      else if (text_[p] == '\t')
        width = (width / 8 + 1) * 8;
      else if (text_[p] != '\f' && text_[p] != '\r')
        break;
    }
    if (p < text_.size() && text_[p] == '#')
      while (p < text_.size() && text_[p] != '\n') ++p;
    pos_ = p;
    if (p >= text_.size()) return false;
    if (text_[p] == '\n') {
      ++pos_;
      newLine();
      return false;
    }
    atLineStart_ = false;
    if (indents_.empty()) indents_.push_back(width); // the whole text may be indented
    if (width > indents_.back()) {
      if (indents_.size() > kMaxIndents) return errorHere("nested too deeply", p), true;
      indents_.push_back(width);
      push(TokenKind::kIndent, pos_);
    }
    while (width < indents_.back()) {
      if (indents_.size() == 1 || width > indents_[indents_.size() - 2]) {
        errorHere("this indentation matches no enclosing one", p,
                  "align the line with the block that it belongs to");
        return true;
      }
      indents_.pop_back();
      push(TokenKind::kDedent, pos_);
    }
    return true;
  }

  void next() {
    if (failed_) return;
    char c = at(pos_);
    if (c == ' ' || c == '\t' || c == '\r' || c == '\f') return void(++pos_);
    if (c == '#') {
      while (pos_ < text_.size() && text_[pos_] != '\n') ++pos_;
      return;
    }
    if (c == '\\' && (at(pos_ + 1) == '\n' || (at(pos_ + 1) == '\r' && at(pos_ + 2) == '\n'))) {
      pos_ += at(pos_ + 1) == '\n' ? 2 : 3;
      return newLine();
    }
    if (c == '\n') {
      size_t begin = pos_++;
      if (brackets_.empty()) {
        push(TokenKind::kNewline, begin);
        atLineStart_ = true;
      }
      return newLine();
    }
    if (isNameStart(c)) return name();
    if (isDigit(c) || (c == '.' && isDigit(at(pos_ + 1)))) return number();
    if (c == '"' || c == '\'') return string(pos_);
    operatorToken();
  }

  void name() {
    size_t begin = pos_;
    while (isNamePart(at(pos_))) ++pos_;
    std::string_view word = text_.substr(begin, pos_ - begin);
    bool quote = at(pos_) == '"' || at(pos_) == '\'';
    if (quote && (word == "r" || word == "R" || word == "u")) return string(begin);
    if (quote && (word == "f" || word == "F" || word == "b"))
      return errorHere("strings marked '" + std::string(word) + "' are not part of the notation", begin,
                       "write the text in plain quotes");
    push(TokenKind::kName, begin);
  }

  void number() {
    size_t begin = pos_;
    bool real = false;
    char base = char(at(pos_ + 1) | 0x20);
    if (at(pos_) == '0' && (base == 'x' || base == 'b' || base == 'o')) {
      pos_ += 2;
      while (isHex(at(pos_)) || at(pos_) == '_') ++pos_;
    } else {
      auto digits = [&] {
        while (isDigit(at(pos_)) || at(pos_) == '_') ++pos_;
      };
      digits();
      if (at(pos_) == '.') real = true, ++pos_, digits();
      char sign = at(pos_ + 1);
      if ((at(pos_) | 0x20) == 'e' &&
          (isDigit(sign) || ((sign == '+' || sign == '-') && isDigit(at(pos_ + 2)))))
        real = true, pos_ += isDigit(sign) ? 1 : 2, digits();
    }
    if (isNameStart(at(pos_))) {
      while (isNamePart(at(pos_))) ++pos_;
      return errorHere("malformed number", begin);
    }
    push(real ? TokenKind::kFloat : TokenKind::kInt, begin);
  }

  void string(size_t begin) {
    char quote = text_[pos_];
    bool triple = at(pos_ + 1) == quote && at(pos_ + 2) == quote;
    int line = line_, startColumn = column(begin);
    pos_ += triple ? 3 : 1;
    for (;; ++pos_) {
      if (pos_ >= text_.size() || (!triple && text_[pos_] == '\n'))
        return error("this string is never closed", line, startColumn, startColumn + 1);
      bool escaped = text_[pos_] == '\\' && pos_ + 1 < text_.size();
      if (escaped) ++pos_;
      if (text_[pos_] == '\n') ++line_, lineStart_ = pos_ + 1;
      if (!escaped && text_[pos_] == quote && (!triple || (at(pos_ + 1) == quote && at(pos_ + 2) == quote)))
        break;
    }
    pos_ += triple ? 3 : 1;
    tokens_.push_back({TokenKind::kString, text_.substr(begin, pos_ - begin), line, startColumn,
                       line == line_ ? column(pos_) : startColumn + 1});
  }

  void operatorToken() {
    static constexpr std::string_view kOperators[] = {"**=", "//=", "<<=", ">>=", "...", "->", "**", "//",
                                                      "<<",  ">>",  "<=",  ">=",  "==",  "!=", "+=", "-=",
                                                      "*=",  "/=",  "%=",  ":=",  "&=",  "|=", "^="};
    size_t begin = pos_;
    size_t length = 0;
    for (std::string_view op : kOperators) // longer ones first
      if (!length && op[0] == text_[pos_] && op[1] == at(pos_ + 1) && text_.substr(pos_, op.size()) == op)
        length = op.size();
    if (!length && std::string_view("+-*/%<>=()[]{},:.@&|^~").find(text_[pos_]) != std::string_view::npos)
      length = 1;
    if (!length) {
      if (text_[pos_++] == ';') return errorHere("one statement a line", begin);
      while (pos_ < text_.size() && (text_[pos_] & 0xc0) == 0x80) ++pos_; // a whole UTF-8 character
      return errorHere("unexpected character", begin);
    }
    pos_ += length;
    push(TokenKind::kOperator, begin);
    bracket(tokens_.back());
  }

  void bracket(const Token& t) {
    if (t.text == "(" || t.text == "[" || t.text == "{") {
      if (brackets_.size() >= kMaxBrackets) return errorHere("nested too deeply", pos_ - 1);
      brackets_.push_back(t);
    }
    if (t.text == ")" || t.text == "]" || t.text == "}") {
      char open = t.text == ")" ? '(' : t.text == "]" ? '[' : '{';
      if (brackets_.empty() || brackets_.back().text[0] != open)
        return errorHere("'" + std::string(t.text) + "' closes nothing", pos_ - 1);
      brackets_.pop_back();
    }
  }

  void finish() {
    size_t end = pos_ = text_.size();
    if (!tokens_.empty() && tokens_.back().kind != TokenKind::kNewline &&
        tokens_.back().kind != TokenKind::kDedent)
      push(TokenKind::kNewline, end);
    for (size_t i = 1; i < indents_.size(); ++i) push(TokenKind::kDedent, end);
    push(TokenKind::kEnd, end);
  }

  static constexpr size_t kMaxIndents = 400, kMaxBrackets = 300;
  std::string_view text_;
  size_t pos_ = 0, lineStart_ = 0;
  int line_ = 1;
  bool atLineStart_ = true, failed_ = false;
  std::vector<int> indents_;
  std::vector<Token> brackets_, tokens_;
  Error error_;
};

void appendUtf8(std::string& out, uint32_t c) {
  constexpr uint32_t kLead[] = {0, 0xc0, 0xe0, 0xf0};
  int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3; // bytes behind the first
  out += char(kLead[more] | c >> (6 * more));
  while (more-- > 0) out += char(0x80 | ((c >> (6 * more)) & 63));
}

// Reads `digits` hexadecimal digits at i; nothing when they are not there.
std::optional<uint32_t> hexValue(std::string_view s, size_t i, int digits) {
  if (i + size_t(digits) > s.size()) return std::nullopt;
  uint32_t value = 0;
  for (int k = 0; k < digits; ++k) {
    char c = s[i + size_t(k)];
    if (!isHex(c)) return std::nullopt;
    value = value * 16 + uint32_t(isDigit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
  }
  return value;
}

} // namespace

Result<std::vector<Token>> tokenize(std::string_view text) {
  return Lexer(text).run();
}

std::optional<std::string> stringValue(std::string_view token) {
  bool raw = token[0] == 'r' || token[0] == 'R';
  if (token[0] != '"' && token[0] != '\'') token.remove_prefix(1);
  size_t quotes = token.size() >= 6 && token[1] == token[0] && token[2] == token[0] ? 3 : 1;
  std::string_view s = token.substr(quotes, token.size() - 2 * quotes);
  std::string out;
  for (size_t i = 0; i < s.size(); ++i) {
    if (s[i] != '\\' || raw || i + 1 >= s.size()) {
      out += s[i];
      continue;
    }
    char c = s[++i];
    static constexpr std::string_view kFrom = "ntr0\\'\"abfv", kTo("\n\t\r\0\\'\"\a\b\f\v", 11);
    if (size_t k = kFrom.find(c); k != std::string_view::npos) {
      out += kTo[k];
      continue;
    }
    if (c == '\n') continue;
    int digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (!digits) {
      out += '\\', out += c;
      continue;
    } // as Python does
    auto value = hexValue(s, i + 1, digits);
    if (!value || *value > 0x10ffff) return std::nullopt;
    if (digits == 2)
      out += char(*value); // bytes, as the printer writes them
    else
      appendUtf8(out, *value);
    i += size_t(digits);
  }
  return out;
}

} // namespace bevel::detail
