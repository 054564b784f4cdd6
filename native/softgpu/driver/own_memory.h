// Memory that the driver itself holds for something: goes with it, and not with what took its place
// after the context was reset meanwhile.
#pragma once

#include "native/softgpu/driver/memory.h"

namespace juice::softgpu {

class OwnMemory {
  public:
    OwnMemory(Context& context, size_t size, MemoryKind kind) : kind_(kind) {
        result_ = AddressSpace::instance().allocate(context, size, kind, 0, address_);
        if (const auto found = AddressSpace::instance().find(address_)) id_ = found->bufferId;
    }
    ~OwnMemory() {
        const auto found = AddressSpace::instance().find(address_);
        if (!found || found->address != address_ || found->bufferId != id_) return;
        AddressSpace::instance().release(address_, {kind_});
    }
    OwnMemory(const OwnMemory&) = delete;
    OwnMemory& operator=(const OwnMemory&) = delete;

    CUresult result() const { return result_; }
    uint64_t address() const { return address_; }
    /// It is the program's now.
    void abandon() { id_ = 0; }

  private:
    const MemoryKind kind_;
    CUresult result_;
    uint64_t address_ = 0;
    uint64_t id_ = 0;  // of the allocation; 0 for none
};

}  // namespace juice::softgpu
