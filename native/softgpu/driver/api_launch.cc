// Launches of kernels.
#include "native/gen/symbols.h"
#include "native/softgpu/driver/guard.h"
#include "native/softgpu/driver/launch.h"
#include "native/softgpu/driver/module.h"

using namespace juice::softgpu;

namespace {

constexpr DefaultStream kLegacy = DefaultStream::legacy;
constexpr DefaultStream kPerThread = DefaultStream::perThread;

CUresult launchOn(CUstream handle, DefaultStream meaning, CUfunction function,
                  const LaunchShape& shape, void** parameters, void** extra) {
    return withStream(handle, meaning, [&](Stream& stream) -> CUresult {
        const auto found = functionIn(stream.context(), function);
        if (!found) return CUDA_ERROR_INVALID_HANDLE;
        return launch(stream, *found, shape, parameters, extra);
    });
}

/// Takes a launch's attributes into its shape. Hints that change no result are accepted; what would
/// change one and is lacking here is refused by name.
CUresult applyAttributes(const CUlaunchConfig& config, LaunchShape& shape) {
    if (config.numAttrs > 0 && config.attrs == nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < config.numAttrs; ++i) {
        const CUlaunchAttributeValue& value = config.attrs[i].value;
        switch (config.attrs[i].id) {
            case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
                shape.cooperative = value.cooperative != 0;
                break;
            case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
                shape.cluster = {value.clusterDim.x, value.clusterDim.y, value.clusterDim.z};
                break;
            case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
                return juice_unsupported("the launch attribute for programmatic events");
            case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
                return juice_unsupported("the launch attribute for completion events");
            case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
                return juice_unsupported("the launch attribute for device-updatable nodes");
            // Overlap with the kernel before is allowed by this one, not demanded.
            case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
            case CU_LAUNCH_ATTRIBUTE_IGNORE:
            case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
            case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
            case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
            case CU_LAUNCH_ATTRIBUTE_PRIORITY:
            case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
            case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
            case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
            case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
            case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
                break;
            default:
                return CUDA_ERROR_INVALID_VALUE;
        }
    }
    return CUDA_SUCCESS;
}

CUresult launchConfigured(const CUlaunchConfig* config, CUfunction function, void** parameters,
                          void** extra, DefaultStream meaning) {
    if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
    LaunchShape shape{{config->gridDimX, config->gridDimY, config->gridDimZ},
                      {config->blockDimX, config->blockDimY, config->blockDimZ},
                      config->sharedMemBytes,
                      false,
                      {}};
    if (const CUresult failed = applyAttributes(*config, shape)) return failed;
    return launchOn(config->hStream, meaning, function, shape, parameters, extra);
}

}  // namespace

CUresult cuLaunchKernel(CUfunction function, unsigned int gridX, unsigned int gridY,
                        unsigned int gridZ, unsigned int blockX, unsigned int blockY,
                        unsigned int blockZ, unsigned int shared, CUstream stream,
                        void** parameters, void** extra) {
    const LaunchShape shape{{gridX, gridY, gridZ}, {blockX, blockY, blockZ}, shared, false, {}};
    return launchOn(stream, kLegacy, function, shape, parameters, extra);
}
CUresult cuLaunchKernel_ptsz(CUfunction function, unsigned int gridX, unsigned int gridY,
                             unsigned int gridZ, unsigned int blockX, unsigned int blockY,
                             unsigned int blockZ, unsigned int shared, CUstream stream,
                             void** parameters, void** extra) {
    const LaunchShape shape{{gridX, gridY, gridZ}, {blockX, blockY, blockZ}, shared, false, {}};
    return launchOn(stream, kPerThread, function, shape, parameters, extra);
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int gridX, unsigned int gridY,
                                   unsigned int gridZ, unsigned int blockX, unsigned int blockY,
                                   unsigned int blockZ, unsigned int shared, CUstream stream,
                                   void** parameters) {
    const LaunchShape shape{{gridX, gridY, gridZ}, {blockX, blockY, blockZ}, shared, true, {}};
    return launchOn(stream, kLegacy, function, shape, parameters, nullptr);
}
CUresult cuLaunchCooperativeKernel_ptsz(CUfunction function, unsigned int gridX, unsigned int gridY,
                                        unsigned int gridZ, unsigned int blockX,
                                        unsigned int blockY, unsigned int blockZ,
                                        unsigned int shared, CUstream stream, void** parameters) {
    const LaunchShape shape{{gridX, gridY, gridZ}, {blockX, blockY, blockZ}, shared, true, {}};
    return launchOn(stream, kPerThread, function, shape, parameters, nullptr);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters,
                          void** extra) {
    return launchConfigured(config, function, parameters, extra, kLegacy);
}
CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig* config, CUfunction function, void** parameters,
                               void** extra) {
    return launchConfigured(config, function, parameters, extra, kPerThread);
}
