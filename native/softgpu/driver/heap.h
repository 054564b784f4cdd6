// Memory for allocations: 2 MiB blocks mapped from the system, cut into pieces. Kept apart from the
// program's own heap, at addresses that the kernel chooses, as a CUDA driver's memory is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "native/softgpu/driver/backing.h"

namespace juice::softgpu {

/// A piece of a block.
struct Piece {
    uint64_t address = 0;
    uint64_t block = 0;  // base address of its block
    size_t blockSize = 0;
    uint64_t blockId = 0;  // never reused in this process
    uint64_t offset = 0;   // of the piece in the heap's backing, if it has one
};

/// Not thread-safe: its owner locks.
class Heap {
  public:
    static constexpr size_t kAlignment = 512;
    static constexpr size_t kBlock = size_t{2} << 20;
    /// Larger pieces have blocks of their own.
    static constexpr size_t kMaxShared = size_t{1} << 20;

    /// `grow(bytes)` is asked before a block is mapped and may refuse; `shrink(bytes)` is told when
    /// one was unmapped. Blocks are mapped from `backing`, or are memory of this process alone
    /// where there is none. Pieces begin at multiples of `alignment`.
    Heap(std::function<bool(size_t)> grow, std::function<void(size_t)> shrink,
         std::shared_ptr<Backing> backing = nullptr, size_t alignment = kAlignment);
    ~Heap();
    Heap(const Heap&) = delete;
    Heap& operator=(const Heap&) = delete;

    /// Null where blocks are this process's alone.
    const std::shared_ptr<Backing>& backing() const { return backing_; }

    /// A piece of at least `size` bytes; empty when there is no memory.
    std::optional<Piece> allocate(size_t size);
    /// Gives back a piece of `size` bytes as asked for.
    void release(uint64_t address, size_t size);

  private:
    struct Block {
        size_t size = 0;
        uint64_t id = 0;
        uint64_t offset = 0;  // in the backing
        size_t used = 0;
        std::map<uint64_t, size_t> holes;  // by address, never adjacent
    };
    using Blocks = std::map<uint64_t, Block>;

    std::optional<Blocks::iterator> addBlock(size_t size);
    void removeBlock(Blocks::iterator at);
    size_t rounded(size_t size) const;
    static std::optional<uint64_t> cut(Block& block, size_t size);

    std::function<bool(size_t)> grow_;
    std::function<void(size_t)> shrink_;
    std::shared_ptr<Backing> backing_;
    size_t alignment_;
    Blocks blocks_;
};

}  // namespace juice::softgpu
