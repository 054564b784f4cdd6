// Copies to pinned memory that the worker has not delivered yet. Until one has landed the worker's
// mirror, not the program's memory, holds what the program will see: see docs/architecture.md,
// Pinned memory.
#pragma once

#include <cstdint>
#include <vector>

#include "native/shim/objects.h"

namespace juice::shim::deliveries {

struct Span {
    uint64_t begin, end;
};

/// A copy into [address, address + size) is about to be posted in the context; its bytes come as
/// `transfer`.
void add(uint64_t address, uint64_t size, uint64_t transfer, const Context* context);

/// Is any delivery outstanding?
bool any();
/// Is one outstanding that touches the range?
bool touch(uint64_t address, uint64_t size);
/// The parts of the range that none is outstanding for: there the program's memory is the newest.
std::vector<Span> settledParts(uint64_t address, uint64_t size);

/// The outstanding ones that touch the range, cut to it.
struct Outstanding {
    Span span;
    uint64_t transfer;
};
std::vector<Outstanding> outstandingIn(uint64_t address, uint64_t size);

/// Waits until nothing is outstanding for the range.
CUresult settle(uint64_t address, uint64_t size);
/// Forgets what is outstanding for the range: the memory will be gone, and the link must not write
/// to it any more.
void cancel(uint64_t address, uint64_t size);

}  // namespace juice::shim::deliveries
