// The smallest whole site, for tests: a broker on a Unix socket, an acceptor on a loopback port,
// and a worker of its own for each client process that asks for one.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "native/link/keys.h"
#include "native/link/usage.h"

namespace juice::shim::test {

/// A worker process and the host's end of its control socket.
struct SiteWorker {
    pid_t pid = -1;
    int control = -1;
    UsagePage* usage = nullptr;
    std::vector<uint8_t> snapshot;  // as its `ready` brought it
};

class Site {
  public:
    struct Options {
        std::string worker;  // juice-worker
        std::string driver;  // the driver that it loads
        uint64_t memoryLimit = 0;
        /// The broker refuses processes with this sentence, when it is not empty.
        std::string refusal;
    };
    /// Starts everything; ends the program with a message when that does not work.
    explicit Site(Options options);
    /// Ends the workers and removes the directory.
    ~Site();

    /// What JUICE_BROKER is to name.
    const std::string& socketPath() const { return socketPath_; }
    /// Sends SIGKILL to every worker that has been given to a process.
    void killWorkers();
    /// Kernels launched, in all.
    uint64_t launches();
    int workers();

  private:
    SiteWorker start();
    void serveBroker();
    void serveData();
    void answer(int fd);

    Options options_;
    std::string directory_, socketPath_;
    SessionId session_{};
    int brokerFd_ = -1, dataFd_ = -1;
    uint16_t port_ = 0;
    std::mutex mutex_;  // around what follows
    SiteWorker spare_;
    std::map<uint64_t, SiteWorker> given_;
    std::thread broker_, data_;
};

}  // namespace juice::shim::test
