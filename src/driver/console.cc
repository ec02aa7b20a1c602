// See console.h.
#include "driver/console.h"

#include "ir/render.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace bevel {

void sayText(std::string_view text) {
  std::string shown = visible(text);
  std::fwrite(shown.data(), 1, shown.size(), stdout); // errors are sticky: flushOutput tells them
}

Status flushOutput() {
  bool failed = std::ferror(stdout) != 0;
  if (std::fflush(stdout) == 0 && !failed) return {};
  return fail(ErrorCode::kIo, std::string("cannot write to standard output: ") + std::strerror(errno));
}

} // namespace bevel
