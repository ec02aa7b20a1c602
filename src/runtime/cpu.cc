// See cpu.h.
#include "runtime/cpu.h"

namespace bevel::rt {

bool hasFeature(std::string_view name) {
#if defined(__x86_64__)
#define X86_FEATURE(feature)                                                                                 \
  if (name == feature) return __builtin_cpu_supports(feature);
#include "runtime/abi/cpu_features.def"
#undef X86_FEATURE
#endif
  return false;
}

std::string missingFeatures(std::string_view features, bool (*has)(std::string_view)) {
  std::string missing;
  while (!features.empty()) {
    std::string_view name = features.substr(0, features.find(' '));
    features.remove_prefix(std::min(name.size() + 1, features.size()));
    if (name.empty() || has(name)) continue;
    missing += missing.empty() ? "" : ", ";
    missing += name;
  }
  return missing;
}

} // namespace bevel::rt
