// Functions and kernels: names, parameters, attributes, and how many blocks fit.
#include "native/softgpu/driver/guard.h"
#include "native/softgpu/driver/launch.h"
#include "native/softgpu/driver/module.h"

using namespace juice::softgpu;

namespace {

template <typename Body>
CUresult withFunction(CUfunction handle, const Body& body) {
    return withContext([&](Context& context) -> CUresult {
        const auto function = functionIn(context, handle);
        return function ? body(*function) : CUDA_ERROR_INVALID_HANDLE;
    });
}

template <typename Body>
CUresult withKernel(CUkernel handle, const Body& body) {
    return withDriver([&]() -> CUresult {
        const auto kernel = find<LibraryKernel>(handle);
        return kernel ? body(*kernel) : CUDA_ERROR_INVALID_HANDLE;
    });
}

CUresult nameOf(const Kernel& kernel, const char** name) {
    if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *name = kernel.name.c_str();
    return CUDA_SUCCESS;
}

CUresult parameterOf(const Kernel& kernel, size_t index, size_t* offset, size_t* size) {
    if (index >= kernel.params.size() || offset == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *offset = kernel.params[index].offset;
    if (size != nullptr) *size = kernel.params[index].size;
    return CUDA_SUCCESS;
}

bool validConfig(CUfunc_cache config) {
    return config >= CU_FUNC_CACHE_PREFER_NONE && config <= CU_FUNC_CACHE_PREFER_EQUAL;
}

}  // namespace

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction handle) {
    return withFunction(handle, [&](Function& function) -> CUresult {
        if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
        return function.attribute(attribute, *value);
    });
}

CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
    return withFunction(handle, [&](Function& function) {
        return setFunctionAttribute(function.kernel, *function.settings, attribute, value);
    });
}

/// A preference between two kinds of fast memory; here there is one kind.
CUresult cuFuncSetCacheConfig(CUfunction handle, CUfunc_cache config) {
    return withFunction(handle, [&](Function&) {
        return validConfig(config) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    });
}

CUresult cuFuncSetSharedMemConfig(CUfunction handle, CUsharedconfig config) {
    return withFunction(handle, [&](Function&) {
        const bool known = config >= CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE &&
                           config <= CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE;
        return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    });
}

CUresult cuFuncGetModule(CUmodule* module, CUfunction handle) {
    return withFunction(handle, [&](Function& function) {
        if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
        *module = reinterpret_cast<CUmodule>(&function.module);
        return CUDA_SUCCESS;
    });
}

CUresult cuFuncGetName(const char** name, CUfunction handle) {
    return withContext([&](Context&) {
        // A kernel in place of a function, taken elsewhere, is refused here.
        const auto function = find<Function>(handle);
        return function ? nameOf(function->kernel, name) : CUDA_ERROR_INVALID_HANDLE;
    });
}

CUresult cuFuncGetParamInfo(CUfunction handle, size_t index, size_t* offset, size_t* size) {
    return withFunction(handle, [&](Function& function) {
        return parameterOf(function.kernel, index, offset, size);
    });
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction handle) {
    return withFunction(handle, [&](Function&) {
        if (state == nullptr) return CUDA_ERROR_INVALID_VALUE;
        *state = CU_FUNCTION_LOADING_STATE_LOADED;
        return CUDA_SUCCESS;
    });
}

CUresult cuFuncLoad(CUfunction handle) {
    return withFunction(handle, [](Function&) { return CUDA_SUCCESS; });
}

CUresult cuKernelGetFunction(CUfunction* out, CUkernel handle) {
    return withContext([&](Context& context) {
        if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
        const auto function = functionIn(context, reinterpret_cast<CUfunction>(handle));
        if (!function) return CUDA_ERROR_INVALID_HANDLE;
        *out = reinterpret_cast<CUfunction>(function.get());
        return CUDA_SUCCESS;
    });
}

CUresult cuKernelGetLibrary(CUlibrary* out, CUkernel handle) {
    return withKernel(handle, [&](LibraryKernel& kernel) {
        if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
        *out = reinterpret_cast<CUlibrary>(&kernel.library());
        return CUDA_SUCCESS;
    });
}

CUresult cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel handle,
                              CUdevice device) {
    return withKernel(handle, [&](LibraryKernel& kernel) {
        if (deviceAt(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
        if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
        return functionAttribute(kernel.library().code(), kernel.kernel(), *kernel.settings(device),
                                 attribute, *value);
    });
}

CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel handle,
                              CUdevice device) {
    return withKernel(handle, [&](LibraryKernel& kernel) {
        if (deviceAt(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
        return setFunctionAttribute(kernel.kernel(), *kernel.settings(device), attribute, value);
    });
}

CUresult cuKernelSetCacheConfig(CUkernel handle, CUfunc_cache config, CUdevice device) {
    return withKernel(handle, [&](LibraryKernel&) {
        if (deviceAt(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
        return validConfig(config) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    });
}

CUresult cuKernelGetName(const char** name, CUkernel handle) {
    return withKernel(handle, [&](LibraryKernel& kernel) { return nameOf(kernel.kernel(), name); });
}

CUresult cuKernelGetParamInfo(CUkernel handle, size_t index, size_t* offset, size_t* size) {
    // A real driver asks the function, hence needs a context.
    return withContext([&](Context&) {
        return withKernel(handle, [&](LibraryKernel& kernel) {
            return parameterOf(kernel.kernel(), index, offset, size);
        });
    });
}
