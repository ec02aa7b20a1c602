// The on-disk kernel cache: one file a kernel, "<key>.o" = header (magic, key, size, hash), then the object's
// bytes; and a note of how much there is. All is reached through the opened folder, so that what was checked is what
// is used.
#include "codegen/cache.h"

#include "base/hash.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>
#include <vector>

namespace bevel {
namespace {

constexpr char kMagic[8] = {'B', 'E', 'V', 'E', 'L', 'K', 'C', '1'};
constexpr const char* kNote = "bevel-cache-size"; // holds a Note

struct Header {
  char magic[8];
  uint64_t high = 0, low = 0;
  uint64_t size = 0, hash = 0;
};
static_assert(sizeof(Header) == 40);

/// About how many bytes the folder takes on disk: what every store adds, counted anew by every trim.
struct Note {
  char magic[8];
  int64_t total = 0;
};

int64_t limitFromEnvironment() {
  const char* text = std::getenv("BEVEL_CACHE_LIMIT_MB");
  int64_t megabytes = text ? std::strtoll(text, nullptr, 10) : 512;
  return std::clamp<int64_t>(megabytes, 0, int64_t(1) << 30) << 20;
}

/// Why somebody else may have written it, or "".
std::string refusalOf(const struct stat& info) {
  if (info.st_uid != ::geteuid()) return "it belongs to another user";
  return info.st_mode & (S_IWGRP | S_IWOTH) ? "others may write to it" : "";
}

/// A regular file of the user's own in the folder, never by way of a link.
Descriptor openOwn(int folder, const std::string& name, int flags) {
  Descriptor d(::openat(folder, name.c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
  struct stat info{};
  if (d && (::fstat(d.get(), &info) != 0 || !S_ISREG(info.st_mode) || !refusalOf(info).empty()))
    return Descriptor();
  return d;
}

bool startsWithMagic(int fd) {
  char magic[sizeof kMagic];
  return ::pread(fd, magic, sizeof magic, 0) == ssize_t(sizeof magic) &&
         std::memcmp(magic, kMagic, sizeof magic) == 0;
}

/// The note, locked: one store counts at a time. A process that was stopped while it held the lock is not waited for.
Descriptor lockedNote(int folder, Note& note) {
  Descriptor d = openOwn(folder, kNote, O_RDWR | O_CREAT);
  if (!d) return d;
  for (int i = 0; ::flock(d.get(), LOCK_EX | LOCK_NB) != 0; ++i) {
    if (i == 1000) return Descriptor();
    ::usleep(1000);
  }
  std::memcpy(note.magic, kMagic, sizeof kMagic);
  note.total = INT64_MAX; // a new folder, or one of before the note: to be counted
  struct stat info{};
  if (::fstat(d.get(), &info) != 0) return Descriptor();
  if (info.st_size == 0) return d;
  Note stored;
  if (!startsWithMagic(d.get())) return Descriptor(); // somebody else's file
  if (::pread(d.get(), &stored, sizeof stored, 0) == ssize_t(sizeof stored) && stored.total >= 0)
    note.total = stored.total;
  return d;
}

void write(const Descriptor& d, const Note& note) {
  (void)!::pwrite(d.get(), &note, sizeof note, 0);
}

/// "<32 hexadecimal digits>.o", or that and "." with six letters: a store that is going on, or was killed.
enum class Name : uint8_t { kForeign, kObject, kUnfinished };
Name classify(std::string_view name) {
  size_t digits = name.find_first_not_of("0123456789abcdef");
  if (digits != 32 || name.substr(32, 2) != ".o") return Name::kForeign;
  if (name.size() == 34) return Name::kObject;
  return name.size() == 41 && name[34] == '.' ? Name::kUnfinished : Name::kForeign;
}

/// What a file of that size takes on disk: most kernels are smaller than a block of the file system.
int64_t onDisk(int64_t size) {
  return (size + 4095) / 4096 * 4096;
}

struct Entry {
  timespec used;
  std::string name;
  int64_t size;
};

/// Removes a file of the folder, if it is the user's own and the cache wrote it.
void removeOwn(int folder, const std::string& name) {
  Descriptor d = openOwn(folder, name, O_RDONLY);
  struct stat info{};
  if (d && ::fstat(d.get(), &info) == 0 && (info.st_size == 0 || startsWithMagic(d.get())))
    ::unlinkat(folder, name.c_str(), 0);
}

/// The folder's objects, oldest first. Removes what stores left that were killed an hour ago or more. Only what is
/// removed is opened: the folder may hold a hundred thousand files.
std::vector<Entry> entriesOf(int folder) {
  std::vector<Entry> entries;
  DIR* all = ::fdopendir(::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!all) return entries;
  const time_t now = ::time(nullptr);
  while (const dirent* item = ::readdir(all)) {
    Name kind = classify(item->d_name);
    struct stat info{};
    if (kind == Name::kForeign || ::fstatat(folder, item->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(info.st_mode))
      continue;
    if (kind == Name::kObject)
      entries.push_back({info.st_mtim, item->d_name, onDisk(info.st_size)});
    else if (info.st_mtim.tv_sec < now - 3600)
      removeOwn(folder, item->d_name);
  }
  ::closedir(all);
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.used.tv_sec, a.used.tv_nsec, a.name) < std::tie(b.used.tv_sec, b.used.tv_nsec, b.name);
  });
  return entries;
}

/// Removes the least recently used objects until at most that many bytes are left; how many are.
int64_t trimTo(int folder, int64_t most) {
  std::vector<Entry> entries = entriesOf(folder);
  int64_t total = 0;
  for (const Entry& e : entries) total += e.size;
  for (const Entry& e : entries) {
    if (total <= most) break;
    removeOwn(folder, e.name);
    total -= e.size; // also where it stays: then it is no file of the cache
  }
  return total;
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

Descriptor KernelCache::folder(std::string* refusal) const {
  if (!enabled()) return Descriptor();
  Descriptor d(::open(dir_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat info{};
  if (!d || ::fstat(d.get(), &info) != 0) return Descriptor();
  std::string why = refusalOf(info);
  if (refusal) *refusal = why;
  return why.empty() ? std::move(d) : Descriptor();
}

std::string KernelCache::refusal() const {
  std::string why;
  folder(&why);
  return why;
}

std::optional<std::string> KernelCache::find(const CacheKey& key) const {
  Descriptor dir = folder();
  Descriptor d = dir ? openOwn(dir.get(), key.hex() + ".o", O_RDONLY) : Descriptor();
  if (!d) return std::nullopt;
  Result<std::string> file = readAll(d.get());
  Header header;
  if (!file || file->size() < sizeof header) return std::nullopt;
  std::memcpy(&header, file->data(), sizeof header);
  std::string_view body = std::string_view(*file).substr(sizeof header);
  bool whole = std::memcmp(header.magic, kMagic, sizeof kMagic) == 0 && header.high == key.high &&
               header.low == key.low && header.size == body.size() && header.hash == hashText(body);
  if (!whole) return std::nullopt;
  ::futimens(d.get(), nullptr); // its time says when it was last used
  return std::string(body);
}

void KernelCache::store(const CacheKey& key, std::string_view bytes) {
  const int64_t size = onDisk(int64_t(sizeof(Header) + bytes.size()));
  if (!enabled() || size > limit_) return;
  Descriptor dir = folder();
  if (!dir) {
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(dir_).parent_path(), ignored);
    ::mkdir(dir_.c_str(), 0700);
    dir = folder();
  }
  if (!dir) return;
  const std::string name = key.hex() + ".o";
  Descriptor old(::openat(dir.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat info{};
  if (old && ::fstat(old.get(), &info) == 0 && info.st_size != 0 && !startsWithMagic(old.get()))
    return; // a file of that name which is not the cache's
  Note note;
  Descriptor lock = lockedNote(dir.get(), note);
  if (!lock) return;
  if (note.total > limit_ - size) note.total = trimTo(dir.get(), std::min(limit_ / 10 * 9, limit_ - size));
  note.total += size;
  write(lock, note); // before the file: a store that is killed is counted too much, never too little
  Header header;
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.high = key.high, header.low = key.low;
  header.size = bytes.size(), header.hash = hashText(bytes);
  std::string file(reinterpret_cast<const char*>(&header), sizeof header);
  file += bytes;
  (void)replaceFile(dir.get(), name, 0600,
                    [&](int fd) { return writeAll(fd, std::as_bytes(std::span(file))); });
}

} // namespace bevel
