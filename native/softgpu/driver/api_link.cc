// The linker: takes PTX, or images that hold PTX, and gives back one image that loads: the PTX of
// all of them behind each other, each a unit of its own. There is no machine code to link.
#include <fstream>
#include <iterator>

#include "native/gen/symbols.h"
#include "native/softgpu/driver/guard.h"
#include "native/softgpu/driver/image.h"

using namespace juice::softgpu;

namespace {

struct LinkState {
    JitLog log;
    std::string ptx;  // of all inputs so far
    bool completed = false;
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
    if (state.completed) return CUDA_ERROR_INVALID_VALUE;
    switch (type) {
        case CU_JIT_INPUT_PTX:
        case CU_JIT_INPUT_FATBINARY:
            break;
        case CU_JIT_INPUT_CUBIN:
            return juice_unsupported("linking of machine code (a cubin)");
        case CU_JIT_INPUT_OBJECT:
        case CU_JIT_INPUT_LIBRARY:
            return juice_unsupported("linking of host objects and libraries");
        case CU_JIT_INPUT_NVVM:
            return juice_unsupported("linking of NVVM code");
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
    std::string ptx;
    if (const CUresult failed = readImageBytes(data, size, ptx)) return failed;
    if (!state.ptx.empty()) state.ptx += '\n';
    state.ptx += ptx;
    return CUDA_SUCCESS;
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
        if (image == nullptr || state.ptx.empty()) return CUDA_ERROR_INVALID_VALUE;
        LoadedCode code;
        if (const CUresult failed = compile(state.ptx, &state.log, code)) return failed;
        state.completed = true;
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
