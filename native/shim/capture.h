// Streams that capture. The worker's driver captures, and is asked wherever only it can know; what
// is kept here is which streams are in which capture, so that nothing is asked in vain: by far the
// most questions come while nothing captures.
#pragma once

#include <cstdint>

#include "native/shim/objects.h"

namespace juice::shim::capture {

/// Does any stream of the program capture?
bool any();
/// The id of the capture that the stream (as it travels; `stream` when it was minted) is in; 0 when
/// in none.
uint64_t of(uint64_t wire, const Stream* stream);
/// The same for the wire's form alone.
uint64_t of(uint64_t wire);
/// Something was refused that invalidates captures: from now on until all have ended every call is
/// waited for.
void doubt();
bool doubtful();
/// The stream waits for the event, and the worker has agreed: it may be in the event's capture now.
void join(Stream* stream, uint64_t wire, uint64_t capture);
/// Is this capture still going on?
bool lives(uint64_t capture);

}  // namespace juice::shim::capture
