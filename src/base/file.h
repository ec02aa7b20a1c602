// Files: whole reads, memory maps, and writes that never leave half a file.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

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

Result<std::string> readFile(const std::string& path);
/// Writes all bytes to an open file, whatever parts the system takes at a time; false with errno where it fails.
bool writeAll(int fd, std::span<const std::byte> content);
/// The file that writing to `path` creates or replaces: symbolic links are followed. kIo where something else
/// than a regular file is there.
Result<std::string> replaceablePath(const std::string& path);
/// Writes to a temporary file beside the one that `path` leads to, then renames it over that. Devices, pipes
/// and the like are written as they are.
Status writeFile(const std::string& path, std::string_view content);
Status writeFile(const std::string& path, std::span<const std::byte> content);

} // namespace bevel
