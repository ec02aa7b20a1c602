// The list of the runtime's own packed functions.
#include "runtime/ops/table.h"

namespace bevel::rt {

std::span<const PackedEntry> packedTable() {
  return {};
}

} // namespace bevel::rt
