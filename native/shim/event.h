// Completion, as far as the program has been told of it. Each record of an event takes a ticket
// from one counter; what has completed is kept as a ticket that everything up to it shares, for
// each event, stream and context. Completion lasts until the event is recorded again, so an event
// that is known to be done is not asked about.
#pragma once

#include <atomic>
#include <cstdint>

#include "native/shim/objects.h"

namespace juice::shim {

/// The last ticket that was taken. What completes by a call covers the tickets taken before it.
uint64_t lastTicket();

/// The event is about to be recorded, in a stream of its own or (null) in a default one: takes a
/// ticket.
void noteRecord(Event& event, Stream* stream);

/// A new event with its handle; null when there is no handle left.
Event* newEvent(Context& context, unsigned flags);
void forgetEvent(Event& event);

/// Raises `mark` to `ticket`; never lowers it.
inline void raise(std::atomic<uint64_t>& mark, uint64_t ticket) {
    uint64_t now = mark.load(std::memory_order_relaxed);
    while (now < ticket && !mark.compare_exchange_weak(now, ticket, std::memory_order_release,
                                                       std::memory_order_relaxed)) {
    }
}

}  // namespace juice::shim
