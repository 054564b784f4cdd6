// The driver itself: start, version, names of errors, look-up of entry points, private tables.
#include <cstring>

#include "native/gen/cuda_api.h"
#include "native/gen/procaddress.h"
#include "native/gen/results.h"
#include "native/gen/symbols.h"
#include "native/shim/context.h"
#include "native/shim/say.h"
#include "native/shim/session.h"
#include "native/shim/thread.h"
#include "native/tables/tables.h"

namespace juice::shim {
namespace {

/// What the private tables ask of this driver.
class TablesDriver final : public tables::Driver {
  public:
    int driverVersion() override { return session::driverVersion(); }
    int deviceCount() override {
        return session::initialised() == CUDA_SUCCESS ? session::deviceCount() : 0;
    }
    tables::DeviceIdentity device(int ordinal) override {
        tables::DeviceIdentity identity{};
        const DeviceSnapshot& device = *session::device(ordinal);
        std::memcpy(identity.uuid, device.uuid.data(), sizeof identity.uuid);
        const auto attribute = [&](int which) {
            const auto found = device.attributes.find(which);
            return found == device.attributes.end() ? 0 : found->second;
        };
        identity.pciDomain = attribute(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID);
        identity.pciBus = attribute(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
        identity.pciDevice = attribute(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
        return identity;
    }
    void* currentContext() override {
        CUcontext context = nullptr;
        return cuCtxGetCurrent(&context) == CUDA_SUCCESS ? context : nullptr;
    }
    int primaryContext(int ordinal, void** context) override {
        if (const CUresult result = session::initialised()) return result;
        if (session::device(ordinal) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
        const Context* const primary = shim::primaryContext(ordinal);
        if (primary == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
        *context = handles::of(*primary);
        return CUDA_SUCCESS;
    }
    int loadModule(void** module, const void* image) override {
        return cuModuleLoadData(reinterpret_cast<CUmodule*>(module), image);
    }
    tables::Topology topology() override {
        CUdevice ordinal = 0;
        if (cuCtxGetDevice(&ordinal) != CUDA_SUCCESS) return {};
        const DeviceSnapshot& device = *session::device(ordinal);
        return {device.gpcOfTpc, device.tpcInGpc};
    }
};

CUresult errorText(const char* (*text)(CUresult), CUresult error, const char** out) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = text(error);
    return *out == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

}  // namespace
}  // namespace juice::shim

using namespace juice::shim;  // NOLINT: every definition below is an entry point

CUresult cuInit(unsigned int Flags) {
    if (Flags != 0) return CUDA_ERROR_INVALID_VALUE;
    return session::initialise();
}

CUresult cuDriverGetVersion(int* driverVersion) {
    if (driverVersion == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *driverVersion = session::driverVersion();
    return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char** pStr) {
    return errorText(juice::resultSentence, error, pStr);
}

CUresult cuGetErrorName(CUresult error, const char** pStr) {
    return errorText(juice::resultName, error, pStr);
}

CUresult cuGetProcAddress_v2(const char* symbol, void** pfn, int cudaVersion,
                             unsigned long long flags,
                             CUdriverProcAddressQueryResult* symbolStatus) {
    if (symbol == nullptr || pfn == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const char* exported = nullptr;
    int status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    const CUresult result = juice::resolveProc(symbol, cudaVersion, flags, &exported, &status);
    *pfn = exported == nullptr ? nullptr : juice::symbolAddress(exported);
    if (symbolStatus != nullptr) *symbolStatus = status;
    return result;
}

CUresult cuGetProcAddress(const char* symbol, void** pfn, int cudaVersion,
                          unsigned long long flags) {
    if (symbol == nullptr || pfn == nullptr) return CUDA_ERROR_INVALID_VALUE;
    void* found = nullptr;
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
    const CUresult result = cuGetProcAddress_v2(symbol, &found, cudaVersion, flags, &status);
    if (result != CUDA_SUCCESS) return result;
    if (found == nullptr) return CUDA_ERROR_NOT_FOUND;
    *pfn = found;
    return CUDA_SUCCESS;
}

CUresult cuGetExportTable(const void** ppExportTable, const CUuuid* pExportTableId) {
    static const bool serving = [] {
        juice::tables::serve(*new TablesDriver);
        return true;
    }();
    static_cast<void>(serving);
    const auto* const id = reinterpret_cast<const uint8_t*>(pExportTableId);
    const int result = juice::tables::getExportTable(ppExportTable, id);
    if (result == CUDA_ERROR_NOT_FOUND)
        juice::whisper("refused the private table %02x%02x%02x%02x-%02x%02x-%02x%02x-…", id[0],
                       id[1], id[2], id[3], id[4], id[5], id[6], id[7]);
    return static_cast<CUresult>(result);
}

extern "C" CUresult juice_unsupported(const char* name) {
    juice::sayOnce(name, "%s is not supported (CUDA_ERROR_NOT_SUPPORTED)", name);
    return CUDA_ERROR_NOT_SUPPORTED;
}
