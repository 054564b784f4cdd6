// Launches of kernels.
#include "native/softgpu/driver/capture.h"
#include "native/softgpu/driver/guard.h"
#include "native/softgpu/driver/launch.h"
#include "native/softgpu/driver/module.h"

using namespace juice::softgpu;

namespace {

constexpr DefaultStream kLegacy = DefaultStream::legacy;
constexpr DefaultStream kPerThread = DefaultStream::perThread;

CUresult launchOn(CUstream handle, DefaultStream meaning, CUfunction function,
                  const LaunchShape& shape, void** parameters, void** extra,
                  LaunchAttributes attributes = {}) {
    return withCapturable(handle, meaning, [&](Stream& stream) -> CUresult {
        auto found = functionIn(stream.context(), function);
        if (!found) return CUDA_ERROR_INVALID_HANDLE;
        if (stream.priority() != 0 && isCapturing(stream)) {
            CUlaunchAttributeValue priority{};
            priority.priority = stream.priority();
            attributes.try_emplace(CU_LAUNCH_ATTRIBUTE_PRIORITY, priority);
        }
        std::shared_ptr<KernelOperation> launch;
        const CUresult failed = KernelOperation::make(
            std::move(found), shape, std::move(attributes), parameters, extra, launch);
        return failed != CUDA_SUCCESS ? failed : submit(stream, std::move(launch));
    });
}

/// The attribute that a cooperative launch has, for those who ask its node.
LaunchAttributes cooperative() {
    CUlaunchAttributeValue value{};
    value.cooperative = 1;
    return {{CU_LAUNCH_ATTRIBUTE_COOPERATIVE, value}};
}

CUresult launchConfigured(const CUlaunchConfig* config, CUfunction function, void** parameters,
                          void** extra, DefaultStream meaning) {
    if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
    LaunchShape shape{{config->gridDimX, config->gridDimY, config->gridDimZ},
                      {config->blockDimX, config->blockDimY, config->blockDimZ},
                      config->sharedMemBytes,
                      false,
                      {}};
    if (config->numAttrs > 0 && config->attrs == nullptr) return CUDA_ERROR_INVALID_VALUE;
    LaunchAttributes attributes;
    for (unsigned i = 0; i < config->numAttrs; ++i) {
        attributes[config->attrs[i].id] = config->attrs[i].value;
    }
    if (const CUresult failed = applyAttributes(attributes, shape)) return failed;
    return launchOn(config->hStream, meaning, function, shape, parameters, extra,
                    std::move(attributes));
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
    return launchOn(stream, kLegacy, function, shape, parameters, nullptr, cooperative());
}
CUresult cuLaunchCooperativeKernel_ptsz(CUfunction function, unsigned int gridX, unsigned int gridY,
                                        unsigned int gridZ, unsigned int blockX,
                                        unsigned int blockY, unsigned int blockZ,
                                        unsigned int shared, CUstream stream, void** parameters) {
    const LaunchShape shape{{gridX, gridY, gridZ}, {blockX, blockY, blockZ}, shared, true, {}};
    return launchOn(stream, kPerThread, function, shape, parameters, nullptr, cooperative());
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters,
                          void** extra) {
    return launchConfigured(config, function, parameters, extra, kLegacy);
}
CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig* config, CUfunction function, void** parameters,
                               void** extra) {
    return launchConfigured(config, function, parameters, extra, kPerThread);
}
