// Suggestions for misspelt names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bevel {

/// "did you mean 'vectorize'?" with the candidate that differs in the fewest letters, "" when none is near.
std::string didYouMean(std::string_view name, const std::vector<std::string>& candidates);

} // namespace bevel
