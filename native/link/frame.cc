#include "native/link/frame.h"

#include <algorithm>

namespace juice {
namespace {

using wire::Kind;

/// A goodbye's sentence is cut to this many bytes.
constexpr size_t kMaxSentence = 1024;

struct Rule {
    const char* name;
    bool fromClient, fromWorker;
    bool onBulkLane;
    bool ordered;
    size_t least, most;  // payload bytes
};

const Rule* ruleOf(uint8_t kind) {
    // clang-format off
    static constexpr Rule hello   {"hello",   true,  true,  true,  false, 43, 256};
    static constexpr Rule welcome {"welcome", false, true,  false, false, 13, 4096};
    static constexpr Rule goodbye {"goodbye", true,  true,  true,  false, 6,  6 + kMaxSentence};
    static constexpr Rule call    {"call",    true,  false, false, true,  0,  wire::kMaxPayload};
    static constexpr Rule reply   {"reply",   false, true,  false, true,  sizeof(wire::ReplyHead), wire::kMaxPayload};
    static constexpr Rule fault   {"fault",   false, true,  false, false, 6,  6};
    static constexpr Rule output  {"output",  false, true,  false, false, 2,  1 + wire::kMaxOutput};
    static constexpr Rule chunk   {"chunk",   true,  true,  true,  false, wire::kChunkHeader + 1, wire::kChunkHeader + wire::kChunkSize};
    static constexpr Rule credit  {"credit",  false, true,  false, false, 16, 16};
    static constexpr Rule ack     {"ack",     true,  true,  false, false, 16, 16};
    static constexpr Rule patch   {"patch",   true,  true,  false, false, 8,  wire::kMaxPayload};
    static constexpr Rule callback{"callback",false, true,  false, false, 24, 24};
    static constexpr Rule write   {"write",   true,  false, false, false, 9,  wire::kMaxPayload};
    static constexpr Rule called  {"called",  true,  false, false, false, 8,  8};
    // clang-format on
    switch (static_cast<Kind>(kind)) {
        case Kind::hello:
            return &hello;
        case Kind::welcome:
            return &welcome;
        case Kind::goodbye:
            return &goodbye;
        case Kind::call:
            return &call;
        case Kind::reply:
            return &reply;
        case Kind::fault:
            return &fault;
        case Kind::output:
            return &output;
        case Kind::chunk:
            return &chunk;
        case Kind::credit:
            return &credit;
        case Kind::ack:
            return &ack;
        case Kind::patch:
            return &patch;
        case Kind::callback:
            return &callback;
        case Kind::write:
            return &write;
        case Kind::called:
            return &called;
    }
    return nullptr;
}

}  // namespace

std::string checkHeader(const wire::Header& header, From from, uint16_t lane) {
    const Rule* rule = ruleOf(header.kind);
    if (rule == nullptr) return "a frame of the unknown kind " + std::to_string(header.kind);
    const std::string what = rule->name;
    if (from == From::client ? !rule->fromClient : !rule->fromWorker)
        return "a " + what + " frame from the wrong end";
    if (lane != 0 && !rule->onBulkLane) return "a " + what + " frame on a bulk lane";
    if (header.size < rule->least || header.size > rule->most)
        return "a " + what + " frame of " + std::to_string(header.size) + " bytes";
    if (header.epoch != 0) return "a " + what + " frame of epoch " + std::to_string(header.epoch);
    const uint32_t allowed =
        header.kind == static_cast<uint8_t>(Kind::chunk) && from == From::client
            ? static_cast<uint32_t>(wire::kGranted)
            : static_cast<uint32_t>(wire::kNone);
    if (header.reserved != 0 || (header.flags & ~allowed) != 0)
        return "a " + what + " frame with unknown flags";
    if (!rule->ordered && (header.sequence != 0 || header.request != 0 || header.opcode != 0 ||
                           header.thread != 0 || header.context != 0))
        return "a " + what + " frame with the fields of an ordered one";
    return {};
}

wire::Header immediate(wire::Kind kind, size_t size, uint32_t flags) {
    wire::Header header{};
    header.size = static_cast<uint32_t>(size);
    header.kind = static_cast<uint8_t>(kind);
    header.flags = flags;
    return header;
}

std::vector<uint8_t> immediateFrame(wire::Kind kind, Bytes payload) {
    const wire::Header header = immediate(kind, payload.size());
    Writer out;
    out.raw(&header, sizeof header);
    out.raw(payload.data(), payload.size());
    return out.take();
}

std::vector<uint8_t> goodbyeFrame(wire::GoodbyeReason reason, std::string_view sentence) {
    Writer out;
    out.put(reason).text(sentence.substr(0, kMaxSentence));
    return immediateFrame(Kind::goodbye, out.view());
}

std::vector<uint8_t> ackFrame(uint64_t received, uint64_t executed) {
    Writer out;
    out.put(received).put(executed);
    return immediateFrame(Kind::ack, out.view());
}

std::vector<uint8_t> creditFrame(uint64_t bytes, uint64_t transfer) {
    Writer out;
    out.put(bytes).put(transfer);
    return immediateFrame(Kind::credit, out.view());
}

std::vector<uint8_t> patchFrame(uint64_t watches, Bytes pieces) {
    Writer out;
    const wire::Header header = immediate(Kind::patch, sizeof watches + pieces.size());
    out.raw(&header, sizeof header);
    out.put(watches).raw(pieces.data(), pieces.size());
    return out.take();
}

std::vector<uint8_t> faultFrame(int32_t result, uint16_t opcode) {
    Writer out;
    out.put(result).put(opcode);
    return immediateFrame(Kind::fault, out.view());
}

bool decodeGoodbye(Bytes payload, Goodbye& out) {
    Reader in(payload);
    out.reason = in.get<wire::GoodbyeReason>();
    out.sentence = in.text();
    std::replace_if(
        out.sentence.begin(), out.sentence.end(),
        [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
    return in.done();
}

}  // namespace juice
