// Stream memory operations: a stream that waits for a value in memory, or writes one.
#include "native/softgpu/driver/capture.h"
#include "native/softgpu/driver/guard.h"
#include "native/softgpu/driver/memop.h"

using namespace juice::softgpu;

namespace {

constexpr DefaultStream kLegacy = DefaultStream::legacy;
constexpr DefaultStream kPerThread = DefaultStream::perThread;

CUresult batch(CUstream handle, DefaultStream meaning, unsigned count,
               const CUstreamBatchMemOpParams* parameters, unsigned flags) {
    return withCapturable(handle, meaning, [&](Stream& stream) -> CUresult {
        std::shared_ptr<MemopOperation> made;
        const CUresult failed =
            MemopOperation::make(stream.context(), count, parameters, flags, made);
        return failed != CUDA_SUCCESS ? failed : submit(stream, std::move(made));
    });
}

CUresult one(CUstream handle, DefaultStream meaning, const CUstreamBatchMemOpParams& operation) {
    return batch(handle, meaning, 1, &operation, 0);
}

CUstreamBatchMemOpParams waitFor(CUstreamBatchMemOpType type, CUdeviceptr address, uint64_t value,
                                 unsigned flags) {
    CUstreamBatchMemOpParams operation{};
    operation.waitValue = {type, address, {}, flags, 0};
    operation.waitValue.value64 = value;
    return operation;
}

CUstreamBatchMemOpParams write(CUstreamBatchMemOpType type, CUdeviceptr address, uint64_t value,
                               unsigned flags) {
    CUstreamBatchMemOpParams operation{};
    operation.writeValue = {type, address, {}, flags, 0};
    operation.writeValue.value64 = value;
    return operation;
}

}  // namespace

CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, unsigned int value,
                                unsigned int flags) {
    return one(stream, kLegacy, waitFor(CU_STREAM_MEM_OP_WAIT_VALUE_32, address, value, flags));
}
CUresult cuStreamWaitValue32_v2_ptsz(CUstream stream, CUdeviceptr address, unsigned int value,
                                     unsigned int flags) {
    return one(stream, kPerThread, waitFor(CU_STREAM_MEM_OP_WAIT_VALUE_32, address, value, flags));
}
CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, unsigned long long value,
                                unsigned int flags) {
    return one(stream, kLegacy, waitFor(CU_STREAM_MEM_OP_WAIT_VALUE_64, address, value, flags));
}
CUresult cuStreamWaitValue64_v2_ptsz(CUstream stream, CUdeviceptr address, unsigned long long value,
                                     unsigned int flags) {
    return one(stream, kPerThread, waitFor(CU_STREAM_MEM_OP_WAIT_VALUE_64, address, value, flags));
}
CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, unsigned int value,
                                 unsigned int flags) {
    return one(stream, kLegacy, write(CU_STREAM_MEM_OP_WRITE_VALUE_32, address, value, flags));
}
CUresult cuStreamWriteValue32_v2_ptsz(CUstream stream, CUdeviceptr address, unsigned int value,
                                      unsigned int flags) {
    return one(stream, kPerThread, write(CU_STREAM_MEM_OP_WRITE_VALUE_32, address, value, flags));
}
CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, unsigned long long value,
                                 unsigned int flags) {
    return one(stream, kLegacy, write(CU_STREAM_MEM_OP_WRITE_VALUE_64, address, value, flags));
}
CUresult cuStreamWriteValue64_v2_ptsz(CUstream stream, CUdeviceptr address,
                                      unsigned long long value, unsigned int flags) {
    return one(stream, kPerThread, write(CU_STREAM_MEM_OP_WRITE_VALUE_64, address, value, flags));
}
CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count,
                               CUstreamBatchMemOpParams* parameters, unsigned int flags) {
    return batch(stream, kLegacy, count, parameters, flags);
}
CUresult cuStreamBatchMemOp_v2_ptsz(CUstream stream, unsigned int count,
                                    CUstreamBatchMemOpParams* parameters, unsigned int flags) {
    return batch(stream, kPerThread, count, parameters, flags);
}
