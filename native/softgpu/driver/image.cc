#include "native/softgpu/driver/image.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "native/image/entries.h"
#include "native/softgpu/driver/device.h"

namespace juice::softgpu {
namespace {

CUresult choose(const std::optional<image::Image>& measured, std::string& ptx) {
    if (!measured) return CUDA_ERROR_INVALID_IMAGE;
    image::PtxChoice choice = image::choosePtx(*measured, kSm);
    switch (choice.status) {
        case image::PtxStatus::found:
            ptx = std::move(choice.text);
            return CUDA_SUCCESS;
        case image::PtxStatus::corrupt:
            return CUDA_ERROR_INVALID_IMAGE;
        case image::PtxStatus::none:
            break;
    }
    std::fprintf(stderr,
                 "juice softgpu: an image holds no PTX for compute capability 9.0 or lower, only "
                 "machine code; compile with -gencode arch=compute_75,code=compute_75\n");
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
}

/// 75 for a text with ".target sm_75".
int targetOf(const std::string& ptx) {
    static constexpr char kTarget[] = ".target";
    const size_t at = ptx.find(kTarget);
    const size_t name = at == std::string::npos ? at : ptx.find("sm_", at);
    return name == std::string::npos ? 0 : std::atoi(ptx.c_str() + name + 3);
}

}  // namespace

JitLog::JitLog(unsigned count, const CUjit_option* options, void** values) {
    if (options == nullptr || values == nullptr) return;
    for (unsigned i = 0; i < count; ++i) {
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER) buffer_ = static_cast<char*>(values[i]);
        if (options[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES) infoWritten_ = &values[i];
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) {
            written_ = &values[i];
            size_ = static_cast<unsigned>(reinterpret_cast<uintptr_t>(values[i]));
        }
    }
}

void JitLog::nothing() {
    if (written_ != nullptr) *written_ = nullptr;
    if (infoWritten_ != nullptr) *infoWritten_ = nullptr;
}

bool JitLog::error(const std::string& message) {
    if (buffer_ == nullptr || size_ == 0) return false;
    const size_t length = std::min(message.size(), size_ - 1);
    std::memcpy(buffer_, message.data(), length);
    buffer_[length] = 0;
    *written_ = reinterpret_cast<void*>(length);
    return true;
}

CUresult readImage(const void* image, std::string& ptx) {
    return choose(image::measure(image), ptx);
}

CUresult readImageBytes(const void* image, size_t size, std::string& ptx) {
    return choose(image::measure(image::Bytes(static_cast<const uint8_t*>(image), size)), ptx);
}

CUresult readImageFile(const char* path, std::string& ptx) {
    std::ifstream file(path, std::ios::binary);
    if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
    const std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(file), {}};
    return readImageBytes(bytes.data(), bytes.size(), ptx);
}

CUresult compile(const std::string& ptx, JitLog* log, LoadedCode& code) {
    if (log != nullptr) log->nothing();
    LoadError error;
    if (!code.managed) code.managed = std::make_shared<ManagedVariables>();
    auto program = Program::load(ptx, error, [&](const std::string& name, size_t size, size_t) {
        return code.managed->place(name, size);
    });
    if (!program) {
        std::fprintf(stderr, "juice softgpu: module refused: %s\n", error.message.c_str());
        if (log != nullptr) log->error(error.message + "\n");
        return static_cast<CUresult>(error.curesult);
    }
    code.program = std::move(program);
    code.target = targetOf(ptx);
    return CUDA_SUCCESS;
}

}  // namespace juice::softgpu
