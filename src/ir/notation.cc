// Words of the notation.
#include "ir/notation.h"

namespace bevel::detail {

bool isReservedKeyword(std::string_view key) {
  for (std::string_view word : {"out_sinfo", "out_ty", "sinfo_args", "ty_args", "tir_vars", "attrs"})
    if (key == word) return true;
  return false;
}

std::string_view adviceFor(std::string_view word) {
#define HABIT(habit, advice)                                                                                 \
  if (word == habit) return advice;
#include "ir/notation.def"
  return "";
}

} // namespace bevel::detail
