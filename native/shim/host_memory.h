#pragma once

#include "native/shim/ranges.h"

namespace juice::shim {

/// The worker's side of a pinned or registered range is gone: nothing is delivered to it any more,
/// and an allocated one's memory goes back.
void forgetHostRange(const Range& range);

}  // namespace juice::shim
