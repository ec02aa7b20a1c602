// All operators.
#pragma once

#include <cstddef>
#include <vector>

namespace bevel {

/// Puts every family of ops.def into OpRegistry::global(); later calls do nothing. Thread safe.
void registerOps();

/// A family of ops.def and where its operators stand in the registry.
struct OpFamily {
  const char* name;
  size_t begin, end;
};
const std::vector<OpFamily>& opFamilies();

} // namespace bevel
