// Compiled kernels on disk, so that a model compiles in a moment the second time.
//
// One file per kernel in $BEVEL_CACHE_DIR, else $XDG_CACHE_HOME/bevel, else ~/.cache/bevel;
// BEVEL_CACHE_DIR="" turns the cache off. Files are written atomically and checked (size, hash, key) when
// read: a damaged one is ignored and replaced. Least recently used files go when the folder would take more of the
// disk than its limit (BEVEL_CACHE_LIMIT_MB, 512 by default). Folder and files must belong to the user and be closed to others' writing:
// what lies there is run. Nothing but files with the cache's own names and header is read, replaced or removed.
#pragma once

#include "base/file.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace bevel {

/// What stands for everything the code depends on.
struct CacheKey {
  uint64_t high = 0, low = 0;
  std::string hex() const;
  friend bool operator==(const CacheKey&, const CacheKey&) = default;
};
/// Key of a text: the kernel as printed, the target, the options. The build of this compiler is mixed in.
CacheKey cacheKey(std::string_view text);

class KernelCache {
public:
  /// The folder in `dir` (made when first written); "" disables.
  explicit KernelCache(std::string dir, int64_t limitBytes = 512ll << 20);
  /// The folder that the environment names.
  static KernelCache& global();
  /// Reads the environment again (tests).
  static std::string directoryFromEnvironment();

  bool enabled() const { return !dir_.empty(); }
  const std::string& directory() const { return dir_; }
  /// Why the folder is not used although it exists ("it belongs to another user"); "" where it is.
  std::string refusal() const;
  /// Object bytes stored under the key; nothing when absent or damaged.
  std::optional<std::string> find(const CacheKey& key) const;
  /// Stores bytes; failures (full disk, read-only folder) are silent: the cache is only a help.
  void store(const CacheKey& key, std::string_view bytes);
  /// Path of the key's file.
  std::string path(const CacheKey& key) const;

private:
  /// The folder, where it exists and is safe; why it is not.
  Descriptor folder(std::string* refusal = nullptr) const;

  std::string dir_;
  int64_t limit_;
};

} // namespace bevel
