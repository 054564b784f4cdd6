// juice-worker: executes one client process's calls against a CUDA driver. Started by the host,
// with its control socket as descriptor 3 and its usage page as descriptor 4
// (native/link/control.h, usage.h).
//
//   juice-worker [--driver PATH] [--cache DIR] [--cache-limit BYTES]
#include <fcntl.h>
#include <getopt.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "native/worker/layout.h"
#include "native/worker/service.h"

namespace juice::worker {
namespace {

struct Options {
    std::string driver = "libcuda.so.1";
    std::string cache;  // where images are kept; empty: nowhere
    uint64_t cacheLimit = uint64_t{16} << 30;
};

[[noreturn]] void usageError() {
    std::fputs(
        "usage: juice-worker [--driver PATH] [--cache DIR] [--cache-limit BYTES]\n"
        "It is started by juice host, which passes its control socket as descriptor 3.\n",
        stderr);
    std::exit(2);
}

Options parse(int argc, char** argv) {
    constexpr option kLong[] = {{"driver", required_argument, nullptr, 'd'},
                                {"cache", required_argument, nullptr, 'c'},
                                {"cache-limit", required_argument, nullptr, 'l'},
                                {nullptr, 0, nullptr, 0}};
    Options out;
    for (int c; (c = getopt_long(argc, argv, "", kLong, nullptr)) != -1;) {
        char* end = nullptr;
        switch (c) {
            case 'd':
                out.driver = optarg;
                break;
            case 'c':
                out.cache = optarg;
                break;
            case 'l':
                out.cacheLimit = std::strtoull(optarg, &end, 10);
                if (end == optarg || *end != '\0') usageError();
                break;
            default:
                usageError();
        }
    }
    if (optind != argc) usageError();
    return out;
}

/// What a client's code on the GPU, or its bytes on the wire, must never reach.
void harden() {
    prctl(PR_SET_DUMPABLE, 0);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "juice-worker");
    std::signal(SIGPIPE, SIG_IGN);
    // Should a shim be found in place of a driver, it must not find a broker.
    unsetenv("JUICE_BROKER");
}

UsagePage* mapUsage() {
    void* page = mmap(nullptr, sizeof(UsagePage), PROT_READ | PROT_WRITE, MAP_SHARED, kUsageFd, 0);
    if (page == MAP_FAILED) usageError();
    auto* usage = static_cast<UsagePage*>(page);
    if (usage->magic != kUsageMagic) usageError();
    return usage;
}

[[noreturn]] void fail(Control& control, const std::string& sentence) {
    control.sendFailed(sentence);
    Output::capture().flush();
    _exit(1);
}

[[noreturn]] void work(const Options& options) {
    Control control(kControlFd);
    UsagePage* const usage = mapUsage();
    fcntl(kControlFd, F_SETFD, FD_CLOEXEC);
    fcntl(kUsageFd, F_SETFD, FD_CLOEXEC);

    Output& output = Output::capture();
    Machine machine;
    std::string error;
    if (!machine.start(options.driver.c_str(), error)) fail(control, error);
    Staging staging;
    staging.pin(machine.driver, machine.contexts.front());
    const uint8_t arenas = arenasOfMappings();
    if (arenas == 0)
        fail(control,
             "this worker's memory does not lie where clients keep addresses free: allow the "
             "personality system call (a container's seccomp profile forbids it), or lift a limit "
             "on address space (ulimit -v)");
    Images images(options.cache, options.cacheLimit);

    Writer ready;
    const std::vector<uint8_t> snapshot = machine.snapshot.encode();
    ready.put(machine.snapshot.driverVersion)
        .bytes(snapshot.data(), snapshot.size())
        .put(machine.contextBytes);
    control.send(ControlKind::ready, ready.view());

    const std::string description = options.driver + ", CUDA " +
                                    std::to_string(machine.snapshot.driverVersion / 1000) + "." +
                                    std::to_string(machine.snapshot.driverVersion % 1000 / 10) +
                                    ", driver " + machine.snapshot.driverText;
    Service service(control, *usage, output, machine, staging, images, arenas, description);
    service.run();
}

}  // namespace
}  // namespace juice::worker

int main(int argc, char** argv) {
    using namespace juice::worker;
    enterLegacyLayout(argv);
    const Options options = parse(argc, argv);
    fillHighAddresses();
    harden();
    work(options);
}
