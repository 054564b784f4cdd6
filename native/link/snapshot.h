// The device snapshot: everything about the session's GPUs that cannot change, asked once by a
// ready worker and handed to every process of a session, so that counting devices costs no worker
// and no query of a fixed fact costs a round trip.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "native/link/codec.h"

namespace juice {

struct DeviceSnapshot {
    std::string name;
    std::array<uint8_t, 16> uuid{};
    uint64_t totalMemory = 0;  // bytes; the lease's limit where one is set
    std::string pciBusId;      // as cuDeviceGetPCIBusId prints it
    std::map<int32_t, int32_t>
        attributes;  // CUdevice_attribute -> value; absent: the driver refused it
    std::map<int32_t, uint64_t> limits;  // CUlimit -> bytes or count, of a fresh context
    int32_t leastPriority = 0, greatestPriority = 0;
    /// Where the multiprocessors sit, one byte a TPC (two multiprocessors): its GPC, and its place
    /// in that GPC. cuBLASLt reads it through a private table. Empty where the driver does not
    /// tell.
    std::vector<uint8_t> gpcOfTpc, tpcInGpc;
};

struct Snapshot {
    int32_t driverVersion = 0;  // e.g. 13000
    std::string
        driverText;  // NVML's driver version, e.g. "580.159.04"; "software" for the software GPU
    std::vector<DeviceSnapshot> devices;
    /// peer[i * n + j]: cuDeviceCanAccessPeer(i, j)
    std::vector<uint8_t> peer;

    std::vector<uint8_t> encode() const;
    /// False on malformed input.
    static bool decode(Bytes data, Snapshot& out);
};

}  // namespace juice
