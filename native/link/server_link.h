// The worker's end of a link.
//
// Threads. The executor thread calls next() and reply(); while it is busy in a call that may block,
// it says so with busy()/idle(), and the link's reader thread takes the socket over so that
// immediate frames (chunks, acknowledgements, goodbye) are never stuck behind a blocked executor.
// On a quiet link next() spins, reads and returns on one thread: a frame costs no thread switch.
// Bulk lanes have a receiver and a sender thread each, started by addLane().
//
// Staging. Incoming chunks are received straight into slots of memory that the worker provides
// (pinned, wire::kChunkSize each). An eighth of them, at least one, is the reserve that wire.h
// describes; the rest is the window of credit offered to the client.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "native/link/client_link.h"
#include "native/link/codec.h"
#include "native/link/keys.h"
#include "native/link/wire.h"

namespace juice {

/// One ordered Call. `payload` is valid until the next call of next().
struct Call {
    wire::Header header{};
    Bytes payload;
};

enum class Next { call, idle, closed };

/// How the peer went: for the closing report.
enum class Ending { open, goodbye, closed, reset, violation };

class ServerLink {
  public:
    struct Options {
        int fd = -1;  // lane 0, its preface already read and checked
        wire::Preface preface{};
        Credentials who;
        uint8_t arenas = 0;                // bit i: this worker can live in kArenas[i]
        std::string worker;                // goes into Welcome
        std::vector<void*> slots;          // staging, kChunkSize each; at least two
        std::function<void()> onEnding{};  // once, on an internal thread, when the link has ended
    };
    /// Does the handshake (worker's half). Null and a sentence in `error` on failure.
    static std::unique_ptr<ServerLink> accept(Options options, std::string& error);
    virtual ~ServerLink() = default;

    virtual uint8_t arena() const = 0;
    virtual uint32_t clientPid() const = 0;

    /// The next Call in order. Spins for `spinMicros`, then blocks for at most `waitMillis`
    /// (-1: for ever) and returns idle when nothing came.
    virtual Next next(Call& out, int spinMicros, int waitMillis) = 0;

    /// The executor enters or leaves a driver call that may block. A hint: the reader thread also
    /// steps in by itself when the executor has not been back in next() for a while.
    virtual void busy() = 0;
    virtual void idle() = 0;

    /// Answers a Call; may be called from helper threads. `landed` is filled in by the link.
    virtual void reply(const wire::Header& to, wire::ReplyHead head, Bytes payload) = 0;
    /// Tells the client of a sticky error at once.
    virtual void fault(int result, uint16_t opcode) = 0;
    /// A function of the client's is due: see Functions in wire.h. `landed` is filled in by the
    /// link. Any thread.
    virtual void callback(uint64_t id, int result, uint32_t kind) = 0;
    /// What comes of it, on whichever thread reads the link: `write` into a mirror, and `called`.
    /// Neither may block.
    struct Answers {
        std::function<void(uint64_t address, Bytes)> write;
        std::function<void(uint64_t id)> called;
    };
    virtual void onAnswers(Answers answers) = 0;
    /// `call` has been executed: feeds the executed watermark and acknowledgements.
    virtual void executed(const wire::Header& call) = 0;

    /// A further connection of the process; the descriptor is owned from here on.
    virtual void addLane(int fd, const wire::Preface& preface) = 0;

    /// Hands every chunk of an incoming transfer to `consume`, in order of arrival, until `size`
    /// bytes have been seen. `consume` gets the slot and must see to it that release(slot) is
    /// called when the data has left it (at once, or from an event watcher). False when the link
    /// broke. To be called for every transfer that a Call names, even if the Call fails: the
    /// consumer then only releases, and the client's sender is not left waiting.
    virtual bool receive(
        uint64_t transfer, uint64_t size,
        const std::function<void(uint64_t offset, void* slot, size_t bytes)>& consume) = 0;
    virtual void release(void* slot) = 0;

    /// Starts an outgoing transfer and returns its ordinal; Replies made after this presuppose it.
    /// All of `size` bytes must then be sent, in pieces that cover it once.
    virtual uint64_t beginSend(uint64_t transfer, uint64_t size) = 0;
    /// Queues one piece (any size; the link cuts it into chunks). `done` is called, on a sender
    /// thread, when the memory may be reused.
    virtual void sendPiece(uint64_t transfer, uint64_t ordinal, uint64_t offset, const void* data,
                           size_t bytes, std::function<void()> done) = 0;

    /// Sends the pieces of a patch (delta.h), ClientLink::kMostPatch bytes at most, before anything
    /// that is sent later on the command lane.
    virtual void patch(uint64_t watches, Bytes pieces) = 0;
    /// The client's patches: called, in the order in which they come, on whichever thread reads,
    /// and before the Calls that follow them are handed out. It must not call back into the link,
    /// nor wait for anybody who does. A sentence ends the link. Set before the first Call is taken.
    virtual void onPatch(std::function<std::string(Bytes pieces)> handler) = 0;

    /// Sends what the driver has printed, before anything that is sent later on the command lane; a
    /// client that does not take it is sent nothing. kMaxOutput bytes at most.
    virtual void output(wire::OutputStream stream, std::string_view text) = 0;

    virtual Ending ending() const = 0;
    virtual std::string reason() const = 0;
    virtual uint64_t bytesIn() const = 0;
    virtual uint64_t bytesOut() const = 0;
    virtual void goodbye(wire::GoodbyeReason reason, std::string_view sentence) = 0;
};

}  // namespace juice
