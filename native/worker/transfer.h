// Bulk data between the link and the device, through staging memory.
#pragma once

#include <cstdint>
#include <memory>

#include "native/worker/mirrors.h"
#include "native/worker/worker.h"

namespace juice::worker {

/// Takes a whole transfer into memory; into nowhere when `destination` is null.
void receiveInto(Worker& worker, uint64_t transfer, uint64_t size, uint8_t* destination);

/// Copies a whole transfer to the device in stream order, chunk by chunk as it comes in. Takes all
/// of it even when a copy fails, since the client sends it in any case.
CUresult receiveToDevice(Worker& worker, CUstream stream, uint64_t destination, uint64_t transfer,
                         uint64_t size);

/// Copies device memory, and sends it as it comes; returns when all of it has been copied. On an
/// error before the first piece nothing is sent. Any thread with the context current.
CUresult sendFromDevice(Worker& worker, CUcontext context, CUstream stream, uint64_t source,
                        uint64_t transfer, uint64_t size);

/// Sends part of a mirror when the stream has got here; nothing when it does not get here.
void sendFromMirror(Worker& worker, CUstream stream, std::shared_ptr<Mirror> mirror,
                    uint64_t address, uint64_t size, uint64_t transfer);

}  // namespace juice::worker
