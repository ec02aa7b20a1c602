#include "sched/trace_lexer.h"

#include <cctype>

namespace bevel {

namespace {

class Scanner {
public:
  Scanner(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  Result<std::vector<ScriptToken>> run() {
    while (pos_ < text_.size()) {
      char c = text_[pos_];
      if (c == '\n')
        newline();
      else if (c == ' ' || c == '\t' || c == '\r')
        ++pos_;
      else if (c == '#')
        skipLine();
      else if (c == '"' || c == '\'')
        BEVEL_CHECK(string());
      else if (std::isdigit(uint8_t(c)))
        number();
      else if (std::isalpha(uint8_t(c)) || c == '_')
        name();
      else
        BEVEL_CHECK(punct());
    }
    push(ScriptToken::Kind::kNewline, "", pos_);
    push(ScriptToken::Kind::kEnd, "", pos_);
    return std::move(tokens_);
  }

private:
  void push(ScriptToken::Kind kind, std::string text, size_t begin) {
    Span span{line_, int(begin - lineStart_) + 1, int(pos_ - lineStart_) + 1};
    tokens_.push_back({kind, std::move(text), span});
  }
  void newline() {
    if (depth_ == 0) push(ScriptToken::Kind::kNewline, "", pos_);
    ++pos_;
    ++line_;
    lineStart_ = pos_;
  }
  void skipLine() {
    while (pos_ < text_.size() && text_[pos_] != '\n') ++pos_;
  }
  Error error(const std::string& message, size_t at) {
    return Error(ErrorCode::kInvalid, message)
        .in(file_, {line_, int(at - lineStart_) + 1, int(at - lineStart_) + 2});
  }
  Status string() {
    size_t begin = pos_;
    char quote = text_[pos_++];
    std::string value;
    for (; pos_ < text_.size() && text_[pos_] != quote && text_[pos_] != '\n'; ++pos_) {
      char c = text_[pos_];
      if (c == '\\' && pos_ + 1 < text_.size()) {
        c = text_[++pos_];
        if (c == 'n')
          c = '\n';
        else if (c == 't')
          c = '\t';
      }
      value += c;
    }
    if (pos_ >= text_.size() || text_[pos_] != quote) return fail(error("the string does not end", begin));
    ++pos_;
    push(ScriptToken::Kind::kString, std::move(value), begin);
    return {};
  }
  void number() {
    size_t begin = pos_;
    bool isFloat = false;
    while (pos_ < text_.size()) {
      char c = text_[pos_];
      bool exponent = (c == 'e' || c == 'E') && pos_ + 1 < text_.size();
      bool sign = (c == '+' || c == '-') && (text_[pos_ - 1] == 'e' || text_[pos_ - 1] == 'E');
      if (c == '.' || exponent || sign)
        isFloat = true;
      else if (!std::isdigit(uint8_t(c)) && c != '_')
        break;
      ++pos_;
    }
    std::string digits;
    for (char c : text_.substr(begin, pos_ - begin))
      if (c != '_') digits += c;
    push(isFloat ? ScriptToken::Kind::kFloat : ScriptToken::Kind::kInt, std::move(digits), begin);
  }
  void name() {
    size_t begin = pos_;
    while (pos_ < text_.size() && (std::isalnum(uint8_t(text_[pos_])) || text_[pos_] == '_')) ++pos_;
    push(ScriptToken::Kind::kName, std::string(text_.substr(begin, pos_ - begin)), begin);
  }
  Status punct() {
    size_t begin = pos_;
    std::string_view two = text_.substr(pos_, 2);
    if (two == "//" || two == "->") {
      pos_ += 2;
      push(ScriptToken::Kind::kPunct, std::string(two), begin);
      return {};
    }
    char c = text_[pos_];
    if (std::string_view("()[]{}=,.:+-*%;").find(c) == std::string_view::npos)
      return fail(error(std::string("unexpected character '") + c + "'", begin));
    if (c == '(' || c == '[' || c == '{') ++depth_;
    if ((c == ')' || c == ']' || c == '}') && depth_ > 0) --depth_;
    ++pos_;
    push(c == ';' ? ScriptToken::Kind::kNewline : ScriptToken::Kind::kPunct, std::string(1, c), begin);
    return {};
  }

  std::string_view text_;
  const std::string& file_;
  std::vector<ScriptToken> tokens_;
  size_t pos_ = 0, lineStart_ = 0;
  int line_ = 1, depth_ = 0;
};

} // namespace

Result<std::vector<ScriptToken>> scanScript(std::string_view text, const std::string& file) {
  return Scanner(text, file).run();
}

} // namespace bevel
