// What the runtime needs of a device. The CPU is the only one now; others add a table.
#pragma once

#include "runtime/status.h"

#include <cstddef>

namespace bevel::rt {

/// Memory operations of one kind of device. All block until done, except what `sync` waits for.
struct DeviceApi {
  DLDeviceType type;
  /// Memory aligned to 64 bytes (`bytes` > 0); null when out of memory.
  void* (*alloc)(int deviceId, size_t bytes);
  void (*free)(int deviceId, void* data);
  /// Copies between the device and the CPU, or within the device, whichever `from` and `to` say.
  Status (*copy)(const void* from, DLDevice fromDevice, void* to, DLDevice toDevice, size_t bytes);
  Status (*sync)(int deviceId);
};

inline constexpr size_t kAlignment = 64;
inline constexpr DLDevice kCpu = {kDLCPU, 0};

/// The table of a kind of device, or null where this build has none.
const DeviceApi* findDevice(DLDeviceType type);

} // namespace bevel::rt
