#include "native/softgpu/driver/launch.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>

#include "native/gen/symbols.h"
#include "native/softgpu/driver/context.h"
#include "native/softgpu/driver/device.h"
#include "native/softgpu/driver/memory.h"

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

/// Memory for the barrier of one cooperative launch.
class GridWorkspace {
  public:
    explicit GridWorkspace(Context& context) {
        result_ =
            AddressSpace::instance().allocate(context, kBytes, MemoryKind::device, 0, address_);
        if (address_ != 0) std::memset(reinterpret_cast<void*>(address_), 0, kBytes);
    }
    ~GridWorkspace() {
        if (address_ != 0) AddressSpace::instance().release(address_, {MemoryKind::device});
    }
    GridWorkspace(const GridWorkspace&) = delete;
    GridWorkspace& operator=(const GridWorkspace&) = delete;
    CUresult result() const { return result_; }
    uint64_t address() const { return address_; }

  private:
    static constexpr size_t kBytes = 8;
    CUresult result_;
    uint64_t address_ = 0;
};

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

CUresult launch(Stream& stream, const Function& function, const LaunchShape& shape,
                void* const* parameters, void* const* extra) {
    Context& context = stream.context();
    if (&function.context() != &context) return CUDA_ERROR_INVALID_HANDLE;
    if (const CUresult failed = checkShape(function, shape)) return failed;
    if (parameters != nullptr && extra != nullptr) return CUDA_ERROR_INVALID_VALUE;

    Launch wanted;
    wanted.kernel = &function.kernel;
    wanted.grid = shape.grid;
    wanted.block = shape.block;
    wanted.dynamicShared = shape.dynamicShared;
    wanted.memory = &context;
    static const std::chrono::milliseconds limit = watchdog(environment());
    wanted.watchdog = limit;
    wanted.cancel[0] = context.device().cancelled();
    wanted.cancel[1] = context.cancelled();
    CUresult packed = CUDA_SUCCESS;
    if (extra != nullptr) {
        packed = packExtra(function.kernel, extra, wanted.params);
    } else if (parameters != nullptr) {
        packed = packParameters(function.kernel, parameters, wanted.params);
    } else if (!function.kernel.params.empty()) {
        packed = CUDA_ERROR_INVALID_VALUE;
    }
    if (packed != CUDA_SUCCESS) return packed;
    std::shared_ptr<GridWorkspace> workspace;
    if (shape.cooperative) {
        workspace = std::make_shared<GridWorkspace>(context);
        if (workspace->result() != CUDA_SUCCESS) return workspace->result();
        wanted.gridWorkspace = workspace->address();
    }
    stream.submit({[wanted = std::move(wanted), program = function.code.program, workspace,
                    &context] { execute(wanted, context); },
                   {},
                   false});
    return CUDA_SUCCESS;
}

}  // namespace juice::softgpu
