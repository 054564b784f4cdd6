// Devices: finding them and what they are.
#include <cstdio>
#include <cstring>

#include "native/abi/cuda_device_enums.h"
#include "native/shim/nvml/state.h"
#include "native/shim/visible.h"

using namespace juice::nvml;  // NOLINT: every definition below is an entry point

namespace {

PciInfo pciInfoOf(const Device& device) {
    PciInfo info{};
    info.domain = static_cast<uint32_t>(device.attribute(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID));
    info.bus = static_cast<uint32_t>(device.attribute(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID));
    info.device = static_cast<uint32_t>(device.attribute(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID));
    std::snprintf(info.busIdLegacy, sizeof info.busIdLegacy, "%04X:%02X:%02X.0",
                  info.domain & 0xffff, info.bus & 0xff, info.device & 0xff);
    std::snprintf(info.busId, sizeof info.busId, "%08X:%02X:%02X.0", info.domain, info.bus & 0xff,
                  info.device & 0xff);
    return info;
}

int pciInfo(DeviceHandle handle, void* out, size_t size) {
    const Device* device = nullptr;
    if (const Result result = deviceOf(handle, device)) return result;
    if (out == nullptr) return kInvalidArgument;
    const PciInfo info = pciInfoOf(*device);
    std::memcpy(out, &info, size);
    return kSuccess;
}

int handleByIndex(unsigned index, DeviceHandle* handle) {
    if (const Result result = initialised()) return result;
    if (handle == nullptr || device(index) == nullptr) return kInvalidArgument;
    *handle = device(index);
    return kSuccess;
}

int handleByPci(const char* busId, DeviceHandle* handle) {
    if (const Result result = initialised()) return result;
    if (busId == nullptr || handle == nullptr) return kInvalidArgument;
    unsigned domain = 0, bus = 0, slot = 0, function = 0;
    if (std::sscanf(busId, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3) {
        domain = 0;
        if (std::sscanf(busId, "%x:%x.%x", &bus, &slot, &function) < 2) return kInvalidArgument;
    }
    for (unsigned i = 0; i < deviceCount(); ++i) {
        const PciInfo info = pciInfoOf(*device(i));
        if (info.domain != domain || info.bus != bus || info.device != slot) continue;
        *handle = device(i);
        return kSuccess;
    }
    return kNotFound;
}

/// Other processes' work on a shared GPU is not this program's to see, and its own has no process
/// id on the host that would mean anything here.
int noProcesses(DeviceHandle handle, unsigned* count) {
    const Device* device = nullptr;
    if (const Result result = deviceOf(handle, device)) return result;
    if (count == nullptr) return kInvalidArgument;
    *count = 0;
    return kSuccess;
}

}  // namespace

JUICE_NVML_API int nvmlDeviceGetCount(unsigned* count) {
    if (const Result result = initialised()) return result;
    if (count == nullptr) return kInvalidArgument;
    *count = deviceCount();
    return kSuccess;
}
JUICE_NVML_API int nvmlDeviceGetCount_v2(unsigned* count) {
    return nvmlDeviceGetCount(count);
}

JUICE_NVML_API int nvmlDeviceGetHandleByIndex(unsigned index, DeviceHandle* handle) {
    return handleByIndex(index, handle);
}
JUICE_NVML_API int nvmlDeviceGetHandleByIndex_v2(unsigned index, DeviceHandle* handle) {
    return handleByIndex(index, handle);
}

JUICE_NVML_API int nvmlDeviceGetHandleByUUID(const char* uuid, DeviceHandle* handle) {
    if (const Result result = initialised()) return result;
    if (uuid == nullptr || handle == nullptr) return kInvalidArgument;
    for (unsigned i = 0; i < deviceCount(); ++i) {
        if (juice::shim::uuidText(device(i)->facts.uuid) != uuid) continue;
        *handle = device(i);
        return kSuccess;
    }
    return kNotFound;
}

JUICE_NVML_API int nvmlDeviceGetHandleByPciBusId(const char* busId, DeviceHandle* handle) {
    return handleByPci(busId, handle);
}
JUICE_NVML_API int nvmlDeviceGetHandleByPciBusId_v2(const char* busId, DeviceHandle* handle) {
    return handleByPci(busId, handle);
}

JUICE_NVML_API int nvmlDeviceGetName(DeviceHandle handle, char* name, unsigned length) {
    const Device* device = nullptr;
    if (const Result result = deviceOf(handle, device)) return result;
    return copyText(name, length, device->facts.name);
}

JUICE_NVML_API int nvmlDeviceGetUUID(DeviceHandle handle, char* uuid, unsigned length) {
    const Device* device = nullptr;
    if (const Result result = deviceOf(handle, device)) return result;
    return copyText(uuid, length, juice::shim::uuidText(device->facts.uuid));
}

JUICE_NVML_API int nvmlDeviceGetIndex(DeviceHandle handle, unsigned* index) {
    const Device* device = nullptr;
    if (const Result result = deviceOf(handle, device)) return result;
    if (index == nullptr) return kInvalidArgument;
    *index = device->index;
    return kSuccess;
}

/// There is no /dev/nvidiaN here; its number would be the index.
JUICE_NVML_API int nvmlDeviceGetMinorNumber(DeviceHandle handle, unsigned* minor) {
    return nvmlDeviceGetIndex(handle, minor);
}

JUICE_NVML_API int nvmlDeviceGetPciInfo(DeviceHandle handle, void* info) {
    return pciInfo(handle, info, kPciInfoV1Size);
}
JUICE_NVML_API int nvmlDeviceGetPciInfo_v2(DeviceHandle handle, void* info) {
    return pciInfo(handle, info, kPciInfoV2Size);
}
JUICE_NVML_API int nvmlDeviceGetPciInfo_v3(DeviceHandle handle, void* info) {
    return pciInfo(handle, info, sizeof(PciInfo));
}

/// What is in use only the worker knows: all of the lease's memory is reported as free. A program
/// that wants the truth asks cuMemGetInfo.
JUICE_NVML_API int nvmlDeviceGetMemoryInfo(DeviceHandle handle, Memory* memory) {
    const Device* device = nullptr;
    if (const Result result = deviceOf(handle, device)) return result;
    if (memory == nullptr) return kInvalidArgument;
    *memory = {device->facts.totalMemory, device->facts.totalMemory, 0};
    return kSuccess;
}
JUICE_NVML_API int nvmlDeviceGetMemoryInfo_v2(DeviceHandle handle, MemoryV2* memory) {
    const Device* device = nullptr;
    if (const Result result = deviceOf(handle, device)) return result;
    if (memory == nullptr) return kInvalidArgument;
    if (memory->version != kMemoryV2) return kArgumentVersionMismatch;
    *memory = {kMemoryV2, device->facts.totalMemory, 0, device->facts.totalMemory, 0};
    return kSuccess;
}

JUICE_NVML_API int nvmlDeviceGetCudaComputeCapability(DeviceHandle handle, int* major, int* minor) {
    const Device* device = nullptr;
    if (const Result result = deviceOf(handle, device)) return result;
    if (major == nullptr || minor == nullptr) return kInvalidArgument;
    *major = device->attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    *minor = device->attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    return kSuccess;
}

JUICE_NVML_API int nvmlDeviceGetComputeRunningProcesses(DeviceHandle handle, unsigned* count,
                                                        void* processes) {
    return noProcesses(handle, count);
}
JUICE_NVML_API int nvmlDeviceGetComputeRunningProcesses_v2(DeviceHandle handle, unsigned* count,
                                                           void* processes) {
    return noProcesses(handle, count);
}
JUICE_NVML_API int nvmlDeviceGetComputeRunningProcesses_v3(DeviceHandle handle, unsigned* count,
                                                           void* processes) {
    return noProcesses(handle, count);
}
JUICE_NVML_API int nvmlDeviceGetGraphicsRunningProcesses(DeviceHandle handle, unsigned* count,
                                                         void* processes) {
    return noProcesses(handle, count);
}
JUICE_NVML_API int nvmlDeviceGetGraphicsRunningProcesses_v2(DeviceHandle handle, unsigned* count,
                                                            void* processes) {
    return noProcesses(handle, count);
}
JUICE_NVML_API int nvmlDeviceGetGraphicsRunningProcesses_v3(DeviceHandle handle, unsigned* count,
                                                            void* processes) {
    return noProcesses(handle, count);
}
