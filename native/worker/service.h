// A ready worker's life from the host's claim to the end: takes connections in, runs the executor,
// says how it ended.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "native/link/server_link.h"
#include "native/link/usage.h"
#include "native/worker/control.h"
#include "native/worker/images.h"
#include "native/worker/machine.h"
#include "native/worker/staging.h"
#include "native/worker/worker.h"

namespace juice::worker {

class Service {
  public:
    Service(Control& control, UsagePage& usage, Output& output, Machine& machine, Staging& staging,
            Images& images, uint8_t arenas, std::string description);

    /// Serves until the client, the host or the link ends it; ends the process.
    [[noreturn]] void run();

  private:
    struct Lane {
        int fd;
        wire::Preface preface;
    };
    void receive(Control::Message message);
    void claim(Reader in);
    void lane(Control::Message message);
    /// The executor's thread: handshake, then calls.
    void serve(Lane lane);
    /// A client that is gone while the executor is stuck in the driver: then nobody else would
    /// notice.
    void watchEnding();
    /// The last word to the host, once. Whatever the GPU still does ends with the process.
    [[noreturn]] void end(Ending ending, const std::string& sentence);
    /// Returns in one of the two threads only.
    void takeLastWord();
    [[noreturn]] void sayLast(Ending ending, const std::string& sentence);

    Control& control_;
    UsagePage& usage_;
    Output& output_;
    Machine& machine_;
    Staging& staging_;
    Images& images_;
    const uint8_t arenas_;
    const std::string description_;

    bool claimed_ = false;
    Credentials who_;
    uint64_t memoryLimit_ = 0;
    bool served_ = false;
    std::thread executor_;

    std::mutex mutex_;  // of what follows
    std::shared_ptr<ServerLink> link_;
    std::shared_ptr<Worker> worker_;
    std::vector<Lane> early_;  // bulk lanes that came before the handshake was over

    int64_t endingSince_ = 0;
    std::atomic<bool> ended_{false};
};

}  // namespace juice::worker
