// Words of the notation.
#include "ir/notation.h"

namespace bevel::detail {

bool isReservedKeyword(std::string_view key) {
  for (std::string_view word : {"out_sinfo", "out_ty", "sinfo_args", "ty_args", "tir_vars", "attrs"})
    if (key == word) return true;
  return false;
}

} // namespace bevel::detail
