// The driver itself: start, version, names of errors, look-up of entry points, private tables.
#include <pthread.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <string>

#include "native/gen/procaddress.h"
#include "native/gen/results.h"
#include "native/gen/symbols.h"
#include "native/softgpu/driver/guard.h"
#include "native/softgpu/driver/image.h"
#include "native/softgpu/driver/registry.h"
#include "native/tables/tables.h"

namespace juice::softgpu {
namespace {

std::atomic<DriverState> state{DriverState::fresh};

/// The private tables' view of this driver.
class TablesDriver : public tables::Driver {
  public:
    int driverVersion() override { return kDriverVersion; }
    int deviceCount() override { return static_cast<int>(devices().size()); }

    tables::DeviceIdentity device(int ordinal) override {
        const Device& device = *deviceAt(ordinal);
        tables::DeviceIdentity identity{};
        std::memcpy(identity.uuid, device.uuid().data(), sizeof(identity.uuid));
        identity.pciDomain = device.pciDomain();
        identity.pciBus = device.pciBus();
        identity.pciDevice = device.pciDevice();
        return identity;
    }

    void* currentContext() override { return ContextStack::ofThread().current().get(); }

    int primaryContext(int ordinal, void** context) override {
        return withDevice(ordinal, [&](Device& device) {
            *context = &device.primary();
            return CUDA_SUCCESS;
        });
    }

    int loadModule(void** module, const void* image) override {
        return cuModuleLoadData(reinterpret_cast<CUmodule*>(module), image);
    }
};

void serveTables() {
    static std::once_flag once;
    std::call_once(once, [] { tables::serve(*new TablesDriver); });
}

/// An entry point of our own by its exported name.
CUresult resolve(const char* name, void** function, int version, uint64_t flags, int* status) {
    const char* symbol = nullptr;
    const CUresult result = resolveProc(name, version, flags, &symbol, status);
    if (result == CUDA_SUCCESS) *function = symbol == nullptr ? nullptr : symbolAddress(symbol);
    return result;
}

}  // namespace

DriverState driverState() {
    return state.load(std::memory_order_acquire);
}

bool& insideHostFunction() {
    thread_local bool inside = false;
    return inside;
}

}  // namespace juice::softgpu

using namespace juice::softgpu;

extern "C" CUresult juice_unsupported(const char* name) {
    return plainly([&] {
        static std::mutex mutex;
        static auto* const named = new std::set<std::string>;
        const std::lock_guard lock(mutex);
        if (named->insert(name).second) {
            std::fprintf(stderr, "juice softgpu: %s is not supported\n", name);
        }
        return CUDA_ERROR_NOT_SUPPORTED;
    });
}

CUresult cuInit(unsigned int flags) {
    return plainly([&] {
        if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
        if (driverState() == DriverState::forked) return CUDA_ERROR_NOT_INITIALIZED;
        if (devices().empty()) return CUDA_ERROR_NO_DEVICE;
        static std::once_flag once;
        std::call_once(once, [] {
            pthread_atfork(nullptr, nullptr, [] {
                if (state == DriverState::ready) state = DriverState::forked;
            });
            // A process's end does not wait for its kernels. This runs before the exit handlers
            // that were there before, the CUDA runtime's among them, which wait for all work.
            std::atexit([] {
                if (state != DriverState::ready) return;
                Registry<Context>::instance().forEach([](const auto& one) { one->stop(); });
            });
            state.store(DriverState::ready, std::memory_order_release);
        });
        return CUDA_SUCCESS;
    });
}

CUresult cuDriverGetVersion(int* version) {
    if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *version = kDriverVersion;
    return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char** text) {
    if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *text = juice::resultName(error);
    return *text == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char** text) {
    if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *text = juice::resultSentence(error);
    return *text == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version,
                             unsigned long long flags, CUdriverProcAddressQueryResult* status) {
    if (symbol == nullptr || function == nullptr) return CUDA_ERROR_INVALID_VALUE;
    int found = 0;
    const CUresult result = resolve(symbol, function, version, flags, &found);
    if (status != nullptr) *status = static_cast<CUdriverProcAddressQueryResult>(found);
    return result;
}

CUresult cuGetProcAddress(const char* symbol, void** function, int version,
                          unsigned long long flags) {
    if (symbol == nullptr || function == nullptr) return CUDA_ERROR_INVALID_VALUE;
    void* address = nullptr;
    int status = 0;
    const CUresult result = resolve(symbol, &address, version, flags, &status);
    if (result != CUDA_SUCCESS) return result;
    if (status != 0) return CUDA_ERROR_NOT_FOUND;
    *function = address;
    return CUDA_SUCCESS;
}

CUresult cuGetExportTable(const void** table, const CUuuid* id) {
    return plainly([&] {
        serveTables();
        return static_cast<CUresult>(juice::tables::getExportTable(
            table, id == nullptr ? nullptr : reinterpret_cast<const uint8_t*>(id->bytes)));
    });
}

// No profiler ever listens, so starting and stopping it is always done.

CUresult cuProfilerStart() {
    return withContext([](Context&) { return CUDA_SUCCESS; });
}

CUresult cuProfilerStop() {
    return withContext([](Context&) { return CUDA_SUCCESS; });
}
