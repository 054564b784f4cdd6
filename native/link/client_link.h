// The client's end of a link: what the shim calls.
//
// Threads. Any thread may post or call. Posted calls are appended to one batch, in the order of the
// lock (the ticket order); a waited call flushes the batch and then either reads the socket itself
// (one reader at a time: it spins first, then blocks) or sleeps until the current reader delivers
// its reply. A flusher thread, all signals blocked, sends what lingers and takes unsolicited
// frames when nobody waits. One bulk sender and one bulk receiver thread per bulk lane, started
// lazily.
//
// Failure. The first fault (closed, reset, protocol violation) marks the link broken with a
// sentence that names the cause; every later operation returns at once with `broken`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "native/link/codec.h"
#include "native/link/keys.h"
#include "native/link/wire.h"

namespace juice {

struct Endpoint {
    std::string host;
    uint16_t port = 0;
};

struct ClientHello {
    uint32_t capabilities = wire::kBulkLanes | wire::kOutput;
    uint32_t pid = 0;
    uint8_t arenas = 0;  // bit i: kArenas[i] is held
    int lanes = -1;      // bulk lanes, 0..8; -1: the setting JUICE_LANES, else 4
};

struct Welcome {
    uint8_t arena = 0;    // index into kArenas
    uint64_t window = 0;  // bytes of bulk credit
    std::string worker;   // one line: driver path and version, for diagnostics
};

/// An answered call. `payload` holds the results after ReplyHead.
struct Reply {
    wire::ReplyHead head{};
    std::vector<uint8_t> payload;
    bool broken = false;  // the link failed: head.result is meaningless
    Reader reader() const { return Reader(payload); }
};

/// A stream or a graph of the worker has got to a function of the program: see wire.h.
struct Callback {
    uint64_t id = 0;
    int32_t result = 0;
    uint32_t kind = 0;  // custom::Called
    uint64_t landed = 0;
    bool broken = false;  // none at all: the link has failed, and no more will come
};

class ClientLink {
  public:
    /// Connects, proves the key, agrees on an arena. Blocks for at most kHandshakeTimeoutMs a step.
    /// Returns null and one clear sentence in `error` on failure.
    static std::unique_ptr<ClientLink> connect(const Endpoint& endpoint, const Credentials& who,
                                               const ClientHello& hello, std::string& error);
    virtual ~ClientLink() = default;

    virtual const Welcome& welcome() const = 0;

    /// Sends without waiting for an answer. Waits only for back-pressure (a full send buffer).
    virtual void post(uint16_t opcode, uint32_t thread, uint32_t context, Bytes payload) = 0;
    /// Sends and waits for the Reply, and for every transfer that the Reply presupposes.
    virtual Reply call(uint16_t opcode, uint32_t thread, uint32_t context, Bytes payload) = 0;
    /// Sends at once; the Reply is fetched later with take(). For answers that will be wanted soon.
    virtual uint64_t ask(uint16_t opcode, uint32_t thread, uint32_t context, Bytes payload) = 0;
    virtual Reply take(uint64_t request) = 0;

    /// Announces memory that the worker will fill with a transfer. Put the returned id into the
    /// call. The memory must stay valid until landed(id) or the link is broken.
    virtual uint64_t expect(void* destination, size_t size) = 0;
    virtual bool landed(uint64_t transfer) const = 0;
    /// The worker will not send it, since the call that named it failed. The memory is free again
    /// on return; a chunk that comes for it anyway breaks the link.
    virtual void cancel(uint64_t transfer) = 0;

    /// A fresh id for a transfer to the worker. Post the call that names it, then send().
    virtual uint64_t mintTransfer() = 0;
    /// Sends all of `size` bytes as chunks under the credit window. On return the source may
    /// change.
    virtual void send(uint64_t transfer, const void* source, size_t size) = 0;

    /// Unsolicited sticky errors: called on an internal thread, must not call back into the link.
    virtual void onFault(std::function<void(int result, uint16_t opcode)> handler) = 0;

    /// Sends the pieces of a patch (delta.h), kMostPatch bytes at most, behind all that has been
    /// posted.
    static constexpr size_t kMostPatch = 512u << 10;
    virtual void patch(Bytes pieces) = 0;
    /// Patches of the worker: called, in the order in which they come, on whichever thread reads;
    /// it must not call back into the link. A sentence ends the link.
    using PatchHandler = std::function<std::string(uint64_t watches, Bytes pieces)>;
    virtual void onPatch(PatchHandler handler) = 0;

    /// What the driver prints at the worker: called, in order, on whichever thread reads; it must
    /// not call back into the link. Without a handler it is dropped.
    using OutputHandler = std::function<void(wire::OutputStream stream, std::string_view text)>;
    virtual void onOutput(OutputHandler handler) = 0;
    /// What the worker's streams ask for: called on an internal thread, must not call back into the
    /// link.
    virtual void onCallback(std::function<void(const Callback&)> handler) = 0;
    /// Waits for every transfer that a callback presupposes; false when the link has failed.
    virtual bool awaitLanded(uint64_t ordinal) = 0;
    /// Writes into a mirror of the worker's, past all Calls.
    virtual void write(uint64_t address, const void* source, size_t size) = 0;
    /// The function has been called, and what it changed has been written: the stream goes on.
    virtual void called(uint64_t id) = 0;

    virtual bool broken() const = 0;
    /// Why, in one sentence; empty while the link works.
    virtual std::string reason() const = 0;

    /// Says Goodbye and closes. After fork the child calls abandon() instead, which closes the
    /// descriptors without a word, since the connection is still the parent's.
    virtual void close() = 0;
    virtual void abandon() = 0;
    /// The process ends: says Goodbye, so that it is not taken for one that was killed, and nothing
    /// after it. Joins no thread and holds up the exit for no more than half a second, even in a
    /// signal handler in the middle of a call.
    virtual void leave() = 0;

    struct Counters {
        uint64_t calls, waited, bytesOut, bytesIn, flushes;
    };
    virtual Counters counters() const = 0;
};

}  // namespace juice
