// The link: what travels between a shim and its worker. This file is the protocol; every constant
// of it is here and nowhere else.
//
// Connections
//   A client process has one *command lane* (lane 0) and, once it moves bulk data, a few *bulk
//   lanes* (lane 1..n). All go to the host's one data port. Each begins with a 64-byte plaintext
//   preface from the client; the host's acceptor checks its proof and passes the descriptor to the
//   process's worker. Lane 0xffff is the broker's (`juice attach` itself): it never reaches a
//   worker.
//
// Flow on lane 0
//   client  Preface
//   worker  Hello     {version, capabilities, server nonce, proof of the key over the preface's
//   nonce} client  Hello     {version, capabilities, arenas held, proof of the key over the
//   server's nonce} worker  Welcome   {arena chosen, device snapshot hash, staging window}, or
//   Goodbye {reason} client  Call*     ordered; a Call with request != 0 is answered by exactly one
//   Reply worker  Reply*    in any order; carries the watermarks both    immediate frames (Chunk,
//   Credit, Ack, Goodbye) at any time; they bypass the executor Either side closes after Goodbye. A
//   close without Goodbye is a fault of the peer or of the network.
//
// Bulk data
//   A payload over kInlineLimit travels as Chunks {transfer, ordinal, offset, bytes}, over any
//   lane, in any order, each idempotent. Worker to client: the destination is the user's own
//   memory; TCP's back-pressure bounds it. `ordinal` counts the transfers that a worker starts to
//   send; a Reply's `landed` watermark is the last ordinal that the answer presupposes: the client
//   believes the Reply only when all transfers up to it have landed. Client to worker: `ordinal` is
//   0. Each Chunk takes one slot of the worker's staging memory, so it costs kChunkSize of credit
//   however short it is. The window of the Welcome is credit that any transfer may use; Credit
//   {bytes, transfer 0} returns it when chunks have left their slots. The worker keeps a few slots
//   in reserve: when the transfer that it waits for gets none of the window because others hold all
//   of it, it grants Credit {bytes, transfer} to that one alone (its Chunks carry kGranted). So the
//   order in which clients' threads send can never starve the transfer that is next. What is left
//   of a grant lapses when its transfer is complete.
//
// Coherence
//   Host memory that device code itself reads and writes is kept the same at both ends by patches
//   (delta.h) on lane 0. They take effect when they are read. So what a client changed before it
//   sent a Call is there when the Call is executed; and since a worker sends what the device has
//   changed before the Reply that tells of it, it is there when the Reply is. `watches` is how many
//   of the client's watches (custom.h) have come to their end; from a client it is 0.
//
// Order
//   `sequence` numbers Calls (client to worker) and Replies (worker to client), each from 1,
//   without a gap. Acks carry the last sequence *received* and the last *executed*. `epoch` counts
//   reconnects; it is 0 until resume exists, and a frame of an older epoch is dropped.
//
// Functions of the program
//   A stream or a graph that gets to a function of the program stops there. Callback {id, result,
//   kind, landed} tells the client, who believes it when the transfers up to `landed` are here,
//   calls the function, brings the worker's mirrors of pinned memory up to date with Writes, and
//   says Called {id}. None of these frames waits for the executor, which may be waiting for that
//   very stream.
//
// Versions
//   1  first version. Encryption and resume will use capabilities bits and must not change the
//   frame.
//
// All integers are little endian. All sizes are bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace juice::wire {

constexpr uint16_t kVersion = 1;

constexpr char kMagic[8] = {'J', 'U', 'I', 'C', 'E', 0, 0, 1};
constexpr size_t kPrefaceSize = 64;
constexpr uint16_t kBrokerLane = 0xffff;
constexpr uint16_t kMaxBulkLanes = 8;

constexpr size_t kHeaderSize = 40;
/// Largest payload of one frame. Larger data goes as Chunks.
constexpr size_t kMaxPayload = 1u << 20;
/// A copy up to this size rides inside its Call or Reply.
constexpr size_t kInlineLimit = 64u << 10;
/// Data bytes of one Chunk frame at most (its payload is kChunkHeader larger).
constexpr size_t kChunkSize = 512u << 10;
constexpr size_t kChunkHeader = 24;  // u64 transfer, u64 ordinal, u64 offset
/// Credited bytes a client may have outstanding; the worker's Welcome says the actual figure.
constexpr size_t kDefaultWindow = 32u << 20;
/// Replies are expected before this long only for the handshake; calls may block for ever.
constexpr int kHandshakeTimeoutMs = 10'000;
constexpr int kPrefaceTimeoutMs = 5'000;
/// Bytes of Calls, headers included, that a client may send beyond what it knows to be executed.
constexpr size_t kCallWindow = 8u << 20;
/// An Ack is due after this many executed Calls or this many bytes, whichever comes first.
constexpr uint32_t kAckEveryCalls = 256;
constexpr uint32_t kAckEveryBytes = 256u << 10;

enum class Kind : uint8_t {
    hello = 1,      // both ways, once
    welcome = 2,    // worker to client, once
    goodbye = 3,    // both ways, last: payload u16 GoodbyeReason, string
    call = 10,      // client to worker, ordered
    reply = 11,     // worker to client, ordered
    fault = 12,     // worker to client, immediate: a sticky error, payload i32 result, u16 opcode
    callback = 13,  // worker to client, immediate: payload u64 id, i32 result, u32 kind, u64 landed
    output = 14,    // worker to client, immediate: payload u8 OutputStream, text; see kOutput
    chunk = 20,     // both ways, immediate
    credit = 21,    // worker to client, immediate: payload u64 bytes, u64 transfer (0: any)
    ack = 22,       // both ways, immediate: payload u64 received, u64 executed
    patch =
        23,  // both ways, immediate: payload u64 watches, then delta.h's pieces; see "Coherence"
    called = 24,  // client to worker, immediate: payload u64 id of a callback
    write = 25,   // client to worker, immediate: payload u64 address in a mirror, bytes
};

enum class GoodbyeReason : uint16_t {
    done = 0,           // the process ends
    protocol = 1,       // the peer sent something that the protocol forbids
    version = 2,        // no common version
    proof = 3,          // the key was not proven
    arena = 4,          // no address arena in common
    worker_failed = 5,  // the driver failed to start, or the worker is out of memory
    session_ended = 6,  // lease over: released, expired or its broker is gone
};

/// Capabilities, offered in Hello; the intersection holds.
enum Capability : uint32_t {
    kBulkLanes = 1u << 0,
    kEncryption = 1u << 1,  // reserved
    kResume = 1u << 2,      // reserved
    kOutput = 1u << 3,      // the client takes what the driver prints: Kind::output
};

/// Where a client writes what the driver has printed at the worker. Frames come in the order of the
/// printing, and before any Reply that tells of the work that printed.
enum class OutputStream : uint8_t { standard = 1, error = 2 };
constexpr size_t kMaxOutput = 64u << 10;

/// 64 bytes. `proof` = first 16 bytes of HMAC-SHA256(key, "preface" || bytes 0..47).
/// Key: the process's derived key; on the broker's lane the broker's (see keys.h).
struct Preface {
    char magic[8];
    uint16_t version;
    uint16_t lane;
    uint32_t flags;
    uint8_t session[16];
    uint64_t process;
    uint8_t nonce[8];
    uint8_t proof[16];
};
static_assert(sizeof(Preface) == kPrefaceSize);

struct Header {
    uint32_t size;      // payload bytes that follow
    uint8_t kind;       // Kind
    uint8_t reserved;   // 0
    uint16_t opcode;    // of a Call, echoed in its Reply; else 0
    uint32_t thread;    // client thread, from 1; 0 when none
    uint32_t context;   // minted id of the thread's current context; 0 when none
    uint64_t sequence;  // of Calls and Replies; 0 on immediate frames
    uint64_t request;   // non-zero: the Call wants a Reply with this number
    uint32_t epoch;     // reconnects so far
    uint32_t flags;     // FrameFlag
};
static_assert(sizeof(Header) == kHeaderSize);

enum FrameFlag : uint32_t {
    kNone = 0,
    kGranted = 1u << 0,  // a client's Chunk that uses a grant, not the window
};

/// What every Reply's payload begins with; the call's own results follow.
struct ReplyHead {
    int32_t result;    // CUresult of this call
    int32_t deferred;  // first failed posted call of this thread since its last Reply, or 0
    uint16_t deferredOpcode;
    uint16_t reserved;
    int32_t sticky;     // the context's sticky error, or 0
    uint64_t executed;  // last Call sequence executed
    uint64_t landed;    // see "Bulk data"
};
static_assert(sizeof(ReplyHead) == 32);

/// The two address arenas a shim reserves in its constructor; see docs/architecture.md, Addresses.
struct Arena {
    uint64_t begin, end;
};
constexpr Arena kArenas[2] = {
    {0x2aaa'0000'0000, 0x3000'0000'0000},
    {0x1000'0000'0000, 0x1555'0000'0000},
};

}  // namespace juice::wire
