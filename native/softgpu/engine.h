// The software GPU's engine: PTX in, executed kernels out. It knows nothing of the driver API;
// native/softgpu/driver* builds contexts, streams and events on top of it.
//
// Addresses: global memory is this process's own memory. A device pointer is a host pointer, so the
// engine checks every global access against a MemoryMap before it touches it: an address outside
// every live allocation is a fault (CUDA error 700), never a crash of the process.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace juice::softgpu {

struct Dim3 {
    uint32_t x = 1, y = 1, z = 1;
};

/// One kernel parameter: where it stands in the parameter buffer, in bytes.
struct ParamInfo {
    size_t offset = 0;
    size_t size = 0;
};

/// A module-scope variable of the program, in .global or .const space.
struct GlobalInfo {
    std::string name;
    size_t size = 0;
    size_t align = 1;
    bool constant = false;
    bool managed = false;  // declared .attribute(.managed)
    /// Where it lives; allocated by Program::load and freed with the program, unless it was placed.
    uint64_t address = 0;
};

/// Where a managed variable lives, which several programs may share. `fresh`: nobody has given it
/// its initial value yet.
struct ManagedPlace {
    uint64_t address = 0;
    bool fresh = true;
};
using PlaceManaged =
    std::function<ManagedPlace(const std::string& name, size_t size, size_t align)>;

/// A kernel (.entry). The pointer stays valid as long as its Program.
struct Kernel {
    std::string name;
    std::vector<ParamInfo> params;
    size_t paramBytes = 0;        // size of the whole parameter buffer
    size_t staticShared = 0;      // bytes of statically declared .shared memory
    size_t localBytes = 0;        // .local bytes per thread
    size_t constBytes = 0;        // .const bytes of its module
    uint32_t maxThreads = 1024;   // .maxntid product, else the device's limit
    uint32_t registers = 0;       // an honest estimate: virtual registers, capped at 255
    uint32_t ptxVersion = 0;      // 90 for PTX ISA 9.0
    virtual ~Kernel() = default;  // the engine derives its decoded form from this
};

/// The allocation that an address which may not be accessed is nearest to: what a report names.
struct NearbyMemory {
    enum class State : uint8_t { none, live, freed, foreign };  // foreign: of a device out of reach
    State state = State::none;
    uint64_t begin = 0, end = 0;
};

/// Live ranges of global memory. Thread-safe: kernels look up while the driver allocates.
class MemoryMap {
  public:
    virtual ~MemoryMap() = default;
    /// Is [address, address + size) inside one live allocation that device code may access?
    virtual bool contains(uint64_t address, size_t size) const = 0;
    /// Changes whenever a range is added or removed, so that the engine may cache look-ups.
    virtual uint64_t generation() const = 0;
    /// The live range that holds `address`: begin and end, or {0, 0}. For the engine's cache.
    virtual std::pair<uint64_t, uint64_t> rangeOf(uint64_t address) const = 0;
    /// What is, or was, nearest to `address`; for reports.
    virtual NearbyMemory nearest(uint64_t) const { return {}; }
};

/// Why a program was refused. `line` and `instruction` name the place in the PTX text.
struct LoadError {
    int curesult = 218;   // CUDA_ERROR_INVALID_PTX; 222 for a too new ISA, 200 for no image at all
    std::string message;  // e.g. "line 41: wgmma.mma_async is not supported by the software GPU"
};

/// A parsed, decoded PTX module with its globals allocated and initialised.
class Program {
  public:
    virtual ~Program() = default;
    /// Parses PTX text (not necessarily NUL-terminated). Returns null and fills `error` on refusal.
    /// `managed` places managed variables, in zeroed memory that the launches' memory maps know;
    /// where it is empty they live among the others.
    static std::unique_ptr<Program> load(std::string_view ptx, LoadError& error,
                                         const PlaceManaged& managed = {});
    virtual const std::vector<std::unique_ptr<Kernel>>& kernels() const = 0;
    virtual const std::vector<GlobalInfo>& globals() const = 0;
};

/// What became of a launch. curesult 0: ran to the end.
struct LaunchResult {
    int curesult = 0;  // 700 illegal address, 702 timeout, 710 assert, 715 illegal instruction, 716
                       // misaligned, 717 wrong address space, 718 invalid pc, 719 launch failed
    std::string report;      // for stderr: what happened, kernel, block, thread, source, PTX line
    std::string assertions;  // for stderr: what failed assertions say, in CUDA's own words
    uint64_t instructions = 0;  // executed, each counted once per warp
};

struct Launch {
    const Kernel* kernel = nullptr;
    Dim3 grid, block;
    size_t dynamicShared = 0;  // bytes
    std::vector<uint8_t> params;
    const MemoryMap* memory = nullptr;
    /// Either is set by another thread to stop the kernel early (the device has failed, the context
    /// is torn down); each may be null.
    const volatile bool* cancel[2] = {};
    /// Longer than this a kernel may not run: 702. Zero: as long as it likes.
    std::chrono::milliseconds watchdog{0};
    /// Of a cooperative launch: at least 8 zeroed bytes that `memory` knows, for the grid's barrier
    /// (a counter at offset 4). 0: the kernel finds that it was not launched cooperatively.
    uint64_t gridWorkspace = 0;
    /// Takes what kernels print, from any thread but one at a time; stdout where it is empty.
    std::function<void(std::string_view)> print;
};

/// Runs a whole grid and returns when it has ended. Blocks are spread over a process-wide pool of
/// `hardware_concurrency()` threads; several streams may call this at once.
LaunchResult run(const Launch& launch);

}  // namespace juice::softgpu
