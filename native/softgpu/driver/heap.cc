#include "native/softgpu/driver/heap.h"

#include <sys/mman.h>

#include <atomic>
#include <utility>

namespace juice::softgpu {
namespace {

size_t roundUp(size_t size, size_t to) {
    return (size + to - 1) / to * to;
}

/// Maps `size` bytes aligned to a whole block; 0 when the system refuses.
uint64_t mapAligned(size_t size) {
    const size_t room = size + Heap::kBlock;
    void* const mapped = mmap(nullptr, room, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) return 0;
    const auto start = reinterpret_cast<uint64_t>(mapped);
    const uint64_t aligned = roundUp(start, Heap::kBlock);
    if (aligned > start) munmap(mapped, aligned - start);
    const uint64_t end = aligned + size;
    if (start + room > end) munmap(reinterpret_cast<void*>(end), start + room - end);
    return aligned;
}

uint64_t nextBlockId() {
    static std::atomic<uint64_t> next{1};
    return next++;
}

}  // namespace

Heap::Heap(std::function<bool(size_t)> grow, std::function<void(size_t)> shrink)
    : grow_(std::move(grow)), shrink_(std::move(shrink)) {}

Heap::~Heap() {
    for (const auto& [base, block] : blocks_) {
        munmap(reinterpret_cast<void*>(base), block.size);
        shrink_(block.size);
    }
}

std::optional<Heap::Blocks::iterator> Heap::addBlock(size_t size) {
    if (!grow_(size)) return std::nullopt;
    const uint64_t base = mapAligned(size);
    if (base == 0) {
        shrink_(size);
        return std::nullopt;
    }
    const auto at = blocks_.emplace(base, Block{size, nextBlockId(), 0, {}}).first;
    at->second.holes[base] = size;
    return at;
}

std::optional<uint64_t> Heap::cut(Block& block, size_t size) {
    for (auto hole = block.holes.begin(); hole != block.holes.end(); ++hole) {
        const auto [address, room] = *hole;
        if (room < size) continue;
        block.holes.erase(hole);
        if (room > size) block.holes[address + size] = room - size;
        block.used += size;
        return address;
    }
    return std::nullopt;
}

std::optional<Piece> Heap::allocate(size_t size) {
    if (size > SIZE_MAX - 2 * kBlock) return std::nullopt;
    const bool alone = size > kMaxShared;
    const size_t rounded = roundUp(size, alone ? kBlock : kAlignment);
    const auto piece = [](Blocks::iterator at, uint64_t address) {
        return Piece{address, at->first, at->second.size, at->second.id};
    };
    if (!alone) {
        for (auto at = blocks_.begin(); at != blocks_.end(); ++at) {
            if (const auto address = cut(at->second, rounded)) return piece(at, *address);
        }
    }
    const auto at = addBlock(alone ? rounded : kBlock);
    if (!at) return std::nullopt;
    return piece(*at, *cut((*at)->second, rounded));
}

void Heap::release(uint64_t address, size_t size) {
    auto at = blocks_.upper_bound(address);
    if (at == blocks_.begin()) return;
    --at;
    Block& block = at->second;
    const size_t rounded = roundUp(size, size > kMaxShared ? kBlock : kAlignment);
    block.used -= rounded;
    if (block.used == 0) {
        munmap(reinterpret_cast<void*>(at->first), block.size);
        shrink_(block.size);
        blocks_.erase(at);
        return;
    }
    // Join with the neighbouring holes.
    uint64_t start = address;
    uint64_t end = address + rounded;
    auto after = block.holes.lower_bound(start);
    if (after != block.holes.end() && after->first == end) {
        end += after->second;
        after = block.holes.erase(after);
    }
    if (after != block.holes.begin()) {
        const auto before = std::prev(after);
        if (before->first + before->second == start) {
            start = before->first;
            block.holes.erase(before);
        }
    }
    block.holes[start] = end - start;
}

}  // namespace juice::softgpu
