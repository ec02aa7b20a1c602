// Files over POSIX calls.
#include "base/file.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <random>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace bevel {
namespace {

Error ioError(const std::string& what, const std::string& path) {
  return Error(ErrorCode::kIo, what + " '" + path + "': " + std::strerror(errno));
}

// Where the path leads to, which need not exist.
Result<std::string> followLinks(const std::string& path) {
  namespace fs = std::filesystem;
  fs::path at = path;
  for (int links = 0; links < 40; ++links) {
    std::error_code error;
    fs::path next = fs::read_symlink(at, error);
    if (error) return at.string(); // no link
    at = next.is_absolute() ? next : at.parent_path() / next;
  }
  errno = ELOOP;
  return fail(ioError("cannot write", path));
}

std::string folderOf(const std::string& path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

// Calls make(candidate) with names beside `name` until it finds one that is free; that name, or "" with errno.
std::string freeName(const std::string& name, FunctionRef<bool(const char*)> make) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  std::random_device dice;
  for (int attempt = 0; attempt < 100; ++attempt) {
    std::string candidate = name + ".";
    for (int i = 0; i < 6; ++i) candidate += letters[dice() % (sizeof letters - 1)];
    if (make(candidate.c_str())) return candidate;
    if (errno != EEXIST) break;
  }
  return "";
}

// A file without a name in a folder; closed where the file system has none.
Descriptor openNameless(int folder, const std::string& path, unsigned mode) {
  return Descriptor(::openat(folder, path.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, mode));
}

} // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
  Descriptor d(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!d) return fail(ioError("cannot open", path));
  struct stat info{};
  if (::fstat(d.get(), &info) != 0) return fail(ioError("cannot read", path));
  if (!S_ISREG(info.st_mode)) return fail(ErrorCode::kIo, "cannot read '" + path + "': not a regular file");
  std::shared_ptr<MappedFile> file(new MappedFile());
  if (info.st_size == 0) return std::shared_ptr<const MappedFile>(file);
  void* p = ::mmap(nullptr, size_t(info.st_size), PROT_READ, MAP_PRIVATE, d.get(), 0);
  if (p == MAP_FAILED) return fail(ioError("cannot map", path));
  file->data_ = static_cast<const std::byte*>(p);
  file->size_ = size_t(info.st_size);
  return std::shared_ptr<const MappedFile>(file);
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

Result<std::string> readFile(const std::string& path) {
  Descriptor d(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!d) return fail(ioError("cannot open", path));
  auto content = readAll(d.get());
  return content ? std::move(content) : fail(ioError("cannot read", path));
}

Result<std::string> readAll(int fd) {
  std::string out;
  char chunk[1 << 16];
  for (;;) {
    ssize_t n = ::read(fd, chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(ErrorCode::kIo, std::string("cannot read: ") + std::strerror(errno));
    if (n == 0) return out;
    out.append(chunk, size_t(n));
  }
}

bool writeAll(int fd, std::span<const std::byte> content) {
  while (!content.empty()) {
    ssize_t n = ::write(fd, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    content = content.subspan(size_t(n));
  }
  return true;
}

Result<std::string> replaceablePath(const std::string& path) {
  BEVEL_TRY(std::string target, followLinks(path));
  struct stat info{};
  if (::stat(target.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
    return fail(ErrorCode::kIo, "cannot write '" + path + "': not a regular file");
  return target;
}

Status writeFile(const std::string& path, std::string_view content) {
  return writeFile(path, std::span(reinterpret_cast<const std::byte*>(content.data()), content.size()));
}

Result<Descriptor> namelessFile(const std::string& folder) {
  Descriptor d = openNameless(AT_FDCWD, folder, 0600);
  if (d) return d;
  std::string name = freeName(folder + "/bevel", [&](const char* candidate) {
    d = Descriptor(::open(candidate, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    return bool(d);
  });
  if (!d) return fail(ioError("cannot create a file in", folder));
  ::unlink(name.c_str());
  return d;
}

Status replaceFile(int folder, const std::string& name, unsigned mode, FunctionRef<bool(int)> fill) {
  // A name is given to the whole file only, so that a process that is killed leaves no part of one.
  Descriptor d = openNameless(folder, folderOf(name), mode);
  std::string temporary;
  auto create = [&](const char* candidate) {
    d = Descriptor(::openat(folder, candidate, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    return bool(d);
  };
  auto link = [&](const char* candidate) {
    return ::linkat(AT_FDCWD, d.path().c_str(), folder, candidate, AT_SYMLINK_FOLLOW) == 0;
  };
  if (!d && (temporary = freeName(name, create)).empty())
    return fail(ioError("cannot create a file beside", name));
  bool written = fill(d.get());
  if (written && temporary.empty()) temporary = freeName(name, link);
  if (written && !temporary.empty() && ::renameat(folder, temporary.c_str(), folder, name.c_str()) == 0)
    return {};
  Error e = ioError("cannot write", name);
  if (!temporary.empty()) ::unlinkat(folder, temporary.c_str(), 0);
  return fail(std::move(e));
}

Status writeFile(const std::string& path, std::span<const std::byte> content) {
  BEVEL_TRY(std::string target, followLinks(path));
  struct stat info{};
  if (::stat(target.c_str(), &info) != 0 || S_ISREG(info.st_mode))
    return replaceFile(AT_FDCWD, target, 0666, [&](int fd) { return writeAll(fd, content); });
  Descriptor d(::open(target.c_str(), O_WRONLY | O_CLOEXEC));
  if (!d || !writeAll(d.get(), content)) return fail(ioError("cannot write", path));
  return {};
}

} // namespace bevel
