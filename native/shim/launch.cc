// Kernel launches: checked here as far as a driver checks them at once, then posted. The hot path
// allocates nothing: the handle's slot points at the code's layout, the payload is built on the
// stack.
#include <array>
#include <cstring>

#include "native/gen/cuda_api.h"
#include "native/gen/symbols.h"
#include "native/shim/attributes.h"
#include "native/shim/capture.h"
#include "native/shim/coherence.h"
#include "native/shim/event.h"
#include "native/shim/send.h"

namespace juice::shim {
namespace {

/// What bounds every launch on a device.
struct Bounds {
    uint32_t grid[3], block[3];
};

const Bounds& boundsOf(int device) {
    static const auto& all = *new auto([] {
        std::array<Bounds, kMaxDevices> made{};
        for (int i = 0; i < session::deviceCount() && i < kMaxDevices; ++i) {
            const auto& attributes = session::device(i)->attributes;
            const auto get = [&](int which) {
                const auto found = attributes.find(which);
                return found == attributes.end() ? UINT32_MAX
                                                 : static_cast<uint32_t>(found->second);
            };
            for (int axis = 0; axis < 3; ++axis) {
                made[static_cast<size_t>(i)].block[axis] =
                    get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + axis);
                made[static_cast<size_t>(i)].grid[axis] =
                    get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + axis);
            }
        }
        return made;
    }());
    return all[static_cast<size_t>(device)];
}

/// The arguments of all launch calls.
struct Request {
    Op op = Op::cuLaunchKernel;
    const void* function = nullptr;
    uint32_t grid[3], block[3];
    uint32_t sharedBytes = 0;
    CUstream stream = nullptr;
    bool perThread = false;
    bool cooperative = false;
    void** parameters = nullptr;
    void** extra = nullptr;
    const CUlaunchAttribute* attributes = nullptr;
    uint32_t attributeCount = 0;
};

CUresult checkShape(const Request& launch, const Context& context, const Callable& of) {
    const Bounds& bounds = boundsOf(context.device);
    for (int axis = 0; axis < 3; ++axis)
        if (launch.grid[axis] == 0 || launch.grid[axis] > bounds.grid[axis] ||
            launch.block[axis] == 0 || launch.block[axis] > bounds.block[axis])
            return CUDA_ERROR_INVALID_VALUE;
    Attributes* attributes = nullptr;
    if (const CUresult result = knowAttributes(*of.code, *of.object, context, attributes))
        return result;
    const uint64_t threads = uint64_t{launch.block[0]} * launch.block[1] * launch.block[2];
    const auto value = [&](int which) {
        return static_cast<uint64_t>(attributes->values[static_cast<size_t>(which)].load());
    };
    if (threads > value(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK) ||
        launch.sharedBytes > value(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

/// All blocks of a cooperative launch must be resident at once.
CUresult checkCooperative(const Request& launch, const Context& context, const Callable& of) {
    int blocks = 0;
    const int threads = static_cast<int>(launch.block[0] * launch.block[1] * launch.block[2]);
    const CUresult result = cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        &blocks, static_cast<CUfunction>(handles::of(*of.object)), threads, launch.sharedBytes, 0);
    if (result != CUDA_SUCCESS) return result;
    const auto& device = session::device(context.device)->attributes;
    const auto processors = device.find(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    const uint64_t room =
        static_cast<uint64_t>(blocks) *
        static_cast<uint64_t>(processors == device.end() ? 1 : processors->second);
    const uint64_t wanted = uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
    return wanted > room ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE : CUDA_SUCCESS;
}

/// A cluster must divide the grid, and have at most eight blocks unless the function allows more.
CUresult checkCluster(const Request& launch, const Context& context, const Callable& of,
                      const CUlaunchAttributeValue& value) {
    const uint32_t cluster[3] = {value.clusterDim.x, value.clusterDim.y, value.clusterDim.z};
    uint64_t blocks = 1;
    for (int axis = 0; axis < 3; ++axis) {
        if (cluster[axis] == 0) return CUDA_ERROR_INVALID_VALUE;
        if (launch.grid[axis] % cluster[axis] != 0) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
        blocks *= cluster[axis];
    }
    Attributes& attributes = attributesOn(*of.code, context.device);
    const bool more = attributes.values[CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED] > 0;
    return blocks > (more ? 16u : 8u) ? CUDA_ERROR_INVALID_CLUSTER_SIZE : CUDA_SUCCESS;
}

/// Checks one attribute of cuLaunchKernelEx and makes it fit to travel. `send` is false for one
/// that means nothing.
CUresult readAttribute(const CUlaunchAttribute& attribute, Request& launch, const Context& context,
                       const Callable& of, Stream* stream, custom::LaunchAttribute& out,
                       bool& send) {
    out = {static_cast<uint32_t>(attribute.id), 0, {}};
    std::memcpy(out.value, &attribute.value, sizeof out.value);
    send = true;
    switch (attribute.id) {
        case CU_LAUNCH_ATTRIBUTE_IGNORE:
            send = false;
            return CUDA_SUCCESS;
        case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
            return checkCluster(launch, context, of, attribute.value);
        case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
            launch.cooperative = launch.cooperative || attribute.value.cooperative != 0;
            return CUDA_SUCCESS;
        case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
        case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT: {
            Event* const event = find<Event>(attribute.value.programmaticEvent.event);
            if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
            noteRecord(*event, stream);
            std::memcpy(out.value, &event->id, sizeof event->id);
            return CUDA_SUCCESS;
        }
        case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
            return juice_unsupported("cuLaunchKernelEx with a node that the device updates");
        default:
            return attribute.id <= CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING
                       ? CUDA_SUCCESS
                       : CUDA_ERROR_INVALID_VALUE;
    }
}

/// Where the parameter buffer of the `extra` form is.
CUresult readExtra(void** extra, const Code& code, const void*& data, uint32_t& size) {
    const size_t* bytes = nullptr;
    for (void** at = extra; *at != CU_LAUNCH_PARAM_END; at += 2) {
        if (*at == CU_LAUNCH_PARAM_BUFFER_POINTER)
            data = at[1];
        else if (*at == CU_LAUNCH_PARAM_BUFFER_SIZE)
            bytes = static_cast<const size_t*>(at[1]);
        else
            return CUDA_ERROR_INVALID_VALUE;
    }
    if (bytes == nullptr || (data == nullptr && *bytes != 0)) return CUDA_ERROR_INVALID_VALUE;
    if (*bytes > code.parameterBytes) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    size = static_cast<uint32_t>(*bytes);
    return CUDA_SUCCESS;
}

/// Writes the parameter buffer; `room` is as long as the code's.
CUresult writeParameters(const Request& launch, const Code& code, uint8_t* room, uint32_t& size) {
    if (launch.parameters != nullptr && launch.extra != nullptr) return CUDA_ERROR_INVALID_VALUE;
    size = code.parameterBytes;
    if (launch.extra != nullptr) {
        const void* data = nullptr;
        if (const CUresult result = readExtra(launch.extra, code, data, size)) return result;
        if (size != 0) std::memcpy(room, data, size);
        return CUDA_SUCCESS;
    }
    if (code.parameters.empty()) return CUDA_SUCCESS;
    if (launch.parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < code.parameters.size(); ++i) {
        if (launch.parameters[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
        std::memcpy(room + code.parameters[i].offset, launch.parameters[i],
                    code.parameters[i].size);
    }
    return CUDA_SUCCESS;
}

CUresult launch(Request request) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    const Callable of = findCallable(request.function);
    if (of.code == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    custom::Launch call{};
    Stream* stream = nullptr;
    if (const CUresult result = wireStream(request.stream, request.perThread, call.stream, &stream))
        return result;
    if (const CUresult result = checkShape(request, *context, of)) return result;

    // The struct, the parameters (gaps between them zero), then the attributes.
    constexpr size_t kOnStack = 4096 + sizeof(custom::Launch);
    const size_t most = sizeof call + of.code->parameterBytes +
                        request.attributeCount * sizeof(custom::LaunchAttribute);
    alignas(8) uint8_t small[kOnStack];
    std::vector<uint8_t> large;
    if (most > kOnStack) large.resize(most);
    uint8_t* const payload = most > kOnStack ? large.data() : small;
    if (of.code->parameterBytes != 0)
        std::memset(payload + sizeof call, 0, of.code->parameterBytes);
    if (const CUresult result =
            writeParameters(request, *of.code, payload + sizeof call, call.paramBytes))
        return result;
    size_t size = sizeof call + call.paramBytes;
    for (uint32_t i = 0; i < request.attributeCount; ++i) {
        custom::LaunchAttribute attribute{};
        bool send = false;
        if (const CUresult result = readAttribute(request.attributes[i], request, *context, of,
                                                  stream, attribute, send))
            return result;
        if (!send) continue;
        std::memcpy(payload + size, &attribute, sizeof attribute);
        size += sizeof attribute;
        ++call.attributes;
    }
    if (request.cooperative)
        if (const CUresult result = checkCooperative(request, *context, of)) return result;

    call.function = of.object->id;
    std::memcpy(call.grid, request.grid, sizeof call.grid);
    std::memcpy(call.block, request.block, sizeof call.block);
    call.sharedBytes = request.sharedBytes;
    std::memcpy(payload, &call, sizeof call);
    const uint8_t* const parameters = payload + sizeof call;
    if (const CUresult result = coherence::see(context, parameters, call.paramBytes)) return result;
    if (capture::of(call.stream, stream) != 0)  // nothing runs yet
        return post(request.op, context, {payload, size}, call.stream);
    if (const CUresult result = coherence::beforeWork(context)) return result;
    if (const CUresult result = post(request.op, context, {payload, size}, call.stream))
        return result;
    return coherence::afterWork(context, call.stream);
}

CUresult launchEx(const CUlaunchConfig* config, CUfunction f, void** parameters, void** extra,
                  bool perThread) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    if (config == nullptr || config->numAttrs > custom::kMaxLaunchAttributes ||
        (config->numAttrs != 0 && config->attrs == nullptr))
        return CUDA_ERROR_INVALID_VALUE;
    return launch({.op = Op::cuLaunchKernelEx,
                   .function = f,
                   .grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
                   .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
                   .sharedBytes = config->sharedMemBytes,
                   .stream = config->hStream,
                   .perThread = perThread,
                   .parameters = parameters,
                   .extra = extra,
                   .attributes = config->attrs,
                   .attributeCount = config->numAttrs});
}

}  // namespace
}  // namespace juice::shim

using namespace juice::shim;  // NOLINT: every definition below is an entry point
using juice::Op;

#define JUICE_LAUNCH(name, isPerThread)                                                  \
    CUresult name(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,            \
                  unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY, \
                  unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream, \
                  void** kernelParams, void** extra) {                                   \
        return launch({.op = Op::cuLaunchKernel,                                         \
                       .function = f,                                                    \
                       .grid = {gridDimX, gridDimY, gridDimZ},                           \
                       .block = {blockDimX, blockDimY, blockDimZ},                       \
                       .sharedBytes = sharedMemBytes,                                    \
                       .stream = hStream,                                                \
                       .perThread = isPerThread,                                         \
                       .parameters = kernelParams,                                       \
                       .extra = extra});                                                 \
    }
#define JUICE_LAUNCH_COOPERATIVE(name, isPerThread)                                      \
    CUresult name(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,            \
                  unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY, \
                  unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream, \
                  void** kernelParams) {                                                 \
        return launch({.op = Op::cuLaunchCooperativeKernel,                              \
                       .function = f,                                                    \
                       .grid = {gridDimX, gridDimY, gridDimZ},                           \
                       .block = {blockDimX, blockDimY, blockDimZ},                       \
                       .sharedBytes = sharedMemBytes,                                    \
                       .stream = hStream,                                                \
                       .perThread = isPerThread,                                         \
                       .cooperative = true,                                              \
                       .parameters = kernelParams});                                     \
    }

JUICE_LAUNCH(cuLaunchKernel, false)
JUICE_LAUNCH(cuLaunchKernel_ptsz, true)
JUICE_LAUNCH_COOPERATIVE(cuLaunchCooperativeKernel, false)
JUICE_LAUNCH_COOPERATIVE(cuLaunchCooperativeKernel_ptsz, true)

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction f, void** kernelParams,
                          void** extra) {
    return launchEx(config, f, kernelParams, extra, false);
}
CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig* config, CUfunction f, void** kernelParams,
                               void** extra) {
    return launchEx(config, f, kernelParams, extra, true);
}
