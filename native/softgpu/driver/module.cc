#include "native/softgpu/driver/module.h"

#include <utility>

#include "native/softgpu/driver/context.h"
#include "native/softgpu/driver/device.h"
#include "native/softgpu/driver/image.h"
#include "native/softgpu/driver/memory.h"
#include "native/softgpu/driver/registry.h"

namespace juice::softgpu {

const Kernel* LoadedCode::kernel(const std::string& name) const {
    for (const auto& kernel : program->kernels()) {
        if (kernel->name == name) return kernel.get();
    }
    return nullptr;
}

const GlobalInfo* LoadedCode::global(const std::string& name) const {
    for (const GlobalInfo& global : program->globals()) {
        if (global.name == name) return &global;
    }
    return nullptr;
}

Context& Function::context() const {
    return module.context();
}

Module::Module(Context& context, LoadedCode code, Library* library)
    : context_(context), library_(library), code_(std::move(code)) {}

std::shared_ptr<Module> Module::create(Context& context, LoadedCode code, Library* library) {
    std::shared_ptr<Module> module(new Module(context, std::move(code), library));
    for (const GlobalInfo& global : module->code_.program->globals()) {
        if (global.size == 0 || global.managed) continue;
        AddressSpace::instance().enter(context, global.address, global.size, MemoryKind::global, 0);
    }
    module->code_.managed->enter(context);
    for (const auto& kernel : module->code_.program->kernels()) {
        LibraryKernel* const origin = library == nullptr ? nullptr : library->kernel(kernel->name);
        auto settings = origin == nullptr ? std::make_shared<FunctionSettings>()
                                          : origin->settings(context.device().ordinal());
        auto function = std::make_shared<Function>(
            Function{*module, module->code_, *kernel, std::move(settings)});
        Registry<Function>::instance().add(function);
        module->byName_[kernel->name] = function.get();
        module->functions_.push_back(std::move(function));
    }
    Registry<Module>::instance().add(module);
    return module;
}

Module::~Module() {
    for (const GlobalInfo& global : code_.program->globals()) {
        if (global.managed) continue;
        AddressSpace::instance().release(global.address, {MemoryKind::global});
    }
}

Function* Module::function(const std::string& name) const {
    const auto found = byName_.find(name);
    return found == byName_.end() ? nullptr : found->second;
}

void retire(const Module& module) {
    for (const auto& function : module.functions()) {
        Registry<Function>::instance().take(function.get());
    }
    Registry<Module>::instance().take(&module);
}

std::shared_ptr<FunctionSettings> LibraryKernel::settings(int device) {
    const std::lock_guard lock(mutex_);
    auto& found = settings_[device];
    if (!found) found = std::make_shared<FunctionSettings>();
    return found;
}

Library::Library(std::string ptx, LoadedCode code) : ptx_(std::move(ptx)), code_(std::move(code)) {}

std::shared_ptr<Library> Library::create(std::string ptx, LoadedCode code) {
    std::shared_ptr<Library> library(new Library(std::move(ptx), std::move(code)));
    for (const auto& kernel : library->code_.program->kernels()) {
        auto made = std::make_shared<LibraryKernel>(*library, *kernel);
        Registry<LibraryKernel>::instance().add(made);
        library->byName_[kernel->name] = made.get();
        library->kernels_.push_back(std::move(made));
    }
    Registry<Library>::instance().add(library);
    return library;
}

Library::~Library() {
    forget(nullptr);
}

LibraryKernel* Library::kernel(const std::string& name) const {
    const auto found = byName_.find(name);
    return found == byName_.end() ? nullptr : found->second;
}

CUresult Library::moduleIn(Context& context, std::shared_ptr<Module>& module) {
    const std::lock_guard lock(mutex_);
    if (const auto found = modules_.find(&context); found != modules_.end()) {
        module = found->second;
        return CUDA_SUCCESS;
    }
    LoadedCode code = code_;
    if (codeUsed_) {
        if (const CUresult failed = compile(ptx_, nullptr, code)) return failed;
    }
    codeUsed_ = true;
    module = Module::create(context, std::move(code), this);
    modules_[&context] = module;
    return CUDA_SUCCESS;
}

void Library::synchronize() {
    std::vector<std::shared_ptr<Module>> all;
    {
        const std::lock_guard lock(mutex_);
        for (const auto& entry : modules_) all.push_back(entry.second);
    }
    for (const auto& module : all) module->context().synchronize();
}

void Library::forget(const Context* context) {
    std::map<const Context*, std::shared_ptr<Module>> gone;
    {
        const std::lock_guard lock(mutex_);
        if (context == nullptr) {
            gone.swap(modules_);
        } else if (auto node = modules_.extract(context)) {
            gone.insert(std::move(node));
        }
    }
    for (const auto& entry : gone) retire(*entry.second);
}

void forgetModules(const Context& context) {
    std::vector<std::shared_ptr<Library>> all;
    Registry<Library>::instance().forEach(
        [&](const std::shared_ptr<Library>& library) { all.push_back(library); });
    for (const auto& library : all) library->forget(&context);
}

std::shared_ptr<Function> functionIn(Context& context, CUfunction handle) {
    if (auto function = find<Function>(handle)) {
        return &function->context() == &context ? function : nullptr;
    }
    const auto kernel = find<LibraryKernel>(handle);
    if (!kernel) return nullptr;
    std::shared_ptr<Module> module;
    if (kernel->library().moduleIn(context, module) != CUDA_SUCCESS) return nullptr;
    return find<Function>(module->function(kernel->kernel().name));
}

}  // namespace juice::softgpu
