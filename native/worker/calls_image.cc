// Module images: parts that come in, modules and libraries made of them, what is found in those.
#include <climits>

#include "native/gen/custom_handlers.h"
#include "native/image/image.h"
#include "native/worker/jit_options.h"
#include "native/worker/kernels.h"
#include "native/worker/transfer.h"
#include "native/worker/worker.h"

namespace juice::worker {
namespace {

struct Load {
    custom::ImageLoad call{};
    std::vector<std::shared_ptr<const Part>> parts;
    std::vector<uint32_t> missing;
    JitOptions jit;
    bool supported = true;
};

void decode(Incoming& in, Load& out) {
    out.call = custom::get<custom::ImageLoad>(in.reader());
    const bool wrapper = out.call.kind == static_cast<uint32_t>(image::Kind::wrapper);
    const bool sane = out.call.parts >= 1 && out.call.parts <= custom::kMaxParts &&
                      (wrapper || out.call.parts == 1) &&
                      out.call.jitOptions <= custom::kMaxLoadOptions &&
                      out.call.libraryOptions <= custom::kMaxLoadOptions;
    if (!sane || in.reader().remaining() < out.call.parts * sizeof(custom::PartName))
        return in.reader().fail();
    out.parts.resize(out.call.parts);
    for (uint32_t i = 0; i < out.call.parts; ++i) {
        out.parts[i] = in.worker().images.find(custom::get<custom::PartName>(in.reader()));
        if (out.parts[i] == nullptr) out.missing.push_back(i);
    }
    for (uint32_t i = 0; i < out.call.jitOptions; ++i)
        out.supported = out.jit.add(custom::get<custom::LoadOption>(in.reader())) && out.supported;
    // The parts do not outlive the load, so "the binary is preserved" is not passed on.
    for (uint32_t i = 0; i < out.call.libraryOptions; ++i)
        if (custom::get<custom::LoadOption>(in.reader()).option != CU_LIBRARY_BINARY_IS_PRESERVED)
            out.supported = false;
}

/// A driver reads as far as an image's own headers say: they must stay within what arrived.
bool measures(const Load& load) {
    for (const auto& part : load.parts) {
        const auto measured = image::measure(part->bytes());
        if (!measured) return false;
        const bool wrapped = load.call.kind == static_cast<uint32_t>(image::Kind::wrapper);
        if (wrapped ? measured->kind != image::Kind::container
                    : static_cast<uint32_t>(measured->kind) != load.call.kind)
            return false;
    }
    return !load.parts.empty();
}

/// `make(image, kernels)` loads and enumerates; it stores the object itself.
template <typename Make>
CUresult load(Incoming& in, ObjectKind kind, Make make) {
    Load load;
    decode(in, load);
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    if (!in.worker().objects.available(load.call.id)) {
        in.worker().violate("an object's id is taken or out of range");
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!load.missing.empty()) {
        in.out().put(custom::LoadStatus::missing);
        in.out().put(static_cast<uint32_t>(load.missing.size()));
        for (const uint32_t index : load.missing) in.out().put(index);
        return CUDA_SUCCESS;
    }
    in.out().put(custom::LoadStatus::done);
    CUresult result = CUDA_ERROR_INVALID_IMAGE;
    auto kernels = std::make_shared<KernelEntries>();
    void* handle = nullptr;
    if (!load.supported) {
        result = CUDA_ERROR_NOT_SUPPORTED;
    } else if (measures(load)) {
        const Blocking blocking(in.worker());
        std::vector<Bytes> containers;
        for (const auto& part : load.parts) containers.push_back(part->bytes());
        if (load.call.kind == static_cast<uint32_t>(image::Kind::wrapper)) {
            const image::Wrapper wrapper(load.call.wrapperVersion, std::move(containers));
            result = make(wrapper.get(), load.jit, handle, *kernels);
        } else {
            result = make(containers[0].data(), load.jit, handle, *kernels);
        }
    }
    load.jit.putLogs(in.out());
    if (result != CUDA_SUCCESS) return result;
    in.made(kind, load.call.id, handle);
    in.worker().objects.find(load.call.id)->kernels = kernels;
    putKernelPage(in.out(), *kernels, 0);
    return CUDA_SUCCESS;
}

/// Looks a child up and keeps it under its minted id.
template <typename Find>
CUresult child(Incoming& in, ObjectKind parentKind, ObjectKind childKind, bool named, Find find) {
    const auto call = custom::get<custom::Child>(in.reader());
    const std::string name(named ? in.reader().text() : std::string_view());
    void* const parent = in.object(parentKind, call.parent);
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    if (!in.worker().objects.available(call.id)) {
        in.worker().violate("an object's id is taken or out of range");
        return CUDA_ERROR_INVALID_VALUE;
    }
    void* handle = nullptr;
    const CUresult result = find(parent, name.c_str(), handle);
    if (result != CUDA_SUCCESS) return result;
    in.made(childKind, call.id, handle);
    in.worker().objects.find(call.id)->parent = call.parent;
    return CUDA_SUCCESS;
}

/// `get(parent, name, &address, &size)`. `surelyManaged`: what is found surely is; else the driver
/// is asked, which takes a context.
template <typename Get>
CUresult global(Incoming& in, ObjectKind parentKind, Get get, bool surelyManaged = false) {
    const auto call = custom::get<custom::GlobalOf>(in.reader());
    const std::string name(in.reader().text());
    void* const parent = in.object(parentKind, call.parent);
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    CUdeviceptr address = 0;
    size_t size = 0;
    const CUresult result = get(parent, name.c_str(), &address, &size);
    if (result != CUDA_SUCCESS) return result;
    unsigned managed = surelyManaged;
    const auto ask = in.driver().cuPointerGetAttribute;
    if (!surelyManaged &&
        (ask == nullptr || ask(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address) != CUDA_SUCCESS))
        managed = 0;
    if (managed != 0 &&
        in.worker().mirrors.adopt(address, size, call.parent, in.header().context) == nullptr)
        return CUDA_ERROR_OUT_OF_MEMORY;
    in.out().put(uint64_t{address}).put(uint64_t{size}).put(uint32_t{managed != 0});
    return CUDA_SUCCESS;
}

template <typename Drop>
CUresult unload(Incoming& in, ObjectKind kind, Drop drop) {
    const auto call = custom::get<custom::Unload>(in.reader());
    void* const handle = in.object(kind, call.id);
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    in.worker().objects.remove(call.id);
    in.worker().forgetVariables();
    const Blocking blocking(in.worker());
    return drop(handle);
}

}  // namespace

CUresult custom_juiceImagePart(Incoming& in) {
    const auto call = custom::get<custom::ImagePart>(in.reader());
    const bool sane = call.name.size != 0 && call.name.size <= image::kMaxImageBytes &&
                      (call.transfer != 0 || call.name.size <= wire::kInlineLimit);
    if (!sane) in.reader().fail();
    const Bytes inlined = call.transfer == 0 ? in.reader().take(call.name.size) : Bytes{};
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;

    Worker& worker = in.worker();
    auto upload = worker.images.begin(call.name);
    if (call.transfer == 0) {
        if (upload != nullptr) std::memcpy(upload->data(), inlined.data(), inlined.size());
    } else {
        const Blocking blocking(worker);
        receiveInto(worker, call.transfer, call.name.size,
                    upload == nullptr ? nullptr : upload->data());
    }
    // Without room for it the load will say that it is missing still.
    if (upload != nullptr && !worker.images.keep(std::move(upload)))
        worker.violate("an image's bytes do not have the hash they were sent under");
    return CUDA_SUCCESS;
}

CUresult custom_cuModuleLoadDataEx(Incoming& in) {
    const DriverTable& driver = in.driver();
    return load(in, ObjectKind::module,
                [&](const void* image, JitOptions& jit, void*& handle, KernelEntries& kernels) {
                    CUmodule module = nullptr;
                    CUresult result = driver.cuModuleLoadDataEx(&module, image, jit.count(),
                                                                jit.names(), jit.values());
                    if (result != CUDA_SUCCESS) return result;
                    handle = module;
                    result = kernelsOf(driver, module, kernels);
                    if (result != CUDA_SUCCESS) driver.cuModuleUnload(module);
                    return result;
                });
}

CUresult custom_cuLibraryLoadData(Incoming& in) {
    const DriverTable& driver = in.driver();
    if (driver.cuLibraryLoadData == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    return load(in, ObjectKind::library,
                [&](const void* image, JitOptions& jit, void*& handle, KernelEntries& kernels) {
                    CUlibrary library = nullptr;
                    CUresult result =
                        driver.cuLibraryLoadData(&library, image, jit.names(), jit.values(),
                                                 jit.count(), nullptr, nullptr, 0);
                    if (result != CUDA_SUCCESS) return result;
                    handle = library;
                    result = kernelsOf(driver, library, kernels);
                    if (result != CUDA_SUCCESS) driver.cuLibraryUnload(library);
                    return result;
                });
}

CUresult custom_juiceKernelList(Incoming& in) {
    const auto call = custom::get<custom::KernelList>(in.reader());
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    Object* object = in.worker().objects.find(call.id);
    if (object == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (object->kernels == nullptr) {
        if (object->kind != ObjectKind::module) return CUDA_ERROR_INVALID_HANDLE;
        auto kernels = std::make_shared<KernelEntries>();
        const CUresult result =
            kernelsOf(in.driver(), static_cast<CUmodule>(object->handle), *kernels);
        if (result != CUDA_SUCCESS) return result;
        object->kernels = std::move(kernels);
    }
    putKernelPage(in.out(), *object->kernels, call.from);
    return CUDA_SUCCESS;
}

CUresult custom_cuModuleGetFunction(Incoming& in) {
    return child(in, ObjectKind::module, ObjectKind::function, true,
                 [&](void* parent, const char* name, void*& out) {
                     return in.driver().cuModuleGetFunction(reinterpret_cast<CUfunction*>(&out),
                                                            static_cast<CUmodule>(parent), name);
                 });
}

CUresult custom_cuLibraryGetKernel(Incoming& in) {
    return child(in, ObjectKind::library, ObjectKind::kernel, true,
                 [&](void* parent, const char* name, void*& out) {
                     return in.driver().cuLibraryGetKernel(reinterpret_cast<CUkernel*>(&out),
                                                           static_cast<CUlibrary>(parent), name);
                 });
}

CUresult custom_cuLibraryGetModule(Incoming& in) {
    return child(in, ObjectKind::library, ObjectKind::module, false,
                 [&](void* parent, const char*, void*& out) {
                     return in.driver().cuLibraryGetModule(reinterpret_cast<CUmodule*>(&out),
                                                           static_cast<CUlibrary>(parent));
                 });
}

CUresult custom_cuKernelGetFunction(Incoming& in) {
    return child(in, ObjectKind::kernel, ObjectKind::function, false,
                 [&](void* parent, const char*, void*& out) {
                     return in.driver().cuKernelGetFunction(reinterpret_cast<CUfunction*>(&out),
                                                            static_cast<CUkernel>(parent));
                 });
}

CUresult custom_cuModuleUnload(Incoming& in) {
    return unload(in, ObjectKind::module, [&](void* handle) {
        return in.driver().cuModuleUnload(static_cast<CUmodule>(handle));
    });
}

CUresult custom_cuLibraryUnload(Incoming& in) {
    return unload(in, ObjectKind::library, [&](void* handle) {
        return in.driver().cuLibraryUnload(static_cast<CUlibrary>(handle));
    });
}

CUresult custom_cuModuleGetGlobal_v2(Incoming& in) {
    return global(in, ObjectKind::module,
                  [&](void* parent, const char* name, CUdeviceptr* address, size_t* size) {
                      return in.driver().cuModuleGetGlobal_v2(address, size,
                                                              static_cast<CUmodule>(parent), name);
                  });
}

CUresult custom_cuLibraryGetGlobal(Incoming& in) {
    return global(in, ObjectKind::library,
                  [&](void* parent, const char* name, CUdeviceptr* address, size_t* size) {
                      return in.driver().cuLibraryGetGlobal(address, size,
                                                            static_cast<CUlibrary>(parent), name);
                  });
}

CUresult custom_cuLibraryGetManaged(Incoming& in) {
    if (in.driver().cuLibraryGetManaged == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    return global(
        in, ObjectKind::library,
        [&](void* parent, const char* name, CUdeviceptr* address, size_t* size) {
            return in.driver().cuLibraryGetManaged(address, size, static_cast<CUlibrary>(parent),
                                                   name);
        },
        true);
}

CUresult custom_juiceFunctionInfo(Incoming& in) {
    const auto call = custom::get<custom::FunctionInfo>(in.reader());
    const CUfunction function = in.callable(call.id);
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    Worker& worker = in.worker();
    if (worker.context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    const bool kernel = worker.objects.find(call.id)->kind == ObjectKind::kernel;
    in.out().put(static_cast<uint32_t>(CU_FUNC_ATTRIBUTE_MAX));
    for (int i = 0; i < CU_FUNC_ATTRIBUTE_MAX; ++i) {
        const auto attribute = static_cast<CUfunction_attribute>(i);
        int value = 0;
        const CUresult result =
            kernel ? in.driver().cuKernelGetAttribute(&value, attribute,
                                                      reinterpret_cast<CUkernel>(function),
                                                      worker.context()->device)
                   : in.driver().cuFuncGetAttribute(&value, attribute, function);
        in.out().put(result == CUDA_SUCCESS ? int32_t{value} : INT_MIN);
    }
    return CUDA_SUCCESS;
}

}  // namespace juice::worker
