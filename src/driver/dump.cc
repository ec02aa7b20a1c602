// See dump.h.
#include "driver/dump.h"

#include "base/file.h"
#include "ir/printer.h"

#include <filesystem>
#include <fmt/format.h>

namespace bevel {

Status Dumper::stage(const std::string& name, const Module& module) {
  if (folder_.empty()) return {};
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error)
    return fail(ErrorCode::kIo, fmt::format("cannot make the folder '{}': {}", folder_, error.message()));
  std::string path = fmt::format("{}/{:02}_{}.txt", folder_, count_++, name);
  return writeFile(path, print(module, {.imports = true}));
}

} // namespace bevel
