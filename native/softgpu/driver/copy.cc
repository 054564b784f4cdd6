#include "native/softgpu/driver/copy.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "native/gen/symbols.h"
#include "native/softgpu/driver/capture.h"
#include "native/softgpu/driver/context.h"
#include "native/softgpu/driver/device.h"
#include "native/softgpu/driver/memory.h"

namespace juice::softgpu {
namespace {

/// One side as CUDA_MEMCPY3D describes it.
struct Described {
    CUmemorytype type;
    const void* host;
    CUdeviceptr device;
    size_t x, y, z;        // where the copy begins: bytes, rows, slices
    size_t pitch, height;  // of the whole: bytes a row, rows a slice; 0: as wide as the copy
};

/// 1 for an impossible description, 801 for arrays, which the software GPU lacks.
CUresult resolve(const Described& described, const Extent& extent, Side& side) {
    uint64_t base = described.device;
    switch (described.type) {
        case CU_MEMORYTYPE_HOST:
            base = reinterpret_cast<uint64_t>(described.host);
            break;
        case CU_MEMORYTYPE_DEVICE:
        case CU_MEMORYTYPE_UNIFIED:
            break;
        case CU_MEMORYTYPE_ARRAY:
            return juice_unsupported("a copy with an array");
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
    const size_t pitch = described.pitch == 0 ? described.x + extent.width : described.pitch;
    const size_t height = described.height == 0 ? described.y + extent.height : described.height;
    const bool rows = extent.height > 1 || extent.depth > 1;
    if (rows && pitch < described.x + extent.width) return CUDA_ERROR_INVALID_VALUE;
    if (extent.depth > 1 && height < described.y + extent.height) return CUDA_ERROR_INVALID_VALUE;
    side.pitch = pitch;
    if (__builtin_mul_overflow(pitch, height, &side.slice)) return CUDA_ERROR_INVALID_VALUE;
    side.address = base + described.z * side.slice + described.y * pitch + described.x;
    side.device = described.type == CU_MEMORYTYPE_DEVICE;
    return CUDA_SUCCESS;
}

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

Place locate(const Side& side, const Extent& extent) {
    const auto bytes = span(side, extent);
    if (!bytes) return {CUDA_ERROR_INVALID_VALUE, false};
    const auto found = AddressSpace::instance().find(side.address);
    if (!found) {
        if (side.device || side.address < kLowestAddress) return {CUDA_ERROR_INVALID_VALUE, false};
        return {CUDA_SUCCESS, true};
    }
    if (*bytes > AddressSpace::instance().bytesFrom(side.address)) {
        // The program's own memory may begin with a registered part.
        if (side.device || !isHostKind(found->kind)) return {CUDA_ERROR_INVALID_VALUE, false};
        return {CUDA_SUCCESS, true};
    }
    return {};
}

/// Work that finds its memory gone, as that of a graph may, is a fault and not a crash.
bool stillThere(Context& context, const Side& side, const Extent& extent, bool pageable) {
    if (pageable || locate(side, extent).result == CUDA_SUCCESS) return true;
    context.device().fail(CUDA_ERROR_ILLEGAL_ADDRESS);
    return false;
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

/// What a fill touches.
Side sideOf(const CUDA_MEMSET_NODE_PARAMS& f) {
    return {f.dst, f.pitch, 0, true};
}
Extent bytesOf(const CUDA_MEMSET_NODE_PARAMS& f) {
    return {f.width * f.elementSize, f.height, 1};
}

bool empty(const CUDA_MEMSET_NODE_PARAMS& f) {
    return f.width == 0 || f.height == 0;
}

}  // namespace

CUresult CopyOperation::make(Context& context, const CUDA_MEMCPY3D& c,
                             std::shared_ptr<CopyOperation>& made) {
    if (c.srcLOD != 0 || c.dstLOD != 0) return CUDA_ERROR_INVALID_VALUE;
    std::shared_ptr<CopyOperation> copy(new CopyOperation(context, c));
    copy->extent_ = {c.WidthInBytes, c.Height, c.Depth};
    const Extent& extent = copy->extent_;
    const Described to{c.dstMemoryType, c.dstHost, c.dstDevice, c.dstXInBytes,
                       c.dstY,          c.dstZ,    c.dstPitch,  c.dstHeight};
    const Described from{c.srcMemoryType, c.srcHost, c.srcDevice, c.srcXInBytes,
                         c.srcY,          c.srcZ,    c.srcPitch,  c.srcHeight};
    if (const CUresult failed = resolve(to, extent, copy->to_)) return failed;
    if (const CUresult failed = resolve(from, extent, copy->from_)) return failed;
    if (!extent.empty()) {
        const Place target = locate(copy->to_, extent);
        const Place source = locate(copy->from_, extent);
        if (target.result != CUDA_SUCCESS) return target.result;
        if (source.result != CUDA_SUCCESS) return source.result;
        copy->toPageable_ = target.pageable;
        copy->fromPageable_ = source.pageable;
    }
    made = std::move(copy);
    return CUDA_SUCCESS;
}

void CopyOperation::run() const {
    if (extent_.empty()) return;
    if (!stillThere(context_, to_, extent_, toPageable_)) return;
    if (!stillThere(context_, from_, extent_, fromPageable_)) return;
    copyRows(to_, from_, extent_);
}

CUresult copy(Stream& stream, const CUDA_MEMCPY3D& described, Wait wait) {
    std::shared_ptr<CopyOperation> made;
    if (const CUresult failed = CopyOperation::make(stream.context(), described, made)) {
        return failed;
    }
    const bool capturing = isCapturing(stream);
    if (capturing && wait == Wait::yes) return refuseCaptured(stream);
    if (made->extent().empty()) return CUDA_SUCCESS;
    if (capturing) return submit(stream, std::move(made));

    if (wait == Wait::yes || made->toPageable()) {
        stream.run([&] { made->run(); });
        return stream.context().failure();
    }
    if (!made->fromPageable()) return submit(stream, std::move(made));
    if (stream.idle()) {
        stream.run([&] { made->run(); });
        return CUDA_SUCCESS;
    }
    const auto taken = std::make_shared<Snapshot>(made->from(), made->extent());
    stream.submit(
        {[made, taken] { copyRows(made->to(), taken->side, made->extent()); }, {}, false});
    return CUDA_SUCCESS;
}

CUresult FillOperation::make(Context& context, const CUDA_MEMSET_NODE_PARAMS& f,
                             std::shared_ptr<FillOperation>& made) {
    if (f.elementSize != 1 && f.elementSize != 2 && f.elementSize != 4) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!empty(f)) {
        size_t width = 0;
        if (f.dst % f.elementSize != 0) return CUDA_ERROR_INVALID_VALUE;
        if (__builtin_mul_overflow(f.width, size_t{f.elementSize}, &width)) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        if (f.height > 1 && (f.pitch < width || f.pitch % f.elementSize != 0)) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        const Place place = locate(sideOf(f), bytesOf(f));
        if (place.result != CUDA_SUCCESS) return place.result;
    }
    made = std::shared_ptr<FillOperation>(new FillOperation(context, f));
    return CUDA_SUCCESS;
}

void FillOperation::run() const {
    const CUDA_MEMSET_NODE_PARAMS& f = described_;
    if (empty(f) || !stillThere(context_, sideOf(f), bytesOf(f), false)) return;
    for (size_t y = 0; y < f.height; ++y) {
        const uint64_t row = f.dst + y * f.pitch;
        if (f.elementSize == 1) {
            fillRow(row, static_cast<uint8_t>(f.value), f.width);
        } else if (f.elementSize == 2) {
            fillRow(row, static_cast<uint16_t>(f.value), f.width);
        } else {
            fillRow(row, f.value, f.width);
        }
    }
}

CUresult fill(Stream& stream, const CUDA_MEMSET_NODE_PARAMS& described) {
    if (empty(described)) return CUDA_SUCCESS;
    std::shared_ptr<FillOperation> made;
    if (const CUresult failed = FillOperation::make(stream.context(), described, made)) {
        return failed;
    }
    return submit(stream, std::move(made));
}

}  // namespace juice::softgpu
