#include "native/worker/nvml.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <vector>

namespace juice::worker {
namespace {

// NVML's ABI, as far as it is used here. 0 is success everywhere.
using Device = void*;
struct MemoryInfo {
    unsigned long long total, free, used;
};
struct PciInfo {
    char busIdLegacy[16];
    unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
    char busId[32];
};
static_assert(sizeof(PciInfo) == 68);
struct ProcessInfo {
    unsigned pid;
    unsigned long long usedGpuMemory;
    unsigned gpuInstance, computeInstance;
};
static_assert(sizeof(ProcessInfo) == 24);

/// "00000000:3B:00.0" and "0000:3b:00.0" name the same device.
std::string canonical(std::string busId) {
    std::transform(busId.begin(), busId.end(), busId.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    const size_t colon = busId.find(':');
    return colon != std::string::npos && colon > 4 ? busId.substr(colon - 4) : busId;
}

}  // namespace

struct Nvml::Functions {
    int (*systemGetDriverVersion)(char*, unsigned) = nullptr;
    int (*deviceGetCount)(unsigned*) = nullptr;
    int (*deviceGetHandleByIndex)(unsigned, Device*) = nullptr;
    int (*deviceGetPciInfo)(Device, PciInfo*) = nullptr;
    int (*deviceGetMemoryInfo)(Device, MemoryInfo*) = nullptr;
    int (*deviceGetComputeRunningProcesses)(Device, unsigned*, ProcessInfo*) = nullptr;

    static const Functions* open() {
        void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) return nullptr;
        auto out = std::make_unique<Functions>();
        bool whole = true;
        const auto find = [&](auto& pointer, const char* name) {
            pointer =
                reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(dlsym(library, name));
            whole = whole && pointer != nullptr;
        };
        int (*init)() = nullptr;
        find(init, "nvmlInit_v2");
        find(out->systemGetDriverVersion, "nvmlSystemGetDriverVersion");
        find(out->deviceGetCount, "nvmlDeviceGetCount_v2");
        find(out->deviceGetHandleByIndex, "nvmlDeviceGetHandleByIndex_v2");
        find(out->deviceGetPciInfo, "nvmlDeviceGetPciInfo_v3");
        find(out->deviceGetMemoryInfo, "nvmlDeviceGetMemoryInfo");
        find(out->deviceGetComputeRunningProcesses, "nvmlDeviceGetComputeRunningProcesses_v3");
        return whole && init() == 0 ? out.release() : nullptr;
    }

    template <typename Visit>
    void eachDevice(Visit visit) const {
        unsigned count = 0;
        if (deviceGetCount(&count) != 0) return;
        for (unsigned i = 0; i < count; ++i) {
            Device device = nullptr;
            PciInfo pci{};
            if (deviceGetHandleByIndex(i, &device) == 0 && deviceGetPciInfo(device, &pci) == 0)
                visit(canonical(pci.busId), device);
        }
    }

    uint64_t used(Device device) const {
        MemoryInfo info{};
        return deviceGetMemoryInfo(device, &info) == 0 ? info.used : 0;
    }

    /// 0 when this process is not listed, as in a container with process numbers of its own.
    uint64_t usedByProcess(Device device) const {
        std::vector<ProcessInfo> processes(256);
        auto count = static_cast<unsigned>(processes.size());
        if (deviceGetComputeRunningProcesses(device, &count, processes.data()) != 0) return 0;
        for (unsigned i = 0; i < count; ++i)
            if (processes[i].pid == static_cast<unsigned>(getpid()) &&
                processes[i].usedGpuMemory != ~0ull)
                return processes[i].usedGpuMemory;
        return 0;
    }
};

Nvml::Nvml() : functions_(Functions::open()) {
    if (functions_ == nullptr) return;
    functions_->eachDevice([this](const std::string& busId, Device device) {
        before_[busId] = functions_->used(device);
    });
}

std::string Nvml::driverVersion() const {
    char text[96] = "";
    if (functions_ == nullptr || functions_->systemGetDriverVersion(text, sizeof text) != 0)
        return "";
    return text;
}

uint64_t Nvml::usedByUs(const std::string& pciBusId) const {
    uint64_t out = 0;
    if (functions_ == nullptr) return out;
    const std::string wanted = canonical(pciBusId);
    functions_->eachDevice([&](const std::string& busId, Device device) {
        if (busId != wanted) return;
        out = functions_->usedByProcess(device);
        const auto before = before_.find(busId);
        if (out != 0 || before == before_.end()) return;
        const uint64_t now = functions_->used(device);
        out = now - std::min(now, before->second);
    });
    return out;
}

}  // namespace juice::worker
