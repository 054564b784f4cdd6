// Copies of one dimension, whatever their ends are.
#pragma once

#include "native/shim/send.h"

namespace juice::shim {

/// What an entry says of its two ends; a null or ordinary pointer on the device's side is an error.
struct CopyEnds {
    bool targetOnDevice = false;
    bool sourceOnDevice = false;
};
constexpr CopyEnds kHtoD{true, false}, kDtoH{false, true}, kDtoD{true, true}, kAnyToAny{};

struct Copy {
    uint64_t target = 0, source = 0, size = 0;
    uint64_t stream = 0;  // on the wire
    bool async = false;   // the caller need not wait for a copy to pinned memory
};

/// Does the copy, or posts it, in the context. Ends are classified by what the pointers are; the
/// entry's idea of them is only checked.
CUresult copy(const Context* context, const Copy& what, CopyEnds ends);

/// Brings the mirror of pinned memory up to date, except where the worker's own data are newer.
CUresult pushMirror(const Context* context, uint64_t address, uint64_t size);

/// Posts a call that names `transfer` and sends its bytes; on return the source may change.
CUresult postWithData(Op op, const Context* context, Bytes payload, uint64_t transfer,
                      const void* source, uint64_t size, uint64_t stream = kWireLegacy);

}  // namespace juice::shim
