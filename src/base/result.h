// Errors as values. An Error is cheap to make and move: it is rendered only when shown.
#pragma once

#include "base/object.h"
#include "base/span.h"

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

namespace bevel {

/// What kind of failure; the tool's exit code follows from it.
enum class ErrorCode : uint8_t {
  kInternal,    // a fault of ours: exit 1
  kUsage,       // wrong command line or call: exit 2
  kInvalid,     // the model, text or input is malformed or inconsistent: exit 3
  kUnsupported, // well-formed, but outside what we do: exit 3
  kIllegal,     // a schedule step whose legality cannot be proved: exit 3
  kIo,          // a file cannot be read or written: exit 3
};

/// One failure: what is wrong, where, why, and what to do about it.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
  std::string file;                     // file at fault, if any
  Span span;                            // place in that file
  std::string source;                   // the line of text at the span, shown with a caret
  std::vector<Ref<const Object>> nodes; // IR around the fault, underlined by the renderer
  std::vector<std::string> notes;       // further facts, one line each
  std::string hint;                     // what to do

  Error() = default;
  Error(ErrorCode c, std::string text) : code(c), message(std::move(text)) {}
  Error& at(Ref<const Object> node) & {
    nodes.push_back(std::move(node));
    return *this;
  }
  Error&& at(Ref<const Object> node) && {
    nodes.push_back(std::move(node));
    return std::move(*this);
  }
  Error&& in(std::string path, Span place = {}) && {
    file = std::move(path);
    span = place;
    return std::move(*this);
  }
  Error&& note(std::string text) && {
    notes.push_back(std::move(text));
    return std::move(*this);
  }
  Error&& help(std::string text) && {
    hint = std::move(text);
    return std::move(*this);
  }
  /// "file:line:column: error: message" with notes and the hint, without the IR (see ir/render.h for that).
  std::string str() const;
};

/// A value or the reason there is none.
template <class T> using Result = tl::expected<T, Error>;
using Status = tl::expected<void, Error>;

inline tl::unexpected<Error> fail(Error error) {
  return tl::unexpected<Error>(std::move(error));
}
inline tl::unexpected<Error> fail(ErrorCode code, std::string message) {
  return fail(Error(code, std::move(message)));
}

/// Evaluates a Result, returns its error from the enclosing function, or binds its value.
#define BEVEL_CONCAT_(a, b) a##b
#define BEVEL_CONCAT(a, b) BEVEL_CONCAT_(a, b)
#define BEVEL_TRY_(tmp, decl, expr)                                                                          \
  auto tmp = (expr);                                                                                         \
  if (!tmp) return ::bevel::fail(std::move(tmp.error()));                                                    \
  decl = std::move(*tmp)
#define BEVEL_TRY(decl, expr) BEVEL_TRY_(BEVEL_CONCAT(tryResult, __LINE__), decl, expr)
#define BEVEL_CHECK(expr)                                                                                    \
  do {                                                                                                       \
    if (auto checkResult = (expr); !checkResult) return ::bevel::fail(std::move(checkResult.error()));       \
  } while (false)

/// Ends the process on a broken invariant of ours, naming it. Never for bad input.
[[noreturn]] void internalFault(const char* file, int line, std::string_view what);
#define BEVEL_ASSERT(condition, what)                                                                        \
  do {                                                                                                       \
    if (!(condition)) ::bevel::internalFault(__FILE__, __LINE__, what);                                      \
  } while (false)

} // namespace bevel
