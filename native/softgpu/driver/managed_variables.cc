#include "native/softgpu/driver/managed_variables.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

#include "native/softgpu/driver/memory.h"

namespace juice::softgpu {

ManagedVariables::~ManagedVariables() {
    for (const auto& [name, variable] : variables_) {
        if (variable.entered) {
            AddressSpace::instance().release(variable.address, {MemoryKind::managedGlobal});
        }
        munmap(reinterpret_cast<void*>(variable.address), variable.size);
    }
}

ManagedPlace ManagedVariables::place(const std::string& name, size_t size) {
    const std::lock_guard lock(mutex_);
    if (const auto found = variables_.find(name); found != variables_.end()) {
        return {found->second.address, false};
    }
    size = std::max<size_t>(size, 1);
    void* const mapped =
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    const auto address = reinterpret_cast<uint64_t>(mapped);
    variables_[name] = {address, size, false};
    return {address, true};
}

void ManagedVariables::enter(Context& context) {
    const std::lock_guard lock(mutex_);
    for (auto& [name, variable] : variables_) {
        if (variable.entered) continue;
        variable.entered =
            AddressSpace::instance().enter(context, variable.address, variable.size,
                                           MemoryKind::managedGlobal, CU_MEM_ATTACH_GLOBAL);
    }
}

}  // namespace juice::softgpu
