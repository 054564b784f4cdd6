#include "native/worker/objects.h"

namespace juice::worker {

bool Objects::available(uint64_t id) {
    if (id == 0 || (id >> kIdBits) != 0) return false;
    const size_t page = (id & kSlotMask) / kPageSize;
    if (page >= pages_.size() || pages_[page] == nullptr) return used_ < kMaxPages;
    return pages_[page][(id & kSlotMask) % kPageSize].id == 0;
}

Object& Objects::add(uint64_t id, ObjectKind kind, void* handle) {
    const size_t page = (id & kSlotMask) / kPageSize;
    if (page >= pages_.size()) pages_.resize(page + 1);
    if (pages_[page] == nullptr) {
        pages_[page] = std::make_unique<Object[]>(kPageSize);
        ++used_;
    }
    Object& place = pages_[page][(id & kSlotMask) % kPageSize];
    place = Object{};
    place.id = id;
    place.kind = kind;
    place.handle = handle;
    ++live_;
    return place;
}

template <typename Condition>
void Objects::removeIf(Condition condition) {
    for (auto& page : pages_) {
        if (page == nullptr) continue;
        for (size_t i = 0; i < kPageSize; ++i) {
            if (page[i].id == 0 || !condition(page[i])) continue;
            page[i] = Object{};
            --live_;
        }
    }
}

void Objects::remove(uint64_t id) {
    Object* object = find(id);
    if (object == nullptr) return;
    const ObjectKind kind = object->kind;
    *object = Object{};
    --live_;
    const bool mayHaveChildren =
        kind == ObjectKind::module || kind == ObjectKind::library || kind == ObjectKind::kernel;
    if (!mayHaveChildren) return;
    // A library's kernels and module have functions of their own: at most three generations.
    std::vector<uint64_t> parents{id};
    while (!parents.empty()) {
        const uint64_t parent = parents.back();
        parents.pop_back();
        removeIf([&](const Object& child) {
            if (child.parent != parent) return false;
            if (child.kind != ObjectKind::function) parents.push_back(child.id);
            return true;
        });
    }
}

uint64_t Objects::idOf(ObjectKind kind, const void* handle) const {
    for (const auto& page : pages_) {
        if (page == nullptr || handle == nullptr) continue;
        for (size_t i = 0; i < kPageSize; ++i)
            if (page[i].id != 0 && page[i].kind == kind && page[i].handle == handle)
                return page[i].id;
    }
    return 0;
}

void Objects::removeOf(uint32_t context) {
    removeIf([context](const Object& object) { return object.context == context; });
}

}  // namespace juice::worker
