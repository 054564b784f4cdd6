// How many blocks fit on a multiprocessor.
#include <algorithm>

#include "native/gen/symbols.h"
#include "native/softgpu/driver/guard.h"
#include "native/softgpu/driver/launch.h"
#include "native/softgpu/driver/module.h"

using namespace juice::softgpu;

namespace {

constexpr unsigned kOccupancyFlags = CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE;

template <typename Body>
CUresult withFunction(CUfunction handle, const Body& body) {
    return withContext([&](Context& context) -> CUresult {
        const auto function = functionIn(context, handle);
        return function ? body(*function) : CUDA_ERROR_INVALID_HANDLE;
    });
}

}  // namespace

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction handle,
                                                              int blockSize, size_t dynamicShared,
                                                              unsigned int flags) {
    return withFunction(handle, [&](Function& function) {
        if (blocks == nullptr || blockSize <= 0 || (flags & ~kOccupancyFlags) != 0) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        *blocks = activeBlocks(function, static_cast<unsigned>(blockSize), dynamicShared);
        return CUDA_SUCCESS;
    });
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction handle, int blockSize,
                                                     size_t dynamicShared) {
    return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, handle, blockSize,
                                                                dynamicShared, 0);
}

/// The block size that keeps the most threads of a multiprocessor busy; of equals the largest.
CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* minGridSize, int* blockSize,
                                                   CUfunction handle,
                                                   CUoccupancyB2DSize dynamicSharedOf,
                                                   size_t dynamicShared, int limit,
                                                   unsigned int flags) {
    return withFunction(handle, [&](Function& function) {
        if (minGridSize == nullptr || blockSize == nullptr || (flags & ~kOccupancyFlags) != 0) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        unsigned largest = std::min(function.kernel.maxThreads, kMaxThreadsPerBlock);
        if (limit > 0) largest = std::min(largest, static_cast<unsigned>(limit));
        unsigned bestThreads = 0, bestSize = 0, bestBlocks = 0;
        for (unsigned rounded = (largest + kWarpSize - 1) / kWarpSize * kWarpSize; rounded > 0;
             rounded -= kWarpSize) {
            const unsigned size = std::min(rounded, largest);
            const size_t shared = dynamicSharedOf == nullptr
                                      ? dynamicShared
                                      : dynamicSharedOf(static_cast<int>(size));
            const auto blocks = static_cast<unsigned>(activeBlocks(function, size, shared));
            if (blocks * size <= bestThreads) continue;
            bestThreads = blocks * size;
            bestSize = size;
            bestBlocks = blocks;
        }
        *blockSize = static_cast<int>(bestSize);
        *minGridSize = static_cast<int>(bestBlocks * function.context().device().multiprocessors());
        return CUDA_SUCCESS;
    });
}

CUresult cuOccupancyMaxPotentialBlockSize(int* minGridSize, int* blockSize, CUfunction handle,
                                          CUoccupancyB2DSize dynamicSharedOf, size_t dynamicShared,
                                          int limit) {
    return cuOccupancyMaxPotentialBlockSizeWithFlags(minGridSize, blockSize, handle,
                                                     dynamicSharedOf, dynamicShared, limit, 0);
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t* size, CUfunction handle, int blocks,
                                                 int blockSize) {
    return withFunction(handle, [&](Function& function) {
        if (size == nullptr || blocks <= 0 || blockSize <= 0 ||
            activeBlocks(function, static_cast<unsigned>(blockSize), 0) < blocks) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        const size_t share = kSharedPerMultiprocessor / static_cast<size_t>(blocks);
        const size_t taken = function.kernel.staticShared + kSharedReservedPerBlock;
        int most = 0;
        function.attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most);
        *size = std::min(share > taken ? share - taken : 0, static_cast<size_t>(most));
        return CUDA_SUCCESS;
    });
}

// Clusters do not exist here; a cluster of one block is a block.

CUresult cuOccupancyMaxPotentialClusterSize(int* size, CUfunction handle, const CUlaunchConfig*) {
    return withFunction(handle, [&](Function&) {
        if (size == nullptr) return CUDA_ERROR_INVALID_VALUE;
        *size = 1;
        return CUDA_SUCCESS;
    });
}

CUresult cuOccupancyMaxActiveClusters(int* clusters, CUfunction handle,
                                      const CUlaunchConfig* config) {
    return withFunction(handle, [&](Function& function) {
        if (clusters == nullptr || config == nullptr) return CUDA_ERROR_INVALID_VALUE;
        const uint64_t threads =
            uint64_t{config->blockDimX} * config->blockDimY * config->blockDimZ;
        if (threads == 0 || threads > kMaxThreadsPerBlock) return CUDA_ERROR_INVALID_VALUE;
        const int blocks =
            activeBlocks(function, static_cast<unsigned>(threads), config->sharedMemBytes);
        *clusters = blocks * static_cast<int>(function.context().device().multiprocessors());
        return CUDA_SUCCESS;
    });
}
