// From objects and data to a shared library, in process: lld links, no compiler or other tool is needed.
#pragma once

#include "base/result.h"
#include "target/target.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace bevel {

/// What goes into a shared library.
struct LinkJob {
  std::vector<std::string> objects; // bytes of relocatable objects
  std::vector<std::string> files;   // paths of further objects, archives and shared libraries (DT_NEEDED)
  std::vector<std::string> exports; // the only symbols visible outside
  std::string soname;               // empty: none
  std::string runPath;              // DT_RUNPATH, for example "$ORIGIN"; empty: none
  bool allowUndefined = true;       // symbols such as libm's are found at load time
  bool strip = false;               // drop symbol table and debug information
};

/// Links and writes `output` atomically. Serialised by a global lock (lld keeps global state). The text of
/// lld's errors is the error's note.
Status linkSharedLibrary(const LinkJob& job, const Target& target, const std::string& output);

/// Bytes under a symbol, in read-only data: the pieces one after another.
struct DataBlob {
  std::string symbol;
  std::vector<std::span<const std::byte>> pieces;
  int alignment = 64;
};

/// Writes a relocatable ELF object that holds the blobs, without copying them in memory; no LLVM constants
/// are built, so gigabytes of weights cost only the write. Symbols are global with hidden visibility.
Status writeDataObject(const std::vector<DataBlob>& blobs, const Target& target, const std::string& path);

/// The `bevel_image` (runtime/abi/image.h) that a model library exports.
struct ImageTable {
  std::string symbol = "bevel_image_v1"; // exported name
  std::string imageSymbol;               // defined by a data object
  uint64_t imageSize = 0;
  std::vector<std::string> kernels; // symbols, in the order of the kernel table
  std::string weightsSymbol;        // empty: none, or in a file
  uint64_t weightsSize = 0;
  std::string weightsFile; // empty: none
};

/// Object bytes of that table.
Result<std::string> imageTableObject(const ImageTable& table, const Target& target);

} // namespace bevel
