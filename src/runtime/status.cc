// The message of the last failure, one for each thread.
#include "runtime/status.h"

#include <cstdarg>
#include <cstdio>
#include <string>

namespace bevel::rt {

static std::string& message() {
  static thread_local std::string text;
  return text;
}

static thread_local Status last = BEVEL_OK;

Status fail(bevel_status code, const char* format, ...) {
  va_list args;
  va_start(args, format);
  va_list again;
  va_copy(again, args);
  int size = vsnprintf(nullptr, 0, format, args);
  va_end(args);
  std::string text(size < 0 ? 0 : size_t(size), '\0');
  if (size > 0) vsnprintf(text.data(), text.size() + 1, format, again);
  va_end(again);
  message() = std::move(text); // only now: an argument may be the old message
  last = code;
  return code;
}

Status failText(Status code, const char* text) {
  if (text != message().c_str()) message() = text ? text : "";
  last = code;
  return code;
}

Status lastStatus() {
  return last ? last : int32_t(BEVEL_ERROR_INTERNAL);
}

const char* lastError() {
  return message().c_str();
}

} // namespace bevel::rt
