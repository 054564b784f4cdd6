// Modules, the linker, libraries and their kernels.
#include <cstring>

#include "native/softgpu/driver/guard.h"
#include "native/softgpu/driver/image.h"
#include "native/softgpu/driver/memory.h"
#include "native/softgpu/driver/module.h"

using namespace juice::softgpu;

namespace {

CUmodule handleOf(Module& module) {
    return reinterpret_cast<CUmodule>(&module);
}

CUresult loadModule(CUmodule* out, JitLog* log, Context& context, const std::string& ptx) {
    LoadedCode code;
    if (const CUresult failed = compile(ptx, log, code)) return failed;
    *out = handleOf(*Module::create(context, std::move(code), nullptr));
    return CUDA_SUCCESS;
}

/// From an image's bytes or file, whichever `read` reads.
template <typename Read>
CUresult loadModule(CUmodule* out, const void* image, JitLog* log, const Read& read) {
    return withContextUncaptured([&](Context& context) -> CUresult {
        if (out == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
        std::string ptx;
        if (const CUresult failed = read(ptx)) return failed;
        return loadModule(out, log, context, ptx);
    });
}

template <typename Read>
CUresult loadLibrary(CUlibrary* out, const void* image, JitLog* log, const Read& read) {
    return withDriver([&]() -> CUresult {
        if (out == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
        std::string ptx;
        if (const CUresult failed = read(ptx)) return failed;
        LoadedCode code;
        if (const CUresult failed = compile(ptx, log, code)) return failed;
        *out = reinterpret_cast<CUlibrary>(Library::create(std::move(ptx), std::move(code)).get());
        return CUDA_SUCCESS;
    });
}

CUresult globalIn(const LoadedCode& code, const char* name, CUdeviceptr* address, size_t* size) {
    if (name == nullptr || (address == nullptr && size == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    const GlobalInfo* global = code.global(name);
    if (global == nullptr) return CUDA_ERROR_NOT_FOUND;
    if (address != nullptr) *address = global->address;
    if (size != nullptr) *size = global->size;
    return CUDA_SUCCESS;
}

template <typename Body>
CUresult withModule(CUmodule handle, const Body& body) {
    return withContext([&](Context&) {
        const auto module = find<Module>(handle);
        return module ? body(*module) : CUDA_ERROR_INVALID_HANDLE;
    });
}

template <typename Body>
CUresult withLibrary(CUlibrary handle, const Body& body) {
    return withDriver([&]() -> CUresult {
        const auto library = find<Library>(handle);
        return library ? body(*library) : CUDA_ERROR_INVALID_HANDLE;
    });
}

}  // namespace

CUresult cuModuleLoadDataEx(CUmodule* out, const void* image, unsigned int count,
                            CUjit_option* options, void** values) {
    JitLog log(count, options, values);
    return loadModule(out, image, &log, [&](std::string& ptx) { return readImage(image, ptx); });
}

CUresult cuModuleLoadData(CUmodule* out, const void* image) {
    return cuModuleLoadDataEx(out, image, 0, nullptr, nullptr);
}

CUresult cuModuleLoadFatBinary(CUmodule* out, const void* image) {
    return cuModuleLoadData(out, image);
}

CUresult cuModuleLoad(CUmodule* out, const char* path) {
    return loadModule(out, path, nullptr,
                      [&](std::string& ptx) { return readImageFile(path, ptx); });
}

CUresult cuModuleUnload(CUmodule handle) {
    return withModule(handle, [](Module& module) -> CUresult {
        if (const CUresult refused = refuseUnsafe()) return refused;
        // A library's module goes with its library.
        if (module.library() != nullptr) return CUDA_ERROR_NOT_PERMITTED;
        module.context().synchronize();
        retire(module);
        return CUDA_SUCCESS;
    });
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
    return withDriver([&] {
        if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
        *mode = CU_MODULE_LAZY_LOADING;
        return CUDA_SUCCESS;
    });
}

CUresult cuModuleGetFunction(CUfunction* out, CUmodule handle, const char* name) {
    return withModule(handle, [&](Module& module) -> CUresult {
        if (out == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
        Function* const function = module.function(name);
        *out = reinterpret_cast<CUfunction>(function);
        return function == nullptr ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
    });
}

CUresult cuModuleGetFunctionCount(unsigned int* count, CUmodule handle) {
    return withModule(handle, [&](Module& module) -> CUresult {
        if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
        *count = static_cast<unsigned>(module.functions().size());
        return CUDA_SUCCESS;
    });
}

CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned int count, CUmodule handle) {
    return withModule(handle, [&](Module& module) -> CUresult {
        if (functions == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
        for (unsigned i = 0; i < count && i < module.functions().size(); ++i) {
            functions[i] = reinterpret_cast<CUfunction>(module.functions()[i].get());
        }
        return CUDA_SUCCESS;
    });
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* size, CUmodule handle,
                              const char* name) {
    return withModule(handle,
                      [&](Module& module) { return globalIn(module.code(), name, address, size); });
}

CUresult cuLibraryLoadData(CUlibrary* out, const void* image, CUjit_option* options, void** values,
                           unsigned int count, CUlibraryOption*, void**, unsigned int) {
    JitLog log(count, options, values);
    return loadLibrary(out, image, &log, [&](std::string& ptx) { return readImage(image, ptx); });
}

CUresult cuLibraryLoadFromFile(CUlibrary* out, const char* path, CUjit_option* options,
                               void** values, unsigned int count, CUlibraryOption*, void**,
                               unsigned int) {
    JitLog log(count, options, values);
    return loadLibrary(out, path, &log, [&](std::string& ptx) { return readImageFile(path, ptx); });
}

CUresult cuLibraryUnload(CUlibrary handle) {
    return withDriver([&] {
        const auto library = Registry<Library>::instance().take(handle);
        if (!library) return CUDA_ERROR_INVALID_HANDLE;
        library->synchronize();
        for (const auto& kernel : library->kernels()) {
            Registry<LibraryKernel>::instance().take(kernel.get());
        }
        library->forget(nullptr);
        return CUDA_SUCCESS;
    });
}

CUresult cuLibraryGetKernel(CUkernel* out, CUlibrary handle, const char* name) {
    return withLibrary(handle, [&](Library& library) -> CUresult {
        if (out == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
        LibraryKernel* const kernel = library.kernel(name);
        if (kernel == nullptr) return CUDA_ERROR_NOT_FOUND;
        *out = reinterpret_cast<CUkernel>(kernel);
        return CUDA_SUCCESS;
    });
}

CUresult cuLibraryGetKernelCount(unsigned int* count, CUlibrary handle) {
    return withLibrary(handle, [&](Library& library) -> CUresult {
        if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
        *count = static_cast<unsigned>(library.kernels().size());
        return CUDA_SUCCESS;
    });
}

CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned int count, CUlibrary handle) {
    return withLibrary(handle, [&](Library& library) -> CUresult {
        if (kernels == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
        for (unsigned i = 0; i < count && i < library.kernels().size(); ++i) {
            kernels[i] = reinterpret_cast<CUkernel>(library.kernels()[i].get());
        }
        return CUDA_SUCCESS;
    });
}

CUresult cuLibraryGetModule(CUmodule* out, CUlibrary handle) {
    return withContext([&](Context& context) -> CUresult {
        const auto library = find<Library>(handle);
        if (!library) return CUDA_ERROR_INVALID_HANDLE;
        if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
        std::shared_ptr<Module> module;
        if (const CUresult failed = library->moduleIn(context, module)) return failed;
        *out = handleOf(*module);
        return CUDA_SUCCESS;
    });
}

CUresult cuLibraryGetGlobal(CUdeviceptr* address, size_t* size, CUlibrary handle,
                            const char* name) {
    return withContext([&](Context& context) -> CUresult {
        const auto library = find<Library>(handle);
        if (!library) return CUDA_ERROR_INVALID_HANDLE;
        std::shared_ptr<Module> module;
        if (const CUresult failed = library->moduleIn(context, module)) return failed;
        return globalIn(module->code(), name, address, size);
    });
}

/// Managed variables are the same in all contexts, and there before any.
CUresult cuLibraryGetManaged(CUdeviceptr* address, size_t* size, CUlibrary handle,
                             const char* name) {
    return withLibrary(handle, [&](Library& library) -> CUresult {
        if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
        const GlobalInfo* const global = library.code().global(name);
        if (global == nullptr || !global->managed) return CUDA_ERROR_NOT_FOUND;
        if (const auto context = ContextStack::ofThread().current(); context && context->active()) {
            std::shared_ptr<Module> module;
            if (const CUresult failed = library.moduleIn(*context, module)) return failed;
        }
        return globalIn(library.code(), name, address, size);
    });
}

/// Functions of one name for host and device come from a table that no library here is given.
CUresult cuLibraryGetUnifiedFunction(void**, CUlibrary handle, const char*) {
    return withLibrary(handle, [](Library&) { return CUDA_ERROR_INVALID_VALUE; });
}
