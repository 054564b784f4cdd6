// Between processes: what one of them exported, another opens. The exporter serves a Unix socket of
// its own; an opener asks there by ticket, gets the file that holds the memory, and keeps it on
// loan until it gives it back or ends. Nothing is left behind by a process that is killed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "native/abi/cuda_result.h"
#include "native/softgpu/driver/backing.h"
#include "native/softgpu/driver/settings.h"

namespace juice::softgpu {

enum class ExportKind : uint32_t { memory = 1, event = 2 };

/// What a program passes on as a handle of 64 bytes.
struct Ticket {
    uint32_t magic = kMagic;
    ExportKind kind = ExportKind::memory;
    uint32_t process = 0;
    uint32_t unused = 0;
    uint64_t door = 0;  // the exporter's: a process of the same number has another
    uint64_t id = 0;
    uint8_t zero[32] = {};

    static constexpr uint32_t kMagic = 0x4a534731;  // "JSG1"
};
static_assert(sizeof(Ticket) == 64);

/// A range of a file, and the device that it belongs to.
struct Exported {
    int file = -1;
    uint64_t offset = 0;
    uint64_t size = 0;
    Uuid device{};
};

/// The exporting side.
class Door {
  public:
    static Door& instance();

    /// Lets other processes open the range, whose file `backing` keeps. Null when the system gives
    /// no socket.
    std::unique_ptr<Ticket> open(ExportKind kind, const Exported& exported,
                                 std::shared_ptr<Backing> backing);
    /// Lets nobody open it any more. False when somebody has it on loan: `unused` then runs when
    /// the last one has given it back, on a thread of the door's own.
    bool close(uint64_t id, std::function<void()> unused);
    /// Is the ticket one of this process?
    bool isOwn(const Ticket& ticket) const;

  private:
    struct Entry {
        ExportKind kind = ExportKind::memory;
        Exported exported;
        std::shared_ptr<Backing> backing;
        unsigned loans = 0;
        bool closed = false;
        std::function<void()> unused;
    };
    struct Server;

    Door();
    bool start();
    /// Of the server: a loan more, or null for a ticket that is good for nothing.
    const Exported* lend(uint64_t id, ExportKind kind);
    void returned(uint64_t id);

    mutable std::mutex mutex_;
    const uint64_t name_;
    uint64_t nextId_ = 1;
    bool serving_ = false;
    std::map<uint64_t, Entry> entries_;
};

/// What another process exported, on loan for as long as this object lives.
class Loan {
  public:
    ~Loan();
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    /// Its file is the loan's own.
    const Exported& exported() const { return exported_; }

    /// 201 for a ticket of this very process, 400 for one that is not, or no longer, good.
    static CUresult take(const Ticket& ticket, ExportKind kind, std::unique_ptr<Loan>& loan);

  private:
    class Visit;
    Loan(std::shared_ptr<Visit> visit, uint64_t id, const Exported& exported);

    std::shared_ptr<Visit> visit_;
    uint64_t id_;
    Exported exported_;
};

}  // namespace juice::softgpu
