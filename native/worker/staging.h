// Pinned memory through which bulk data passes: slots that the link receives chunks into, and
// pieces that outgoing copies are read from. Ordinary mapped memory, registered with the driver, so
// that it outlives the context it was registered in (then only the copies are slower).
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
    static constexpr size_t kPieceSize = wire::kChunkSize;

    /// Memory for outgoing data, in pieces of one size.
    class Pool {
      public:
        /// A piece, or null when none is free.
        void* take();
        /// Waits up to `micros` for one to come free.
        void* take(int micros);
        void give(void* piece);

      private:
        friend class Staging;
        std::mutex mutex_;
        std::condition_variable freed_;
        std::vector<void*> free_;
    };

    /// Throws std::bad_alloc.
    Staging();
    /// Registers the memory with the driver, in the context given, which must be current. Does
    /// nothing where it is registered already; where the driver refuses, copies are only slower.
    void pin(const DriverTable& driver, CUcontext context);
    /// Before that context, current, is destroyed; other contexts are ignored.
    void unpin(const DriverTable& driver, CUcontext context);

    /// kSlots addresses of wire::kChunkSize each, for ServerLink::Options.
    std::vector<void*> slots() const;

    Pool pieces;  // of kPieceSize: transfers
    Pool smalls;  // of wire::kInlineLimit: copies that ride in their answer, which no transfer
                  // holds up

  private:
    char* memory_;
    CUcontext pinnedIn_ = nullptr;
};

}  // namespace juice::worker
