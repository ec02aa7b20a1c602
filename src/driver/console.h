// What the tool says on standard output.
#pragma once

#include "base/result.h"

#include <fmt/format.h>
#include <string_view>

namespace bevel {

/// Writes to standard output. Names come from models: control characters are made visible.
void sayText(std::string_view text);
template <class... A> void say(fmt::format_string<A...> format, A&&... args) {
  sayText(fmt::format(format, std::forward<A>(args)...));
}

/// A JSON value over several lines. Text of models that is not UTF-8 is mended.
template <class Json> void sayJson(const Json& value) {
  say("{}\n", value.dump(2, ' ', false, Json::error_handler_t::replace));
}

/// kIo where something that was said could not be written.
Status flushOutput();

} // namespace bevel
