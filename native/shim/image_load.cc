#include "native/shim/image_load.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>

#include "native/gen/symbols.h"
#include "native/link/keys.h"
#include "native/shim/copy.h"
#include "native/shim/say.h"

namespace juice::shim {
namespace {

std::vector<custom::PartName> nameParts(const image::Image& image) {
    std::vector<custom::PartName> names;
    for (const image::Bytes part : image.parts) {
        custom::PartName name{};
        const auto hash = sha256(part);
        std::memcpy(name.sha256, hash.data(), sizeof name.sha256);
        name.size = part.size();
        names.push_back(name);
    }
    return names;
}

CUresult upload(const Context* context, const custom::PartName& name, image::Bytes part) {
    custom::ImagePart call{name, 0};
    if (part.size() > wire::kInlineLimit) {
        call.transfer = session::link()->mintTransfer();
        return postWithData(Op::juiceImagePart, context, bytesOfCall(call), call.transfer,
                            part.data(), part.size());
    }
    Writer payload;
    custom::put(payload, call);
    payload.raw(part.data(), part.size());
    return post(Op::juiceImagePart, context, payload.view());
}

/// Reads a KernelPage. Returns how many kernels there are in all.
uint32_t readKernels(Reader& in, Contents& contents) {
    const auto all = in.get<uint32_t>();
    const auto here = in.get<uint32_t>();
    for (uint32_t i = 0; i < here && in.ok(); ++i) {
        auto code = std::make_unique<Code>();
        code->name = in.text();
        const auto count = in.get<uint32_t>();
        for (uint32_t j = 0; j < count && in.ok(); ++j) {
            const auto offset = in.get<uint32_t>();
            const auto size = in.get<uint32_t>();
            if (offset > custom::kMaxParamBytes || size > custom::kMaxParamBytes) in.fail();
            code->parameters.push_back({offset, size});
            code->parameterBytes = std::max(code->parameterBytes, offset + size);
        }
        if (in.ok()) contents.codes.push_back(std::move(code));
    }
    return all;
}

/// The first page is in `in`; asks for the others.
CUresult readContents(Reader& in, uint64_t id, const Context* context, Contents& contents) {
    uint32_t all = readKernels(in, contents);
    while (in.done() && contents.codes.size() < all) {
        const auto from = static_cast<uint32_t>(contents.codes.size());
        Reply reply;
        const CUresult result =
            call(Op::juiceKernelList, context, bytesOfCall(custom::KernelList{id, from, 0}), reply,
                 Deferred::keep);
        if (result != CUDA_SUCCESS) return result;
        Reader page = reply.reader();
        all = readKernels(page, contents);
        if (!page.done() || contents.codes.size() == from) return CUDA_ERROR_UNKNOWN;
    }
    if (!in.done()) return CUDA_ERROR_UNKNOWN;
    for (const auto& code : contents.codes) contents.byName.emplace(code->name, code.get());
    return CUDA_SUCCESS;
}

Writer loadCall(uint64_t id, const image::Image& image, const LoadOptions& options,
                const std::vector<custom::PartName>& names) {
    custom::ImageLoad load{};
    load.id = id;
    load.kind = static_cast<uint32_t>(image.kind);
    load.wrapperVersion = image.wrapperVersion;
    load.parts = static_cast<uint32_t>(names.size());
    load.jitOptions = static_cast<uint32_t>(options.jit().size());
    Writer payload;
    custom::put(payload, load);
    for (const auto& name : names) custom::put(payload, name);
    for (const auto& option : options.jit()) custom::put(payload, option);
    return payload;
}

}  // namespace

CUresult LoadOptions::read(unsigned count, CUjit_option* options, void** values) {
    if (count == 0) return CUDA_SUCCESS;
    if (options == nullptr || values == nullptr || count > custom::kMaxLoadOptions)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; ++i) {
        auto value = reinterpret_cast<uint64_t>(values[i]);
        switch (options[i]) {
            case CU_JIT_INFO_LOG_BUFFER:
                info_.buffer = static_cast<char*>(values[i]);
                continue;
            case CU_JIT_ERROR_LOG_BUFFER:
                error_.buffer = static_cast<char*>(values[i]);
                continue;
            case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
            case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES: {
                Log& log = options[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES ? info_ : error_;
                log.size = static_cast<uint32_t>(value);
                log.sizeOut = &values[i];
                value = log.size;
                break;
            }
            case CU_JIT_WALL_TIME:
                wallTime_ = &values[i];
                value = 0;
                break;
            case CU_JIT_GLOBAL_SYMBOL_NAMES:
            case CU_JIT_GLOBAL_SYMBOL_ADDRESSES:
            case CU_JIT_REFERENCED_KERNEL_NAMES:
            case CU_JIT_REFERENCED_VARIABLE_NAMES:
                return juice_unsupported("a JIT option that names symbols");
            default:
                break;
        }
        jit_.push_back({static_cast<uint32_t>(options[i]), 0, value});
    }
    return CUDA_SUCCESS;
}

CUresult LoadOptions::readLibrary(unsigned count, CUlibraryOption* options, void** values) {
    // Both options there are speak of the program's own memory (a table of its host functions, and
    // whether the image stays where it is), of which the worker knows nothing.
    return count == 0 || options != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

void LoadOptions::Log::fill(std::string_view text) const {
    if (sizeOut != nullptr) *sizeOut = reinterpret_cast<void*>(std::min(text.size(), size));
    if (buffer == nullptr || size == 0) return;
    const size_t length = std::min(text.size(), size - 1);
    std::memcpy(buffer, text.data(), length);
    buffer[length] = '\0';
}

void LoadOptions::answer(std::string_view info, std::string_view error, float milliseconds) {
    info_.fill(info);
    error_.fill(error);
    // The driver, too, puts a float into the pointer's place.
    if (wallTime_ != nullptr) std::memcpy(wallTime_, &milliseconds, sizeof milliseconds);
}

CUresult loadImage(Op op, uint64_t id, const Context* context, const image::Image& image,
                   LoadOptions& options, std::shared_ptr<Contents>& contents) {
    if (image.parts.size() > custom::kMaxParts) return CUDA_ERROR_INVALID_IMAGE;
    const auto names = nameParts(image);
    const Writer payload = loadCall(id, image, options, names);
    for (int attempt = 0; attempt < 2; ++attempt) {
        Reply reply;
        const CUresult result = call(op, context, payload.view(), reply, Deferred::keep);
        if (reply.broken) return result;
        Reader in = reply.reader();
        if (in.get<custom::LoadStatus>() == custom::LoadStatus::missing && in.ok()) {
            const auto count = in.get<uint32_t>();
            for (uint32_t i = 0; i < count && in.ok(); ++i) {
                const auto index = in.get<uint32_t>();
                if (!in.ok() || index >= names.size()) return CUDA_ERROR_UNKNOWN;
                if (const CUresult sent = upload(context, names[index], image.parts[index]))
                    return sent;
            }
            if (!in.done()) return CUDA_ERROR_UNKNOWN;
            continue;
        }
        const std::string_view info = in.text(), error = in.text();
        const auto milliseconds = in.get<float>();
        if (in.ok()) options.answer(info, error, milliseconds);
        if (result != CUDA_SUCCESS) {
            if (in.ok() && !error.empty())
                whisper("%s: %.*s", opName(static_cast<uint16_t>(op)),
                        static_cast<int>(error.size()), error.data());
            return result;
        }
        contents = std::make_shared<Contents>();
        return readContents(in, id, context, *contents);
    }
    say("the GPU host has no room for this program's code: give its worker a larger --cache");
    return CUDA_ERROR_OUT_OF_MEMORY;
}

std::optional<std::vector<uint8_t>> readFile(const char* path) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path, "rbe"),
                                                               std::fclose);
    if (file == nullptr) return std::nullopt;
    std::vector<uint8_t> bytes;
    uint8_t block[1u << 16];
    while (const size_t n = std::fread(block, 1, sizeof block, file.get()))
        bytes.insert(bytes.end(), block, block + n);
    if (std::ferror(file.get()) != 0) return std::nullopt;
    bytes.push_back(0);
    return bytes;
}

}  // namespace juice::shim
