// Grids: blocks spread over the pool, faults gathered into one result.
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <new>

#include "native/softgpu/exec/block.h"
#include "native/softgpu/exec/fault.h"
#include "native/softgpu/exec/pool.h"

namespace juice::softgpu {
namespace {

/// Blocks of one launch that may be started and unfinished: about as many as a real GPU holds at
/// once, but not more than this much memory.
constexpr size_t kResident = 512;
constexpr size_t kResidentBytes = 256 << 20;

size_t residentBlocks(const Grid& grid) {
    if (grid.launch->gridWorkspace != 0) return grid.blocks;  // cooperative: all at once
    const EntryKernel& kernel = *grid.kernel;
    size_t warps = (grid.threads + kLanes - 1) / kLanes;
    size_t perWarp = grid.code->functions[kernel.function].frameBytes + kernel.localStack * kLanes;
    size_t perBlock = warps * perWarp + kernel.staticShared + grid.launch->dynamicShared + 1;
    return std::clamp<size_t>(kResidentBytes / perBlock, 2 * Pool::shared().size() + 2, kResident);
}

/// Hands out blocks: fresh ones in order, and those that used up their turns, in turn. Blocks that
/// spin on what a later block does get there because unfinished ones give way to fresh ones.
class BlockQueue {
  public:
    explicit BlockQueue(Grid& grid) : grid_(grid), resident_(residentBlocks(grid)) {}

    /// A block to run, or null when there is none left for this worker. `spare` is memory that a
    /// finished block left behind.
    std::unique_ptr<Block> next(std::unique_ptr<Block> spare) {
        uint64_t linear;
        {
            std::lock_guard lock(mutex_);
            bool fresh = started_ < grid_.blocks && started_ - finished_ < resident_;
            if (!yielded_.empty() && (!fresh || favourYielded_)) {
                favourYielded_ = false;
                std::unique_ptr<Block> block = std::move(yielded_.front());
                yielded_.pop_front();
                return block;
            }
            if (!fresh) return nullptr;
            favourYielded_ = true;
            linear = started_++;
        }
        if (spare == nullptr) spare = std::make_unique<Block>();
        startBlock(*spare, grid_, linear);
        return spare;
    }

    void yielded(std::unique_ptr<Block> block) {
        std::lock_guard lock(mutex_);
        yielded_.push_back(std::move(block));
    }

    void finished() {
        std::lock_guard lock(mutex_);
        ++finished_;
    }

  private:
    Grid& grid_;
    size_t resident_;
    std::mutex mutex_;
    std::deque<std::unique_ptr<Block>> yielded_;
    bool favourYielded_ = false;
    uint64_t started_ = 0, finished_ = 0;
};

void work(Grid& grid, BlockQueue& queue) {
    Exec x;
    x.grid = &grid;
    x.code = grid.code;
    x.bases[1] = grid.code->constants.data();
    std::unique_ptr<Block> block;
    // NOLINTNEXTLINE(bugprone-use-after-move): each turn gives the block back or takes another
    while (!grid.cancelled() && (block = queue.next(std::move(block))) != nullptr) {
        // Allocations may have gone since the last block; the map says.
        const MemoryMap* memory = grid.launch->memory;
        if (memory != nullptr && memory->generation() != x.ranges.generation) {
            x.ranges.clear();
            x.ranges.generation = memory->generation();
        }
        // One turn for each warp, then other blocks may be what this one waits for.
        BlockState state = runBlock(x, *block, static_cast<unsigned>(block->warps.size()));
        if (state == BlockState::stopped) break;
        if (state == BlockState::yielded) {
            queue.yielded(std::move(block));
        } else {
            queue.finished();
        }
    }
    grid.instructions += x.executed;
}

}  // namespace

AlignedBytes::AlignedBytes(size_t size) : size_(size) {
    // Whole lines, and at least one: lane loops may read a full vector.
    size_t bytes = (std::max<size_t>(size, 1) + 63) & ~size_t{63};
    void* memory = nullptr;
    if (posix_memalign(&memory, 64, bytes) != 0) throw std::bad_alloc();
    std::memset(memory, 0, bytes);
    data_.reset(static_cast<uint8_t*>(memory));
}

void AlignedBytes::Free::operator()(uint8_t* p) const {
    std::free(p);
}

Pages::Pages(size_t size) {
    if (size == 0) return;
    void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    data_ = {static_cast<uint8_t*>(memory), Unmap{size}};
}

void Pages::Unmap::operator()(uint8_t* p) const {
    munmap(p, size);
}

const FunctionCode* Code::functionAt(uint32_t pc) const {
    for (const FunctionCode& function : functions) {
        if (function.defined && pc >= function.entry && pc < function.end) return &function;
    }
    return nullptr;
}

void Grid::print(std::string_view text) {
    std::lock_guard lock(mutex);
    if (launch->print) {
        launch->print(text);
    } else {
        std::fwrite(text.data(), 1, text.size(), stdout);
        std::fflush(stdout);
    }
}

LaunchResult run(const Launch& launch) {
    Grid grid;
    static std::atomic<uint64_t> launches{0};
    grid.id = ++launches;
    grid.launch = &launch;
    grid.kernel = static_cast<const EntryKernel*>(launch.kernel);
    grid.code = grid.kernel->code;
    grid.blocks = uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z;
    uint64_t threads = uint64_t{launch.block.x} * launch.block.y * launch.block.z;
    if (grid.blocks == 0 || threads == 0 || threads > 1024) {
        LaunchResult impossible;
        impossible.curesult = 1;
        impossible.report = "error 1: a launch of " + std::to_string(grid.blocks) + " blocks of " +
                            std::to_string(threads) + " threads is not possible";
        return impossible;
    }
    grid.threads = static_cast<uint32_t>(threads);
    grid.params = AlignedBytes(std::max(grid.kernel->paramBytes, launch.params.size()));
    if (!launch.params.empty()) {
        std::memcpy(grid.params.data(), launch.params.data(), launch.params.size());
    }
    BlockQueue queue(grid);
    auto helpers =
        static_cast<unsigned>(std::min<uint64_t>(grid.blocks - 1, Pool::shared().size()));
    Pool::shared().run(helpers, [&] { work(grid, queue); });
    LaunchResult result;
    result.instructions = grid.instructions;
    if (grid.fault.curesult == 0) return result;
    result.curesult = grid.fault.curesult;
    result.report = report(grid);
    result.assertions = std::move(grid.fault.assertions);
    return result;
}

}  // namespace juice::softgpu
