// mmap of a whole file.
#include "runtime/mapped_file.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace bevel::rt {

MappedFile::~MappedFile() {
  if (data_) munmap(const_cast<char*>(data_), size_);
}

Status MappedFile::open(const char* path) {
  int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail(BEVEL_ERROR_MISSING, "cannot open %s: %s", path, strerror(errno));
  struct stat info;
  if (fstat(fd, &info) || !S_ISREG(info.st_mode)) {
    close(fd);
    return fail(BEVEL_ERROR_MISSING, "%s is not a file", path);
  }
  void* data = info.st_size ? mmap(nullptr, size_t(info.st_size), PROT_READ, MAP_PRIVATE, fd, 0) : nullptr;
  int error = errno;
  close(fd);
  if (data == MAP_FAILED) return fail(BEVEL_ERROR_MEMORY, "cannot map %s: %s", path, strerror(error));
  data_ = static_cast<const char*>(data), size_ = size_t(info.st_size);
  return BEVEL_OK;
}

} // namespace bevel::rt
