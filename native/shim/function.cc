// Functions and kernels: names, parameters, attributes.
#include "native/gen/cuda_api.h"
#include "native/shim/attributes.h"
#include "native/shim/context.h"
#include "native/shim/image_load.h"
#include "native/shim/send.h"

namespace juice::shim {
namespace {

/// Under the attributes' lock: what the worker answered.
CUresult store(Attributes& attributes, const Reply& reply) {
    const CUresult result = settle(reply, Op::juiceFunctionInfo, Deferred::keep);
    if (result != CUDA_SUCCESS) {
        attributes.state = Attributes::State::unasked;
        return result;
    }
    Reader in = reply.reader();
    const auto count = in.get<uint32_t>();
    for (uint32_t i = 0; i < Attributes::kCount; ++i)
        attributes.values[i] = i < count ? in.get<int32_t>() : Attributes::kRefused;
    if (!in.ok()) {
        attributes.state = Attributes::State::unasked;
        return CUDA_ERROR_UNKNOWN;
    }
    attributes.state.store(Attributes::State::known, std::memory_order_release);
    return CUDA_SUCCESS;
}

CUresult getAttribute(int* out, CUfunction_attribute attribute, const Callable& of,
                      const Context& context) {
    if (out == nullptr || attribute < 0 || attribute >= CU_FUNC_ATTRIBUTE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    Attributes* attributes = nullptr;
    if (const CUresult result = knowAttributes(*of.code, *of.object, context, attributes))
        return result;
    const int value = attributes->values[static_cast<size_t>(attribute)];
    if (value == Attributes::kRefused) return CUDA_ERROR_INVALID_VALUE;
    *out = value;
    return CUDA_SUCCESS;
}

/// Is this a value that the driver takes? Only some attributes may be set at all.
CUresult checkAttribute(CUfunction_attribute attribute, int value, const Callable& of,
                        const Context& context) {
    Attributes* attributes = nullptr;
    switch (attribute) {
        case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: {
            if (const CUresult result = knowAttributes(*of.code, *of.object, context, attributes))
                return result;
            const auto& device = session::device(context.device)->attributes;
            const auto most = device.find(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
            const int fixed = attributes->values[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES];
            const bool fits = most == device.end() || value <= most->second - fixed;
            return value >= 0 && fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
        }
        case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
            return value >= -1 && value <= 100 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
            return value >= 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

/// After a change was posted: what the program will read, and what launches are checked against.
void changed(const Callable& of, const Context& context, CUfunction_attribute attribute,
             int value) {
    Attributes* attributes = nullptr;
    if (knowAttributes(*of.code, *of.object, context, attributes) == CUDA_SUCCESS)
        attributes->values[static_cast<size_t>(attribute)] = value;
    forgetCached();
}

CUresult parameter(const Code& code, size_t index, size_t* offset, size_t* size) {
    if (offset == nullptr || index >= code.parameters.size()) return CUDA_ERROR_INVALID_VALUE;
    *offset = code.parameters[index].offset;
    if (size != nullptr) *size = code.parameters[index].size;
    return CUDA_SUCCESS;
}

/// A kernel and the context that speaks for a device: the current one when it is of that device.
CUresult kernelOn(CUkernel handle, CUdevice device, Callable& callable, Context*& context) {
    if (const CUresult result = enterContextless()) return result;
    Kernel* const kernel = find<Kernel>(handle);
    if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (session::device(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    callable = {kernel, kernel->code};
    context = thread().current();
    if (context == nullptr || context->device != device || !context->alive)
        context = primaryContext(device);
    if (context == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    return context->alive ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

}  // namespace

Attributes& attributesOn(Code& code, int device) {
    auto& slot = code.attributes[static_cast<size_t>(device)];
    Attributes* known = slot.load(std::memory_order_acquire);
    if (known != nullptr) return *known;
    auto* const made = new Attributes;
    if (slot.compare_exchange_strong(known, made)) return *made;
    delete made;
    return *known;
}

void askAttributes(Code& code, const Object& object, const Context& context) {
    Attributes& attributes = attributesOn(code, context.device);
    const std::lock_guard lock(attributes.mutex);
    ClientLink* const link = session::link();
    if (attributes.state != Attributes::State::unasked || link->broken()) return;
    attributes.request =
        link->ask(static_cast<uint16_t>(Op::juiceFunctionInfo), thread().number,
                  static_cast<uint32_t>(context.id), bytesOfCall(custom::FunctionInfo{object.id}));
    attributes.state = Attributes::State::asked;
}

CUresult knowAttributes(Code& code, const Object& object, const Context& context,
                        Attributes*& attributes) {
    attributes = &attributesOn(code, context.device);
    if (attributes->state.load(std::memory_order_acquire) == Attributes::State::known)
        return CUDA_SUCCESS;
    askAttributes(code, object, context);
    const std::lock_guard lock(attributes->mutex);
    if (attributes->state == Attributes::State::known) return CUDA_SUCCESS;
    if (attributes->state == Attributes::State::unasked) return session::lost();
    return store(*attributes, session::link()->take(attributes->request));
}

}  // namespace juice::shim

using namespace juice::shim;  // NOLINT: every definition below is an entry point
namespace session = juice::shim::session;
using juice::Op;

CUresult cuFuncGetAttribute(int* pi, CUfunction_attribute attrib, CUfunction hfunc) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    // The runtime sometimes passes the address of a host stub: no handle of ours.
    const Callable of = findCallable(hfunc);
    if (of.code == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    return getAttribute(pi, attrib, of, *context);
}

CUresult cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    const Callable of = findCallable(hfunc);
    if (of.code == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (const CUresult result = checkAttribute(attrib, value, of, *context)) return result;
    Outgoing call(Op::cuFuncSetAttribute);
    call.callable(hfunc).put(attrib).put(value);
    const CUresult result = call.post();
    if (result == CUDA_SUCCESS) changed(of, *context, attrib, value);
    return result;
}

CUresult cuKernelGetAttribute(int* pi, CUfunction_attribute attrib, CUkernel kernel, CUdevice dev) {
    Callable of;
    Context* context = nullptr;
    if (const CUresult result = kernelOn(kernel, dev, of, context)) return result;
    return getAttribute(pi, attrib, of, *context);
}

CUresult cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel kernel, CUdevice dev) {
    Callable of;
    Context* context = nullptr;
    if (const CUresult result = kernelOn(kernel, dev, of, context)) return result;
    if (const CUresult result = checkAttribute(attrib, val, of, *context)) return result;
    juice::Writer payload;
    payload.put(attrib).put(val).put(of.object->id).put(int32_t{session::workerOrdinal(dev)});
    const CUresult result = post(Op::cuKernelSetAttribute, context, payload.view());
    if (result == CUDA_SUCCESS) changed(of, *context, attrib, val);
    return result;
}

CUresult cuFuncGetModule(CUmodule* hmod, CUfunction hfunc) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    Function* const function = find<Function>(hfunc);
    if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (hmod == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Module* module = function->module;
    if (module == nullptr) {
        const CUresult result = moduleOfLibrary(*function->library, *function->context, module);
        if (result != CUDA_SUCCESS) return result;
        function->module = module;
    }
    *hmod = static_cast<CUmodule>(handles::of(*module));
    return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char** name, CUfunction hfunc) {
    if (const CUresult result = session::initialised()) return result;
    const Function* const function = find<Function>(hfunc);
    if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *name = function->code->name.c_str();
    return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction func, size_t paramIndex, size_t* paramOffset,
                            size_t* paramSize) {
    if (const CUresult result = session::initialised()) return result;
    const Callable of = findCallable(func);
    if (of.code == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    return parameter(*of.code, paramIndex, paramOffset, paramSize);
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction function) {
    if (const CUresult result = session::initialised()) return result;
    if (findCallable(function).code == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (state == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *state = CU_FUNCTION_LOADING_STATE_LOADED;
    return CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char** name, CUkernel hfunc) {
    if (const CUresult result = session::initialised()) return result;
    const Kernel* const kernel = find<Kernel>(hfunc);
    if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *name = kernel->code->name.c_str();
    return CUDA_SUCCESS;
}

CUresult cuKernelGetParamInfo(CUkernel kernel, size_t paramIndex, size_t* paramOffset,
                              size_t* paramSize) {
    if (const CUresult result = session::initialised()) return result;
    const Kernel* const found = find<Kernel>(kernel);
    if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    return parameter(*found->code, paramIndex, paramOffset, paramSize);
}

CUresult cuKernelGetLibrary(CUlibrary* pLib, CUkernel kernel) {
    if (const CUresult result = session::initialised()) return result;
    const Kernel* const found = find<Kernel>(kernel);
    if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (pLib == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *pLib = static_cast<CUlibrary>(handles::of(*found->library));
    return CUDA_SUCCESS;
}
