// Managed memory: the same address at both ends, coherent (coherence.h) from the start.
#pragma once

#include "native/shim/ranges.h"
#include "native/shim/send.h"

namespace juice::shim::managed {

/// A module's variable turned out to lie in managed memory: makes it the program's memory too.
CUresult share(const Context* context, const Range& variable);

/// The range, whose worker's side is gone or about to go, is the program's no more.
void forget(const Range& range);

}  // namespace juice::shim::managed
