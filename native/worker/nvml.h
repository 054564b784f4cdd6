// The little of NVML that a worker asks, through the machine's own library, where there is one.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace juice::worker {

class Nvml {
  public:
    /// Asks for the memory in use on every GPU, before this process uses any.
    Nvml();
    /// E.g. "580.159.04"; empty without NVML.
    std::string driverVersion() const;
    /// Bytes that this process uses on the GPU: as NVML counts them, or else by how much the GPU's
    /// memory in use has grown since the constructor ran. 0 without NVML.
    uint64_t usedByUs(const std::string& pciBusId) const;

  private:
    struct Functions;
    const Functions* functions_;  // null: no NVML; lives as long as the process
    std::map<std::string, uint64_t> before_;
};

}  // namespace juice::worker
