// Usage of one worker, in memory shared by worker and host (a memfd made by the host): the figures
// survive a killed worker. The worker writes with relaxed atomics; the host only reads.
#pragma once

#include <atomic>
#include <cstdint>

namespace juice {

constexpr uint64_t kUsageMagic = 0x31656761'7375756aull;  // "juusage1", little endian

struct UsagePage {
    uint64_t magic;
    std::atomic<uint64_t> calls;      // executed
    std::atomic<uint64_t> bytesIn;    // from the client, all lanes
    std::atomic<uint64_t> bytesOut;   // to the client
    std::atomic<uint64_t> launches;   // kernels
    std::atomic<uint64_t> memoryNow;  // bytes of device memory held
    std::atomic<uint64_t> memoryPeak;
    std::atomic<uint64_t> clientPid;
    std::atomic<int64_t> lastError;  // sticky CUresult, 0 if none
    std::atomic<uint64_t> ending;    // Ending, see server_link.h
};

}  // namespace juice
