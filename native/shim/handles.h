// The handles that the shim gives out: addresses in a 1 TiB range of zeros that can be read but
// not written, so that a program that peeks at one reads zeros. A handle is
// base + 16 * (generation << 24 | slot); generation << 24 | slot is its wire id, never 0. A stale
// or foreign handle is found out before anything is sent.
#pragma once

#include <atomic>
#include <cstdint>

#include "native/shim/calls.h"

namespace juice::shim {

/// What every handle stands for. The kinds' own facts are in objects.h. The memory of an object is
/// never returned to the allocator but used again for another of its kind, so that a thread that
/// still looks at a destroyed one reads something of the right type.
struct Object {
    ObjectKind kind{};
    uint64_t id = 0;  // wire id; 0 while it has none
};

namespace handles {

/// Gives the object a fresh handle; sets its id. Null when there is no address space or all slots
/// are in use.
void* mint(Object& object);
/// From now on the handle is stale.
void drop(Object& object);
/// The live object of the handle; null for anything else.
Object* find(const void* handle);
/// The same by its wire id.
Object* findId(uint64_t id);
/// The handle of a live object.
void* of(const Object& object);

/// Calls `visit` for every live object. It may drop the object that it is given.
void forEach(void (*visit)(Object&, void* argument), void* argument);

}  // namespace handles

/// The live object of the handle when it is of T's kind, else null.
template <typename T>
T* find(const void* handle) {
    Object* const object = handles::find(handle);
    return object != nullptr && object->kind == T::kKind ? static_cast<T*>(object) : nullptr;
}

}  // namespace juice::shim
