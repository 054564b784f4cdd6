#include "native/worker/layout.h"

#include <sys/mman.h>
#include <sys/personality.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <string_view>
#include <vector>

#include "native/link/wire.h"

namespace juice::worker {
namespace {

constexpr uint64_t kTop = 0x7fff'ffff'f000;
/// Left free below the stack, which grows down.
constexpr uint64_t kStackRoom = 1ull << 30;
constexpr unsigned long kQuery = 0xffffffff;

struct Range {
    uint64_t begin, end;
};

/// Taken by fillHighAddresses(), ascending. Written once, at the start.
std::vector<Range>& filler() {
    static auto* ranges = new std::vector<Range>;
    return *ranges;
}

bool inFiller(uint64_t begin, uint64_t end) {
    for (const Range& r : filler())
        if (r.begin <= begin && end <= r.end) return true;
    return false;
}

bool reserve(uint64_t begin, uint64_t end) {
    return mmap(reinterpret_cast<void*>(begin), end - begin, PROT_NONE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1,
                0) == reinterpret_cast<void*>(begin);
}

std::vector<Range> mappings(uint64_t& stack) {
    std::vector<Range> out;
    std::FILE* maps = std::fopen("/proc/self/maps", "re");
    if (maps == nullptr) return out;
    char line[512];
    while (std::fgets(line, sizeof line, maps) != nullptr) {
        Range r{};
        char name[256] = "";
        if (std::sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %*s %*s %*s %255s", &r.begin, &r.end,
                        name) < 2)
            continue;
        if (std::string_view(name) == "[stack]") stack = r.begin;
        out.push_back(r);
    }
    std::fclose(maps);
    return out;
}

}  // namespace

void enterLegacyLayout(char** argv) {
    const int now = personality(kQuery);
    if (now == -1 || (now & ADDR_COMPAT_LAYOUT) != 0) return;
    if (personality(static_cast<unsigned long>(now) | ADDR_COMPAT_LAYOUT) == -1) return;
    // By its own path rather than /proc/self/exe, which would be the process's name from then on.
    char path[4096];
    const ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
    path[size < 0 ? 0 : size] = '\0';
    execve(path, argv, environ);
    execve("/proc/self/exe", argv, environ);
    personality(static_cast<unsigned long>(now));
}

void fillHighAddresses() {
    const int now = personality(kQuery);
    if (now != -1 && (now & ADDR_COMPAT_LAYOUT) != 0) return;
    if (arenasOfMappings() != 0) return;
    uint64_t stack = kTop;
    const std::vector<Range> taken = mappings(stack);
    uint64_t from = wire::kArenas[0].end;
    const auto fill = [&](uint64_t end) {
        // The gap below the stack keeps room for it to grow into.
        if (end > stack - kStackRoom) end = stack - kStackRoom;
        if (from >= end || !reserve(from, end)) return;
        filler().push_back({from, end});
    };
    for (const Range& r : taken) {
        if (r.end <= from) continue;
        if (r.begin > from && from < stack) fill(r.begin);
        from = r.end;
    }
}

uint8_t arenasOf(uint64_t address) {
    uint8_t out = 0;
    for (int i = 0; i < 2; ++i)
        if (address >= wire::kArenas[i].begin && address < wire::kArenas[i].end) out |= 1 << i;
    return out;
}

uint8_t arenasOfMappings() {
    constexpr size_t kProbe = 4u << 20;
    void* probe =
        mmap(nullptr, kProbe, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (probe == MAP_FAILED) return 0;
    munmap(probe, kProbe);
    return arenasOf(reinterpret_cast<uint64_t>(probe));
}

bool mapAt(uint64_t begin, uint64_t size) {
    void* const at = reinterpret_cast<void*>(begin);
    const int exact = inFiller(begin, begin + size) ? MAP_FIXED : MAP_FIXED_NOREPLACE;
    void* got = mmap(at, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | exact, -1, 0);
    if (got == at) return true;
    if (got != MAP_FAILED) munmap(got, size);
    return false;
}

void unmapAt(uint64_t begin, uint64_t size) {
    munmap(reinterpret_cast<void*>(begin), size);
    if (inFiller(begin, begin + size)) reserve(begin, begin + size);
}

}  // namespace juice::worker
