// The key of a kernel in the cache: SHA-256, from LLVM's library, of all that its code depends on. Models
// may be hostile and the cache is shared between them: nobody can make two texts with one key.
#include "codegen/cache.h"

#include <llvm/ADT/StringRef.h>
#include <llvm/Support/Endian.h>
#include <llvm/Support/SHA256.h>

#include <dlfcn.h>
#include <sys/stat.h>

namespace bevel {
namespace {

/// Changes with every build of the compiler, whose output may change: size and time of the file this code is
/// in.
std::string buildId() {
  Dl_info info{};
  struct stat status{};
  if (!dladdr(reinterpret_cast<void*>(&buildId), &info) || !info.dli_fname) return "";
  // A program names itself as it was started, which may be relative to another folder by now.
  bool found = stat(info.dli_fname, &status) == 0 || stat("/proc/self/exe", &status) == 0;
  if (!found) return "";
  return std::to_string(status.st_size) + "." + std::to_string(status.st_mtim.tv_sec) + "." +
         std::to_string(status.st_mtim.tv_nsec);
}

} // namespace

CacheKey cacheKey(std::string_view text) {
  static const std::string build = buildId();
  llvm::SHA256 sha;
  sha.update(llvm::StringRef(build.data(), build.size() + 1)); // with its end: where the text begins
  sha.update(llvm::StringRef(text.data(), text.size()));
  std::array<uint8_t, 32> digest = sha.final();
  return {llvm::support::endian::read64le(digest.data()), llvm::support::endian::read64le(digest.data() + 8)};
}

} // namespace bevel
