// Devices: everything is answered from the snapshot that the broker gave.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "native/gen/cuda_api.h"
#include "native/shim/session.h"

namespace juice::shim {
namespace {

CUresult deviceOf(CUdevice ordinal, const DeviceSnapshot*& device) {
    if (const CUresult result = session::initialised()) return result;
    device = session::device(ordinal);
    return device == nullptr ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

/// Properties of a GPU that a link takes away: the device has them, the program cannot use them.
/// Programs ask before they rely on one.
bool lostOnTheWay(int attribute) {
    switch (attribute) {
        // Managed memory, and host memory that the device reads without being told: needs pages
        // that move on demand.
        case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
        case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
        case CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS:
        case CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES:
        case CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST:
        case CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED:
        // Handles of the host's kernel, and of devices in its PCI slots.
        case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED:
        // Not implemented yet.
        case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
            return true;
        default:
            return false;
    }
}

int attributeOr(const DeviceSnapshot& device, CUdevice_attribute attribute, int otherwise) {
    const auto found = device.attributes.find(attribute);
    return found == device.attributes.end() ? otherwise : found->second;
}

/// domain:bus:device.function, of which the domain and the function may be missing.
bool parsePci(const char* text, unsigned& domain, unsigned& bus, unsigned& slot) {
    unsigned function = 0;
    char rest = 0;
    domain = 0;
    if (std::sscanf(text, "%x:%x:%x.%x%c", &domain, &bus, &slot, &function, &rest) == 4)
        return true;
    if (std::sscanf(text, "%x:%x:%x%c", &domain, &bus, &slot, &rest) == 3) return true;
    domain = 0;
    if (std::sscanf(text, "%x:%x.%x%c", &bus, &slot, &function, &rest) == 3) return true;
    return std::sscanf(text, "%x:%x%c", &bus, &slot, &rest) == 2;
}

/// As much of the text as fits, with its NUL.
CUresult copyText(char* out, int length, const std::string& text) {
    if (out == nullptr || length <= 0) return CUDA_ERROR_INVALID_VALUE;
    const auto bytes = std::min(static_cast<size_t>(length) - 1, text.size());
    std::memcpy(out, text.data(), bytes);
    out[bytes] = '\0';
    return CUDA_SUCCESS;
}

}  // namespace
}  // namespace juice::shim

using namespace juice::shim;  // NOLINT: every definition below is an entry point
namespace session = juice::shim::session;
using juice::DeviceSnapshot;

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
    const DeviceSnapshot* found = nullptr;
    if (const CUresult result = session::initialised()) return result;
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult result = deviceOf(ordinal, found)) return result;
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
    if (const CUresult result = session::initialised()) return result;
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *count = session::deviceCount();
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int len, CUdevice dev) {
    const DeviceSnapshot* device = nullptr;
    if (const CUresult result = deviceOf(dev, device)) return result;
    return copyText(name, len, device->name);
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice dev) {
    const DeviceSnapshot* device = nullptr;
    if (const CUresult result = deviceOf(dev, device)) return result;
    if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(uuid->bytes, device->uuid.data(), device->uuid.size());
    return CUDA_SUCCESS;
}

/// Differs from the first version for parts of a GPU (MIG) only.
CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice dev) {
    return cuDeviceGetUuid(uuid, dev);
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice dev) {
    const DeviceSnapshot* device = nullptr;
    if (const CUresult result = deviceOf(dev, device)) return result;
    if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *bytes = device->totalMemory;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* pi, CUdevice_attribute attrib, CUdevice dev) {
    const DeviceSnapshot* device = nullptr;
    if (const CUresult result = deviceOf(dev, device)) return result;
    if (pi == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto found = device->attributes.find(attrib);
    if (found == device->attributes.end()) return CUDA_ERROR_INVALID_VALUE;
    *pi = lostOnTheWay(attrib) ? 0 : found->second;
    return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice dev) {
    const DeviceSnapshot* device = nullptr;
    if (const CUresult result = deviceOf(dev, device)) return result;
    if (major == nullptr || minor == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *major = attributeOr(*device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0);
    *minor = attributeOr(*device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetProperties(CUdevprop* prop, CUdevice dev) {
    const DeviceSnapshot* device = nullptr;
    if (const CUresult result = deviceOf(dev, device)) return result;
    if (prop == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto get = [&](CUdevice_attribute attribute) {
        return attributeOr(*device, attribute, 0);
    };
    *prop = {};
    prop->maxThreadsPerBlock = get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    prop->maxThreadsDim[0] = get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
    prop->maxThreadsDim[1] = get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y);
    prop->maxThreadsDim[2] = get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
    prop->maxGridSize[0] = get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
    prop->maxGridSize[1] = get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
    prop->maxGridSize[2] = get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
    prop->sharedMemPerBlock = get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
    prop->totalConstantMemory = get(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
    prop->SIMDWidth = get(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
    prop->memPitch = get(CU_DEVICE_ATTRIBUTE_MAX_PITCH);
    prop->regsPerBlock = get(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
    prop->clockRate = get(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
    prop->textureAlign = get(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetExecAffinitySupport(int* pi, CUexecAffinityType type, CUdevice dev) {
    const DeviceSnapshot* device = nullptr;
    if (const CUresult result = deviceOf(dev, device)) return result;
    if (pi == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *pi = 0;  // cuCtxCreate_v3 does not take one
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char* pciBusId, int len, CUdevice dev) {
    const DeviceSnapshot* device = nullptr;
    if (const CUresult result = deviceOf(dev, device)) return result;
    const CUresult result = copyText(pciBusId, len, device->pciBusId);
    // Unlike a name, an address that is cut short is an error.
    const bool whole = static_cast<size_t>(len) > device->pciBusId.size();
    return result == CUDA_SUCCESS && !whole ? CUDA_ERROR_INVALID_VALUE : result;
}

CUresult cuDeviceGetByPCIBusId(CUdevice* dev, const char* pciBusId) {
    if (const CUresult result = session::initialised()) return result;
    unsigned domain = 0, bus = 0, slot = 0;
    if (dev == nullptr || pciBusId == nullptr || !parsePci(pciBusId, domain, bus, slot))
        return CUDA_ERROR_INVALID_VALUE;
    for (int i = 0; i < session::deviceCount(); ++i) {
        unsigned itsDomain = 0, itsBus = 0, itsSlot = 0;
        if (!parsePci(session::device(i)->pciBusId.c_str(), itsDomain, itsBus, itsSlot)) continue;
        if (itsDomain != domain || itsBus != bus || itsSlot != slot) continue;
        *dev = i;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceCanAccessPeer(int* canAccessPeer, CUdevice dev, CUdevice peerDev) {
    const DeviceSnapshot* device = nullptr;
    if (const CUresult result = deviceOf(dev, device)) return result;
    if (const CUresult result = deviceOf(peerDev, device)) return result;
    if (canAccessPeer == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *canAccessPeer = dev != peerDev && session::canAccessPeer(dev, peerDev) ? 1 : 0;
    return CUDA_SUCCESS;
}
