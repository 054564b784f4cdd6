// The address space that the shim keeps free in its host process, so that the worker's addresses
// can be used unchanged: see docs/architecture.md, Addresses.
#pragma once

#include <cstddef>
#include <cstdint>

namespace juice::arena {

/// Reserves wire::kArenas, PROT_NONE and without overcommit. Called by the library's constructor,
/// before the program has had a chance to put something there; again does nothing.
void reserve();

/// Bit i: wire::kArenas[i] is ours. What ClientHello.arenas says.
uint8_t held();

/// Does all of the range lie in an arena that we hold?
bool contains(uint64_t address, uint64_t size);

/// Keeps the program's mappings away from device memory, which may lie outside the arenas: from now
/// on and for good, since a driver uses addresses again and again. False when something of the
/// program is there already: then the two cannot be told apart by address.
bool placehold(uint64_t address, uint64_t size);

/// Maps fresh, zeroed, writable memory at exactly this address, for a pinned allocation. False, and
/// nothing changed, when that is not possible.
bool populate(uint64_t address, uint64_t size);
/// Takes it away again.
void depopulate(uint64_t address, uint64_t size);

}  // namespace juice::arena
