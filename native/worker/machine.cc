#include "native/worker/machine.h"

#include "native/gen/results.h"
#include "native/worker/nvml.h"

namespace juice::worker {
namespace {

constexpr int kLastAttribute = 147;
/// The first that tells kernels' names and parameters.
constexpr int kOldestDriver = 12040;
constexpr char kSoftwareGpu[] = "Juice Software GPU";

/// Attributes of memory that the host's CPU and the GPU would share. Here the CPU is the client's,
/// elsewhere.
bool isSharedMemoryAttribute(int attribute) {
    return attribute == CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS ||
           attribute == CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS ||
           attribute == CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES ||
           attribute == CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST;
}

std::string describe(CUresult result) {
    const char *name = resultName(result), *sentence = resultSentence(result);
    std::string out = name == nullptr ? "error " + std::to_string(result) : name;
    if (sentence != nullptr) out += " (" + std::string(sentence) + ")";
    return out;
}

const char* cure(CUresult result) {
    switch (result) {
        case CUDA_ERROR_NO_DEVICE:
            return "check CUDA_VISIBLE_DEVICES, and that nvidia-smi lists a GPU on this machine";
        case CUDA_ERROR_OUT_OF_MEMORY:
            return "the GPU's memory is full: keep fewer workers ready, or end other programs";
        case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
        case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
            return "the driver's library and kernel module differ: reboot, or reinstall the driver";
        case CUDA_ERROR_OPERATING_SYSTEM:
            return "check that this user may open /dev/nvidia*";
        default:
            return "check the machine's NVIDIA driver with nvidia-smi";
    }
}

std::string failure(const char* call, CUresult result) {
    return std::string(call) + " failed: " + describe(result) + "; " + cure(result);
}

/// Fills in where the multiprocessors of the current context's device sit, from the driver's
/// private table (native/tables, TOPOLOGY); leaves it empty when the table is not the one that is
/// known.
void describeTopology(const DriverTable& driver, DeviceSnapshot& device) {
    static const CUuuid id = {{0x17, 0x34, static_cast<char>(0xdc), 0x26, static_cast<char>(0x80),
                               0x0d, 0x47, 0x45, static_cast<char>(0x87), 0x26,
                               static_cast<char>(0xc0), static_cast<char>(0xf1),
                               static_cast<char>(0xe7), static_cast<char>(0xdd),
                               static_cast<char>(0x8b), static_cast<char>(0xca)}};
    constexpr uint64_t kKnownSize = 136;
    const void* found = nullptr;
    if (driver.cuGetExportTable == nullptr ||
        driver.cuGetExportTable(&found, &id) != CUDA_SUCCESS || found == nullptr)
        return;
    const auto* const words = static_cast<const uint64_t*>(found);
    if (words[0] != kKnownSize) return;
    const auto tell = reinterpret_cast<int (*)(uint8_t**, uint8_t**)>(words[4]);
    const auto release = reinterpret_cast<int (*)(uint8_t*, uint8_t*)>(words[13]);
    uint8_t *gpcs = nullptr, *places = nullptr;
    if (tell(&gpcs, &places) != 0 || gpcs == nullptr || places == nullptr) return;
    const auto tpcs = device.attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT] / 2;
    device.gpcOfTpc.assign(gpcs, gpcs + tpcs);
    device.tpcInGpc.assign(places, places + tpcs);
    release(gpcs, places);
}

DeviceSnapshot describeDevice(const DriverTable& driver, CUdevice device) {
    DeviceSnapshot out;
    char text[256] = "";
    if (driver.cuDeviceGetName(text, sizeof text, device) == CUDA_SUCCESS) out.name = text;
    CUuuid uuid{};
    const auto getUuid =
        driver.cuDeviceGetUuid_v2 != nullptr ? driver.cuDeviceGetUuid_v2 : driver.cuDeviceGetUuid;
    if (getUuid != nullptr && getUuid(&uuid, device) == CUDA_SUCCESS)
        std::memcpy(out.uuid.data(), &uuid, out.uuid.size());
    size_t bytes = 0;
    if (driver.cuDeviceTotalMem_v2(&bytes, device) == CUDA_SUCCESS) out.totalMemory = bytes;
    char busId[64] = "";
    if (driver.cuDeviceGetPCIBusId(busId, sizeof busId, device) == CUDA_SUCCESS)
        out.pciBusId = busId;
    for (int attribute = 1; attribute <= kLastAttribute; ++attribute) {
        int value = 0;
        if (driver.cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(attribute),
                                        device) == CUDA_SUCCESS)
            out.attributes[attribute] = isSharedMemoryAttribute(attribute) ? 0 : value;
    }
    // Of the current context, which is this device's and fresh.
    for (int limit = 0; limit < CU_LIMIT_MAX; ++limit) {
        size_t value = 0;
        if (driver.cuCtxGetLimit(&value, static_cast<CUlimit>(limit)) == CUDA_SUCCESS)
            out.limits[limit] = value;
    }
    driver.cuCtxGetStreamPriorityRange(&out.leastPriority, &out.greatestPriority);
    describeTopology(driver, out);
    return out;
}

}  // namespace

bool Machine::start(const char* driverPath, std::string& error) {
    const Nvml nvml;
    if (!driver.load(driverPath, error)) {
        error += "; install the NVIDIA driver, or offer software GPUs";
        return false;
    }
    const auto failed = [&](const char* call, CUresult result) {
        if (result != CUDA_SUCCESS) error = failure(call, result);
        return result != CUDA_SUCCESS;
    };
    if (failed("cuInit", driver.cuInit(0))) return false;
    if (failed("cuDriverGetVersion", driver.cuDriverGetVersion(&snapshot.driverVersion)))
        return false;
    if (snapshot.driverVersion < kOldestDriver) {
        error = std::string(driverPath) + " is a driver for CUDA " +
                std::to_string(snapshot.driverVersion / 1000) + "." +
                std::to_string(snapshot.driverVersion % 1000 / 10) +
                "; a worker needs one for CUDA 12.4 or later: update the NVIDIA driver";
        return false;
    }
    int count = 0;
    if (failed("cuDeviceGetCount", driver.cuDeviceGetCount(&count))) return false;
    if (count == 0) {
        error = failure("cuDeviceGetCount", CUDA_ERROR_NO_DEVICE);
        return false;
    }
    for (CUdevice device = 0; device < count; ++device) {
        CUcontext context = nullptr;
        if (failed("cuDevicePrimaryCtxRetain", driver.cuDevicePrimaryCtxRetain(&context, device)) ||
            failed("cuCtxSetCurrent", driver.cuCtxSetCurrent(context)))
            return false;
        contexts.push_back(context);
        snapshot.devices.push_back(describeDevice(driver, device));
        for (CUdevice peer = 0; peer < count; ++peer) {
            int can = 0;
            if (peer != device) driver.cuDeviceCanAccessPeer(&can, device, peer);
            snapshot.peer.push_back(static_cast<uint8_t>(can));
        }
    }
    const DeviceSnapshot& first = snapshot.devices.front();
    const bool software = first.name.starts_with(kSoftwareGpu);
    snapshot.driverText = software ? "software" : nvml.driverVersion();
    contextBytes = software ? 0 : nvml.usedByUs(first.pciBusId);
    driver.cuCtxSetCurrent(contexts.front());
    return true;
}

}  // namespace juice::worker
