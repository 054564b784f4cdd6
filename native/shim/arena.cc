#include "native/shim/arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "native/link/wire.h"

namespace juice::arena {
namespace {

constexpr size_t kArenaCount = sizeof wire::kArenas / sizeof wire::kArenas[0];
constexpr int kReserve = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
uint8_t heldArenas = 0;

void* at(uint64_t address) {
    return reinterpret_cast<void*>(address);
}

struct Pages {
    uint64_t begin, size;
};

uint64_t pageSize() {
    static const auto size = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    return size;
}

Pages pagesOf(uint64_t address, uint64_t size) {
    const uint64_t page = pageSize(), begin = address & ~(page - 1);
    return {begin, (address + size - begin + page - 1) & ~(page - 1)};
}

/// Drivers carve small pinned allocations out of one page: who uses the first and the last page of
/// each.
struct Edges {
    std::mutex mutex;  // held by the callers
    std::map<uint64_t, unsigned> users;

    /// The pages of an allocation that it is the first to use.
    Pages enter(Pages pages) {
        return ofItsOwn(pages, [&](uint64_t page) { return ++users[page] == 1; });
    }
    /// The pages of one that ends which it is the last to use.
    Pages leave(Pages pages) {
        return ofItsOwn(pages, [&](uint64_t page) {
            if (--users[page] != 0) return false;
            users.erase(page);
            return true;
        });
    }

  private:
    template <typename Own>
    static Pages ofItsOwn(Pages pages, Own own) {
        const uint64_t page = pageSize(), last = pages.begin + pages.size - page;
        uint64_t begin = pages.begin, end = pages.begin + pages.size;
        if (!own(pages.begin)) begin += page;
        if (last != pages.begin && !own(last)) end -= page;
        return {begin, end - begin};
    }
};
Edges& edges() {
    static auto& one = *new Edges;
    return one;
}

/// Maps at exactly `address` unless something is there. A kernel before 4.17 takes the address as a
/// hint only, hence the comparison.
bool mapFree(uint64_t address, uint64_t size, int protection) {
    void* const got = mmap(at(address), size, protection, kReserve | MAP_FIXED_NOREPLACE, -1, 0);
    if (got == MAP_FAILED) return false;
    if (got == at(address)) return true;
    munmap(got, size);
    return false;
}

__attribute__((constructor)) void atLoad() {
    reserve();
}

}  // namespace

void reserve() {
    for (size_t i = 0; i < kArenaCount; ++i) {
        const auto bit = static_cast<uint8_t>(1u << i);
        if ((heldArenas & bit) != 0) continue;
        const wire::Arena& arena = wire::kArenas[i];
        if (mapFree(arena.begin, arena.end - arena.begin, PROT_NONE)) heldArenas |= bit;
    }
}

uint8_t held() {
    return heldArenas;
}

bool contains(uint64_t address, uint64_t size) {
    for (size_t i = 0; i < kArenaCount; ++i) {
        const wire::Arena& arena = wire::kArenas[i];
        if ((heldArenas >> i & 1) == 0) continue;
        if (address >= arena.begin && address < arena.end && size <= arena.end - address)
            return true;
    }
    return false;
}

bool placehold(uint64_t address, uint64_t size) {
    if (contains(address, size)) return true;
    // Whole blocks, as drivers map them: small allocations share one.
    constexpr uint64_t kBlock = 2u << 20;
    uint64_t from = address & ~(kBlock - 1);
    const uint64_t to = (address + size + kBlock - 1) & ~(kBlock - 1);
    static auto& mutex = *new std::mutex;
    static auto& ours = *new std::map<uint64_t, uint64_t>;  // begin -> end
    const std::lock_guard lock(mutex);
    bool free = true;
    while (from < to) {
        auto next = ours.upper_bound(from);
        if (next != ours.begin() && std::prev(next)->second > from) {
            from = std::prev(next)->second;
            continue;
        }
        const uint64_t end = next == ours.end() ? to : std::min(to, next->first);
        if (mapFree(from, end - from, PROT_NONE))
            ours.emplace(from, end);
        else
            free = false;
        from = end;
    }
    return free;
}

bool populate(uint64_t address, uint64_t size) {
    const std::lock_guard lock(edges().mutex);
    const Pages pages = edges().enter(pagesOf(address, size));
    if (pages.size == 0) return true;
    constexpr int kWritable = PROT_READ | PROT_WRITE;
    // Over our own reservation without NOREPLACE.
    const bool mapped = contains(pages.begin, pages.size)
                            ? mmap(at(pages.begin), pages.size, kWritable,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED
                            : mapFree(pages.begin, pages.size, kWritable);
    if (!mapped) edges().leave(pagesOf(address, size));
    return mapped;
}

void depopulate(uint64_t address, uint64_t size) {
    const std::lock_guard lock(edges().mutex);
    const Pages pages = edges().leave(pagesOf(address, size));
    if (pages.size == 0) return;
    // Where it fails the pages stay, which costs memory only.
    if (contains(pages.begin, pages.size))
        static_cast<void>(
            mmap(at(pages.begin), pages.size, PROT_NONE, kReserve | MAP_FIXED, -1, 0));
    else
        munmap(at(pages.begin), pages.size);
}

}  // namespace juice::arena
