// The worker's end of the control socket (native/link/control.h).
#pragma once

#include <mutex>
#include <string_view>
#include <vector>

#include "native/link/codec.h"
#include "native/link/control.h"

namespace juice::worker {

class Control {
  public:
    explicit Control(int fd) : fd_(fd) {}

    struct Message {
        ControlKind kind{};
        std::vector<uint8_t> payload;
        int fd = -1;  // a descriptor that came along; the reader owns it
        Reader reader() const { return Reader(payload); }
    };
    enum class Received { message, nothing, closed };
    /// Waits for at most `waitMillis` (-1: for ever).
    Received receive(Message& out, int waitMillis);
    /// Any thread. A host that is gone is noticed by receive(), not here.
    void send(ControlKind kind, Bytes payload);
    void sendFailed(std::string_view sentence);

  private:
    int fd_;
    std::mutex mutex_;
    std::vector<uint8_t> buffer_;
};

}  // namespace juice::worker
