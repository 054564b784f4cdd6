#include "native/softgpu/driver/memop.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include "native/softgpu/driver/context.h"
#include "native/softgpu/driver/memory.h"

namespace juice::softgpu {
namespace {

enum class OpKind : uint8_t { wait, write, barrier };

struct Op {
    OpKind kind = OpKind::barrier;
    uint64_t address = 0;
    size_t size = 0;  // 4 or 8
    uint64_t value = 0;
    unsigned flags = 0;
};

/// Empty for an operation that does not exist.
std::optional<Op> parse(const CUstreamBatchMemOpParams& p) {
    switch (p.operation) {
        case CU_STREAM_MEM_OP_WAIT_VALUE_32:
            return Op{OpKind::wait, p.waitValue.address, 4, p.waitValue.value, p.waitValue.flags};
        case CU_STREAM_MEM_OP_WAIT_VALUE_64:
            return Op{OpKind::wait, p.waitValue.address, 8, p.waitValue.value64, p.waitValue.flags};
        case CU_STREAM_MEM_OP_WRITE_VALUE_32:
            return Op{OpKind::write, p.writeValue.address, 4, p.writeValue.value,
                      p.writeValue.flags};
        case CU_STREAM_MEM_OP_WRITE_VALUE_64:
            return Op{OpKind::write, p.writeValue.address, 8, p.writeValue.value64,
                      p.writeValue.flags};
        case CU_STREAM_MEM_OP_BARRIER:
            return Op{};
        default:
            return std::nullopt;
    }
}

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

constexpr unsigned kMost = 256;

}  // namespace

CUresult MemopOperation::make(Context& context, unsigned count,
                              const CUstreamBatchMemOpParams* parameters, unsigned flags,
                              std::shared_ptr<MemopOperation>& made) {
    if (flags != 0 || count > kMost || (count > 0 && parameters == nullptr)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (unsigned i = 0; i < count; ++i) {
        const auto op = parse(parameters[i]);
        if (!op) return CUDA_ERROR_INVALID_VALUE;
        if (const CUresult failed = check(*op)) return failed;
    }
    made = std::shared_ptr<MemopOperation>(new MemopOperation(
        context, std::vector<CUstreamBatchMemOpParams>(parameters, parameters + count), flags));
    return CUDA_SUCCESS;
}

void MemopOperation::run() const {
    for (const auto& parameters : parameters_) {
        const auto op = parse(parameters);
        if (op->kind == OpKind::wait) waitFor(*op, context_);
        if (op->kind == OpKind::write) store(*op);
    }
}

}  // namespace juice::softgpu
