// Stream memory operations: a stream that waits for a value in memory, or writes one.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "native/softgpu/driver/guard.h"
#include "native/softgpu/driver/memory.h"

using namespace juice::softgpu;

namespace {

constexpr DefaultStream kLegacy = DefaultStream::legacy;
constexpr DefaultStream kPerThread = DefaultStream::perThread;

enum class OpKind : uint8_t { wait, write, barrier };

struct Op {
    OpKind kind = OpKind::barrier;
    uint64_t address = 0;
    size_t size = 0;  // 4 or 8
    uint64_t value = 0;
    unsigned flags = 0;
};

uint64_t load(const Op& op) {
    if (op.size == 8) {
        return std::atomic_ref(*reinterpret_cast<uint64_t*>(op.address)).load();
    }
    return std::atomic_ref(*reinterpret_cast<uint32_t*>(op.address)).load();
}

void store(const Op& op) {
    if (op.size == 8) {
        std::atomic_ref(*reinterpret_cast<uint64_t*>(op.address)).store(op.value);
    } else {
        std::atomic_ref(*reinterpret_cast<uint32_t*>(op.address))
            .store(static_cast<uint32_t>(op.value));
    }
}

bool reached(const Op& op) {
    const uint64_t now = load(op);
    switch (op.flags & ~static_cast<unsigned>(CU_STREAM_WAIT_VALUE_FLUSH)) {
        case CU_STREAM_WAIT_VALUE_GEQ:
            // Cyclic, so that a counter may wrap.
            return op.size == 8 ? static_cast<int64_t>(now - op.value) >= 0
                                : static_cast<int32_t>(static_cast<uint32_t>(now - op.value)) >= 0;
        case CU_STREAM_WAIT_VALUE_EQ:
            return now == op.value;
        case CU_STREAM_WAIT_VALUE_AND:
            return (now & op.value) != 0;
        default: {
            const uint64_t mask = op.size == 8 ? UINT64_MAX : UINT32_MAX;
            return (~(now | op.value) & mask) != 0;
        }
    }
}

/// Polls; ever more rarely, since whoever writes the value may need this core.
void waitFor(const Op& op, const Context& context) {
    constexpr auto kLongest = std::chrono::microseconds(200);
    auto pause = std::chrono::microseconds(1);
    while (!reached(op) && !context.failed() && !*context.cancelled()) {
        std::this_thread::sleep_for(pause);
        pause = std::min(pause * 2, kLongest);
    }
}

CUresult check(const Op& op) {
    if (op.kind == OpKind::barrier) return CUDA_SUCCESS;
    const auto memory = AddressSpace::instance().find(op.address);
    if (!memory || op.size > memory->end() - op.address || op.address % op.size != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const unsigned condition = op.flags & ~static_cast<unsigned>(CU_STREAM_WAIT_VALUE_FLUSH);
    constexpr unsigned kLastWait = CU_STREAM_WAIT_VALUE_NOR;
    constexpr unsigned kLastWrite = CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER;
    const unsigned highest = op.kind == OpKind::wait ? kLastWait : kLastWrite;
    return condition <= highest ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult submit(CUstream handle, DefaultStream meaning, const std::vector<Op>& ops) {
    return withStream(handle, meaning, [&](Stream& stream) -> CUresult {
        for (const Op& op : ops) {
            if (const CUresult failed = check(op)) return failed;
        }
        Context& context = stream.context();
        stream.submit({[ops, &context] {
                           for (const Op& op : ops) {
                               if (op.kind == OpKind::wait) waitFor(op, context);
                               if (op.kind == OpKind::write) store(op);
                           }
                       },
                       {},
                       false});
        return CUDA_SUCCESS;
    });
}

CUresult batch(CUstream handle, DefaultStream meaning, unsigned count,
               const CUstreamBatchMemOpParams* parameters, unsigned flags) {
    if (flags != 0 || count > 256 || (count > 0 && parameters == nullptr)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    std::vector<Op> ops;
    for (unsigned i = 0; i < count; ++i) {
        const CUstreamBatchMemOpParams& p = parameters[i];
        switch (p.operation) {
            case CU_STREAM_MEM_OP_WAIT_VALUE_32:
                ops.push_back(
                    {OpKind::wait, p.waitValue.address, 4, p.waitValue.value, p.waitValue.flags});
                break;
            case CU_STREAM_MEM_OP_WAIT_VALUE_64:
                ops.push_back(
                    {OpKind::wait, p.waitValue.address, 8, p.waitValue.value64, p.waitValue.flags});
                break;
            case CU_STREAM_MEM_OP_WRITE_VALUE_32:
                ops.push_back({OpKind::write, p.writeValue.address, 4, p.writeValue.value,
                               p.writeValue.flags});
                break;
            case CU_STREAM_MEM_OP_WRITE_VALUE_64:
                ops.push_back({OpKind::write, p.writeValue.address, 8, p.writeValue.value64,
                               p.writeValue.flags});
                break;
            case CU_STREAM_MEM_OP_BARRIER:
                ops.push_back({});
                break;
            default:
                return CUDA_ERROR_INVALID_VALUE;
        }
    }
    return submit(handle, meaning, ops);
}

}  // namespace

CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, unsigned int value,
                                unsigned int flags) {
    return submit(stream, kLegacy, {{OpKind::wait, address, 4, value, flags}});
}
CUresult cuStreamWaitValue32_v2_ptsz(CUstream stream, CUdeviceptr address, unsigned int value,
                                     unsigned int flags) {
    return submit(stream, kPerThread, {{OpKind::wait, address, 4, value, flags}});
}
CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, unsigned long long value,
                                unsigned int flags) {
    return submit(stream, kLegacy, {{OpKind::wait, address, 8, value, flags}});
}
CUresult cuStreamWaitValue64_v2_ptsz(CUstream stream, CUdeviceptr address, unsigned long long value,
                                     unsigned int flags) {
    return submit(stream, kPerThread, {{OpKind::wait, address, 8, value, flags}});
}
CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, unsigned int value,
                                 unsigned int flags) {
    return submit(stream, kLegacy, {{OpKind::write, address, 4, value, flags}});
}
CUresult cuStreamWriteValue32_v2_ptsz(CUstream stream, CUdeviceptr address, unsigned int value,
                                      unsigned int flags) {
    return submit(stream, kPerThread, {{OpKind::write, address, 4, value, flags}});
}
CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, unsigned long long value,
                                 unsigned int flags) {
    return submit(stream, kLegacy, {{OpKind::write, address, 8, value, flags}});
}
CUresult cuStreamWriteValue64_v2_ptsz(CUstream stream, CUdeviceptr address,
                                      unsigned long long value, unsigned int flags) {
    return submit(stream, kPerThread, {{OpKind::write, address, 8, value, flags}});
}
CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count,
                               CUstreamBatchMemOpParams* parameters, unsigned int flags) {
    return batch(stream, kLegacy, count, parameters, flags);
}
CUresult cuStreamBatchMemOp_v2_ptsz(CUstream stream, unsigned int count,
                                    CUstreamBatchMemOpParams* parameters, unsigned int flags) {
    return batch(stream, kPerThread, count, parameters, flags);
}
