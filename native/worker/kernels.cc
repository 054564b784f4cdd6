#include "native/worker/kernels.h"

#include <algorithm>

#include "native/link/wire.h"

namespace juice::worker {
namespace {

/// Leaves room in the Reply for what goes before the page.
constexpr size_t kPageBytes = wire::kMaxPayload / 2;

/// `name(handle, &text)` and `param(handle, index, &offset, &size)` are the driver's for the
/// handle's kind.
template <typename Handle, typename Name, typename Param>
CUresult describe(const std::vector<Handle>& handles, Name name, Param param, KernelEntries& out) {
    out.reserve(handles.size());
    for (const Handle handle : handles) {
        KernelEntry entry;
        const char* text = nullptr;
        if (const CUresult result = name(&text, handle); result != CUDA_SUCCESS) return result;
        entry.name = text;
        size_t offset = 0, size = 0;
        CUresult known = CUDA_SUCCESS;
        for (size_t i = 0; (known = param(handle, i, &offset, &size)) == CUDA_SUCCESS; ++i)
            entry.params.emplace_back(static_cast<uint32_t>(offset), static_cast<uint32_t>(size));
        // The end of the list; any other error would pass for a kernel of fewer parameters.
        if (known != CUDA_ERROR_INVALID_VALUE) return known;
        out.push_back(std::move(entry));
    }
    return CUDA_SUCCESS;
}

/// A library may be loaded before the client has a context, but its kernels are described in one
/// only: borrows device 0's primary context while there is none.
class Borrowed {
  public:
    explicit Borrowed(const DriverTable& driver) : driver_(driver) {
        CUcontext current = nullptr;
        driver_.cuCtxGetCurrent(&current);
        if (current != nullptr) return;
        borrowed_ = driver_.cuDevicePrimaryCtxRetain(&current, 0) == CUDA_SUCCESS;
        if (borrowed_) driver_.cuCtxSetCurrent(current);
    }
    ~Borrowed() {
        if (!borrowed_) return;
        driver_.cuCtxSetCurrent(nullptr);
        driver_.cuDevicePrimaryCtxRelease_v2(0);
    }
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;

  private:
    const DriverTable& driver_;
    bool borrowed_ = false;
};

size_t wireSize(const KernelEntry& kernel) {
    return 2 * sizeof(uint32_t) + kernel.name.size() + kernel.params.size() * 2 * sizeof(uint32_t);
}

}  // namespace

CUresult kernelsOf(const DriverTable& driver, CUmodule module, KernelEntries& out) {
    if (driver.cuModuleGetFunctionCount == nullptr ||
        driver.cuModuleEnumerateFunctions == nullptr || driver.cuFuncGetName == nullptr ||
        driver.cuFuncGetParamInfo == nullptr)
        return CUDA_ERROR_NOT_SUPPORTED;
    unsigned count = 0;
    CUresult result = driver.cuModuleGetFunctionCount(&count, module);
    if (result != CUDA_SUCCESS || count == 0) return result;
    std::vector<CUfunction> handles(count);
    result = driver.cuModuleEnumerateFunctions(handles.data(), count, module);
    if (result != CUDA_SUCCESS) return result;
    return describe(handles, driver.cuFuncGetName, driver.cuFuncGetParamInfo, out);
}

CUresult kernelsOf(const DriverTable& driver, CUlibrary library, KernelEntries& out) {
    if (driver.cuLibraryGetKernelCount == nullptr || driver.cuLibraryEnumerateKernels == nullptr ||
        driver.cuKernelGetName == nullptr || driver.cuKernelGetParamInfo == nullptr)
        return CUDA_ERROR_NOT_SUPPORTED;
    const Borrowed context(driver);
    unsigned count = 0;
    CUresult result = driver.cuLibraryGetKernelCount(&count, library);
    if (result != CUDA_SUCCESS || count == 0) return result;
    std::vector<CUkernel> handles(count);
    result = driver.cuLibraryEnumerateKernels(handles.data(), count, library);
    if (result != CUDA_SUCCESS) return result;
    return describe(handles, driver.cuKernelGetName, driver.cuKernelGetParamInfo, out);
}

void putKernelPage(Writer& out, const KernelEntries& kernels, size_t from) {
    from = std::min(from, kernels.size());
    size_t end = from, bytes = 0;
    while (end < kernels.size() && bytes + wireSize(kernels[end]) <= kPageBytes)
        bytes += wireSize(kernels[end++]);
    out.put(static_cast<uint32_t>(kernels.size())).put(static_cast<uint32_t>(end - from));
    for (size_t i = from; i < end; ++i) {
        out.text(kernels[i].name).put(static_cast<uint32_t>(kernels[i].params.size()));
        for (const auto& [offset, size] : kernels[i].params) out.put(offset).put(size);
    }
}

}  // namespace juice::worker
