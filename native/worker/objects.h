// What a client's wire ids stand for: the driver's handles of everything but contexts (contexts.h).
// Used by the executor alone.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "native/worker/calls.h"
#include "native/worker/kernels.h"

namespace juice::worker {

struct Object {
    uint64_t id = 0;  // 0: a free place
    void* handle = nullptr;
    uint64_t parent = 0;   // the module, library or kernel it was found in; 0: none
    uint32_t context = 0;  // it dies with this context; 0: with none (libraries and their kernels)
    ObjectKind kind{};
    /// Of modules and libraries: their kernels, for further pages of the list.
    std::shared_ptr<const KernelEntries> kernels;
};

class Objects {
  public:
    /// Null when the id is not a live object.
    Object* find(uint64_t id) {
        const uint32_t slot = id & kSlotMask;
        const size_t page = slot / kPageSize;
        if (id == 0 || page >= pages_.size() || pages_[page] == nullptr) return nullptr;
        Object& place = pages_[page][slot % kPageSize];
        return place.id == id ? &place : nullptr;
    }
    /// May an object be made under this id? False for 0, for an id outside the arena, for a place
    /// that is taken, and when the client spreads more places than kMaxPages pages hold.
    bool available(uint64_t id);
    /// Needs available(id).
    Object& add(uint64_t id, ObjectKind kind, void* handle);
    /// The object and what was found through it.
    void remove(uint64_t id);
    /// Everything that dies with the context.
    void removeOf(uint32_t context);
    /// The id of the object of this kind with the driver's handle; 0 when there is none. Slow.
    uint64_t idOf(ObjectKind kind, const void* handle) const;
    size_t size() const { return live_; }

  private:
    static constexpr uint64_t kSlotMask = (1u << 24) - 1;
    static constexpr uint64_t kIdBits = 36;  // what 16-byte steps in a 1 TiB arena leave
    static constexpr size_t kPageSize = 1024;
    static constexpr size_t kMaxPages = 4096;  // 4 million objects

    template <typename Condition>
    void removeIf(Condition condition);

    std::vector<std::unique_ptr<Object[]>> pages_;
    size_t used_ = 0;  // pages that exist
    size_t live_ = 0;
};

}  // namespace juice::worker
