// Storage scopes: who sees a buffer's memory, where it is allocated, how much of it there is.
#pragma once

#include "base/result.h"

#include <string_view>

namespace bevel {

/// A row of ir/storage_scopes.def: what a scope is on one kind of target.
struct StorageScope {
  enum SeenBy : uint8_t { kAll, kGroup, kThread };
  enum Place : uint8_t { kWorkspace, kStack, kRegisters };
  const char* name;
  const char* kind; // of target, "cpu"
  SeenBy seenBy;    // the threads that share one buffer
  Place place;
  int64_t capacity; // bytes of one buffer; 0: as many as there are
  const char*
      spill; // the scope of what is too large, or is shared by threads that cannot see it; null: refused
};

/// The scope of that name on a kind of target ("": on any), or null. A name may end in a dot and a word of the user's, which
/// says more for other targets: "global.cache" is "global".
const StorageScope* findScope(std::string_view name, std::string_view kind = "");

/// kInvalid for a name that is no scope of any target; the names that there are stand in the help.
Status checkScope(std::string_view name);

/// The buffer scope's memory on that kind of target is vector registers.
inline bool inRegisters(std::string_view scope, std::string_view kind) {
  const StorageScope* s = findScope(scope, kind);
  return s && s->place == StorageScope::kRegisters;
}

} // namespace bevel
