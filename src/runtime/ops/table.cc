// The list of the runtime's own packed functions.
#include "runtime/ops/table.h"

#include "runtime/ops/entries.h"

namespace bevel::rt {

std::span<const PackedEntry> packedTable() {
  static const PackedEntry kTable[] = {
#define BEVEL_PACKED(name, function, mostArgs) {name, function, mostArgs},
#include "runtime/ops/table.inc"
#undef BEVEL_PACKED
  };
  return kTable;
}

} // namespace bevel::rt
