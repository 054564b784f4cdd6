#include "native/softgpu/driver/physical.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "native/softgpu/driver/device.h"
#include "native/softgpu/driver/file_label.h"

namespace juice::softgpu {
namespace {

/// Where what is never exported comes from: one file for each device, and one for the host.
std::shared_ptr<Backing> commonBacking(const Device* device) {
    static std::mutex mutex;
    static auto* const all = new std::map<const Device*, std::shared_ptr<Backing>>;
    const std::lock_guard lock(mutex);
    auto& backing = (*all)[device];
    if (!backing) backing = std::make_shared<Backing>();
    return backing;
}

}  // namespace

bool deviceAtLocation(const CUmemLocation& location, Device*& device) {
    device = nullptr;
    switch (location.type) {
        case CU_MEM_LOCATION_TYPE_DEVICE:
            device = deviceAt(location.id);
            return device != nullptr;
        case CU_MEM_LOCATION_TYPE_HOST:
        case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
            return true;
        case CU_MEM_LOCATION_TYPE_HOST_NUMA:
            return location.id == 0;
        default:
            return false;
    }
}

Physical::Physical(size_t size, const CUmemAllocationProp& properties, Device* charged,
                   std::shared_ptr<Backing> backing, uint64_t offset, bool whole)
    : size_(size),
      properties_(properties),
      charged_(charged),
      backing_(std::move(backing)),
      offset_(offset),
      whole_(whole) {}

CUresult Physical::create(size_t size, const CUmemAllocationProp& properties,
                          std::shared_ptr<Physical>& made) {
    Device* device = nullptr;
    if (!deviceAtLocation(properties.location, device)) return CUDA_ERROR_INVALID_VALUE;
    if (device != nullptr && !device->charge(size)) return CUDA_ERROR_OUT_OF_MEMORY;
    const bool whole = properties.requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE;
    auto backing = whole ? std::make_shared<Backing>() : commonBacking(device);
    const auto offset = backing->take(size + (whole ? FileLabel::kBytes : 0));
    if (!offset) {
        if (device != nullptr) device->refund(size);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    made.reset(new Physical(size, properties, device, backing,
                            *offset + (whole ? FileLabel::kBytes : 0), whole));
    if (!whole) return CUDA_SUCCESS;
    const FileLabel label(FileLabel::Content::physical, size, properties.location,
                          properties.requestedHandleTypes);
    return label.write(backing->file()) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult Physical::import(int file, std::shared_ptr<Physical>& made) {
    std::optional<FileLabel> label;
    const CUresult failed = FileLabel::read(file, FileLabel::Content::physical, label);
    if (failed != CUDA_SUCCESS) return failed;
    struct stat about {};
    if (fstat(file, &about) != 0 ||
        static_cast<uint64_t>(about.st_size) < label->size + FileLabel::kBytes) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = label->location;
    properties.requestedHandleTypes = label->handleTypes;
    const int own = fcntl(file, F_DUPFD_CLOEXEC, 0);
    if (own < 0) return CUDA_ERROR_OUT_OF_MEMORY;
    // Charged where it was made only: it is there once.
    made.reset(new Physical(label->size, properties, nullptr, std::make_shared<Backing>(own),
                            FileLabel::kBytes, true));
    return CUDA_SUCCESS;
}

Physical::~Physical() {
    if (!whole_) backing_->give(offset_, size_);
    if (charged_ != nullptr) charged_->refund(size_);
}

int Physical::ordinal() const {
    const CUmemLocation& location = properties_.location;
    return location.type == CU_MEM_LOCATION_TYPE_DEVICE ? location.id : -1;
}

int Physical::exportFile() const {
    const bool asked =
        (properties_.requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0;
    return asked ? fcntl(backing_->file(), F_DUPFD_CLOEXEC, 0) : -1;
}

bool Physical::mapAt(uint64_t address, size_t size) const {
    return mmap(reinterpret_cast<void*>(address), size, PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_FIXED | MAP_NORESERVE, backing_->file(),
                static_cast<off_t>(offset_)) != MAP_FAILED;
}

}  // namespace juice::softgpu
