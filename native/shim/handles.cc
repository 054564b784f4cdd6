#include "native/shim/handles.h"

#include <sys/mman.h>

#include <deque>
#include <mutex>

namespace juice::shim::handles {
namespace {

constexpr uint32_t kSlotBits = 24;
constexpr uint32_t kGenerationBits = 12;
constexpr uint64_t kIds = uint64_t{1} << (kSlotBits + kGenerationBits);
constexpr uint64_t kStride = 16;
constexpr uint64_t kRange = kIds * kStride;  // 1 TiB
/// Contexts have the first slots for themselves, and few generations: their ids travel as 32 bits
/// in the header of every frame.
constexpr uint32_t kContextSlots = 1024;
constexpr uint32_t kContextGenerations = 256;
/// A slot rests until this many others of its class have been dropped, so that a stale handle stays
/// stale for long.
constexpr size_t kRest = 1024;

constexpr uint32_t kChunkSlots = 4096;
constexpr uint32_t kChunks = (1u << kSlotBits) / kChunkSlots;

struct Slot {
    std::atomic<Object*> object{nullptr};
    std::atomic<uint32_t> generation{0};
};

std::mutex& mutex() {
    static auto& one = *new std::mutex;
    return one;
}
std::atomic<uint64_t> base{0};
std::atomic<Slot*> chunks[kChunks];

/// Slots of one class (contexts, or everything else) in [next, end) were never used.
struct Slots {
    uint32_t next, end, generations;
    std::deque<uint32_t> resting;
};
Slots& slotsFor(ObjectKind kind) {
    static auto& contexts = *new Slots{1, kContextSlots, kContextGenerations, {}};
    static auto& others = *new Slots{kContextSlots, 1u << kSlotBits, 1u << kGenerationBits, {}};
    return kind == ObjectKind::context ? contexts : others;
}

Slot* slotAt(uint32_t index) {
    Slot* const chunk = chunks[index / kChunkSlots].load(std::memory_order_acquire);
    return chunk == nullptr ? nullptr : chunk + index % kChunkSlots;
}

/// Under the lock.
bool reserveRange() {
    if (base.load(std::memory_order_relaxed) != 0) return true;
    void* const range =
        mmap(nullptr, kRange, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) return false;
    base.store(reinterpret_cast<uint64_t>(range), std::memory_order_release);
    return true;
}

/// Under the lock: a slot that may be used; 0 when there is none.
uint32_t takeSlot(Slots& slots) {
    uint32_t index = 0;
    if (slots.next < slots.end && slots.resting.size() < kRest) {
        index = slots.next++;
    } else if (!slots.resting.empty()) {
        index = slots.resting.front();
        slots.resting.pop_front();
    } else {
        return 0;
    }
    auto& chunk = chunks[index / kChunkSlots];
    if (chunk.load(std::memory_order_relaxed) == nullptr)
        chunk.store(new Slot[kChunkSlots], std::memory_order_release);
    return index;
}

}  // namespace

void* mint(Object& object) {
    const std::lock_guard lock(mutex());
    if (!reserveRange()) return nullptr;
    const uint32_t index = takeSlot(slotsFor(object.kind));
    if (index == 0) return nullptr;
    Slot& slot = *slotAt(index);
    object.id = uint64_t{slot.generation.load(std::memory_order_relaxed)} << kSlotBits | index;
    slot.object.store(&object, std::memory_order_release);
    return of(object);
}

void drop(Object& object) {
    const std::lock_guard lock(mutex());
    const auto index = static_cast<uint32_t>(object.id & ((1u << kSlotBits) - 1));
    Slot* const slot = slotAt(index);
    if (slot == nullptr || slot->object.load(std::memory_order_relaxed) != &object) return;
    Slots& slots = slotsFor(object.kind);
    slot->object.store(nullptr, std::memory_order_relaxed);
    slot->generation.store(
        (slot->generation.load(std::memory_order_relaxed) + 1) % slots.generations,
        std::memory_order_release);
    slots.resting.push_back(index);
}

Object* find(const void* handle) {
    const uint64_t begin = base.load(std::memory_order_acquire);
    const uint64_t offset = reinterpret_cast<uint64_t>(handle) - begin;
    if (begin == 0 || offset >= kRange || offset % kStride != 0) return nullptr;
    return findId(offset / kStride);
}

Object* findId(uint64_t id) {
    const Slot* const slot = slotAt(static_cast<uint32_t>(id & ((1u << kSlotBits) - 1)));
    if (slot == nullptr || slot->generation.load(std::memory_order_acquire) != id >> kSlotBits)
        return nullptr;
    return slot->object.load(std::memory_order_acquire);
}

void* of(const Object& object) {
    return reinterpret_cast<void*>(base.load(std::memory_order_acquire) + object.id * kStride);
}

void forEach(void (*visit)(Object&, void*), void* argument) {
    for (uint32_t i = 0; i < kChunks; ++i) {
        Slot* const chunk = chunks[i].load(std::memory_order_acquire);
        if (chunk == nullptr) continue;
        for (uint32_t j = 0; j < kChunkSlots; ++j) {
            Object* const object = chunk[j].object.load(std::memory_order_acquire);
            if (object != nullptr) visit(*object, argument);
        }
    }
}

}  // namespace juice::shim::handles
