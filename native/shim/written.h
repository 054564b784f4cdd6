// Which pages the program has written, as its kernel notes it: userfaultfd's asynchronous write
// protection and PAGEMAP_SCAN, from Linux 6.7 on. No signal is handled, and no thread of the
// program ever waits; the first write to a page after it was asked about costs a minor fault. Where
// the kernel or a sandbox does not allow it, memory is compared as a whole.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace juice::shim {

class WrittenPages {
  public:
    /// Watches the whole pages of [begin, end). Null where there are too few, or it cannot be done.
    static std::unique_ptr<WrittenPages> watch(uint64_t begin, uint64_t end);
    ~WrittenPages();
    WrittenPages(const WrittenPages&) = delete;
    WrittenPages& operator=(const WrittenPages&) = delete;

    /// The pages that are watched.
    uint64_t begin() const { return begin_; }
    uint64_t end() const { return end_; }

    /// Visits the parts of [from, to), of the watched pages, that have been written since it was
    /// asked about them last; at first all counts as written. False when the memory is no longer
    /// watched, since the program has mapped something else there: then nothing is known.
    bool each(uint64_t from, uint64_t to,
              const std::function<void(uint64_t begin, uint64_t end)>& visit) const;

  private:
    WrittenPages(uint64_t begin, uint64_t end) : begin_(begin), end_(end) {}
    uint64_t begin_, end_;
};

}  // namespace juice::shim
