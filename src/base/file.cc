// Files over POSIX calls.
#include "base/file.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace bevel {
namespace {

Error ioError(const std::string& what, const std::string& path) {
  return Error(ErrorCode::kIo, what + " '" + path + "': " + std::strerror(errno));
}

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

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

} // namespace

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
  Descriptor d{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (d.fd < 0) return fail(ioError("cannot open", path));
  struct stat info{};
  if (::fstat(d.fd, &info) != 0) return fail(ioError("cannot read", path));
  if (!S_ISREG(info.st_mode)) return fail(ErrorCode::kIo, "cannot read '" + path + "': not a regular file");
  std::shared_ptr<MappedFile> file(new MappedFile());
  if (info.st_size == 0) return std::shared_ptr<const MappedFile>(file);
  void* p = ::mmap(nullptr, size_t(info.st_size), PROT_READ, MAP_PRIVATE, d.fd, 0);
  if (p == MAP_FAILED) return fail(ioError("cannot map", path));
  file->data_ = static_cast<const std::byte*>(p);
  file->size_ = size_t(info.st_size);
  return std::shared_ptr<const MappedFile>(file);
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

Result<std::string> readFile(const std::string& path) {
  Descriptor d{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (d.fd < 0) return fail(ioError("cannot open", path));
  std::string out;
  char chunk[1 << 16];
  for (;;) {
    ssize_t n = ::read(d.fd, chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(ioError("cannot read", path));
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

Status writeFile(const std::string& path, std::span<const std::byte> content) {
  BEVEL_TRY(std::string target, followLinks(path));
  struct stat info{};
  if (::stat(target.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    Descriptor d{::open(target.c_str(), O_WRONLY | O_CLOEXEC)};
    if (d.fd < 0 || !writeAll(d.fd, content)) return fail(ioError("cannot write", path));
    return {};
  }
  std::string temporary = target + ".XXXXXX";
  Descriptor d{::mkstemp(temporary.data())};
  if (d.fd < 0) return fail(ioError("cannot create a file beside", path));
  ::fchmod(d.fd, 0644);
  if (writeAll(d.fd, content) && ::rename(temporary.c_str(), target.c_str()) == 0) return {};
  Error e = ioError("cannot write", path);
  ::unlink(temporary.c_str());
  return fail(std::move(e));
}

} // namespace bevel
