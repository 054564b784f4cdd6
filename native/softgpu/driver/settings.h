// What the environment asks of the software GPU: how many devices, how large, how they are named,
// and which of them this process may see.
//
//   JUICE_SOFTGPU_DEVICES  how many there are; default: as many as UUIDs are given, else 1
//   JUICE_SOFTGPU_MEMORY   bytes of each, with an optional K, M or G (binary); default 1G
//   JUICE_SOFTGPU_UUIDS    their UUIDs, "GPU-…", comma-separated; the rest are derived from the
//                          machine's id, so that they stay the same from run to run
//   JUICE_SOFTGPU_WATCHDOG seconds that a kernel may run before it fails with
//                          CUDA_ERROR_LAUNCH_TIMEOUT, such as 10 or 0.5; default: as long as it
//                          likes
//   CUDA_VISIBLE_DEVICES   as for a real driver: ordinals or UUIDs (or unique beginnings of them);
//                          the first entry that names nothing ends the list
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace juice::softgpu {

using Uuid = std::array<uint8_t, 16>;

struct Environment {
    std::optional<std::string> devices, memory, uuids, watchdog, visible;
    std::string machine;  // identifies the machine
};

/// One device that the process may see.
struct DeviceSettings {
    unsigned index = 0;  // among all of the machine; its PCI bus is made from it
    Uuid uuid{};
    uint64_t memory = 0;  // bytes
};

/// This process's environment and machine id.
Environment environment();

/// The visible devices in the order in which they are visible. Nonsense in a variable is reported
/// on stderr and its default taken.
std::vector<DeviceSettings> visibleDevices(const Environment& environment);

/// How long a kernel may run; zero for ever. Reports nonsense likewise.
std::chrono::milliseconds watchdog(const Environment& environment);

/// "GPU-01234567-89ab-cdef-0123-456789abcdef"
std::string formatUuid(const Uuid& uuid);

}  // namespace juice::softgpu
