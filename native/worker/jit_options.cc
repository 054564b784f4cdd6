#include "native/worker/jit_options.h"

#include <algorithm>

namespace juice::worker {
namespace {

constexpr uint64_t kMaxLog = 128u << 10;

}  // namespace

void JitOptions::push(CUjit_option name, void* value) {
    names_.push_back(name);
    values_.push_back(value);
}

void JitOptions::addLog(CUjit_option buffer, CUjit_option size, uint64_t bytes, std::string& log) {
    log.assign(std::min(bytes, kMaxLog), '\0');
    push(buffer, log.data());
    push(size, reinterpret_cast<void*>(log.size()));
}

bool JitOptions::add(const custom::LoadOption& option) {
    switch (option.option) {
        case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
            if (!info_.empty()) return false;
            addLog(CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, option.value, info_);
            return true;
        case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
            if (!error_.empty()) return false;
            addLog(CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, option.value,
                   error_);
            return true;
        case CU_JIT_MAX_REGISTERS:
        case CU_JIT_THREADS_PER_BLOCK:
        case CU_JIT_WALL_TIME:
        case CU_JIT_OPTIMIZATION_LEVEL:
        case CU_JIT_TARGET_FROM_CUCONTEXT:
        case CU_JIT_TARGET:
        case CU_JIT_FALLBACK_STRATEGY:
        case CU_JIT_GENERATE_DEBUG_INFO:
        case CU_JIT_LOG_VERBOSE:
        case CU_JIT_GENERATE_LINE_INFO:
        case CU_JIT_CACHE_MODE:
        case CU_JIT_NEW_SM3X_OPT:
        case CU_JIT_FAST_COMPILE:
        case CU_JIT_LTO:
        case CU_JIT_FTZ:
        case CU_JIT_PREC_DIV:
        case CU_JIT_PREC_SQRT:
        case CU_JIT_FMA:
        case CU_JIT_OPTIMIZE_UNUSED_DEVICE_VARIABLES:
        case CU_JIT_POSITION_INDEPENDENT_CODE:
        case CU_JIT_MIN_CTA_PER_SM:
        case CU_JIT_MAX_THREADS_PER_BLOCK:
        case CU_JIT_OVERRIDE_DIRECTIVE_VALUES:
        case CU_JIT_SPLIT_COMPILE:
            push(static_cast<CUjit_option>(option.option), reinterpret_cast<void*>(option.value));
            return true;
        default:
            return false;
    }
}

void JitOptions::putLogs(Writer& out) const {
    float wallTime = 0;
    for (size_t i = 0; i < names_.size(); ++i)
        if (names_[i] == CU_JIT_WALL_TIME) std::memcpy(&wallTime, &values_[i], sizeof wallTime);
    // The buffers were zeros: the text ends where the driver stopped writing.
    out.text(info_.c_str()).text(error_.c_str()).put(wallTime);
}

}  // namespace juice::worker
