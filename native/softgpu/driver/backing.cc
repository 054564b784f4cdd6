#include "native/softgpu/driver/backing.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <iterator>

namespace juice::softgpu {

Backing::Backing() : file_(memfd_create("juice softgpu", MFD_CLOEXEC)), own_(true) {}

Backing::Backing(int file) : file_(file), own_(false) {}

Backing::~Backing() {
    if (file_ >= 0) close(file_);
}

std::optional<uint64_t> Backing::take(size_t size) {
    if (file_ < 0 || !own_) return std::nullopt;
    const std::lock_guard lock(mutex_);
    for (auto hole = holes_.begin(); hole != holes_.end(); ++hole) {
        const auto [offset, room] = *hole;
        if (room < size) continue;
        holes_.erase(hole);
        if (room > size) holes_[offset + size] = room - size;
        return offset;
    }
    const uint64_t offset = end_;
    if (size > INT64_MAX - offset || ftruncate(file_, static_cast<off_t>(offset + size)) != 0) {
        return std::nullopt;
    }
    end_ = offset + size;
    return offset;
}

void Backing::give(uint64_t offset, size_t size) {
    const std::lock_guard lock(mutex_);
    // Memory that cannot be given back must not be handed out again with what is in it.
    if (fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                  static_cast<off_t>(size)) != 0) {
        return;
    }
    uint64_t end = offset + size;
    auto after = holes_.lower_bound(offset);
    if (after != holes_.end() && after->first == end) {
        end += after->second;
        after = holes_.erase(after);
    }
    if (after != holes_.begin()) {
        const auto before = std::prev(after);
        if (before->first + before->second == offset) {
            offset = before->first;
            holes_.erase(before);
        }
    }
    holes_[offset] = end - offset;
}

}  // namespace juice::softgpu
