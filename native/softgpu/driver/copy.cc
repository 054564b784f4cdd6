#include "native/softgpu/driver/copy.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "native/softgpu/driver/context.h"
#include "native/softgpu/driver/memory.h"

namespace juice::softgpu {
namespace {

/// From the first byte touched to behind the last. Empty when that overflows.
std::optional<size_t> span(const Side& side, const Extent& extent) {
    size_t bytes = 0;
    size_t product = 0;
    if (__builtin_mul_overflow(side.pitch, extent.height - 1, &product)) return std::nullopt;
    if (__builtin_add_overflow(extent.width, product, &bytes)) return std::nullopt;
    if (__builtin_mul_overflow(side.slice, extent.depth - 1, &product)) return std::nullopt;
    if (__builtin_add_overflow(bytes, product, &bytes)) return std::nullopt;
    return bytes;
}

/// No program has memory below; null and its neighbours are caught here.
constexpr uint64_t kLowestAddress = 65536;

/// The memory behind one side.
struct Place {
    CUresult result = CUDA_SUCCESS;
    bool pageable = false;
};

Place locate(const Side& side, size_t bytes) {
    const auto found = AddressSpace::instance().find(side.address);
    if (!found) {
        if (side.device || side.address < kLowestAddress) return {CUDA_ERROR_INVALID_VALUE, false};
        return {CUDA_SUCCESS, true};
    }
    if (bytes > found->end() - side.address) {
        // The program's own memory may begin with a registered part.
        if (side.device || !isHostKind(found->kind)) return {CUDA_ERROR_INVALID_VALUE, false};
        return {CUDA_SUCCESS, true};
    }
    return {};
}

void copyRows(const Side& to, const Side& from, const Extent& extent) {
    for (size_t z = 0; z < extent.depth; ++z) {
        for (size_t y = 0; y < extent.height; ++y) {
            std::memmove(
                reinterpret_cast<void*>(to.address + z * to.slice + y * to.pitch),
                reinterpret_cast<const void*>(from.address + z * from.slice + y * from.pitch),
                extent.width);
        }
    }
}

/// The source as it is now, packed.
struct Snapshot {
    std::vector<uint8_t> bytes;
    Side side;

    Snapshot(const Side& from, const Extent& extent)
        : bytes(extent.width * extent.height * extent.depth) {
        side.address = reinterpret_cast<uint64_t>(bytes.data());
        side.pitch = extent.width;
        side.slice = extent.width * extent.height;
        copyRows(side, from, extent);
    }
};

template <typename T>
void fillRow(uint64_t address, T value, size_t count) {
    std::fill_n(reinterpret_cast<T*>(address), count, value);
}

}  // namespace

CUresult copy(Stream& stream, const Side& to, const Side& from, const Extent& extent, Wait wait) {
    if (extent.width == 0 || extent.height == 0 || extent.depth == 0) return CUDA_SUCCESS;
    const auto toBytes = span(to, extent);
    const auto fromBytes = span(from, extent);
    if (!toBytes || !fromBytes) return CUDA_ERROR_INVALID_VALUE;
    const Place target = locate(to, *toBytes);
    const Place source = locate(from, *fromBytes);
    if (target.result != CUDA_SUCCESS) return target.result;
    if (source.result != CUDA_SUCCESS) return source.result;

    if (wait == Wait::yes || target.pageable) {
        stream.run([=] { copyRows(to, from, extent); });
        return stream.context().failure();
    }
    if (source.pageable && !stream.idle()) {
        const auto taken = std::make_shared<Snapshot>(from, extent);
        stream.submit({[=] { copyRows(to, taken->side, extent); }, {}, false});
    } else if (source.pageable) {
        stream.run([=] { copyRows(to, from, extent); });
    } else {
        stream.submit({[=] { copyRows(to, from, extent); }, {}, false});
    }
    return CUDA_SUCCESS;
}

CUresult fill(Stream& stream, uint64_t address, size_t pitch, uint32_t value, size_t elementSize,
              const Extent& extent) {
    if (extent.width == 0 || extent.height == 0) return CUDA_SUCCESS;
    if (address % elementSize != 0) return CUDA_ERROR_INVALID_VALUE;
    Extent bytes = extent;
    if (__builtin_mul_overflow(extent.width, elementSize, &bytes.width)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (extent.height > 1 && (pitch < bytes.width || pitch % elementSize != 0)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const Side side{address, pitch, 0, true};
    const auto size = span(side, bytes);
    if (!size) return CUDA_ERROR_INVALID_VALUE;
    if (const Place place = locate(side, *size); place.result != CUDA_SUCCESS) return place.result;
    stream.submit({[=] {
                       for (size_t y = 0; y < extent.height; ++y) {
                           const uint64_t row = address + y * pitch;
                           if (elementSize == 1) {
                               fillRow(row, static_cast<uint8_t>(value), extent.width);
                           } else if (elementSize == 2) {
                               fillRow(row, static_cast<uint16_t>(value), extent.width);
                           } else {
                               fillRow(row, value, extent.width);
                           }
                       }
                   },
                   {},
                   false});
    return CUDA_SUCCESS;
}

}  // namespace juice::softgpu
