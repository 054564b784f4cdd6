// Launches.
#include <algorithm>
#include <array>

#include "native/gen/custom_handlers.h"
#include "native/worker/worker.h"

namespace juice::worker {
namespace {

using Attributes = std::array<CUlaunchAttribute, custom::kMaxLaunchAttributes + 1>;

struct Decoded {
    custom::Launch call{};
    CUfunction function = nullptr;
    CUstream stream = nullptr;
    unsigned attributes = 0;
};

/// Attributes whose value is plain data, or an event's id in its first eight bytes.
bool takeAttribute(Incoming& in, const custom::LaunchAttribute& wire, CUlaunchAttribute& out) {
    out.id = static_cast<CUlaunchAttributeID>(wire.id);
    std::memcpy(&out.value, wire.value, sizeof wire.value);
    switch (out.id) {
        case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
        case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT: {
            uint64_t id = 0;
            std::memcpy(&id, wire.value, sizeof id);
            void* event = in.object(ObjectKind::event, id);
            std::memcpy(&out.value, &event, sizeof event);
            return event != nullptr;
        }
        case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
            return false;
        default:
            return true;
    }
}

/// `params` must hold kMaxParamBytes; the buffer that a driver reads is aligned, which a payload is
/// not.
CUresult decode(Incoming& in, uint8_t* params, Attributes& attributes, Decoded& out) {
    out.call = custom::get<custom::Launch>(in.reader());
    if (out.call.paramBytes > custom::kMaxParamBytes ||
        out.call.attributes > custom::kMaxLaunchAttributes) {
        in.reader().fail();
        return in.done();
    }
    in.reader().raw(params, out.call.paramBytes);
    bool supported = true;
    for (uint32_t i = 0; i < out.call.attributes; ++i) {
        const auto wire = custom::get<custom::LaunchAttribute>(in.reader());
        supported = takeAttribute(in, wire, attributes[out.attributes++]) && supported;
    }
    out.function = in.callable(out.call.function);
    out.stream = in.stream(out.call.stream);
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    return supported ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult launch(Incoming& in, bool extended, bool cooperative) {
    alignas(64) static uint8_t params[custom::kMaxParamBytes + 4];  // the executor is one thread
    static Attributes attributes;
    Decoded d;
    if (const CUresult bad = decode(in, params, attributes, d); bad != CUDA_SUCCESS) return bad;
    in.worker().usage.launches.fetch_add(1, std::memory_order_relaxed);

    size_t size = d.call.paramBytes;
    void* packed[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, params, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                      CU_LAUNCH_PARAM_END};
    void** const extra = size == 0 ? nullptr : packed;
    const auto &grid = d.call.grid, &block = d.call.block;
    if (!extended && d.attributes == 0)
        return in.driver().cuLaunchKernel(d.function, grid[0], grid[1], grid[2], block[0], block[1],
                                          block[2], d.call.sharedBytes, d.stream, nullptr, extra);
    if (in.driver().cuLaunchKernelEx == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    if (cooperative) {
        CUlaunchAttribute& one = attributes[d.attributes++];
        one = {};
        one.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
        one.value.cooperative = 1;
    }
    CUlaunchConfig config{};
    config.gridDimX = grid[0];
    config.gridDimY = grid[1];
    config.gridDimZ = grid[2];
    config.blockDimX = block[0];
    config.blockDimY = block[1];
    config.blockDimZ = block[2];
    config.sharedMemBytes = d.call.sharedBytes;
    config.hStream = d.stream;
    config.attrs = d.attributes == 0 ? nullptr : attributes.data();
    config.numAttrs = d.attributes;
    return in.driver().cuLaunchKernelEx(&config, d.function, nullptr, extra);
}

}  // namespace

CUresult custom_cuLaunchKernel(Incoming& in) {
    return launch(in, false, false);
}
CUresult custom_cuLaunchKernelEx(Incoming& in) {
    return launch(in, true, false);
}
// The driver's own cooperative entry takes no parameter buffer; the extended one says the same.
CUresult custom_cuLaunchCooperativeKernel(Incoming& in) {
    return launch(in, true, true);
}

}  // namespace juice::worker
