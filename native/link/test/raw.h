// An end of a link that says whatever it is told to: for hostile peers and for peers that vanish.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "native/link/frame.h"
#include "native/link/test/loopback.h"

namespace juice::test {

/// A whole frame as bytes.
std::vector<uint8_t> frameBytes(wire::Header header, Bytes payload);
std::vector<uint8_t> callBytes(uint64_t sequence, uint64_t request, uint16_t opcode, Bytes payload);
std::vector<uint8_t> replyBytes(uint64_t sequence, uint64_t request, uint16_t opcode,
                                const wire::ReplyHead& head, Bytes payload);
std::vector<uint8_t> chunkBytes(const ChunkHead& head, Bytes data, uint32_t flags = 0);

/// A worker's ServerLink whose client is a bare socket.
class RawClient {
  public:
    explicit RawClient(size_t slots = 8);
    ~RawClient();
    void send(Bytes bytes);
    /// Exactly `size` bytes of what the worker has sent; false when they do not come.
    bool receive(void* out, size_t size);
    /// Closes; `abruptly` with a reset.
    void hangUp(bool abruptly = false);
    ServerLink& server() { return *server_; }

  private:
    std::vector<std::unique_ptr<uint8_t[]>> slots_;
    std::unique_ptr<ServerLink> server_;
    int fd_ = -1;
};

/// A ClientLink whose worker is a bare socket.
class RawServer {
  public:
    explicit RawServer(uint64_t window = 4 * wire::kChunkSize);
    ~RawServer();
    void send(Bytes bytes);
    void hangUp(bool abruptly = false);
    /// Exactly `size` bytes of what the client has sent; false when they do not come.
    bool receive(void* out, size_t size);
    /// Reads them away.
    bool skip(size_t size);
    ClientLink& client() { return *client_; }

  private:
    std::unique_ptr<ClientLink> client_;
    int fd_ = -1;
};

}  // namespace juice::test
