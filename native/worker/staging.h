// Pinned memory through which bulk data passes: slots that the link receives chunks into, and pieces
// that outgoing copies are read from. Ordinary mapped memory, registered with the driver, so that
// it outlives the context it was registered in (then only the copies are slower).
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <vector>

#include "native/gen/driver_table.h"
#include "native/link/wire.h"

namespace juice::worker {

class Staging {
  public:
    static constexpr size_t kSlots = 64;
    static constexpr size_t kPieces = 32;
    static constexpr size_t kPieceSize = wire::kChunkSize;

    /// Registers with the driver where it can. Needs a current context. Throws std::bad_alloc.
    explicit Staging(const DriverTable& driver);

    /// kSlots addresses of wire::kChunkSize each, for ServerLink::Options.
    std::vector<void*> slots() const;
    /// For diagnostics: is the memory pinned?
    bool pinned() const { return pinned_; }

    /// A piece of kPieceSize for outgoing data, or null when none is free.
    void* take();
    /// Waits up to `micros` for a piece to come free.
    void* take(int micros);
    void give(void* piece);

  private:
    char* memory_;
    bool pinned_;
    std::mutex mutex_;
    std::condition_variable freed_;
    std::vector<void*> free_;
};

}  // namespace juice::worker
