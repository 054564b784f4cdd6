#include "native/softgpu/driver/heap.h"

#include <sys/mman.h>

#include <atomic>
#include <utility>

namespace juice::softgpu {
namespace {

size_t roundUp(size_t size, size_t to) {
    return (size + to - 1) / to * to;
}

/// Finds room for `size` bytes aligned to a whole block and holds it; 0 when the system refuses.
uint64_t holdAligned(size_t size) {
    const size_t room = size + Heap::kBlock;
    void* const mapped =
        mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) return 0;
    const auto start = reinterpret_cast<uint64_t>(mapped);
    const uint64_t aligned = roundUp(start, Heap::kBlock);
    if (aligned > start) munmap(mapped, aligned - start);
    const uint64_t end = aligned + size;
    if (start + room > end) munmap(reinterpret_cast<void*>(end), start + room - end);
    return aligned;
}

/// The file's range, or memory of this process alone for a file of -1; 0 when the system refuses.
uint64_t mapAligned(size_t size, int file, uint64_t offset) {
    const uint64_t base = holdAligned(size);
    if (base == 0) return 0;
    const int kind = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    void* const mapped = mmap(reinterpret_cast<void*>(base), size, PROT_READ | PROT_WRITE,
                              kind | MAP_FIXED | MAP_NORESERVE, file, static_cast<off_t>(offset));
    if (mapped != MAP_FAILED) return base;
    munmap(reinterpret_cast<void*>(base), size);
    return 0;
}

uint64_t nextBlockId() {
    static std::atomic<uint64_t> next{1};
    return next++;
}

}  // namespace

Heap::Heap(std::function<bool(size_t)> grow, std::function<void(size_t)> shrink,
           std::shared_ptr<Backing> backing, size_t alignment)
    : grow_(std::move(grow)),
      shrink_(std::move(shrink)),
      backing_(std::move(backing)),
      alignment_(alignment) {}

Heap::~Heap() {
    // The backing's memory goes with its file: what is on loan from it must stay as it is.
    for (const auto& [base, block] : blocks_) {
        munmap(reinterpret_cast<void*>(base), block.size);
        shrink_(block.size);
    }
}

size_t Heap::rounded(size_t size) const {
    return roundUp(size, size > kMaxShared ? kBlock : alignment_);
}

void Heap::removeBlock(Blocks::iterator at) {
    munmap(reinterpret_cast<void*>(at->first), at->second.size);
    if (backing_) backing_->give(at->second.offset, at->second.size);
    shrink_(at->second.size);
    blocks_.erase(at);
}

std::optional<Heap::Blocks::iterator> Heap::addBlock(size_t size) {
    if (!grow_(size)) return std::nullopt;
    const auto offset = backing_ ? backing_->take(size) : std::optional<uint64_t>(0);
    const uint64_t base = offset ? mapAligned(size, backing_ ? backing_->file() : -1, *offset) : 0;
    if (base == 0) {
        if (backing_ && offset) backing_->give(*offset, size);
        shrink_(size);
        return std::nullopt;
    }
    const auto at = blocks_.emplace(base, Block{size, nextBlockId(), *offset, 0, {}}).first;
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
    const size_t taken = rounded(size);
    const auto piece = [](Blocks::iterator at, uint64_t address) {
        const Block& block = at->second;
        return Piece{address, at->first, block.size, block.id, block.offset + address - at->first};
    };
    if (!alone) {
        for (auto at = blocks_.begin(); at != blocks_.end(); ++at) {
            if (const auto address = cut(at->second, taken)) return piece(at, *address);
        }
    }
    const auto at = addBlock(alone ? taken : kBlock);
    if (!at) return std::nullopt;
    return piece(*at, *cut((*at)->second, taken));
}

void Heap::release(uint64_t address, size_t size) {
    auto at = blocks_.upper_bound(address);
    if (at == blocks_.begin()) return;
    --at;
    Block& block = at->second;
    const size_t taken = rounded(size);
    block.used -= taken;
    if (block.used == 0) {
        removeBlock(at);
        return;
    }
    // Join with the neighbouring holes.
    uint64_t start = address;
    uint64_t end = address + taken;
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
