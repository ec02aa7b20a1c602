// Detection of the machine we run on, from /proc/cpuinfo (features, model) and /sys (caches).
#include "target/target.h"

#include <cstdlib>
#include <fstream>
#include <map>
#include <sched.h>
#include <set>
#include <thread>

namespace bevel {
namespace {

/// First value of each key of /proc/cpuinfo: the first core stands for all.
std::map<std::string, std::string> cpuInfo() {
  std::map<std::string, std::string> info;
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.empty()) break;
    size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    std::string key = line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1);
    info.emplace(key, colon + 2 <= line.size() ? line.substr(colon + 2) : "");
  }
  return info;
}

std::set<std::string> words(const std::string& text) {
  std::set<std::string> out;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find(' ', at), text.size());
    if (end > at) out.insert(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

bool hasAll(const std::set<std::string>& flags, std::initializer_list<const char*> names) {
  return std::all_of(names.begin(), names.end(), [&](const char* n) { return flags.contains(n); });
}

const char* x86Level(const std::set<std::string>& flags) {
  if (!hasAll(flags, {"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"})) return "x86-64";
  if (!hasAll(flags, {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"}))
    return "x86-64-v2";
  if (!hasAll(flags, {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"})) return "x86-64-v3";
  return "x86-64-v4";
}

/// Which processor's timings to schedule for; empty when unknown. Families and models as LLVM's Host.cpp
/// lists them.
const char* x86Tuning(bool amd, int family, int model) {
  if (amd) {
    if (family == 23) return model >= 0x30 ? "znver2" : "znver1";
    bool zen4 = (model >= 0x10 && model <= 0x1f) || (model >= 0x60 && model <= 0x7f) ||
                (model >= 0xa0 && model <= 0xaf);
    if (family == 25) return zen4 ? "znver4" : "znver3";
    return family == 26 ? "znver5" : "";
  }
  if (family != 6) return "";
  switch (model) {
  case 0x3c:
  case 0x3f:
  case 0x45:
  case 0x46:
    return "haswell";
  case 0x3d:
  case 0x47:
  case 0x4f:
  case 0x56:
    return "broadwell";
  case 0x4e:
  case 0x5e:
  case 0x8e:
  case 0x9e:
  case 0xa5:
  case 0xa6:
    return "skylake";
  case 0x55:
    return "skylake-avx512";
  case 0x6a:
  case 0x6c:
    return "icelake-server";
  case 0x7d:
  case 0x7e:
    return "icelake-client";
  case 0x8f:
  case 0xcf:
    return "sapphirerapids";
  case 0xad:
  case 0xae:
    return "graniterapids";
  case 0x97:
  case 0x9a:
  case 0xb7:
  case 0xba:
  case 0xbf:
    return "alderlake";
  default:
    return "";
  }
}

int number(const std::map<std::string, std::string>& info, const char* key) {
  auto it = info.find(key);
  return it == info.end() ? 0 : int(std::strtol(it->second.c_str(), nullptr, 10));
}

Target x86Host() {
  auto info = cpuInfo();
  std::set<std::string> flags = words(info["flags"]);
  Target t = *Target::parse(x86Level(flags));
  t.tune = x86Tuning(info["vendor_id"] == "AuthenticAMD", number(info, "cpu family"), number(info, "model"));
#define FEATURE(linuxName, llvmName)                                                                         \
  if (flags.contains(linuxName)) t.features.push_back("+" llvmName);
#include "target/host_features.def"
#undef FEATURE
  std::sort(t.features.begin(), t.features.end());
  return t;
}

std::string firstLine(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

void detectCaches(Target& t) {
  for (int i = 0; i < 8; ++i) {
    std::string dir = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i) + "/";
    std::string type = firstLine(dir + "type"), size = firstLine(dir + "size"),
                level = firstLine(dir + "level");
    if (type.empty() || type == "Instruction" || size.empty()) continue;
    int64_t bytes = std::strtoll(size.c_str(), nullptr, 10) << (size.back() == 'K'   ? 10
                                                                : size.back() == 'M' ? 20
                                                                                     : 0);
    if (bytes <= 0) continue;
    if (level == "1") t.limits.l1 = bytes;
    if (level == "2") t.limits.l2 = bytes;
    if (level == "3") t.limits.l3 = bytes;
    int line = int(std::strtol(firstLine(dir + "coherency_line_size").c_str(), nullptr, 10));
    if (line > 0) t.limits.cacheLine = line;
  }
}

int usableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

Target detect() {
#if defined(__x86_64__)
  Target t = x86Host();
#else
  Target t = *Target::parse("aarch64");
#endif
  detectCaches(t);
  t.limits.cores = usableCores();
  return t;
}

} // namespace

const Target& Target::host() {
  static const Target target = detect();
  return target;
}

} // namespace bevel
