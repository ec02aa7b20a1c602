// Rendering of errors with the IR around the fault.
#include "ir/render.h"

#include "ir/printer.h"

#include <algorithm>
#include <fmt/ranges.h>
#include <set>

namespace bevel {
namespace {

constexpr size_t kContext = 2; // lines before and after an underlined one

std::vector<std::string_view> linesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

struct Underline {
  size_t line, begin, end; // columns, end excluded
};

class Renderer {
public:
  Renderer(const Error& error, const RenderOptions& options) : error_(error), options_(options) {
    for (std::string* text : {&error_.message, &error_.hint, &error_.file, &error_.source})
      *text = visible(*text);
    for (std::string& note : error_.notes) note = visible(note);
  }

  std::string run() {
    if (!error_.file.empty()) out_ += error_.file + ":";
    if (error_.span.line > 0)
      out_ += std::to_string(error_.span.line) + ":" + std::to_string(error_.span.column) + ":";
    if (!out_.empty()) out_ += " ";
    out_ += paint("1;31", "error:") + " " + paint("1", error_.message) + "\n";
    source();
    for (const auto& node : error_.nodes)
      if (node) ir(static_cast<const Node&>(*node));
    std::set<std::string> models;
    for (const auto& node : error_.nodes)
      if (node && static_cast<const Node&>(*node).origin)
        for (const std::string& name : static_cast<const Node&>(*node).origin->nodes)
          models.insert(visible(name));
    if (!models.empty()) out_ += fmt::format("  model node: {}\n", fmt::join(models, ", "));
    for (const std::string& n : error_.notes) out_ += "  note: " + n + "\n";
    if (!error_.hint.empty()) out_ += "  " + paint("1;32", "help:") + " " + error_.hint + "\n";
    return std::move(out_);
  }

private:
  std::string paint(const char* code, const std::string& text) const {
    return options_.color ? "\033[" + std::string(code) + "m" + text + "\033[0m" : text;
  }

  std::string carets(size_t begin, size_t end) const {
    return std::string(begin, ' ') +
           paint("1;31", std::string(std::max<size_t>(1, end > begin ? end - begin : 1), '^'));
  }

  void source() {
    if (error_.source.empty()) return;
    std::string number = std::to_string(error_.span.line), pad(number.size(), ' ');
    out_ += "  " + number + " | " + error_.source + "\n";
    if (error_.span.column > 0)
      out_ += "  " + pad + " | " +
              carets(size_t(error_.span.column - 1), size_t(std::max(error_.span.endColumn - 1, 0))) + "\n";
  }

  // The text that holds the node, or the node's own.
  void ir(const Node& node) {
    std::unordered_map<const Object*, PrintedRange> ranges;
    PrintOptions options;
    options.ranges = &ranges;
    std::string text = options_.within ? print(options_.within, options) : "";
    auto it = ranges.find(&node);
    if (it == ranges.end()) {
      ranges.clear();
      text = print(NodeRef(&node), options);
      it = ranges.find(&node);
    }
    auto lines = linesOf(text);
    if (lines.empty()) return;
    Underline u{0, 0, lines[0].size()};
    if (it != ranges.end()) u = locate(lines, it->second);
    size_t first = u.line - std::min(u.line, kContext), last = std::min(lines.size() - 1, u.line + kContext);
    size_t cut = std::string_view::npos; // the common indentation is left out
    for (size_t i = first; i <= last; ++i)
      if (!lines[i].empty()) cut = std::min(cut, lines[i].find_first_not_of(' '));
    if (cut == std::string_view::npos) cut = 0;
    for (size_t i = first; i <= last; ++i) {
      out_ += "  | " + visible(lines[i].substr(std::min(cut, lines[i].size()))) + "\n";
      if (i == u.line)
        out_ += "  | " + carets(u.begin - std::min(cut, u.begin), u.end - std::min(cut, u.end)) + "\n";
    }
  }

  static Underline locate(const std::vector<std::string_view>& lines, PrintedRange range) {
    size_t start = 0;
    for (size_t i = 0; i < lines.size(); ++i) {
      size_t end = start + lines[i].size();
      if (range.begin <= end) {
        size_t begin = range.begin > start ? range.begin - start : 0;
        begin = std::max(begin, std::min(lines[i].find_first_not_of(' '), lines[i].size()));
        return {i, begin, std::max(begin + 1, std::min(range.end, end) - start)};
      }
      start = end + 1;
    }
    return {lines.size() - 1, 0, lines.back().size()};
  }

  Error error_;
  const RenderOptions& options_;
  std::string out_;
};

} // namespace

std::string visible(std::string_view text) {
  static const char digits[] = "0123456789abcdef";
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    auto c = static_cast<unsigned char>(text[i]);
    auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0;
    bool wide =
        c == 0xc2 && next >= 0x80 && next < 0xa0; // U+0080 to U+009F in UTF-8 are control characters too
    if (!wide && ((c >= 0x20 && c != 0x7f) || c == '\n' || c == '\t')) {
      out += char(c);
      continue;
    }
    auto code = wide ? next : c;
    out += {'\\', 'x', digits[code >> 4], digits[code & 15]};
    i += wide;
  }
  return out;
}

std::string render(const Error& error, const RenderOptions& options) {
  return Renderer(error, options).run();
}

} // namespace bevel
