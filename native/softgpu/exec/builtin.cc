#include "native/softgpu/exec/builtin.h"

#include <algorithm>
#include <cstring>

#include "native/softgpu/exec/device_heap.h"
#include "native/softgpu/exec/format.h"
#include "native/softgpu/exec/lanes.h"
#include "native/softgpu/exec/memory.h"

namespace juice::softgpu {
namespace {

/// Where a lane's arguments and results of a built-in function stand.
uint8_t* argumentsOf(Exec& x, const Instr& in, unsigned lane) {
    const auto* base = x.from<uint32_t>(kLocalBase);
    return x.warp->local.data() + lane * x.warp->localPerLane + base[lane] + in.aux;
}

template <class T>
T argument(const uint8_t* arguments, size_t offset) {
    T value;
    std::memcpy(&value, arguments + offset, sizeof value);
    return value;
}

/// A NUL-terminated string in device memory; false if it runs out of what may be read.
bool readText(Exec& x, unsigned lane, uint64_t address, std::string& text) {
    constexpr uint64_t kLongest = 64 << 10;
    uint64_t bytes = std::min(reachableBytes(x, lane, address), kLongest);
    const uint8_t* from = bytes == 0 ? nullptr : reachGeneric(x, lane, address, bytes);
    if (from == nullptr) return false;
    const void* end = std::memchr(from, 0, bytes);
    if (end == nullptr) return false;
    text.assign(reinterpret_cast<const char*>(from), static_cast<const uint8_t*>(end) - from);
    return true;
}

/// int vprintf(const char* format, void* arguments): result at 0, formals at 8 and 16.
void vprintfLoop(Exec& x, const Instr& in, uint32_t m) {
    std::string out;
    for (; m != 0; m &= m - 1) {
        auto lane = static_cast<unsigned>(std::countr_zero(m));
        uint8_t* arguments = argumentsOf(x, in, lane);
        std::string format;
        if (!readText(x, lane, argument<uint64_t>(arguments, 8), format)) {
            return x.fail(700, lane, in, "printf with a bad format pointer");
        }
        FormatSource source;
        source.address = argument<uint64_t>(arguments, 16);
        source.bytes = source.address == 0 ? 0 : reachableBytes(x, lane, source.address);
        source.data =
            source.bytes == 0 ? nullptr : reachGeneric(x, lane, source.address, source.bytes);
        int32_t count = 0;
        bool complete = formatText(format, source, out, count, [&](uint64_t at, std::string& text) {
            return readText(x, lane, at, text);
        });
        if (!complete) return x.fail(700, lane, in, "printf with bad arguments");
        std::memcpy(arguments, &count, sizeof count);
    }
    x.grid->print(out);
}

/// void __assertfail(message, file, u32 line, function, size_t charSize): all formals from 0 on.
void assertLoop(Exec& x, const Instr& in, uint32_t m) {
    std::string lines, first;
    eachLane(m, [&](unsigned lane) {
        const uint8_t* arguments = argumentsOf(x, in, lane);
        std::string message, file, function;
        readText(x, lane, argument<uint64_t>(arguments, 0), message);
        readText(x, lane, argument<uint64_t>(arguments, 8), file);
        readText(x, lane, argument<uint64_t>(arguments, 24), function);
        std::string place = file + ":" + std::to_string(argument<uint32_t>(arguments, 16));
        const Dim3& block = x.block->id;
        const auto& tid = x.warp->tid;
        const auto triple = [](uint32_t a, uint32_t b, uint32_t c) {
            return "[" + std::to_string(a) + "," + std::to_string(b) + "," + std::to_string(c) +
                   "]";
        };
        lines += place + ": " + function + ": block: " + triple(block.x, block.y, block.z) +
                 ", thread: " + triple(tid[0][lane], tid[1][lane], tid[2][lane]) + " Assertion `" +
                 message + "` failed.\n";
        if (first.empty()) {
            first = "assertion `" + message + "` failed at " + place + " in " + function;
        }
    });
    x.fault(710, m, in, first, lines);
}

/// void* malloc(size_t): result at 0, the formal at 8.
void mallocLoop(Exec& x, const Instr& in, uint32_t m) {
    eachLane(m, [&](unsigned lane) {
        uint8_t* arguments = argumentsOf(x, in, lane);
        uint64_t address = DeviceHeap::shared().allocate(argument<uint64_t>(arguments, 8));
        std::memcpy(arguments, &address, sizeof address);
    });
}

/// void free(void*): the formal at 0.
void freeLoop(Exec& x, const Instr& in, uint32_t m) {
    for (; m != 0; m &= m - 1) {
        auto lane = static_cast<unsigned>(std::countr_zero(m));
        auto address = argument<uint64_t>(argumentsOf(x, in, lane), 0);
        if (address == 0 || DeviceHeap::shared().release(address)) continue;
        return x.fail(719, lane, in, "free of a pointer that malloc did not give");
    }
}

/// void cudaGraphSetConditional(u64 handle, u32 value): formals at 0 and 8. The handle is the
/// address of the value.
void setConditionalLoop(Exec& x, const Instr& in, uint32_t m) {
    for (; m != 0; m &= m - 1) {
        auto lane = static_cast<unsigned>(std::countr_zero(m));
        const uint8_t* arguments = argumentsOf(x, in, lane);
        auto value = argument<uint32_t>(arguments, 8);
        uint8_t* to = reachGeneric(x, lane, argument<uint64_t>(arguments, 0), sizeof value);
        if (to == nullptr) return x.fail(719, lane, in, "no conditional handle of a graph");
        std::memcpy(to, &value, sizeof value);
    }
}

}  // namespace

Handler findBuiltin(std::string_view name) {
    if (name == "vprintf") return vprintfLoop;
    if (name == "__assertfail") return assertLoop;
    if (name == "malloc") return mallocLoop;
    if (name == "free") return freeLoop;
    if (name == "cudaGraphSetConditional") return setConditionalLoop;
    return nullptr;
}

}  // namespace juice::softgpu
