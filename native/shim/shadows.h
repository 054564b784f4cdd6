// Pinned memory that work in the worker will read from its mirror after functions of the program,
// which may write there first. What the mirror holds is kept here as well, so that exactly what the
// program has changed is sent; see docs/architecture.md, Functions of the program.
#pragma once

#include <cstdint>

namespace juice::shim::shadows {

/// Work is about to be posted that reads the range in the mirror, behind functions that have not
/// been called yet: the mirror is brought up to date now, and after each function again.
void watch(uint64_t address, uint64_t size);
/// A copy into the range is about to be posted, whose bytes will land as `transfer`: what the
/// program has written there goes first.
void aboutToReceive(uint64_t address, uint64_t size, uint64_t transfer);
/// Around the call of a function.
void beforeFunction();
void afterFunction();
/// The memory is gone.
void forget(uint64_t address, uint64_t size);
/// Forgets everything, unless a function is due.
void clearUnlessDue();

}  // namespace juice::shim::shadows
