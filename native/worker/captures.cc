#include "native/worker/captures.h"

#include <algorithm>

namespace juice::worker {

bool Captures::capturing(CUstream stream) const {
    if (!any() || driver_.cuStreamIsCapturing == nullptr) return false;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return driver_.cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}

void Captures::began(CUstream stream, uint32_t context, uint32_t thread, CUstreamCaptureMode mode) {
    active_[stream] = {context, thread, mode};
}

void Captures::look(CUstream stream) {
    if (!capturing(stream)) active_.erase(stream);
}

void Captures::forgetOf(uint32_t context) {
    std::erase_if(active_, [context](const auto& one) { return one.second.context == context; });
}

bool Captures::forbidden(uint32_t thread) const {
    if (!any()) return false;
    const auto found = modes_.find(thread);
    const CUstreamCaptureMode mine =
        found == modes_.end() ? CU_STREAM_CAPTURE_MODE_GLOBAL : found->second;
    if (mine == CU_STREAM_CAPTURE_MODE_RELAXED) return false;
    return std::any_of(active_.begin(), active_.end(), [&](const auto& one) {
        const Active& capture = one.second;
        if (capture.thread == thread) return capture.mode != CU_STREAM_CAPTURE_MODE_RELAXED;
        return mine == CU_STREAM_CAPTURE_MODE_GLOBAL &&
               capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    });
}

}  // namespace juice::worker
