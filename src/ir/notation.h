// Words of the notation that printer and parser must agree on.
#pragma once

#include <string_view>

namespace bevel::detail {

/// Keywords of calls that no attribute may be called by (such attributes are written in `attrs={…}`).
bool isReservedKeyword(std::string_view key);
/// What to write in place of a word of Python that is not part of the notation; "" for other words.
std::string_view adviceFor(std::string_view word);

} // namespace bevel::detail
