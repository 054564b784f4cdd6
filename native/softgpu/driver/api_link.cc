// The linker: takes one PTX, or one image that holds PTX, and gives back an image that loads. There
// is no machine code to link, so more than one input is refused.
#include <fstream>
#include <iterator>

#include "native/gen/symbols.h"
#include "native/softgpu/driver/guard.h"
#include "native/softgpu/driver/image.h"

using namespace juice::softgpu;

namespace {

struct LinkState {
    JitLog log;
    std::string ptx;
    bool filled = false;
};

template <typename Body>
CUresult withLink(CUlinkState handle, const Body& body) {
    return withDriver([&]() -> CUresult {
        const auto state = find<LinkState>(handle);
        return state ? body(*state) : CUDA_ERROR_INVALID_HANDLE;
    });
}

CUresult add(LinkState& state, CUjitInputType type, const void* data, size_t size) {
    if (data == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_JIT_INPUT_PTX && type != CU_JIT_INPUT_FATBINARY) {
        return juice_unsupported("linking of anything but PTX");
    }
    if (state.filled) return juice_unsupported("linking of more than one input");
    const CUresult result = readImageBytes(data, size, state.ptx);
    state.filled = result == CUDA_SUCCESS;
    return result;
}

}  // namespace

CUresult cuLinkCreate_v2(unsigned int count, CUjit_option* options, void** values,
                         CUlinkState* out) {
    return withContext([&](Context&) {
        if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
        auto state = std::make_shared<LinkState>(LinkState{JitLog(count, options, values), {}});
        *out = reinterpret_cast<CUlinkState>(Registry<LinkState>::instance().add(std::move(state)));
        return CUDA_SUCCESS;
    });
}
CUresult cuLinkCreate(unsigned int count, CUjit_option* options, void** values, CUlinkState* out) {
    return cuLinkCreate_v2(count, options, values, out);
}

CUresult cuLinkAddData_v2(CUlinkState handle, CUjitInputType type, void* data, size_t size,
                          const char*, unsigned int, CUjit_option*, void**) {
    return withLink(handle, [&](LinkState& state) { return add(state, type, data, size); });
}
CUresult cuLinkAddData(CUlinkState handle, CUjitInputType type, void* data, size_t size,
                       const char* name, unsigned int count, CUjit_option* options, void** values) {
    return cuLinkAddData_v2(handle, type, data, size, name, count, options, values);
}

CUresult cuLinkAddFile_v2(CUlinkState handle, CUjitInputType type, const char* path, unsigned int,
                          CUjit_option*, void**) {
    return withLink(handle, [&](LinkState& state) -> CUresult {
        if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
        std::ifstream file(path, std::ios::binary);
        if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
        const std::string bytes{std::istreambuf_iterator<char>(file), {}};
        return add(state, type, bytes.data(), bytes.size());
    });
}
CUresult cuLinkAddFile(CUlinkState handle, CUjitInputType type, const char* path,
                       unsigned int count, CUjit_option* options, void** values) {
    return cuLinkAddFile_v2(handle, type, path, count, options, values);
}

/// The image is the PTX itself, which lives until the state is destroyed. It is compiled here once,
/// so that its errors come where a linker reports them.
CUresult cuLinkComplete(CUlinkState handle, void** image, size_t* size) {
    return withLink(handle, [&](LinkState& state) -> CUresult {
        if (image == nullptr || !state.filled) return CUDA_ERROR_INVALID_VALUE;
        LoadedCode code;
        if (const CUresult failed = compile(state.ptx, &state.log, code)) return failed;
        *image = state.ptx.data();
        if (size != nullptr) *size = state.ptx.size() + 1;
        return CUDA_SUCCESS;
    });
}

CUresult cuLinkDestroy(CUlinkState handle) {
    return withDriver([&] {
        return Registry<LinkState>::instance().take(handle) ? CUDA_SUCCESS
                                                            : CUDA_ERROR_INVALID_HANDLE;
    });
}
