// Copies of boxes: 2D and 3D, between pitched linear memories.
#include <sys/mman.h>

#include <limits>

#include "native/gen/custom_handlers.h"
#include "native/worker/transfer.h"
#include "native/worker/worker.h"

namespace juice::worker {
namespace {

using custom::Place;

/// Host memory for the packed rows of one copy.
class Packed {
  public:
    explicit Packed(uint64_t size)
        : size_(size),
          data_(mmap(nullptr, size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
    ~Packed() {
        if (data_ != MAP_FAILED) munmap(data_, size_);
    }
    Packed(const Packed&) = delete;
    Packed& operator=(const Packed&) = delete;
    uint8_t* data() const { return data_ == MAP_FAILED ? nullptr : static_cast<uint8_t*>(data_); }

  private:
    uint64_t size_;
    void* data_;
};

/// a * b, or the largest number when that does not fit.
uint64_t times(uint64_t a, uint64_t b) {
    uint64_t out = 0;
    return __builtin_mul_overflow(a, b, &out) ? std::numeric_limits<uint64_t>::max() : out;
}
uint64_t plus(uint64_t a, uint64_t b) {
    uint64_t out = 0;
    return __builtin_add_overflow(a, b, &out) ? std::numeric_limits<uint64_t>::max() : out;
}

/// From the first byte of the box to behind its last.
uint64_t extent(const custom::CopyBox& box, const custom::BoxSide& side) {
    const uint64_t slice = times(side.pitch, side.height);
    return plus(plus(times(slice, box.depth - 1), times(side.pitch, box.height - 1)), box.width);
}

bool sound(const custom::CopyBox& box, const custom::BoxSide& side) {
    const auto place = static_cast<Place>(side.place);
    if (place == Place::inlined || place == Place::transfer) return true;
    return side.pitch >= box.width && (box.depth == 1 || side.height >= box.height);
}

struct Copy {
    custom::CopyBox box{};
    CUstream stream = nullptr;
    uint64_t bytes = 0;  // packed
    Place source{}, target{};
    Bytes inlined;
};

bool isPacked(Place place) {
    return place == Place::inlined || place == Place::transfer;
}

/// False when the payload makes no sense at all.
bool decode(Incoming& in, Copy& out) {
    out.box = custom::get<custom::CopyBox>(in.reader());
    out.source = static_cast<Place>(out.box.source.place);
    out.target = static_cast<Place>(out.box.target.place);
    out.bytes = times(times(out.box.width, out.box.height), out.box.depth);
    const bool sane = out.source <= Place::device && out.target <= Place::device &&
                      (out.source == Place::device || out.target == Place::device) &&
                      out.bytes != 0 && out.bytes <= uint64_t{1} << 46 &&
                      ((out.source != Place::inlined && out.target != Place::inlined) ||
                       out.bytes <= wire::kInlineLimit);
    if (!sane) {
        in.reader().fail();
        return false;
    }
    if (out.source == Place::inlined) out.inlined = in.reader().take(out.bytes);
    return true;
}

/// The side's memory: checked to be the client's, with its mirror where it is one.
CUresult check(Incoming& in, const Copy& copy, const custom::BoxSide& side,
               std::shared_ptr<Mirror>& mirror) {
    const auto place = static_cast<Place>(side.place);
    if (!sound(copy.box, side)) return CUDA_ERROR_INVALID_VALUE;
    const uint64_t size = extent(copy.box, side);
    if (place == Place::device && !in.worker().memory.accessible(side.where, size))
        return CUDA_ERROR_INVALID_VALUE;
    if (place == Place::mirror) {
        mirror = in.worker().mirrors.holding(side.where, size);
        if (mirror == nullptr) return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

CUDA_MEMCPY3D describe(const Copy& copy, uint8_t* packed) {
    const custom::CopyBox& box = copy.box;
    CUDA_MEMCPY3D out{};
    out.WidthInBytes = box.width;
    out.Height = box.height;
    out.Depth = box.depth;
    const bool fromDevice = copy.source == Place::device, toDevice = copy.target == Place::device;
    out.srcMemoryType = fromDevice ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
    out.srcDevice = fromDevice ? box.source.where : 0;
    if (!fromDevice)
        out.srcHost =
            isPacked(copy.source) ? packed : reinterpret_cast<const void*>(box.source.where);
    out.srcPitch = isPacked(copy.source) ? box.width : box.source.pitch;
    out.srcHeight = isPacked(copy.source) ? box.height : box.source.height;
    out.dstMemoryType = toDevice ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
    out.dstDevice = toDevice ? box.target.where : 0;
    if (!toDevice)
        out.dstHost = isPacked(copy.target) ? packed : reinterpret_cast<void*>(box.target.where);
    out.dstPitch = isPacked(copy.target) ? box.width : box.target.pitch;
    out.dstHeight = isPacked(copy.target) ? box.height : box.target.height;
    return out;
}

/// Packs what the device wrote into a mirror, row by row.
void pack(const custom::CopyBox& box, uint8_t* out) {
    for (uint64_t z = 0; z < box.depth; ++z)
        for (uint64_t y = 0; y < box.height; ++y, out += box.width)
            std::memcpy(out,
                        reinterpret_cast<const uint8_t*>(
                            box.target.where + (z * box.target.height + y) * box.target.pitch),
                        box.width);
}

/// Sends the packed bytes; they live until they have left.
void send(Worker& worker, uint64_t transfer, uint64_t size, std::shared_ptr<Packed> packed) {
    const uint64_t ordinal = worker.link.beginSend(transfer, size);
    const void* const data = packed->data();
    worker.link.sendPiece(transfer, ordinal, 0, data, size, [packed = std::move(packed)] {});
}

CUresult finish(Incoming& in, const Copy& copy, const std::shared_ptr<Packed>& packed,
                const std::shared_ptr<Mirror>& mirror) {
    Worker& worker = in.worker();
    const CUcontext context = worker.context()->handle;
    if (copy.target == Place::device) {
        if (packed != nullptr)  // read by the device until the stream has got here
            worker.completions.after(context, copy.stream, false, [packed](CUresult) {});
        return CUDA_SUCCESS;
    }
    // In a captured stream nothing has been copied: the graph's launches see to what it writes.
    if (copy.target == Place::mirror && copy.box.transfer == 0) return CUDA_SUCCESS;
    if (copy.target == Place::mirror) {
        if (copy.box.transfer != 0) {
            mirror->leaving.fetch_add(1);
            worker.completions.after(
                context, copy.stream, true,
                [&worker, box = copy.box, bytes = copy.bytes, mirror, packed](CUresult result) {
                    if (result == CUDA_SUCCESS) {
                        pack(box, packed->data());
                        send(worker, box.transfer, bytes, packed);
                    }
                    mirror->leaving.fetch_sub(1);
                });
        }
        if (copy.box.wait == 0) return CUDA_SUCCESS;
        return worker.awaitStream(in, copy.stream, [](CUresult r, Writer&) { return r; });
    }
    return worker.awaitStream(in, copy.stream,
                              [&worker, target = copy.target, bytes = copy.bytes, packed,
                               transfer = copy.box.target.where](CUresult result, Writer& out) {
                                  if (result != CUDA_SUCCESS) return result;
                                  if (target == Place::inlined)
                                      out.raw(packed->data(), bytes);
                                  else
                                      send(worker, transfer, bytes, packed);
                                  return CUDA_SUCCESS;
                              });
}

}  // namespace

CUresult custom_cuMemcpy3DAsync_v2(Incoming& in) {
    Copy copy;
    if (!decode(in, copy)) return in.done();
    copy.stream = in.stream(copy.box.stream);
    Worker& worker = in.worker();
    CUresult result = in.done();
    if (worker.context() == nullptr) result = CUDA_ERROR_INVALID_CONTEXT;
    std::shared_ptr<Mirror> mirror;
    if (result == CUDA_SUCCESS) result = check(in, copy, copy.box.source, mirror);
    if (result == CUDA_SUCCESS) result = check(in, copy, copy.box.target, mirror);

    std::shared_ptr<Packed> packed;
    const bool needsPacked = isPacked(copy.source) || isPacked(copy.target) ||
                             (copy.target == Place::mirror && copy.box.transfer != 0);
    if (result == CUDA_SUCCESS && needsPacked) {
        packed = std::make_shared<Packed>(copy.bytes);
        if (packed->data() == nullptr) result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    uint8_t* const memory = packed == nullptr ? nullptr : packed->data();
    if (copy.source == Place::transfer) {
        const Blocking blocking(worker);
        receiveInto(worker, copy.box.source.where, copy.bytes,
                    result == CUDA_SUCCESS ? memory : nullptr);
    }
    if (result != CUDA_SUCCESS) return result;
    if (copy.source == Place::inlined) std::memcpy(memory, copy.inlined.data(), copy.bytes);
    const CUDA_MEMCPY3D described = describe(copy, memory);
    result = in.driver().cuMemcpy3DAsync_v2(&described, copy.stream);
    return result == CUDA_SUCCESS ? finish(in, copy, packed, mirror) : result;
}

}  // namespace juice::worker
