// The on-disk kernel cache: one file a kernel, "<key>.o" = header (magic, key, size, hash), then the object's
// bytes.
#include "codegen/cache.h"

#include "base/file.h"
#include "base/hash.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

namespace bevel {
namespace {

namespace fs = std::filesystem;

struct Header {
  char magic[8] = {'B', 'E', 'V', 'E', 'L', 'K', 'C', '1'};
  uint64_t high = 0, low = 0;
  uint64_t size = 0, hash = 0;
};
static_assert(sizeof(Header) == 40);

int64_t limitFromEnvironment() {
  const char* text = std::getenv("BEVEL_CACHE_LIMIT_MB");
  int64_t megabytes = text ? std::strtoll(text, nullptr, 10) : 512;
  return std::clamp<int64_t>(megabytes, 0, int64_t(1) << 30) << 20;
}

} // namespace

std::string CacheKey::hex() const {
  static const char digits[] = "0123456789abcdef";
  std::string out;
  for (uint64_t word : {high, low})
    for (int shift = 60; shift >= 0; shift -= 4) out += digits[(word >> shift) & 15];
  return out;
}

KernelCache::KernelCache(std::string dir, int64_t limitBytes) : dir_(std::move(dir)), limit_(limitBytes) {}

std::string KernelCache::directoryFromEnvironment() {
  if (const char* dir = std::getenv("BEVEL_CACHE_DIR")) return dir;
  if (const char* base = std::getenv("XDG_CACHE_HOME"); base && *base) return std::string(base) + "/bevel";
  if (const char* home = std::getenv("HOME"); home && *home) return std::string(home) + "/.cache/bevel";
  return "";
}

KernelCache& KernelCache::global() {
  static KernelCache cache(directoryFromEnvironment(), limitFromEnvironment());
  return cache;
}

std::string KernelCache::path(const CacheKey& key) const {
  return dir_ + "/" + key.hex() + ".o";
}

std::optional<std::string> KernelCache::find(const CacheKey& key) const {
  if (!enabled()) return std::nullopt;
  Result<std::string> file = readFile(path(key));
  Header header, expected;
  if (!file || file->size() < sizeof header) return std::nullopt;
  std::memcpy(&header, file->data(), sizeof header);
  std::string_view body = std::string_view(*file).substr(sizeof header);
  bool whole = std::memcmp(header.magic, expected.magic, sizeof header.magic) == 0 &&
               header.high == key.high && header.low == key.low && header.size == body.size() &&
               header.hash == hashText(body);
  if (!whole) return std::nullopt;
  std::error_code ignored; // its time says when it was last used
  fs::last_write_time(path(key), fs::file_time_type::clock::now(), ignored);
  return std::string(body);
}

void KernelCache::store(const CacheKey& key, std::string_view bytes) {
  if (!enabled()) return;
  std::error_code error;
  fs::create_directories(dir_, error);
  if (error) return;
  Header header;
  header.high = key.high, header.low = key.low;
  header.size = bytes.size(), header.hash = hashText(bytes);
  std::string file(reinterpret_cast<const char*>(&header), sizeof header);
  file += bytes;
  if (!writeFile(path(key), file)) return;
  constexpr unsigned kStoresPerLook = 128;
  if (stores_++ % kStoresPerLook == 0 && isTrimDue()) trim();
}

bool KernelCache::isTrimDue() const {
  const std::string note = dir_ + "/trimmed";
  std::error_code missing;
  auto last = fs::last_write_time(note, missing), now = fs::file_time_type::clock::now();
  if (!missing && last <= now && now - last < std::chrono::minutes(10)) return false;
  return writeFile(note, std::string_view()).has_value();
}

void KernelCache::trim() {
  struct Entry {
    fs::file_time_type used;
    fs::path path;
    int64_t size;
  };
  std::vector<Entry> entries;
  int64_t total = 0;
  std::error_code error;
  for (fs::directory_iterator it(dir_, error), end; !error && it != end; it.increment(error)) {
    std::string name = it->path().filename().string();
    size_t dot = name.find(".o");
    if (dot == std::string::npos) continue;
    std::error_code gone; // by another process
    int64_t size = int64_t(it->file_size(gone));
    auto used = it->last_write_time(gone);
    if (gone) continue;
    if (dot + 2 < name.size()) { // a store that is going on, or ended before its time
      if (used < fs::file_time_type::clock::now() - std::chrono::hours(1)) fs::remove(it->path(), gone);
      continue;
    }
    entries.push_back({used, it->path(), size});
    total += size;
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const Entry& e : entries) {
    if (total <= limit_) return;
    fs::remove(e.path, error);
    total -= e.size;
  }
}

} // namespace bevel
