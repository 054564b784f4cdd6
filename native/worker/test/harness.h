// A real worker process on a software GPU, and a real link to it: what the end-to-end tests of the
// worker are written with. The test plays the host (control socket, acceptor) and the shim.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "native/abi/cuda_abi.h"
#include "native/gen/opcodes.h"
#include "native/link/client_link.h"
#include "native/link/control.h"
#include "native/link/custom.h"
#include "native/link/snapshot.h"
#include "native/link/usage.h"

namespace juice::worker::test {

/// How a worker is started.
struct Start {
    const char* driver = nullptr;  // null: JUICE_TEST_DRIVER, or else the software GPU
    bool container = false;        // as under a container's seccomp profile
};

/// The host's side of one worker.
class WorkerProcess {
  public:
    explicit WorkerProcess(std::vector<std::string> args = {}, Start how = Start{});
    ~WorkerProcess();

    struct Message {
        ControlKind kind{};
        std::vector<uint8_t> payload;
    };
    /// The next message; nothing when the worker has closed its end.
    std::optional<Message> receive();
    void send(ControlKind kind, Bytes payload, int fd = -1);

    /// Reads `ready`.
    void awaitReady();
    void claim(uint64_t memoryLimit = 0);
    /// Claims nothing: connects the client's link through the acceptor.
    std::unique_ptr<ClientLink> connect();
    /// Reads until `ended`: its Ending; -1 when there was none.
    int awaitEnded(std::string* sentence = nullptr);
    /// Waits for its death: the exit code, or -signal.
    int awaitExit();
    /// Closes the host's end of the control socket.
    void hangUp();

    pid_t pid() const { return pid_; }
    const Snapshot& snapshot() const { return snapshot_; }
    const UsagePage& usage() const { return *usage_; }
    const Credentials& who() const { return who_; }

  private:
    void acceptLanes();

    pid_t pid_ = -1;
    int control_ = -1, listener_ = -1;
    uint16_t port_ = 0;
    UsagePage* usage_ = nullptr;
    bool reaped_ = false;
    int exit_ = 0;
    Credentials who_;
    Snapshot snapshot_;
    std::thread acceptor_;
};

/// The shim's side, typed. Every call is checked against the result it is expected to have.
class Client {
  public:
    explicit Client(ClientLink& link, uint32_t thread = 1) : link_(link), thread_(thread) {}

    static constexpr uint64_t kContext = 1;
    /// Retains device 0's primary context as kContext, and makes all further calls in it.
    void retainPrimary();
    void inContext(uint32_t context) { context_ = context; }

    Reply call(Op op, const Writer& payload);
    void post(Op op, const Writer& payload);
    template <typename T>
    Reply call(Op op, const T& value) {
        Writer out;
        custom::put(out, value);
        return call(op, out);
    }
    template <typename T>
    void post(Op op, const T& value) {
        Writer out;
        custom::put(out, value);
        post(op, out);
    }

    uint64_t alloc(uint64_t size);
    void free(uint64_t address);
    /// Inline or as a transfer, by size.
    void copyIn(uint64_t destination, const std::vector<uint8_t>& bytes, uint64_t stream = 0);
    std::vector<uint8_t> copyOut(uint64_t source, size_t size, uint64_t stream = 0);
    int synchronise(uint64_t stream = 0);
    uint64_t makeStream(uint64_t id, unsigned flags = 0);

    /// Loads PTX as module `id`, uploading it when the worker does not have it. The number of
    /// uploads, or -result.
    int loadModule(uint64_t id, const std::string& ptx);
    void getFunction(uint64_t module, uint64_t id, const std::string& name);
    void launch(uint64_t function, uint32_t blocks, uint32_t threads, const Writer& params,
                uint64_t stream = 0);

    ClientLink& link() { return link_; }

  private:
    ClientLink& link_;
    uint32_t thread_, context_ = 0;
};

/// Kernels: increment(u64 p, u32 n), slow_increment(the same, after a long loop), fault().
extern const char kPtx[];

std::vector<uint8_t> pattern(size_t size, uint8_t seed = 1);

}  // namespace juice::worker::test
