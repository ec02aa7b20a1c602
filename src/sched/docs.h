// The documentation page of the schedule steps, from their table.
#pragma once

#include <string>

namespace bevel {

/// Markdown: each step with its call, its text, and its example before and after.
std::string stepsMarkdown();

} // namespace bevel
