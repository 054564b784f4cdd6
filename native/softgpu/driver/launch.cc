#include "native/softgpu/driver/launch.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>

#include "native/gen/symbols.h"
#include "native/softgpu/driver/context.h"
#include "native/softgpu/driver/device.h"
#include "native/softgpu/driver/own_memory.h"
#include "native/softgpu/driver/registry.h"

namespace juice::softgpu {
namespace {

/// The engine keeps so many blocks of one grid under way at once, taking turns.
constexpr uint64_t kMaxResidentBlocks = 512;

bool within(const Dim3& size, const unsigned (&limits)[3]) {
    return size.x >= 1 && size.x <= limits[0] && size.y >= 1 && size.y <= limits[1] &&
           size.z >= 1 && size.z <= limits[2];
}

uint64_t count(const Dim3& size) {
    return uint64_t{size.x} * size.y * size.z;
}

size_t maxDynamicShared(const Function& function) {
    int bytes = 0;
    function.attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes);
    return static_cast<size_t>(bytes);
}

/// A device with clusters takes up to eight blocks in one, and whole ones only.
CUresult checkCluster(const Function& function, const LaunchShape& shape) {
    Dim3 cluster = shape.cluster;
    const auto required = [&](CUfunction_attribute attribute, uint32_t& size) {
        int value = 0;
        function.attribute(attribute, value);
        if (value > 0 && size == 1) size = static_cast<uint32_t>(value);
    };
    required(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, cluster.x);
    required(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, cluster.y);
    required(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, cluster.z);
    if (count(cluster) == 1) return CUDA_SUCCESS;
    constexpr uint64_t kMaxCluster = 8;
    const bool whole = cluster.x != 0 && cluster.y != 0 && cluster.z != 0 &&
                       shape.grid.x % cluster.x == 0 && shape.grid.y % cluster.y == 0 &&
                       shape.grid.z % cluster.z == 0;
    if (!whole || count(cluster) > kMaxCluster) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    return juice_unsupported("a launch in clusters");
}

CUresult checkShape(const Function& function, const LaunchShape& shape) {
    if (!within(shape.grid, kMaxGridDim) || !within(shape.block, kMaxBlockDim)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const uint64_t threads = count(shape.block);
    if (threads > kMaxThreadsPerBlock) return CUDA_ERROR_INVALID_VALUE;
    if (threads > function.kernel.maxThreads) return CUDA_ERROR_INVALID_VALUE;
    if (shape.dynamicShared > maxDynamicShared(function)) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult failed = checkCluster(function, shape)) return failed;
    if (!shape.cooperative) return CUDA_SUCCESS;
    const auto perMultiprocessor = static_cast<uint64_t>(
        activeBlocks(function, static_cast<unsigned>(threads), shape.dynamicShared));
    const uint64_t fitting = std::min<uint64_t>(
        perMultiprocessor * function.context().device().multiprocessors(), kMaxResidentBlocks);
    return count(shape.grid) <= fitting ? CUDA_SUCCESS : CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
}

/// From an array of pointers, one for each parameter.
CUresult packParameters(const Kernel& kernel, void* const* parameters,
                        std::vector<uint8_t>& packed) {
    packed.resize(kernel.paramBytes);
    for (size_t i = 0; i < kernel.params.size(); ++i) {
        const ParamInfo& info = kernel.params[i];
        if (parameters[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
        std::memcpy(packed.data() + info.offset, parameters[i], info.size);
    }
    return CUDA_SUCCESS;
}

/// From a buffer that the program laid out itself, named in a list that ends with END.
CUresult packExtra(const Kernel& kernel, void* const* extra, std::vector<uint8_t>& packed) {
    const void* buffer = nullptr;
    const size_t* size = nullptr;
    while (*extra != CU_LAUNCH_PARAM_END) {
        if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) {
            buffer = extra[1];
        } else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) {
            size = static_cast<const size_t*>(extra[1]);
        } else {
            return CUDA_ERROR_INVALID_VALUE;
        }
        extra += 2;
    }
    packed.resize(kernel.paramBytes);
    if (buffer == nullptr || size == nullptr) {
        return kernel.paramBytes == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    // Fewer bytes than the kernel takes are enough for a real driver; what lacks is zero here.
    if (*size > kernel.paramBytes) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    std::memcpy(packed.data(), buffer, *size);
    return CUDA_SUCCESS;
}

/// Bytes for the barrier of one cooperative launch.
constexpr size_t kGridWorkspace = 8;

void execute(const Launch& wanted, Context& context) {
    const LaunchResult result = juice::softgpu::run(wanted);
    if (result.curesult == 0) return;
    if (context.failed()) return;  // stopped because another kernel had failed
    // In one piece, whoever else writes there.
    const std::string text = result.assertions + "juice softgpu: " + result.report + "\n";
    std::fwrite(text.data(), 1, text.size(), stderr);
    context.device().fail(static_cast<CUresult>(result.curesult));
}

}  // namespace

int activeBlocks(const Function& function, unsigned threads, size_t dynamicShared) {
    const Kernel& kernel = function.kernel;
    if (threads == 0 || threads > kMaxThreadsPerBlock || threads > kernel.maxThreads) return 0;
    const size_t shared = kernel.staticShared + dynamicShared;
    if (dynamicShared > maxDynamicShared(function)) return 0;
    const unsigned warps = (threads + kWarpSize - 1) / kWarpSize;
    const size_t byThreads = kThreadsPerMultiprocessor / (warps * kWarpSize);
    const size_t byShared = kSharedPerMultiprocessor / (shared + kSharedReservedPerBlock);
    return static_cast<int>(std::min({byThreads, byShared, size_t{kBlocksPerMultiprocessor}}));
}

CUresult applyAttributes(const LaunchAttributes& attributes, LaunchShape& shape) {
    for (const auto& [id, value] : attributes) {
        switch (id) {
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
                if (value.deviceUpdatableKernelNode.deviceUpdatable == 0) break;
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

KernelOperation::KernelOperation(std::shared_ptr<Function> function, const LaunchShape& shape,
                                 LaunchAttributes attributes)
    : function_(std::move(function)),
      context_(function_->context()),
      shape_(shape),
      attributes_(std::move(attributes)) {
    if (const Library* const library = function_->module.library()) {
        libraryKernel_ = reinterpret_cast<CUkernel>(library->kernel(function_->kernel.name));
    }
}

CUresult KernelOperation::make(std::shared_ptr<Function> function, const LaunchShape& shape,
                               LaunchAttributes attributes, void* const* parameters,
                               void* const* extra, std::shared_ptr<KernelOperation>& made) {
    if (const CUresult failed = checkShape(*function, shape)) return failed;
    if (parameters != nullptr && extra != nullptr) return CUDA_ERROR_INVALID_VALUE;
    const Kernel& kernel = function->kernel;
    std::shared_ptr<KernelOperation> launch(
        new KernelOperation(std::move(function), shape, std::move(attributes)));
    auto& packed = launch->packed_;
    CUresult result = CUDA_SUCCESS;
    if (extra != nullptr) {
        result = packExtra(kernel, extra, packed);
        launch->packedSize_ = packed.size();
        launch->extra_ = {CU_LAUNCH_PARAM_BUFFER_POINTER, packed.data(),
                          CU_LAUNCH_PARAM_BUFFER_SIZE, &launch->packedSize_, CU_LAUNCH_PARAM_END};
    } else if (parameters != nullptr) {
        result = packParameters(kernel, parameters, packed);
        for (const ParamInfo& info : kernel.params) {
            launch->pointers_.push_back(packed.data() + info.offset);
        }
    } else if (!kernel.params.empty()) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS) made = std::move(launch);
    return result;
}

CUresult KernelOperation::with(LaunchAttributes attributes,
                               std::shared_ptr<KernelOperation>& made) const {
    // A function of a module that is gone can still run here, but not be asked.
    if (!find<Function>(function_.get())) return CUDA_ERROR_INVALID_HANDLE;
    LaunchShape shape = shape_;
    shape.cooperative = false;
    shape.cluster = {};
    if (const CUresult failed = applyAttributes(attributes, shape)) return failed;
    return make(function_, shape, std::move(attributes),
                pointers_.empty() ? nullptr : pointers_.data(),
                extra_.empty() ? nullptr : extra_.data(), made);
}

CUresult KernelOperation::with(CUlaunchAttributeID id, const CUlaunchAttributeValue& value,
                               std::shared_ptr<KernelOperation>& made) const {
    LaunchAttributes changed = attributes_;
    changed[id] = value;
    return with(std::move(changed), made);
}

CUresult KernelOperation::attribute(CUlaunchAttributeID id, CUlaunchAttributeValue& value) const {
    LaunchShape ignored;
    CUlaunchAttributeValue otherwise{};
    if (id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP) otherwise.memSyncDomainMap.remote = 1;
    if (applyAttributes({{id, otherwise}}, ignored) != CUDA_SUCCESS) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const auto found = attributes_.find(id);
    value = found == attributes_.end() ? otherwise : found->second;
    return CUDA_SUCCESS;
}

void KernelOperation::run() const {
    Launch wanted;
    wanted.kernel = &function_->kernel;
    wanted.grid = shape_.grid;
    wanted.block = shape_.block;
    wanted.dynamicShared = shape_.dynamicShared;
    wanted.params = packed_;
    wanted.memory = &context_;
    static const std::chrono::milliseconds limit = watchdog(environment());
    wanted.watchdog = limit;
    wanted.cancel[0] = context_.device().cancelled();
    wanted.cancel[1] = context_.cancelled();
    if (!shape_.cooperative) return execute(wanted, context_);
    // Host memory is not charged to the device: a launch that was accepted does not find too
    // little.
    const OwnMemory workspace(context_, kGridWorkspace, MemoryKind::host);
    if (workspace.result() != CUDA_SUCCESS) return context_.device().fail(workspace.result());
    std::memset(reinterpret_cast<void*>(workspace.address()), 0, kGridWorkspace);
    wanted.gridWorkspace = workspace.address();
    execute(wanted, context_);
}

}  // namespace juice::softgpu
