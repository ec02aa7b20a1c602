// Files: whole reads, memory maps, and writes that never leave half a file.
#pragma once

#include "base/function_ref.h"
#include "base/result.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace bevel {

/// A read-only memory map; the bytes live as long as the object (hold it through a shared_ptr).
class MappedFile {
public:
  static Result<std::shared_ptr<const MappedFile>> open(const std::string& path);
  ~MappedFile();
  std::span<const std::byte> bytes() const { return {data_, size_}; }

private:
  MappedFile() = default;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

/// An open file, closed at the end of its life.
class Descriptor {
public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();
  explicit operator bool() const { return fd_ >= 0; }
  int get() const { return fd_; }
  /// A path by which this process (a library that takes names, say) reaches the file.
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

private:
  int fd_ = -1;
};

Result<std::string> readFile(const std::string& path);
/// The rest of an open file.
Result<std::string> readAll(int fd);
/// Writes all bytes to an open file, whatever parts the system takes at a time; false with errno where it fails.
bool writeAll(int fd, std::span<const std::byte> content);
/// A new file in that folder that has no name: it goes with the process, however that ends.
Result<Descriptor> namelessFile(const std::string& folder);
/// The file that writing to `path` creates or replaces: symbolic links are followed. kIo where something else
/// than a regular file is there.
Result<std::string> replaceablePath(const std::string& path);
/// Gives the file `name` of a folder (AT_FDCWD: a path) what `fill` writes to the open file that it gets, all at once.
/// `fill` is false, with errno, where it cannot. A link of that name is replaced, not followed.
Status replaceFile(int folder, const std::string& name, unsigned mode, FunctionRef<bool(int)> fill);
/// Replaces the file that `path` leads to, with the permissions that the process gives new files. Devices, pipes
/// and the like are written as they are.
Status writeFile(const std::string& path, std::string_view content);
Status writeFile(const std::string& path, std::span<const std::byte> content);

} // namespace bevel
