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
        for (size_t i = 0; param(handle, i, &offset, &size) == CUDA_SUCCESS; ++i)
            entry.params.emplace_back(static_cast<uint32_t>(offset), static_cast<uint32_t>(size));
        out.push_back(std::move(entry));
    }
    return CUDA_SUCCESS;
}

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
