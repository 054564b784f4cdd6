// The machine's real GPUs, through NVML: listing them makes no context and takes no GPU memory.
#include <dlfcn.h>

#include <string>

#include "native/addon/addon.h"

namespace juice::addon {
namespace {

// The little of NVML's ABI that the inventory needs; names and layouts as NVML documents them.
using NvmlDevice = void*;
struct NvmlMemory {
    unsigned long long total, free, used;
};
struct NvmlPci {
    char busIdLegacy[16];
    unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
    char busId[32];
};

struct Nvml {
    void* library = nullptr;
    template <typename F>
    F* symbol(const char* name) const {
        return reinterpret_cast<F*>(dlsym(library, name));
    }
};

Napi::Error unavailable(Napi::Env env, const std::string& why) {
    return errorWithCode(env, "NVML_UNAVAILABLE", why);
}

template <typename F, typename... Args>
void check(Napi::Env env, const Nvml& nvml, const char* name, Args... args) {
    auto* function = nvml.symbol<F>(name);
    if (function == nullptr) throw unavailable(env, std::string("NVML lacks ") + name);
    const int result = function(args...);
    if (result == 0) return;
    auto* text = nvml.symbol<const char*(int)>("nvmlErrorString");
    throw unavailable(env, std::string(name) + ": " +
                               (text != nullptr ? text(result) : std::to_string(result).c_str()));
}

Napi::Value inventory(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    Nvml nvml;
    nvml.library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (nvml.library == nullptr)
        throw unavailable(env, "no NVIDIA driver: libnvidia-ml.so.1 is not installed");
    check<int()>(env, nvml, "nvmlInit_v2");

    char text[96] = {};
    int cudaVersion = 0;
    unsigned count = 0;
    check<int(char*, unsigned)>(env, nvml, "nvmlSystemGetDriverVersion", text,
                                unsigned{sizeof text});
    check<int(int*)>(env, nvml, "nvmlSystemGetCudaDriverVersion_v2", &cudaVersion);
    check<int(unsigned*)>(env, nvml, "nvmlDeviceGetCount_v2", &count);

    Napi::Object out = Napi::Object::New(env);
    out.Set("driverText", Napi::String::New(env, text));
    out.Set("driverVersion", Napi::Number::New(env, cudaVersion));
    Napi::Array gpus = Napi::Array::New(env);
    for (unsigned i = 0; i < count; ++i) {
        NvmlDevice device = nullptr;
        NvmlMemory memory{};
        NvmlPci pci{};
        int major = 0, minor = 0;
        check<int(unsigned, NvmlDevice*)>(env, nvml, "nvmlDeviceGetHandleByIndex_v2", i, &device);
        Napi::Object gpu = Napi::Object::New(env);
        check<int(NvmlDevice, char*, unsigned)>(env, nvml, "nvmlDeviceGetUUID", device, text,
                                                unsigned{sizeof text});
        gpu.Set("uuid", Napi::String::New(env, text));
        check<int(NvmlDevice, char*, unsigned)>(env, nvml, "nvmlDeviceGetName", device, text,
                                                unsigned{sizeof text});
        gpu.Set("name", Napi::String::New(env, text));
        check<int(NvmlDevice, NvmlMemory*)>(env, nvml, "nvmlDeviceGetMemoryInfo", device, &memory);
        gpu.Set("memoryTotal", Napi::Number::New(env, static_cast<double>(memory.total)));
        check<int(NvmlDevice, NvmlPci*)>(env, nvml, "nvmlDeviceGetPciInfo_v3", device, &pci);
        gpu.Set("pciBusId", Napi::String::New(env, pci.busId));
        check<int(NvmlDevice, int*, int*)>(env, nvml, "nvmlDeviceGetCudaComputeCapability", device,
                                           &major, &minor);
        gpu.Set("computeCapability",
                Napi::String::New(env, std::to_string(major) + "." + std::to_string(minor)));
        gpus.Set(i, gpu);
    }
    out.Set("gpus", gpus);
    check<int()>(env, nvml, "nvmlShutdown");
    return out;
}

}  // namespace

void registerInventory(Napi::Env env, Napi::Object exports) {
    exports.Set("inventory", Napi::Function::New(env, inventory));
}

}  // namespace juice::addon
