// Plain rendering of errors, and the end on a broken invariant.
#include "base/result.h"

#include <cstdio>
#include <cstdlib>

namespace bevel {

std::string Error::str() const {
  std::string out;
  if (!file.empty()) out += file + ":";
  if (span.line > 0) out += std::to_string(span.line) + ":" + std::to_string(span.column) + ":";
  if (!out.empty()) out += " ";
  out += "error: " + message;
  if (!source.empty()) {
    out += "\n  | " + source;
    if (span.column > 0) {
      int width = span.endColumn > span.column ? span.endColumn - span.column : 1;
      out += "\n  | " + std::string(size_t(span.column - 1), ' ') + std::string(size_t(width), '^');
    }
  }
  for (const std::string& n : notes) out += "\n  note: " + n;
  if (!hint.empty()) out += "\n  help: " + hint;
  return out;
}

void internalFault(const char* file, int line, std::string_view what) {
  std::fprintf(stderr, "internal error: %.*s (%s:%d)\n", int(what.size()), what.data(), file, line);
  std::abort();
}

} // namespace bevel
