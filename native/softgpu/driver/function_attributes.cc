// What cuFuncGetAttribute and cuKernelGetAttribute answer, and what may be set.
#include <algorithm>

#include "native/softgpu/driver/device.h"
#include "native/softgpu/driver/module.h"

namespace juice::softgpu {
namespace {

/// Dynamic shared memory that a launch may use without asking for more.
int defaultDynamicShared(const Kernel& kernel) {
    return static_cast<int>(kSharedPerBlock - std::min(kernel.staticShared, kSharedPerBlock));
}

/// The engine counts virtual registers. No launch fails for want of registers here, so the answer
/// never exceeds what fits the largest block: occupancy computed from it comes out possible.
int registers(const Kernel& kernel) {
    const uint32_t threads = std::max(kernel.maxThreads, 1U);
    const uint32_t fitting = kRegistersPerMultiprocessor / threads / 8 * 8;
    return static_cast<int>(std::min({kernel.registers, fitting, 255U}));
}

}  // namespace

CUresult functionAttribute(const LoadedCode& code, const Kernel& kernel, FunctionSettings& settings,
                           CUfunction_attribute attribute, int& value) {
    const auto setting = [&](int otherwise) {
        const std::lock_guard lock(settings.mutex);
        const auto found = settings.values.find(attribute);
        value = found == settings.values.end() ? otherwise : found->second;
        return CUDA_SUCCESS;
    };
    switch (attribute) {
        case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
            value = static_cast<int>(std::min(kernel.maxThreads, kMaxThreadsPerBlock));
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
            value = static_cast<int>(kernel.staticShared);
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
            value = static_cast<int>(kernel.constBytes);
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
            value = static_cast<int>(kernel.localBytes);
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_NUM_REGS:
            value = registers(kernel);
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_PTX_VERSION:
            value = code.target;
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
            value = static_cast<int>(kSm);
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
        case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
            value = 0;
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
            return setting(defaultDynamicShared(kernel));
        case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
            return setting(CU_SHAREDMEM_CARVEOUT_DEFAULT);
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
            return setting(0);
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult setFunctionAttribute(const Kernel& kernel, FunctionSettings& settings,
                              CUfunction_attribute attribute, int value) {
    switch (attribute) {
        case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
            if (value < 0 || value + kernel.staticShared > kSharedPerBlockOptIn) {
                return CUDA_ERROR_INVALID_VALUE;
            }
            break;
        case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
            if (value < CU_SHAREDMEM_CARVEOUT_DEFAULT || value > CU_SHAREDMEM_CARVEOUT_MAX_SHARED) {
                return CUDA_ERROR_INVALID_VALUE;
            }
            break;
        case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
            break;
        // Taken as a real device does; a launch in clusters is what is refused.
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
            if (value < 0) return CUDA_ERROR_INVALID_VALUE;
            break;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
    const std::lock_guard lock(settings.mutex);
    settings.values[attribute] = value;
    return CUDA_SUCCESS;
}

}  // namespace juice::softgpu
