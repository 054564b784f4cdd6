#include "native/link/handshake.h"

#include <sys/socket.h>

#include <cstring>

#include "native/link/socket.h"
#include "native/link/thread.h"

namespace juice {
namespace {

using wire::Kind;

constexpr size_t kNonceSize = std::tuple_size_v<HelloNonce>;
constexpr size_t kProofSize = 32;
constexpr std::string_view kWorkerLabel = "hello/worker";
constexpr std::string_view kClientLabel = "hello/client";

std::array<uint8_t, kProofSize> proofOf(const Key& key, std::string_view label,
                                        const wire::Preface& preface, Bytes nonce, Bytes fields) {
    Writer said;
    said.raw(label.data(), label.size());
    said.raw(&preface, sizeof preface);
    said.raw(nonce.data(), nonce.size());
    said.raw(fields.data(), fields.size());
    return hmacSha256(key, said.view());
}

bool sendBytes(int fd, Bytes bytes) {
    const int64_t deadline = nowNanos() + wire::kHandshakeTimeoutMs * kMilli;
    iovec part{const_cast<uint8_t*>(bytes.data()), bytes.size()};
    return sendAll(fd, &part, 1, [deadline] { return nowNanos() > deadline; }) == Sent::all;
}

/// Reads one frame of the expected kind. `error` says what came instead.
bool receiveFrame(int fd, From peer, Kind kind, std::vector<uint8_t>& payload, std::string& error) {
    const std::string who = peer == From::client ? "the client" : "the worker";
    const int64_t deadline = nowNanos() + wire::kHandshakeTimeoutMs * kMilli;
    wire::Header header;
    if (!receiveExactly(fd, &header, sizeof header, deadline)) {
        error = who + (nowNanos() >= deadline ? " did not answer in time"
                                              : " closed the connection during the handshake");
        return false;
    }
    error = checkHeader(header, peer, 0);
    const auto got = static_cast<Kind>(header.kind);
    if (error.empty() && got != kind && got != Kind::goodbye)
        error = "a frame of kind " + std::to_string(header.kind) + " in the handshake";
    if (!error.empty()) {
        error = who + " sent " + error;
        return false;
    }
    payload.resize(header.size);
    if (!receiveExactly(fd, payload.data(), payload.size(), deadline)) {
        error = who + " closed the connection during the handshake";
        return false;
    }
    if (got == kind) return true;
    Goodbye goodbye;
    error = decodeGoodbye(payload, goodbye) ? who + " refused: " + goodbye.sentence
                                            : who + " sent a malformed goodbye";
    return false;
}

}  // namespace

std::vector<uint8_t> workerHello(const Key& key, const wire::Preface& preface,
                                 const HelloNonce& nonce, uint32_t capabilities) {
    Writer hello;
    hello.put(wire::kVersion).put(capabilities).raw(nonce.data(), nonce.size());
    const auto proof = proofOf(key, kWorkerLabel, preface, {}, hello.view());
    hello.raw(proof.data(), proof.size());
    return immediateFrame(Kind::hello, hello.view());
}

std::vector<uint8_t> clientHello(const Key& key, const wire::Preface& preface, Bytes nonce,
                                 const ClientOffer& offer) {
    Writer hello;
    hello.put(wire::kVersion).put(offer.capabilities).put(offer.arenas).put(offer.pid);
    const auto proof = proofOf(key, kClientLabel, preface, nonce, hello.view());
    hello.raw(proof.data(), proof.size());
    return immediateFrame(Kind::hello, hello.view());
}

std::vector<uint8_t> welcomeFrame(const Welcome& welcome) {
    Writer out;
    out.put(welcome.arena).put(welcome.window).text(welcome.worker);
    return immediateFrame(Kind::welcome, out.view());
}

bool openLane(int fd, const Credentials& who, uint16_t lane, const ClientOffer& offer,
              uint32_t& capabilities, std::string& error) {
    const wire::Preface preface = makePreface(who, lane);
    if (!sendBytes(fd, bytesOf(preface))) {
        error = "the preface could not be sent";
        return false;
    }
    std::vector<uint8_t> hello;
    if (!receiveFrame(fd, From::worker, Kind::hello, hello, error)) return false;
    Reader in(hello);
    const auto version = in.get<uint16_t>();
    capabilities = in.get<uint32_t>();
    const Bytes nonce = in.take(kNonceSize);
    const Bytes proof = in.take(kProofSize);
    if (!in.done()) {
        error = "the worker sent a malformed hello";
        return false;
    }
    if (version != wire::kVersion) {
        error = "the worker speaks version " + std::to_string(version) +
                " of the link, this shim " + std::to_string(wire::kVersion);
        sendGoodbye(fd, wire::GoodbyeReason::version, error);
        return false;
    }
    const Bytes fields = Bytes(hello).first(hello.size() - kProofSize);
    if (!sameBytes(proof, proofOf(who.key, kWorkerLabel, preface, {}, fields))) {
        error = "the worker does not know the session's key";
        sendGoodbye(fd, wire::GoodbyeReason::proof, error);
        return false;
    }
    if (sendBytes(fd, clientHello(who.key, preface, nonce, offer))) return true;
    error = "the worker closed the connection during the handshake";
    return false;
}

bool admitLane(int fd, const Credentials& who, const wire::Preface& preface, uint32_t capabilities,
               ClientOffer& offer, std::string& error) {
    HelloNonce nonce;
    randomBytes(nonce.data(), nonce.size());
    if (!sendBytes(fd, workerHello(who.key, preface, nonce, capabilities))) {
        error = "the client closed the connection during the handshake";
        return false;
    }
    std::vector<uint8_t> answer;
    if (!receiveFrame(fd, From::client, Kind::hello, answer, error)) return false;
    Reader in(answer);
    const auto version = in.get<uint16_t>();
    in.get(offer.capabilities);
    in.get(offer.arenas);
    in.get(offer.pid);
    const Bytes proof = in.take(kProofSize);
    if (!in.done()) {
        error = "the client sent a malformed hello";
        sendGoodbye(fd, wire::GoodbyeReason::protocol, error);
        return false;
    }
    if (version != wire::kVersion) {
        error = "the client speaks version " + std::to_string(version) +
                " of the link, this worker " + std::to_string(wire::kVersion);
        sendGoodbye(fd, wire::GoodbyeReason::version, error);
        return false;
    }
    const Bytes fields = Bytes(answer).first(answer.size() - kProofSize);
    if (!sameBytes(proof, proofOf(who.key, kClientLabel, preface, nonce, fields))) {
        error = "the client does not know the process's key";
        sendGoodbye(fd, wire::GoodbyeReason::proof, error);
        return false;
    }
    return true;
}

bool sendWelcome(int fd, const Welcome& welcome) {
    return sendBytes(fd, welcomeFrame(welcome));
}

bool receiveWelcome(int fd, uint8_t arenasHeld, Welcome& out, std::string& error) {
    std::vector<uint8_t> payload;
    if (!receiveFrame(fd, From::worker, Kind::welcome, payload, error)) return false;
    Reader in(payload);
    in.get(out.arena);
    in.get(out.window);
    out.worker = in.text();
    if (!in.done() || out.window < wire::kChunkSize || out.window > (uint64_t{1} << 40)) {
        error = "the worker sent a malformed welcome";
        return false;
    }
    if (out.arena >= std::size(wire::kArenas) || (arenasHeld >> out.arena & 1) == 0) {
        error = "the worker chose an address arena that is not held here";
        return false;
    }
    return true;
}

void sendGoodbye(int fd, wire::GoodbyeReason reason, std::string_view sentence) {
    const auto frame = goodbyeFrame(reason, sentence);
    (void)!send(fd, frame.data(), frame.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace juice
