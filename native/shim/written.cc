#include "native/shim/written.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace juice::shim {
namespace {

/// Less memory is compared as fast as it is asked about.
constexpr uint64_t kLeast = 256u << 10;
constexpr uint64_t kPage = 4096;
/// A descriptor that programs which close "all" their descriptors seldom reach.
constexpr int kHigh = 512;

// Of headers newer than the build machine's may be.
constexpr uint64_t kWpUnpopulated = 1u << 13, kWpAsync = 1u << 15;
constexpr int kUserModeOnly = 1;
struct ScanArgument {
    uint64_t size, flags, start, end, walkEnd, regions, regionCount, maxPages;
    uint64_t inverted, all, any, returned;
};
struct Region {
    uint64_t start, end, categories;
};
constexpr unsigned long kPagemapScan = _IOWR('f', 16, ScanArgument);
constexpr uint64_t kProtectMatching = 1, kCheckAsync = 2;
constexpr uint64_t kIsWritten = 1u << 1;

int high(int fd) {
    if (fd < 0) return fd;
    const int moved = fcntl(fd, F_DUPFD_CLOEXEC, kHigh);
    if (moved < 0) return fd;
    close(fd);
    return moved;
}

/// The kernel's two descriptors, opened once for each process: a child's memory is its own.
struct Kernel {
    int faults = -1, pagemap = -1;
    pid_t process = 0;

    static const Kernel* get() {
        static const auto* const one = new Kernel;
        return one->faults >= 0 && one->pagemap >= 0 && one->process == getpid() ? one : nullptr;
    }

  private:
    Kernel() : process(getpid()) {
        faults = high(
            static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | kUserModeOnly)));
        if (faults < 0) return;
        uffdio_api api{};
        api.api = UFFD_API;
        api.features = UFFD_FEATURE_PAGEFAULT_FLAG_WP | kWpUnpopulated | kWpAsync;
        if (ioctl(faults, UFFDIO_API, &api) != 0) {
            close(faults);
            faults = -1;
            return;
        }
        pagemap = high(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
    }
};

}  // namespace

std::unique_ptr<WrittenPages> WrittenPages::watch(uint64_t begin, uint64_t end) {
    begin = (begin + kPage - 1) & ~(kPage - 1);
    end &= ~(kPage - 1);
    if (end <= begin || end - begin < kLeast) return nullptr;
    const Kernel* const kernel = Kernel::get();
    if (kernel == nullptr) return nullptr;
    uffdio_register range{};
    range.range = {begin, end - begin};
    range.mode = UFFDIO_REGISTER_MODE_WP;
    if (ioctl(kernel->faults, UFFDIO_REGISTER, &range) != 0) return nullptr;
    return std::unique_ptr<WrittenPages>(new WrittenPages(begin, end));
}

WrittenPages::~WrittenPages() {
    uffdio_range range{begin_, end_ - begin_};
    if (const Kernel* const kernel = Kernel::get())
        ioctl(kernel->faults, UFFDIO_UNREGISTER, &range);
}

bool WrittenPages::each(uint64_t from, uint64_t to,
                        const std::function<void(uint64_t, uint64_t)>& visit) const {
    const Kernel* const kernel = Kernel::get();
    if (kernel == nullptr) return false;
    from = std::max(from, begin_) & ~(kPage - 1);
    to = (std::min(to, end_) + kPage - 1) & ~(kPage - 1);
    while (from < to) {
        std::array<Region, 64> regions;
        ScanArgument scan{};
        scan.size = sizeof scan;
        scan.flags = kProtectMatching | kCheckAsync;
        scan.start = from;
        scan.end = to;
        scan.regions = reinterpret_cast<uint64_t>(regions.data());
        scan.regionCount = regions.size();
        scan.all = scan.returned = kIsWritten;
        const int found = ioctl(kernel->pagemap, kPagemapScan, &scan);
        if (found < 0 && errno == EINTR) continue;
        if (found < 0) return false;
        for (int i = 0; i < found; ++i) visit(regions[i].start, regions[i].end);
        if (scan.walkEnd <= from) return false;
        from = scan.walkEnd;
    }
    return true;
}

}  // namespace juice::shim
