// Frames: headers made, headers checked, and the fixed payloads of immediate frames. A sentence
// that names what is wrong stands for a protocol violation; an empty one means that all is well.
#pragma once

#include <string>

#include "native/link/codec.h"
#include "native/link/wire.h"

namespace juice {

/// The end that sent a frame.
enum class From { client, worker };

/// What a Chunk's payload begins with.
struct ChunkHead {
    uint64_t transfer;
    uint64_t ordinal;
    uint64_t offset;
};
static_assert(sizeof(ChunkHead) == wire::kChunkHeader);

/// Checks everything that can be said of a header alone: may this end send that kind on that lane
/// (0: the command lane), is the size within the kind's bounds, are unused fields zero.
std::string checkHeader(const wire::Header& header, From from, uint16_t lane);

wire::Header immediate(wire::Kind kind, size_t size, uint32_t flags = wire::kNone);

/// A whole frame of an immediate kind: header and payload.
std::vector<uint8_t> immediateFrame(wire::Kind kind, Bytes payload);
std::vector<uint8_t> goodbyeFrame(wire::GoodbyeReason reason, std::string_view sentence);
std::vector<uint8_t> ackFrame(uint64_t received, uint64_t executed);
/// `transfer` 0: credit for any transfer; otherwise a grant that only this one may use.
std::vector<uint8_t> creditFrame(uint64_t bytes, uint64_t transfer);
std::vector<uint8_t> faultFrame(int32_t result, uint16_t opcode);
std::vector<uint8_t> patchFrame(uint64_t watches, Bytes pieces);

struct Goodbye {
    wire::GoodbyeReason reason;
    std::string sentence;
};
/// False on malformed input. Control characters of the peer's sentence become spaces.
bool decodeGoodbye(Bytes payload, Goodbye& out);

}  // namespace juice
