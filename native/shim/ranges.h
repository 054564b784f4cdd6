// What the program's pointers point at, as far as CUDA is concerned: every allocation, pinned range
// and asked-for module variable, by address.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "native/shim/objects.h"

namespace juice::shim {

struct Range {
    enum class Kind : uint8_t {
        device,      // cuMemAlloc
        pool,        // cuMemAllocAsync
        graph,       // a graph's allocation node; the address stays when it is freed
        global,      // a module's variable
        opened,      // another process's (cuIpcOpenMemHandle)
        pinned,      // cuMemHostAlloc
        registered,  // cuMemHostRegister
        managed,     // cuMemAllocManaged
        variable,    // a module's, in managed memory
    };
    uint64_t begin = 0, size = 0;
    Kind kind = Kind::device;
    /// Pinned and registered: the worker has a mirror at the same address. Without one the range
    /// is copied from and to as ordinary memory is.
    bool mirrored = false;
    /// Mirrored, and kept the same at both ends although the device itself reads and writes it: see
    /// coherence.h.
    bool coherent = false;
    unsigned flags = 0;          // as cuMemHostGetFlags tells them
    Context* context = nullptr;  // that it was made in
    uint64_t id = 0;             // CU_POINTER_ATTRIBUTE_BUFFER_ID; given by add()

    uint64_t end() const { return begin + size; }
    bool onDevice() const { return kind <= Kind::opened; }
    bool onHost() const { return !onDevice(); }
    bool pinned() const { return kind == Kind::pinned || kind == Kind::registered; }
    bool managed() const { return kind == Kind::managed || kind == Kind::variable; }
    bool holds(uint64_t address, uint64_t bytes) const {
        return address >= begin && address < end() && bytes <= end() - address;
    }
};

namespace ranges {

void add(Range range);
/// The range that holds the address.
std::optional<Range> find(uint64_t address);
/// Does a range begin before `address + size` and end after `address`?
std::optional<Range> overlapping(uint64_t address, uint64_t size);
/// Removes the range that begins exactly here.
bool remove(uint64_t begin);
/// Removes all ranges of a context that ends, and returns them.
std::vector<Range> removeOf(const Context* context);

/// The range that begins here is coherent from now on.
void setCoherent(uint64_t begin);
namespace detail {
/// The addresses between which all host ranges lie that are not coherent; low > high: there are
/// none.
extern std::atomic<uint64_t> low, high;
}  // namespace detail
/// Can the address lie in a host range that is not coherent? Costs next to nothing.
inline bool maybePlainHost(uint64_t address) {
    return address >= detail::low.load(std::memory_order_relaxed) &&
           address < detail::high.load(std::memory_order_relaxed);
}
/// Is there any such range?
inline bool anyPlainHost() {
    return detail::low.load(std::memory_order_relaxed) <
           detail::high.load(std::memory_order_relaxed);
}

/// Are the bytes inside one range, of whatever kind? What a copy or a fill by the device needs.
bool deviceMayTouch(uint64_t address, uint64_t bytes);

}  // namespace ranges
}  // namespace juice::shim
