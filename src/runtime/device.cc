// The CPU as a device.
#include "runtime/device.h"

#include <cstdlib>
#include <cstring>

namespace bevel::rt {

static void* cpuAlloc(int, size_t bytes) {
  if (bytes > SIZE_MAX - kAlignment) return nullptr;
  return std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
}

static void cpuFree(int, void* data) {
  std::free(data);
}

static Status cpuCopy(const void* from, DLDevice, void* to, DLDevice, size_t bytes) {
  if (bytes) memcpy(to, from, bytes);
  return BEVEL_OK;
}

static Status cpuSync(int) {
  return BEVEL_OK;
}

const DeviceApi* findDevice(DLDeviceType type) {
  static const DeviceApi kCpuApi = {kDLCPU, cpuAlloc, cpuFree, cpuCopy, cpuSync};
  return type == kDLCPU ? &kCpuApi : nullptr;
}

} // namespace bevel::rt
