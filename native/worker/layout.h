// Where this process's mappings lie. A client keeps an arena of addresses free (wire::kArenas), and
// everything that CUDA allocates here must fall into it: so the worker runs in the legacy address
// layout, whose mappings grow up from a third of the address space, inside the first arena.
#pragma once

#include <cstdint>

namespace juice::worker {

/// Starts this program anew in the legacy layout, unless it runs in it already. Returns where the
/// kernel refuses (a container's seccomp profile): then call fillHighAddresses().
void enterLegacyLayout(char** argv);

/// For processes in the default layout, whose mappings grow down from the top: takes every free
/// address above the first arena, without memory, so that what comes next falls into the arena. To
/// be called before the driver is loaded. Does nothing in the legacy layout.
void fillHighAddresses();

/// Bit i: new mappings of this process fall into wire::kArenas[i].
uint8_t arenasOfMappings();
/// Bit i: wire::kArenas[i] holds the address.
uint8_t arenasOf(uint64_t address);

/// Maps zeroed memory exactly at [begin, begin + size), page aligned. False when something else is
/// there. A range taken by fillHighAddresses() counts as free.
bool mapAt(uint64_t begin, uint64_t size);
/// Undoes mapAt.
void unmapAt(uint64_t begin, uint64_t size);

}  // namespace juice::worker
