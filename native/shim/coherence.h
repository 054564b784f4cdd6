// Pinned memory that device code itself reads and writes. It becomes *coherent* when its address is
// seen on its way to the device: in kernel parameters, in bytes that are copied there, or asked for
// with cuMemHostGetDevicePointer; and when a fill or a stream's write names it. From then on both
// ends compare it with a shadow and send each other what has changed (native/link/delta.h): the
// client before each work of the device, the worker after it, before any answer that tells of its
// end; and both once a millisecond while work runs, for kernels that talk with the CPU.
//
// Whoever posts work of the device does this, in this order:
//     coherence::see(context, bytes, size)     for bytes that device code may take addresses from
//     coherence::beforeWork(context)
//     post(...)
//     coherence::afterWork(context, stream)
// Where nothing is coherent and nothing pinned, each of them costs one load.
#pragma once

#include <atomic>
#include <cstdint>

#include "native/shim/ranges.h"
#include "native/shim/send.h"

namespace juice::shim::coherence {

namespace detail {
extern std::atomic<size_t> count;
CUresult see(const Context* context, const void* bytes, size_t size);
CUresult push(const Context* context, uint64_t address, uint64_t size);
CUresult watch(const Context* context, uint64_t stream);
}  // namespace detail

/// Is any memory coherent?
inline bool any() {
    return detail::count.load(std::memory_order_acquire) != 0;
}

/// The device is about to read or write there: makes the host range that holds the address
/// coherent. Success where none does; CUDA_ERROR_NOT_SUPPORTED, and said on stderr, for registered
/// memory that the worker has no mirror of.
CUresult touch(const Context* context, uint64_t address);

/// touch(), for every aligned word of the bytes that is the address of pinned memory.
inline CUresult see(const Context* context, const void* bytes, size_t size) {
    return ranges::anyPlainHost() ? detail::see(context, bytes, size) : CUDA_SUCCESS;
}

/// Sends what the program has changed in coherent memory.
inline CUresult beforeWork(const Context* context) {
    return any() ? detail::push(context, 0, UINT64_MAX) : CUDA_SUCCESS;
}
/// The same, for a part of it.
inline CUresult beforeCopy(const Context* context, uint64_t address, uint64_t size) {
    return any() ? detail::push(context, address, size) : CUDA_SUCCESS;
}
/// Has what the work changes sent when the stream (as it travels) has got here.
inline CUresult afterWork(const Context* context, uint64_t stream) {
    return any() ? detail::watch(context, stream) : CUDA_SUCCESS;
}

/// After a function of the program that a stream waits for: sends what it has changed. What that
/// names becomes coherent with the next work, since nothing can be asked of the worker now.
void afterFunction();

/// The worker has made this memory coherent already.
CUresult adopt(const Range& range);
/// The memory is about to go, or its mirror is gone.
void forget(uint64_t begin);

/// Takes the worker's patches from this link on; forgets all memory of an earlier one.
void attach(ClientLink& link);

}  // namespace juice::shim::coherence
