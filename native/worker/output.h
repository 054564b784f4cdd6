// What the driver prints in this process is the client's: what kernels print (on standard output),
// and what it says of failed assertions and faults (on standard error). Both descriptors lead into
// pipes; what comes out of them goes to the client, in order, and never later than an answer that
// tells of the work that printed it. What is printed while no client is attached, and all of
// standard error, goes where it went before as well.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>

#include "native/link/server_link.h"

namespace juice::worker {

class Output {
  public:
    /// Takes the process's descriptors over, for good; called once, before the driver is loaded.
    /// Where that does not work everything stays as it is.
    static Output& capture();

    /// From now on the output is this client's.
    void attach(std::shared_ptr<ServerLink> link);
    /// On return all that has been printed so far has been sent.
    void flush();

  private:
    struct Source {
        int from = -1;    // the reading end of the pipe
        int before = -1;  // where the descriptor led
        wire::OutputStream stream{};
    };
    Output();
    static bool redirect(int descriptor, Source& source);
    void watch();
    /// With mutex_ held.
    void drain(const Source& source);
    void forward(const Source& source, std::string_view text);

    std::mutex mutex_;
    std::shared_ptr<ServerLink> link_;
    std::array<Source, 2> sources_;
    std::thread watcher_;
};

}  // namespace juice::worker
