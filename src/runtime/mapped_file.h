// A file mapped read-only into memory.
#pragma once

#include "runtime/status.h"

#include <cstddef>

namespace bevel::rt {

class MappedFile {
public:
  MappedFile() = default;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();
  Status open(const char* path);
  const char* data() const { return data_; }
  size_t size() const { return size_; }

private:
  const char* data_ = nullptr;
  size_t size_ = 0;
};

} // namespace bevel::rt
