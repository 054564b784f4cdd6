// The handshake of a lane: both ends prove the key of the preface, over a nonce of the other. See
// wire.h, Flow.
#pragma once

#include <string>

#include "native/link/client_link.h"
#include "native/link/frame.h"
#include "native/link/keys.h"

namespace juice {

/// What a client's Hello says.
struct ClientOffer {
    uint32_t capabilities = 0;
    uint8_t arenas = 0;
    uint32_t pid = 0;
};

/// Client's half of a lane: sends the preface, checks the worker's Hello, answers it. On success
/// the capabilities of the worker are in `capabilities`.
bool openLane(int fd, const Credentials& who, uint16_t lane, const ClientOffer& offer,
              uint32_t& capabilities, std::string& error);
/// Worker's half, the preface having been read: sends Hello and reads the client's. Says Goodbye
/// when the proof or the version is wrong.
bool admitLane(int fd, const Credentials& who, const wire::Preface& preface, uint32_t capabilities,
               ClientOffer& offer, std::string& error);

/// The frames of the handshake as bytes.
using HelloNonce = std::array<uint8_t, 16>;
std::vector<uint8_t> workerHello(const Key& key, const wire::Preface& preface,
                                 const HelloNonce& nonce, uint32_t capabilities);
std::vector<uint8_t> clientHello(const Key& key, const wire::Preface& preface, Bytes nonce,
                                 const ClientOffer& offer);
std::vector<uint8_t> welcomeFrame(const Welcome& welcome);

bool sendWelcome(int fd, const Welcome& welcome);
bool receiveWelcome(int fd, uint8_t arenasHeld, Welcome& out, std::string& error);

/// Sends a Goodbye as far as the socket takes it without waiting. A link about to end has no more
/// to say.
void sendGoodbye(int fd, wire::GoodbyeReason reason, std::string_view sentence);

}  // namespace juice
