// The block size of highest occupancy: a search, made here because the program's own function says
// how much shared memory each size needs. What fits is asked once for each size and remembered.
#include <algorithm>

#include "native/gen/cuda_api.h"
#include "native/shim/attributes.h"
#include "native/shim/send.h"

namespace juice::shim {
namespace {

int deviceAttribute(const Context& context, int which) {
    const auto& attributes = session::device(context.device)->attributes;
    const auto found = attributes.find(which);
    return found == attributes.end() ? 0 : found->second;
}

/// From the largest allowed block down in whole warps, the first that fills the most threads.
CUresult search(int* minGridSize, int* blockSize, CUfunction function, CUoccupancyB2DSize sharedFor,
                size_t sharedBytes, int limit, unsigned flags) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    if (minGridSize == nullptr || blockSize == nullptr) return CUDA_ERROR_INVALID_VALUE;
    int most = 0;
    if (const CUresult result =
            cuFuncGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function))
        return result;
    most = std::min(most, deviceAttribute(*context, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
    if (limit > 0) most = std::min(most, limit);
    const int warp = std::max(deviceAttribute(*context, CU_DEVICE_ATTRIBUTE_WARP_SIZE), 1);
    const int full = deviceAttribute(*context, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
    int bestThreads = 0, bestBlocks = 0, bestSize = 0;
    for (int whole = (most + warp - 1) / warp * warp; whole > 0; whole -= warp) {
        const int size = std::min(whole, most);
        const size_t shared = sharedFor != nullptr ? sharedFor(size) : sharedBytes;
        int blocks = 0;
        if (const CUresult result = cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
                &blocks, function, size, shared, flags))
            return result;
        if (size * blocks > bestThreads) {
            bestThreads = size * blocks;
            bestBlocks = blocks;
            bestSize = size;
        }
        if (bestThreads == full) break;
    }
    *blockSize = bestSize;
    *minGridSize = bestBlocks * deviceAttribute(*context, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    return CUDA_SUCCESS;
}

}  // namespace
}  // namespace juice::shim

CUresult cuOccupancyMaxPotentialBlockSize(int* minGridSize, int* blockSize, CUfunction func,
                                          CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                          size_t dynamicSMemSize, int blockSizeLimit) {
    return juice::shim::search(minGridSize, blockSize, func, blockSizeToDynamicSMemSize,
                               dynamicSMemSize, blockSizeLimit, 0);
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* minGridSize, int* blockSize,
                                                   CUfunction func,
                                                   CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                                   size_t dynamicSMemSize, int blockSizeLimit,
                                                   unsigned int flags) {
    return juice::shim::search(minGridSize, blockSize, func, blockSizeToDynamicSMemSize,
                               dynamicSMemSize, blockSizeLimit, flags);
}
