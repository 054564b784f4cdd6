#include "native/softgpu/driver/file_label.h"

#include <unistd.h>

#include "native/softgpu/driver/device.h"

namespace juice::softgpu {

FileLabel::FileLabel(Content what, size_t bytes, const CUmemLocation& where,
                     CUmemAllocationHandleType types)
    : content(what), size(bytes), location(where), handleTypes(types) {
    if (where.type != CU_MEM_LOCATION_TYPE_DEVICE) return;
    if (const Device* const at = deviceAt(where.id)) device = at->uuid();
}

bool FileLabel::write(int file) const {
    return pwrite(file, this, sizeof(*this), 0) == sizeof(*this);
}

CUresult FileLabel::read(int file, Content content, std::optional<FileLabel>& label) {
    FileLabel found;
    if (pread(file, &found, sizeof(found), 0) != sizeof(found) || found.content != content) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (found.location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
        const Device* here = nullptr;
        for (const Device* const candidate : devices()) {
            if (candidate->uuid() == found.device) here = candidate;
        }
        if (here == nullptr) return CUDA_ERROR_INVALID_DEVICE;
        found.location.id = here->ordinal();
    }
    label = found;
    return CUDA_SUCCESS;
}

}  // namespace juice::softgpu
