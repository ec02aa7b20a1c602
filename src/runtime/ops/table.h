// The packed functions that the runtime brings along: operators whose result shape depends on data, and text.
#pragma once

#include "runtime/packed.h"

#include <span>

namespace bevel::rt {

std::span<const PackedEntry> packedTable();

} // namespace bevel::rt
