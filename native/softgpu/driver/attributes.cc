// What cuDeviceGetAttribute answers. The shape is that of a device of compute capability 9.0; where
// the software GPU lacks something the answer says so, and nothing is claimed for show: no
// textures and no clusters.
#include <fstream>
#include <map>
#include <string>

#include "native/abi/cuda_abi.h"
#include "native/softgpu/driver/device.h"

namespace juice::softgpu {
namespace {

constexpr int kMaxTexturePitch = 512;

/// The processor's own clock; a gigahertz where it cannot be read.
int clockKilohertz() {
    std::ifstream in("/proc/cpuinfo");
    for (std::string line; std::getline(in, line);) {
        if (line.rfind("cpu MHz", 0) != 0) continue;
        const double megahertz = std::atof(line.c_str() + line.find(':') + 1);
        if (megahertz > 0) return static_cast<int>(megahertz * 1000);
    }
    return 1000000;
}

/// Everything that is the same for all devices. What is not listed here is 0.
const std::map<int, int>& common() {
    static const auto* const values = new std::map<int, int>{
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kMaxThreadsPerBlock},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, kMaxBlockDim[0]},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, kMaxBlockDim[1]},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, kMaxBlockDim[2]},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, kMaxGridDim[0]},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, kMaxGridDim[1]},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, kMaxGridDim[2]},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, kSharedPerBlock},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, kSharedPerBlockOptIn},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, kSharedPerMultiprocessor},
        {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, kSharedReservedPerBlock},
        {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
        {CU_DEVICE_ATTRIBUTE_WARP_SIZE, kWarpSize},
        {CU_DEVICE_ATTRIBUTE_MAX_PITCH, 2147483647},
        {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, kRegistersPerMultiprocessor},
        {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, kRegistersPerMultiprocessor},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, kThreadsPerMultiprocessor},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, kBlocksPerMultiprocessor},
        {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, clockKilohertz()},
        {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, clockKilohertz()},
        {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 64},
        {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, kMaxTexturePitch},
        {CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 32},
        {CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT, kMaxTexturePitch},
        {CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1},
        {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
        {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
        {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 4 << 20},
        {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3},
        {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, static_cast<int>(kSm / 10)},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, static_cast<int>(kSm % 10)},
        {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
        {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1},
        {CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST, 1},
        {CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 2},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
        {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
        {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES,
         CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR},
        {CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 1},
        {CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR, 1},
        {CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT, 1},
        {CU_DEVICE_ATTRIBUTE_NUMA_ID, -1},
    };
    return *values;
}

}  // namespace

std::optional<int> Device::attribute(int id) const {
    if (id < 1 || id >= CU_DEVICE_ATTRIBUTE_MAX) return std::nullopt;
    switch (id) {
        case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
            return static_cast<int>(multiprocessors());
        case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
            return pciBus();
        case CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID:
            return pciDevice();
        case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID:
            return pciDomain();
        default:
            break;
    }
    const auto found = common().find(id);
    return found == common().end() ? 0 : found->second;
}

}  // namespace juice::softgpu
