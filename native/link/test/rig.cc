#include "native/link/test/rig.h"

#include "native/link/thread.h"

namespace juice::test {

uint8_t patternByte(uint64_t transfer, uint64_t at) {
    return static_cast<uint8_t>((at * 131) ^ (at >> 9) ^ (transfer * 77));
}

std::vector<uint8_t> pattern(uint64_t transfer, size_t size) {
    std::vector<uint8_t> out(size);
    for (size_t i = 0; i < size; ++i) out[i] = patternByte(transfer, i);
    return out;
}

Rig::Rig(RigOptions options)
    : ends_({.lanes = options.lanes,
             .slots = options.slots,
             .clientArenas = options.clientArenas,
             .serverArenas = options.serverArenas,
             .onEnding = [this] { ++endings; }}) {
    EXPECT_NE(ends_.client, nullptr) << ends_.clientError;
    EXPECT_NE(ends_.server, nullptr) << ends_.serverError;
    if (options.run) executor_ = std::thread([this] { execute(); });
}

Rig::~Rig() {
    ends_.client.reset();
    joinExecutor();
    for (auto& helper : helpers_) helper.join();
}

void Rig::joinExecutor() {
    if (executor_.joinable()) executor_.join();
}

void Rig::execute() {
    Call call;
    for (;;) {
        switch (server().next(call, 50, 1000)) {
            case Next::call:
                handle(call);
                server().executed(call.header);
                break;
            case Next::idle:
                break;
            case Next::closed:
                return;
        }
    }
}

Ending Rig::awaitEnding() {
    const int64_t end = nowNanos() + 5000 * kMilli;
    // The link has its ending a moment before it tells of it.
    while ((server().ending() == Ending::open || endings == 0) && nowNanos() < end)
        napNanos(kMilli);
    return server().ending();
}

void Rig::handle(const Call& call) {
    Reader in(call.payload);
    Writer out;
    wire::ReplyHead head{};
    switch (call.header.opcode) {
        case kEcho:
            server().reply(call.header, head, call.payload);
            return;
        case kNote: {
            const auto thread = in.get<uint32_t>();
            const auto number = in.get<uint64_t>();
            std::lock_guard lock(notesMutex_);
            notes_.push_back({thread, number, call.header.sequence});
            if (call.header.request != 0) server().reply(call.header, head, {});
            return;
        }
        case kUpload: {
            const auto transfer = in.get<uint64_t>();
            const auto size = in.get<uint64_t>();
            while (holdReceive) napNanos(kMilli);
            std::vector<uint8_t> data(size);
            const bool whole =
                server().receive(transfer, size, [&](uint64_t offset, void* slot, size_t bytes) {
                    std::memcpy(data.data() + offset, slot, bytes);
                    server().release(slot);
                });
            if (!whole) return;
            const auto hash = sha256(data);
            out.raw(hash.data(), hash.size());
            if (call.header.request != 0) server().reply(call.header, head, out.view());
            return;
        }
        case kDownload:
        case kLate: {
            const auto transfer = in.get<uint64_t>();
            const auto size = in.get<uint64_t>();
            const uint64_t ordinal = server().beginSend(transfer, size);
            const auto send = [this, transfer, size, ordinal] {
                auto data = std::make_shared<std::vector<uint8_t>>(pattern(transfer, size));
                // In pieces of odd sizes, the way a copy engine would hand them over.
                constexpr size_t kPiece = 3'000'001;
                for (size_t at = 0; at < size; at += kPiece)
                    server().sendPiece(transfer, ordinal, at, data->data() + at,
                                       std::min(kPiece, size - at), [data] {});
            };
            if (call.header.opcode == kDownload) {
                send();
            } else {
                std::lock_guard lock(helpersMutex_);
                helpers_.emplace_back([send] {
                    napNanos(20 * kMilli);
                    send();
                });
            }
            if (call.header.request != 0) server().reply(call.header, head, {});
            return;
        }
        case kSleep:
            server().busy();
            napNanos(in.get<uint32_t>() * kMilli);
            server().idle();
            if (call.header.request != 0) server().reply(call.header, head, {});
            return;
        case kFault:
            server().fault(719, call.header.opcode);
            return;
        default:
            ADD_FAILURE() << "opcode " << call.header.opcode;
    }
}

void Rig::upload(size_t size, uint32_t thread) {
    const uint64_t transfer = client().mintTransfer();
    const auto data = pattern(transfer, size);
    Writer payload;
    payload.put(transfer).put(uint64_t{size});
    const uint64_t request = client().ask(kUpload, thread, 0, payload.view());
    client().send(transfer, data.data(), data.size());
    const Reply reply = client().take(request);
    ASSERT_FALSE(reply.broken) << client().reason();
    EXPECT_TRUE(sameBytes(reply.payload, sha256(data))) << size;
}

void Rig::download(size_t size, uint32_t thread, uint16_t opcode) {
    std::vector<uint8_t> data(size);
    const uint64_t transfer = client().expect(data.data(), size);
    Writer payload;
    payload.put(transfer).put(uint64_t{size});
    const Reply reply = client().call(opcode, thread, 0, payload.view());
    ASSERT_FALSE(reply.broken) << client().reason();
    EXPECT_TRUE(client().landed(transfer));
    EXPECT_TRUE(sameBytes(data, pattern(transfer, size))) << size;
}

}  // namespace juice::test
