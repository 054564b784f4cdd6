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
#include "native/softgpu/exec/standing.h"

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

/// Notices when every block of a cooperative launch that has not ended spins on the grid's barrier:
/// with that barrier's count unchanged during a whole turn of each, none will ever leave it.
class GridWatch {
  public:
    explicit GridWatch(const Grid& grid) : grid_(grid) {}

    uint32_t count() const {
        uint64_t address = grid_.launch->gridWorkspace + 4;
        return address == 4
                   ? 0
                   : __atomic_load_n(reinterpret_cast<uint32_t*>(address), __ATOMIC_ACQUIRE);
    }

    /// A block has had a turn, at the beginning of which count() was `before`. True if this was the
    /// last of `unfinished` to be found spinning.
    bool stuck(Block& block, uint32_t before, uint64_t unfinished) {
        if (grid_.launch->gridWorkspace == 0) return false;
        uint32_t now = count();
        if (now != seen_ || now != before ||
            !spinsOn(block, *grid_.code, grid_.launch->gridWorkspace + 4)) {
            seen_ = now;
            ++round_;
            found_ = 0;
            return false;
        }
        if (block.spinning == round_) return false;
        block.spinning = round_;
        return ++found_ == unfinished;
    }

  private:
    const Grid& grid_;
    uint32_t seen_ = 0;
    uint64_t round_ = 1, found_ = 0;
};

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

    /// Takes back a block that had a turn. `before` is what barrierCount() was then.
    void yielded(std::unique_ptr<Block> block, uint32_t before) {
        std::lock_guard lock(mutex_);
        uint64_t unfinished = grid_.blocks - finished_;
        bool stuck = watch_.stuck(*block, before, unfinished);
        yielded_.push_back(std::move(block));
        if (!stuck) return;
        grid_.fail(719, "deadlock: " + std::to_string(unfinished) + " of " +
                            std::to_string(grid_.blocks) +
                            " blocks wait for the whole grid, and the others have ended");
    }

    uint32_t barrierCount() const { return watch_.count(); }

    void finished() {
        std::lock_guard lock(mutex_);
        ++finished_;
    }

    /// Takes note of a block that will not go on.
    void abandon(std::unique_ptr<Block> block) {
        std::lock_guard lock(mutex_);
        yielded_.push_back(std::move(block));
    }

    /// How things stand when nobody works any more.
    std::string describe() const {
        Standing standing;
        for (const auto& block : yielded_) standing.add(*block);
        std::string text = "\n  " + std::to_string(finished_) + " of " +
                           std::to_string(grid_.blocks) + " blocks have ended";
        if (started_ < grid_.blocks) {
            text += ", " + std::to_string(grid_.blocks - started_) + " have not begun";
        }
        return text + standing.describe(*grid_.code);
    }

  private:
    Grid& grid_;
    size_t resident_;
    std::mutex mutex_;
    std::deque<std::unique_ptr<Block>> yielded_;
    bool favourYielded_ = false;
    uint64_t started_ = 0, finished_ = 0;
    GridWatch watch_{grid_};
};

void work(Grid& grid, BlockQueue& queue) {
    Exec x;
    x.grid = &grid;
    x.code = grid.code;
    x.bases[1] = grid.code->constants.data();
    std::unique_ptr<Block> block;
    // Each turn gives the block back or takes another.
    // NOLINTBEGIN(bugprone-use-after-move, clang-analyzer-cplusplus.Move)
    while (!grid.cancelled() && (block = queue.next(std::move(block))) != nullptr) {
        // Allocations may have gone since the last block; the map says.
        const MemoryMap* memory = grid.launch->memory;
        if (memory != nullptr && memory->generation() != x.ranges.generation) {
            x.ranges.clear();
            x.ranges.generation = memory->generation();
        }
        // One turn for each warp, then other blocks may be what this one waits for.
        uint32_t before = queue.barrierCount();
        BlockState state = runBlock(x, *block, static_cast<unsigned>(block->warps.size()));
        if (state == BlockState::stopped) {
            if (grid.late() && !grid.cancelled()) {
                grid.fail(702, "the kernel ran longer than the watchdog's " +
                                   std::to_string(grid.launch->watchdog.count()) + " ms");
            }
            queue.abandon(std::move(block));
            break;
        }
        if (state == BlockState::yielded) {
            queue.yielded(std::move(block), before);
        } else {
            queue.finished();
        }
    }
    // NOLINTEND(bugprone-use-after-move, clang-analyzer-cplusplus.Move)
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
    grid.deadline = std::chrono::steady_clock::now() + launch.watchdog;
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
    if (grid.fault.threads == 0) grid.explain(queue.describe());
    result.curesult = grid.fault.curesult;
    result.report = report(grid);
    result.assertions = std::move(grid.fault.assertions);
    return result;
}

}  // namespace juice::softgpu
