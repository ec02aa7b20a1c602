// Constants beside the text: tensors in a safetensors file, and whole modules as a text with such a file.
#pragma once

#include "base/result.h"
#include "ir/graph.h"
#include "ir/parser.h"

#include <string>
#include <utility>
#include <vector>

namespace bevel {

struct NamedTensor {
  std::string name;
  Tensor value;
};

/// Writes a safetensors file (8-byte header length, JSON header, data from a multiple of 64 bytes on, without
/// gaps, wide elements first so that all are aligned). Formats without a safetensors dtype (int4, …) are
/// written as U8 bytes and named in the header's metadata. No string tensors.
Status writeSafetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                        const std::vector<std::pair<std::string, std::string>>& metadata = {});

struct Safetensors {
  std::vector<NamedTensor> tensors; // in order of their data
  std::vector<std::pair<std::string, std::string>> metadata;
};
/// Maps a safetensors file; tensors share the map. Everything in the header is checked against the file.
Result<Safetensors> readSafetensors(const std::string& path);

/// The constants that were written last, and where.
struct WrittenConstants {
  std::string path;
  std::vector<Constant> constants;
};
/// Writes the module's text to `path` and, where it refers to constants by number, those to `path` with its
/// suffix replaced by ".safetensors". Where they are those in `last`, that file gets this name too (a hard link, where the file
/// system has them).
Status writeModule(const std::string& path, const Module& module, WrittenConstants* last = nullptr);
/// Reads such a text with its constants.
Result<Module> readModule(const std::string& path);
/// The same with what the parser may ask for (types and attributes of operators).
Result<Module> readModule(const std::string& path, ParseOptions options);
/// "dir/name.txt" → "dir/name.safetensors".
std::string constantsPath(const std::string& textPath);

} // namespace bevel
