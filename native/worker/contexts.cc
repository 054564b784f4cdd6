#include "native/worker/contexts.h"

namespace juice::worker {

bool isSticky(CUresult result) {
    switch (result) {
        case CUDA_ERROR_ECC_UNCORRECTABLE:
        case CUDA_ERROR_NVLINK_UNCORRECTABLE:
        case CUDA_ERROR_ILLEGAL_ADDRESS:
        case CUDA_ERROR_LAUNCH_TIMEOUT:
        case CUDA_ERROR_ASSERT:
        case CUDA_ERROR_HARDWARE_STACK_ERROR:
        case CUDA_ERROR_ILLEGAL_INSTRUCTION:
        case CUDA_ERROR_MISALIGNED_ADDRESS:
        case CUDA_ERROR_INVALID_ADDRESS_SPACE:
        case CUDA_ERROR_INVALID_PC:
        case CUDA_ERROR_LAUNCH_FAILED:
        case CUDA_ERROR_TENSOR_MEMORY_LEAK:
        case CUDA_ERROR_CONTAINED:
            return true;
        default:
            return false;
    }
}

uint64_t Contexts::idOf(CUcontext handle) const {
    for (const auto& [id, context] : live_)
        if (context->handle == handle) return context->id;
    return 0;
}

std::shared_ptr<Context> Contexts::primaryOf(CUdevice device) const {
    for (const auto& [id, context] : live_)
        if (context->primary && context->device == device) return context;
    return nullptr;
}

bool Contexts::add(uint64_t id, CUcontext handle, CUdevice device, bool primary) {
    const auto name = static_cast<uint32_t>(id);
    if (name == 0 || live_.size() >= kMaxContexts || live_.contains(name)) return false;
    auto context = std::make_shared<Context>();
    context->id = id;
    context->handle = handle;
    context->device = device;
    context->primary = primary;
    const std::lock_guard lock(mutex_);
    live_.emplace(name, std::move(context));
    return true;
}

void Contexts::remove(uint64_t id) {
    const std::lock_guard lock(mutex_);
    live_.erase(static_cast<uint32_t>(id));
}

CUresult Contexts::threadStream(const DriverTable& driver, Context& context, uint32_t thread,
                                CUstream& out) {
    const auto it = context.threadStreams.find(thread);
    if (it != context.threadStreams.end()) {
        out = it->second;
        return CUDA_SUCCESS;
    }
    if (context.threadStreams.size() >= kMaxThreads) return CUDA_ERROR_OUT_OF_MEMORY;
    const CUresult result = driver.cuStreamCreate(&out, CU_STREAM_DEFAULT);
    if (result == CUDA_SUCCESS) context.threadStreams.emplace(thread, out);
    return result;
}

}  // namespace juice::worker
