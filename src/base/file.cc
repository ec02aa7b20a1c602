// Files over POSIX calls.
#include "base/file.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
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

Status writeFile(const std::string& path, std::string_view content) {
  return writeFile(path, std::span(reinterpret_cast<const std::byte*>(content.data()), content.size()));
}

Status writeFile(const std::string& path, std::span<const std::byte> content) {
  std::string temporary = path + ".XXXXXX";
  Descriptor d{::mkstemp(temporary.data())};
  if (d.fd < 0) return fail(ioError("cannot create a file beside", path));
  ::fchmod(d.fd, 0644);
  auto abandon = [&](const char* what) {
    Error e = ioError(what, path);
    ::unlink(temporary.c_str());
    return fail(std::move(e));
  };
  for (size_t done = 0; done < content.size();) {
    ssize_t n = ::write(d.fd, content.data() + done, content.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return abandon("cannot write");
    done += size_t(n);
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) return abandon("cannot write");
  return {};
}

} // namespace bevel
