// Modules, and everything that is found in modules and libraries.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "native/gen/cuda_api.h"
#include "native/gen/symbols.h"
#include "native/shim/attributes.h"
#include "native/shim/image_load.h"
#include "native/shim/managed.h"
#include "native/shim/ranges.h"

namespace juice::shim {
namespace {

Writer childCall(const Object& parent, const Object& child, std::string_view name) {
    Writer payload;
    custom::put(payload, custom::Child{parent.id, child.id});
    if (!name.empty()) payload.text(name);
    return payload;
}

CUresult load(CUmodule* out, const std::optional<image::Image>& image, LoadOptions& options) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    if (!image) return CUDA_ERROR_INVALID_IMAGE;
    Module* const module = Recycler<Module>::get().take();
    module->kind = ObjectKind::module;
    module->context = context;
    module->library = nullptr;
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    if (void* const handle = handles::mint(*module)) {
        result = loadImage(Op::cuModuleLoadDataEx, module->id, context, *image, options,
                           module->contents);
        if (result == CUDA_SUCCESS) {
            *out = static_cast<CUmodule>(handle);
            return result;
        }
        handles::drop(*module);
    }
    Recycler<Module>::get().give(module);
    return result;
}

/// The checks that come before any other, then the image at a bare pointer.
CUresult loadData(CUmodule* out, const void* image, LoadOptions& options) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    if (out == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return load(out, image::measure(image), options);
}

void forget(Module& module) {
    forgetFunctions(module.functions);
    forgetGlobals(module.globals);
    module.functions.clear();
    module.globals.clear();
    module.contents.reset();
    handles::drop(module);
    Recycler<Module>::get().give(&module);
}

CUresult getModule(CUmodule handle, Context*& context, Module*& module) {
    if (const CUresult result = enter(context)) return result;
    module = find<Module>(handle);
    return module == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

CUresult functionIn(Module& module, Code& code, Function*& function) {
    return functionThrough(module, Op::cuModuleGetFunction, code, *module.context, module.library,
                           &module, function);
}

}  // namespace

CUresult functionThrough(const Object& parent, Op op, Code& code, Context& context,
                         Library* library, Module* module, Function*& function) {
    std::mutex& mutex = library != nullptr ? library->mutex : module->mutex;
    const std::lock_guard lock(mutex);
    auto& known = library != nullptr ? library->functions[&context] : module->functions;
    Function*& slot = known[&code];
    if (slot == nullptr) {
        Function* const made = Recycler<Function>::get().take();
        made->kind = ObjectKind::function;
        made->code = &code;
        made->context = &context;
        made->module = module;
        made->library = library;
        CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
        if (handles::mint(*made) != nullptr)
            result = post(op, &context,
                          childCall(parent, *made,
                                    op == Op::cuModuleGetFunction ? code.name : std::string_view())
                              .view());
        if (result != CUDA_SUCCESS) {
            known.erase(&code);
            handles::drop(*made);
            Recycler<Function>::get().give(made);
            return result;
        }
        slot = made;
        askAttributes(code, *made, context);
    }
    if (module != nullptr) slot->module = module;
    function = slot;
    return CUDA_SUCCESS;
}

CUresult moduleOfLibrary(Library& library, Context& context, Module*& module) {
    const std::lock_guard lock(library.mutex);
    Module*& slot = library.modules[&context];
    if (slot == nullptr) {
        Module* const made = Recycler<Module>::get().take();
        made->kind = ObjectKind::module;
        made->context = &context;
        made->library = &library;
        made->contents = library.contents;
        CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
        if (handles::mint(*made) != nullptr)
            result = post(Op::cuLibraryGetModule, &context, childCall(library, *made, {}).view());
        if (result != CUDA_SUCCESS) {
            library.modules.erase(&context);
            handles::drop(*made);
            Recycler<Module>::get().give(made);
            return result;
        }
        slot = made;
    }
    module = slot;
    return CUDA_SUCCESS;
}

CUresult globalOf(Op op, const Object& parent, const char* name, Context& context,
                  std::mutex& mutex, std::vector<uint64_t>& asked, CUdeviceptr* address,
                  size_t* bytes) {
    if (name == nullptr || (address == nullptr && bytes == nullptr))
        return CUDA_ERROR_INVALID_VALUE;
    Writer payload;
    custom::put(payload, custom::GlobalOf{parent.id});
    payload.text(name);
    Reply reply;
    if (const CUresult result = call(op, &context, payload.view(), reply)) return result;
    Reader in = reply.reader();
    Range range;
    range.kind = Range::Kind::global;
    range.begin = in.get<uint64_t>();
    range.size = in.get<uint64_t>();
    range.context = &context;
    const bool managed = in.get<uint32_t>() != 0;
    if (managed) range.kind = Range::Kind::variable;
    range.mirrored = managed;
    if (!in.done()) return CUDA_ERROR_UNKNOWN;
    if (address != nullptr) *address = range.begin;
    if (bytes != nullptr) *bytes = range.size;
    const std::lock_guard lock(mutex);
    if (std::find(asked.begin(), asked.end(), range.begin) == asked.end()) {
        asked.push_back(range.begin);
        ranges::add(range);
        if (managed) return managed::share(&context, range);
    }
    return CUDA_SUCCESS;
}

void forgetFunctions(const std::unordered_map<Code*, Function*>& functions) {
    for (const auto& [code, function] : functions) {
        handles::drop(*function);
        Recycler<Function>::get().give(function);
    }
}

void forgetGlobals(const std::vector<uint64_t>& addresses) {
    for (const uint64_t address : addresses) {
        const auto range = ranges::find(address);
        ranges::remove(address);
        if (range && range->managed()) managed::forget(*range);
    }
}

void forgetModulesOf(const Context& context) {
    handles::forEach(
        [](Object& object, void* argument) {
            if (object.kind == ObjectKind::module) {
                auto& module = static_cast<Module&>(object);
                if (module.context == argument && module.library == nullptr) forget(module);
            } else if (object.kind == ObjectKind::library) {
                auto& library = static_cast<Library&>(object);
                auto* const of = static_cast<Context*>(argument);
                const std::lock_guard lock(library.mutex);
                if (const auto found = library.functions.find(of); found != library.functions.end())
                    forgetFunctions(found->second);
                if (const auto found = library.modules.find(of); found != library.modules.end())
                    forget(*found->second);
                library.functions.erase(of);
                library.modules.erase(of);
                library.globals.erase(of);
            }
        },
        const_cast<Context*>(&context));
}

}  // namespace juice::shim

using namespace juice::shim;  // NOLINT: every definition below is an entry point
namespace custom = juice::custom;
using juice::Op;

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
    LoadOptions options;
    return loadData(module, image, options);
}

CUresult cuModuleLoadFatBinary(CUmodule* module, const void* fatCubin) {
    LoadOptions options;
    return loadData(module, fatCubin, options);
}

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int numOptions,
                            CUjit_option* options, void** optionValues) {
    LoadOptions read;
    if (const CUresult result = read.read(numOptions, options, optionValues)) return result;
    return loadData(module, image, read);
}

CUresult cuModuleLoad(CUmodule* module, const char* fname) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    if (module == nullptr || fname == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto file = readFile(fname);
    if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
    LoadOptions options;
    return load(module, juice::image::measure(juice::image::Bytes(*file)), options);
}

CUresult cuModuleUnload(CUmodule hmod) {
    Context* context = nullptr;
    Module* module = nullptr;
    if (const CUresult result = getModule(hmod, context, module)) return result;
    // A library's module goes with its library.
    if (module->library != nullptr) return CUDA_ERROR_NOT_PERMITTED;
    const CUresult result =
        post(Op::cuModuleUnload, module->context, bytesOfCall(custom::Unload{module->id}));
    forget(*module);
    return result;
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
    if (const CUresult result = session::initialised()) return result;
    if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const char* const wanted = std::getenv("CUDA_MODULE_LOADING");
    const bool eager = wanted != nullptr && std::strcmp(wanted, "EAGER") == 0;
    *mode = eager ? CU_MODULE_EAGER_LOADING : CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction* hfunc, CUmodule hmod, const char* name) {
    Context* context = nullptr;
    Module* module = nullptr;
    if (const CUresult result = getModule(hmod, context, module)) return result;
    if (hfunc == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *hfunc = nullptr;
    Code* const code = module->contents->named(name);
    if (code == nullptr) return CUDA_ERROR_NOT_FOUND;
    Function* function = nullptr;
    if (const CUresult result = functionIn(*module, *code, function)) return result;
    *hfunc = static_cast<CUfunction>(handles::of(*function));
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunctionCount(unsigned int* count, CUmodule mod) {
    Context* context = nullptr;
    Module* module = nullptr;
    if (const CUresult result = getModule(mod, context, module)) return result;
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *count = static_cast<unsigned>(module->contents->codes.size());
    return CUDA_SUCCESS;
}

CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned int numFunctions,
                                    CUmodule mod) {
    Context* context = nullptr;
    Module* module = nullptr;
    if (const CUresult result = getModule(mod, context, module)) return result;
    if (functions == nullptr || numFunctions == 0) return CUDA_ERROR_INVALID_VALUE;
    const auto& codes = module->contents->codes;
    for (size_t i = 0; i < std::min<size_t>(numFunctions, codes.size()); ++i) {
        Function* function = nullptr;
        if (const CUresult result = functionIn(*module, *codes[i], function)) return result;
        functions[i] = static_cast<CUfunction>(handles::of(*function));
    }
    return CUDA_SUCCESS;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* dptr, size_t* bytes, CUmodule hmod, const char* name) {
    Context* context = nullptr;
    Module* module = nullptr;
    if (const CUresult result = getModule(hmod, context, module)) return result;
    return globalOf(Op::cuModuleGetGlobal_v2, *module, name, *module->context, module->mutex,
                    module->globals, dptr, bytes);
}
