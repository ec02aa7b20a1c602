// Errors inside the runtime: a status code that travels up, and a message kept for the thread
// (bevel_last_error).
#pragma once

#include "runtime/abi/value.h"

namespace bevel::rt {

/// A bevel_status: 0 is success.
using Status = int32_t;

/// Keeps the message for this thread and returns `code`.
[[nodiscard]] Status fail(bevel_status code, const char* format, ...) __attribute__((format(printf, 2, 3)));

/// Keeps a message that is already text.
Status failText(Status code, const char* message);

/// The status of the last failure on this thread: for functions that show failure by a null result.
Status lastStatus();

/// The message of the last failure on this thread.
const char* lastError();

} // namespace bevel::rt

#define BEVEL_RT_TRY(expression)                                                                             \
  do {                                                                                                       \
    if (::bevel::rt::Status status_ = (expression)) return status_;                                          \
  } while (0)
