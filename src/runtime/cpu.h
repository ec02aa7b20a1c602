// What the processor can do.
#pragma once

#include <string>
#include <string_view>

namespace bevel::rt {

/// Whether the processor, and the system on it, has a feature of abi/cpu_features.def. Names that are not there are
/// unknown and count as missing.
bool hasFeature(std::string_view name);

/// Those of `features` (with a space between) that `has` denies, with ", " between; "" where none is missing.
std::string missingFeatures(std::string_view features, bool (*has)(std::string_view) = hasFeature);

} // namespace bevel::rt
