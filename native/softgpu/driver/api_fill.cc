// Fills.
#include "native/softgpu/driver/copy.h"
#include "native/softgpu/driver/guard.h"

using namespace juice::softgpu;

namespace {

constexpr DefaultStream kLegacy = DefaultStream::legacy;
constexpr DefaultStream kPerThread = DefaultStream::perThread;

struct Rows {
    size_t width = 0;  // elements
    size_t height = 1;
};

CUresult fillOn(CUstream stream, DefaultStream meaning, CUdeviceptr to, size_t pitch,
                uint32_t value, unsigned elementSize, const Rows& rows) {
    return withCapturable(stream, meaning, [&](Stream& on) {
        return fill(on, {to, pitch, value, elementSize, rows.width, rows.height});
    });
}

}  // namespace

// A fill never waits for its end, with stream or without.

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count) {
    return fillOn(nullptr, kLegacy, to, 0, value, 1, {count});
}
CUresult cuMemsetD8_v2_ptds(CUdeviceptr to, unsigned char value, size_t count) {
    return fillOn(nullptr, kPerThread, to, 0, value, 1, {count});
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
    return fillOn(stream, kLegacy, to, 0, value, 1, {count});
}
CUresult cuMemsetD8Async_ptsz(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
    return fillOn(stream, kPerThread, to, 0, value, 1, {count});
}
CUresult cuMemsetD2D8_v2(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                         size_t height) {
    return fillOn(nullptr, kLegacy, to, pitch, value, 1, {width, height});
}
CUresult cuMemsetD2D8_v2_ptds(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                              size_t height) {
    return fillOn(nullptr, kPerThread, to, pitch, value, 1, {width, height});
}
CUresult cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                           size_t height, CUstream stream) {
    return fillOn(stream, kLegacy, to, pitch, value, 1, {width, height});
}
CUresult cuMemsetD2D8Async_ptsz(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                                size_t height, CUstream stream) {
    return fillOn(stream, kPerThread, to, pitch, value, 1, {width, height});
}

CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count) {
    return fillOn(nullptr, kLegacy, to, 0, value, 2, {count});
}
CUresult cuMemsetD16_v2_ptds(CUdeviceptr to, unsigned short value, size_t count) {
    return fillOn(nullptr, kPerThread, to, 0, value, 2, {count});
}
CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
    return fillOn(stream, kLegacy, to, 0, value, 2, {count});
}
CUresult cuMemsetD16Async_ptsz(CUdeviceptr to, unsigned short value, size_t count,
                               CUstream stream) {
    return fillOn(stream, kPerThread, to, 0, value, 2, {count});
}
CUresult cuMemsetD2D16_v2(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                          size_t height) {
    return fillOn(nullptr, kLegacy, to, pitch, value, 2, {width, height});
}
CUresult cuMemsetD2D16_v2_ptds(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                               size_t height) {
    return fillOn(nullptr, kPerThread, to, pitch, value, 2, {width, height});
}
CUresult cuMemsetD2D16Async(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                            size_t height, CUstream stream) {
    return fillOn(stream, kLegacy, to, pitch, value, 2, {width, height});
}
CUresult cuMemsetD2D16Async_ptsz(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                                 size_t height, CUstream stream) {
    return fillOn(stream, kPerThread, to, pitch, value, 2, {width, height});
}

CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned int value, size_t count) {
    return fillOn(nullptr, kLegacy, to, 0, value, 4, {count});
}
CUresult cuMemsetD32_v2_ptds(CUdeviceptr to, unsigned int value, size_t count) {
    return fillOn(nullptr, kPerThread, to, 0, value, 4, {count});
}
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream stream) {
    return fillOn(stream, kLegacy, to, 0, value, 4, {count});
}
CUresult cuMemsetD32Async_ptsz(CUdeviceptr to, unsigned int value, size_t count, CUstream stream) {
    return fillOn(stream, kPerThread, to, 0, value, 4, {count});
}
CUresult cuMemsetD2D32_v2(CUdeviceptr to, size_t pitch, unsigned int value, size_t width,
                          size_t height) {
    return fillOn(nullptr, kLegacy, to, pitch, value, 4, {width, height});
}
CUresult cuMemsetD2D32_v2_ptds(CUdeviceptr to, size_t pitch, unsigned int value, size_t width,
                               size_t height) {
    return fillOn(nullptr, kPerThread, to, pitch, value, 4, {width, height});
}
CUresult cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned int value, size_t width,
                            size_t height, CUstream stream) {
    return fillOn(stream, kLegacy, to, pitch, value, 4, {width, height});
}
CUresult cuMemsetD2D32Async_ptsz(CUdeviceptr to, size_t pitch, unsigned int value, size_t width,
                                 size_t height, CUstream stream) {
    return fillOn(stream, kPerThread, to, pitch, value, 4, {width, height});
}
