// See storage_scope.h.
#include "ir/storage_scope.h"

#include "base/near_name.h"

#include <fmt/ranges.h>

namespace bevel {

static constexpr StorageScope kScopes[] = {
#define STORAGE_SCOPE(name, kind, seenBy, place, capacity, spill)                                            \
  {name, kind, StorageScope::seenBy, StorageScope::place, capacity, spill},
#include "ir/storage_scopes.def"
#undef STORAGE_SCOPE
};

static const StorageScope* rowOf(std::string_view name, std::string_view kind) {
  for (const StorageScope& s : kScopes)
    if (name == s.name && (kind.empty() || kind == s.kind)) return &s;
  return nullptr;
}

const StorageScope* findScope(std::string_view name, std::string_view kind) {
  if (const StorageScope* whole = rowOf(name, kind)) return whole;
  size_t dot = name.rfind('.');
  return dot == name.npos || dot + 1 == name.size() ? nullptr : rowOf(name.substr(0, dot), kind);
}

Status checkScope(std::string_view name) {
  if (findScope(name)) return {};
  std::vector<std::string> names;
  for (const StorageScope& s : kScopes) names.push_back(s.name);
  std::string near = didYouMean(name, names);
  return fail(Error(ErrorCode::kInvalid, "there is no storage scope \"" + std::string(name) + "\"")
                  .help(fmt::format("{}{}the scopes are: {}", near, near.empty() ? "" : " ",
                                    fmt::join(names, ", "))));
}

} // namespace bevel
