// Libraries: code loaded without a context.
#include <algorithm>

#include "native/gen/cuda_api.h"
#include "native/shim/attributes.h"
#include "native/shim/context.h"
#include "native/shim/image_load.h"

namespace juice::shim {
namespace {

/// The current context when it is alive; libraries can do without.
Context* currentIfAlive() {
    Context* const context = thread().current();
    return context != nullptr && context->alive ? context : nullptr;
}

CUresult load(CUlibrary* out, const std::optional<image::Image>& image, LoadOptions& options) {
    if (const CUresult result = enterContextless()) return result;
    if (!image) return CUDA_ERROR_INVALID_IMAGE;
    Library* const library = Recycler<Library>::get().take();
    library->kind = ObjectKind::library;
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    if (void* const handle = handles::mint(*library)) {
        result = loadImage(Op::cuLibraryLoadData, library->id, currentIfAlive(), *image, options,
                           library->contents);
        if (result == CUDA_SUCCESS) {
            *out = static_cast<CUlibrary>(handle);
            return result;
        }
        handles::drop(*library);
    }
    Recycler<Library>::get().give(library);
    return result;
}

CUresult readOptions(LoadOptions& options, CUjit_option* jit, void** jitValues, unsigned jitCount,
                     CUlibraryOption* library, void** libraryValues, unsigned libraryCount) {
    if (const CUresult result = options.read(jitCount, jit, jitValues)) return result;
    return options.readLibrary(libraryCount, library, libraryValues);
}

CUresult getLibrary(CUlibrary handle, Library*& library) {
    if (const CUresult result = enterContextless()) return result;
    library = find<Library>(handle);
    return library == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

/// The handle of a kernel, minted when there is none yet.
CUresult kernelOf(Library& library, Code& code, bool wanted, CUkernel& out) {
    const std::lock_guard lock(library.mutex);
    Kernel*& slot = library.kernels[&code];
    Context* const context = currentIfAlive();
    if (slot == nullptr) {
        Kernel* const made = Recycler<Kernel>::get().take();
        made->kind = ObjectKind::kernel;
        made->code = &code;
        made->library = &library;
        CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
        if (handles::mint(*made) != nullptr) {
            Writer payload;
            custom::put(payload, custom::Child{library.id, made->id});
            payload.text(code.name);
            result = post(Op::cuLibraryGetKernel, context, payload.view());
        }
        if (result != CUDA_SUCCESS) {
            library.kernels.erase(&code);
            handles::drop(*made);
            Recycler<Kernel>::get().give(made);
            return result;
        }
        slot = made;
    }
    // One that was asked for by name will be launched.
    if (wanted && context != nullptr) askAttributes(code, *slot, *context);
    out = static_cast<CUkernel>(handles::of(*slot));
    return CUDA_SUCCESS;
}

CUresult global(Op op, CUdeviceptr* dptr, size_t* bytes, CUlibrary handle, const char* name) {
    Context* context = nullptr;
    if (op == Op::cuLibraryGetManaged && thread().current() == nullptr) {
        // Managed variables are the library's, in every context alike.
        if (const CUresult result = enterContextless()) return result;
        context = primaryContext(0);
        if (context == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    } else if (const CUresult result = enter(context)) {
        return result;
    }
    Library* library = nullptr;
    if (const CUresult result = getLibrary(handle, library)) return result;
    std::unique_lock lock(library->mutex);
    auto& asked = library->globals[context];
    lock.unlock();
    return globalOf(op, *library, name, *context, library->mutex, asked, dptr, bytes);
}

void forget(Library& library) {
    for (const auto& [context, functions] : library.functions) forgetFunctions(functions);
    for (const auto& [context, addresses] : library.globals) forgetGlobals(addresses);
    for (const auto& [context, module] : library.modules) {
        module->contents.reset();
        handles::drop(*module);
        Recycler<Module>::get().give(module);
    }
    for (const auto& [code, kernel] : library.kernels) {
        handles::drop(*kernel);
        Recycler<Kernel>::get().give(kernel);
    }
    library.functions.clear();
    library.globals.clear();
    library.modules.clear();
    library.kernels.clear();
    library.contents.reset();
    handles::drop(library);
    Recycler<Library>::get().give(&library);
}

}  // namespace
}  // namespace juice::shim

using namespace juice::shim;  // NOLINT: every definition below is an entry point
namespace custom = juice::custom;
using juice::Op;

CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* jitOptions,
                           void** jitOptionsValues, unsigned int numJitOptions,
                           CUlibraryOption* libraryOptions, void** libraryOptionValues,
                           unsigned int numLibraryOptions) {
    if (const CUresult result = session::initialised()) return result;
    if (library == nullptr || code == nullptr) return CUDA_ERROR_INVALID_VALUE;
    LoadOptions options;
    if (const CUresult result = readOptions(options, jitOptions, jitOptionsValues, numJitOptions,
                                            libraryOptions, libraryOptionValues, numLibraryOptions))
        return result;
    return load(library, juice::image::measure(code), options);
}

CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* fileName, CUjit_option* jitOptions,
                               void** jitOptionsValues, unsigned int numJitOptions,
                               CUlibraryOption* libraryOptions, void** libraryOptionValues,
                               unsigned int numLibraryOptions) {
    if (const CUresult result = session::initialised()) return result;
    if (library == nullptr || fileName == nullptr) return CUDA_ERROR_INVALID_VALUE;
    LoadOptions options;
    if (const CUresult result = readOptions(options, jitOptions, jitOptionsValues, numJitOptions,
                                            libraryOptions, libraryOptionValues, numLibraryOptions))
        return result;
    const auto file = readFile(fileName);
    if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
    return load(library, juice::image::measure(juice::image::Bytes(*file)), options);
}

CUresult cuLibraryUnload(CUlibrary library) {
    Library* found = nullptr;
    if (const CUresult result = getLibrary(library, found)) return result;
    const CUresult result =
        post(Op::cuLibraryUnload, thread().current(), bytesOfCall(custom::Unload{found->id}));
    forget(*found);
    return result;
}

CUresult cuLibraryGetKernel(CUkernel* pKernel, CUlibrary library, const char* name) {
    Library* found = nullptr;
    if (const CUresult result = getLibrary(library, found)) return result;
    if (pKernel == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Code* const code = found->contents->named(name);
    if (code == nullptr) return CUDA_ERROR_NOT_FOUND;
    return kernelOf(*found, *code, true, *pKernel);
}

CUresult cuLibraryGetKernelCount(unsigned int* count, CUlibrary lib) {
    Library* found = nullptr;
    if (const CUresult result = getLibrary(lib, found)) return result;
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *count = static_cast<unsigned>(found->contents->codes.size());
    return CUDA_SUCCESS;
}

CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned int numKernels, CUlibrary lib) {
    Library* found = nullptr;
    if (const CUresult result = getLibrary(lib, found)) return result;
    if (kernels == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto& codes = found->contents->codes;
    for (size_t i = 0; i < std::min<size_t>(numKernels, codes.size()); ++i)
        if (const CUresult result = kernelOf(*found, *codes[i], false, kernels[i])) return result;
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetModule(CUmodule* pMod, CUlibrary library) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    Library* found = nullptr;
    if (const CUresult result = getLibrary(library, found)) return result;
    if (pMod == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Module* module = nullptr;
    if (const CUresult result = moduleOfLibrary(*found, *context, module)) return result;
    *pMod = static_cast<CUmodule>(handles::of(*module));
    return CUDA_SUCCESS;
}

CUresult cuKernelGetFunction(CUfunction* pFunc, CUkernel kernel) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    Kernel* const found = find<Kernel>(kernel);
    if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (pFunc == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Function* function = nullptr;
    if (const CUresult result = functionThrough(*found, Op::cuKernelGetFunction, *found->code,
                                                *context, found->library, nullptr, function))
        return result;
    *pFunc = static_cast<CUfunction>(handles::of(*function));
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetGlobal(CUdeviceptr* dptr, size_t* bytes, CUlibrary library, const char* name) {
    return global(Op::cuLibraryGetGlobal, dptr, bytes, library, name);
}

CUresult cuLibraryGetManaged(CUdeviceptr* dptr, size_t* bytes, CUlibrary library,
                             const char* name) {
    return global(Op::cuLibraryGetManaged, dptr, bytes, library, name);
}
