// A link over loopback and a worker that does simple things with its Calls.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "native/link/test/loopback.h"

namespace juice::test {

/// What the rig's worker understands.
enum Opcode : uint16_t {
    kEcho = 1,      // answers with the payload
    kNote = 2,      // posted: {u32 thread, u64 number}; kept in Rig::notes
    kUpload = 3,    // {u64 transfer, u64 size}: receives; answers {32 raw sha256}
    kDownload = 4,  // {u64 transfer, u64 size}: sends pattern(transfer); answers nothing
    kSleep = 5,     // {u32 milliseconds}: busy, as in a driver call that blocks
    kLate = 6,      // as kDownload, but the data follows 20 ms after the answer
    kFault = 7,     // posted: tells of a sticky error 719
};

uint8_t patternByte(uint64_t transfer, uint64_t at);
std::vector<uint8_t> pattern(uint64_t transfer, size_t size);

struct RigOptions {
    int lanes = 0;
    size_t slots = 64;
    uint8_t clientArenas = 1, serverArenas = 3;
    bool run = true;  // start the worker's executor
};

class Rig {
  public:
    explicit Rig(RigOptions options = {});
    ~Rig();

    ClientLink& client() { return *ends_.client; }
    ServerLink& server() { return *ends_.server; }
    int lanesAdded() const { return ends_.lanesAdded; }
    const Credentials& credentials() const { return ends_.who; }
    /// Runs the executor until the link ends; for rigs made with run = false.
    void execute();
    /// Waits until the link has ended at the worker's end.
    Ending awaitEnding();
    void joinExecutor();

    Reply call(uint16_t opcode, const Writer& payload) {
        return client().call(opcode, 1, 0, payload.view());
    }
    /// Uploads and checks the hash that comes back.
    void upload(size_t size, uint32_t thread = 1);
    void download(size_t size, uint32_t thread = 1, uint16_t opcode = kDownload);

    struct Note {
        uint32_t thread;
        uint64_t number;
        uint64_t sequence;
    };
    /// What has been noted so far.
    std::vector<Note> notes() {
        std::lock_guard lock(notesMutex_);
        return notes_;
    }
    std::atomic<int> endings{0};
    std::atomic<bool> holdReceive{false};

  private:
    void handle(const Call& call);

    Loopback ends_;
    std::thread executor_;
    std::mutex notesMutex_;
    std::vector<Note> notes_;
    std::mutex helpersMutex_;
    std::vector<std::thread> helpers_;
};

}  // namespace juice::test
