#include "native/softgpu/exec/fault.h"

#include <cxxabi.h>

#include <cstdio>
#include <cstdlib>

#include "native/softgpu/exec/control.h"

namespace juice::softgpu {
namespace {

/// So many instructions a worker still runs after a fault, to see who else does the same.
constexpr uint64_t kSurvey = 1 << 20;
constexpr size_t kAssertionBytes = 64 << 10;

/// Farther away than this an allocation has nothing to do with a bad address.
constexpr uint64_t kNear = 16 << 20;
/// Addresses below are null pointers with an index or a member's offset.
constexpr uint64_t kNullPage = 64 << 10;

const char* nameOf(int curesult) {
    switch (curesult) {
        case 700:
            return "illegal address";
        case 702:
            return "launch timeout";
        case 710:
            return "assert";
        case 715:
            return "illegal instruction";
        case 716:
            return "misaligned address";
        case 717:
            return "invalid address space";
        case 718:
            return "invalid program counter";
        default:
            return "launch failure";
    }
}

std::string demangled(const std::string& name) {
    int status = 0;
    char* text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
    if (text == nullptr) return name;
    std::string result = std::string(text) + " (" + name + ")";
    std::free(text);
    return result;
}

/// The instruction as the PTX has it, white space made single.
std::string textOf(const Code& code, const Origin& origin) {
    constexpr size_t kLongest = 200;
    if (origin.bytes == 0) return "the end of the function";
    std::string text;
    for (char c : std::string_view(*code.source).substr(origin.begin, origin.bytes)) {
        bool blank = c == ' ' || c == '\t' || c == '\n' || c == '\r';
        if (!blank) text += c;
        if (blank && !text.empty() && text.back() != ' ') text += ' ';
        if (text.size() >= kLongest) return text + "...";
    }
    return text;
}

std::string sourceOf(const Code& code, int32_t index) {
    std::string text;
    for (int depth = 0; index >= 0 && depth < 16; ++depth) {
        const SourceLocation& place = code.locations[static_cast<size_t>(index)];
        auto file = code.files.find(place.file);
        if (place.line == 0 || file == code.files.end()) break;
        text += (depth == 0 ? "" : " in ") + file->second + ":" + std::to_string(place.line);
        index = place.parent;
    }
    return text;
}

std::string bytes(uint64_t count) {
    return std::to_string(count) + (count == 1 ? " byte" : " bytes");
}

}  // namespace

std::string coordinates(const Dim3& place) {
    return "(" + std::to_string(place.x) + "," + std::to_string(place.y) + "," +
           std::to_string(place.z) + ")";
}

std::string hex(uint64_t value) {
    char text[32];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
    return text;
}

std::string kernelName(const Grid& grid) {
    return demangled(grid.kernel->name);
}

std::string placeOf(const Code& code, uint32_t pc) {
    const Origin& origin = code.origins[pc];
    std::string source = sourceOf(code, origin.location);
    return (source.empty() ? "" : source + ", ") + "PTX line " + std::to_string(origin.line) +
           ": " + textOf(code, origin);
}

const char* attemptOf(const Code& code, uint32_t pc) {
    std::string text = textOf(code, code.origins[pc]);
    if (text[0] == '@') text.erase(0, text.find(' ') + 1);
    std::string op = text.substr(0, text.find_first_of(". "));
    if (op == "ld" || op == "ldu") return "read";
    if (op == "st") return "write";
    if (op == "atom" || op == "red") return "atomic operation";
    return "access";
}

std::string whereabouts(const Grid& grid, uint64_t address) {
    using State = NearbyMemory::State;
    if (address < kNullPage) return ", a null pointer or close to one";
    NearbyMemory near;
    if (grid.launch->memory != nullptr) near = grid.launch->memory->nearest(address);
    if (near.state == State::none) return "";
    std::string what =
        "the " + std::to_string(near.end - near.begin) + "-byte allocation at " + hex(near.begin);
    if (near.state == State::freed) what += ", which was freed";
    if (near.state == State::foreign) what += " of a device without peer access";
    if (address >= near.begin && address < near.end) {
        return ", " + bytes(address - near.begin) + " into " + what;
    }
    bool before = address < near.begin;
    uint64_t distance = before ? near.begin - address : address - near.end;
    if (distance > kNear) return ", far from every allocation";
    if (before) return ", " + bytes(distance) + " before " + what;
    return ", " + (distance == 0 ? "just" : bytes(distance)) + " past the end of " + what;
}

std::string report(const Grid& grid) {
    const Fault& fault = grid.fault;
    std::string text = "error " + std::to_string(fault.curesult) + " (" + nameOf(fault.curesult) +
                       "): " + fault.what + "\n  kernel " + kernelName(grid);
    const FunctionCode* function = grid.code->functionAt(fault.pc);
    if (function != nullptr && function->name != grid.kernel->name) {
        text += " in " + demangled(function->name);
    }
    if (fault.threads != 0) {
        text += ", block " + coordinates(fault.block) + ", thread " + coordinates(fault.thread);
        uint64_t others = fault.threads - 1;
        if (others != 0) {
            text += grid.counted ? " and " : " and at least ";
            text += std::to_string(others) + (others == 1 ? " other" : " others");
        }
        text += "\n  " + placeOf(*grid.code, fault.pc);
    }
    return text + fault.further;
}

void Exec::fault(int curesult, uint32_t lanes, const Instr& in, const std::string& what,
                 const std::string& assertions) {
    record(curesult, lanes, in, what, assertions);
    leave(mask, static_cast<uint32_t>(&in - code->instrs.data()));
    endThreads(*this, lanes);
}

void Exec::fail(int curesult, unsigned lane, const Instr& in, const std::string& what) {
    record(curesult, 1u << lane, in, what, {});
    grid->stopped = true;
    stop = 0;
}

void Exec::record(int curesult, uint32_t lanes, const Instr& in, const std::string& what,
                  const std::string& assertions) {
    auto index = static_cast<uint32_t>(&in - code->instrs.data());
    std::lock_guard lock(grid->mutex);
    Fault& fault = grid->fault;
    if (fault.curesult == 0) {
        auto lane = static_cast<unsigned>(std::countr_zero(lanes));
        fault.curesult = curesult;
        fault.pc = index;
        fault.what = what;
        fault.block = block->id;
        fault.thread = {warp->tid[0][lane], warp->tid[1][lane], warp->tid[2][lane]};
        grid->faulted = true;
    }
    if (fault.curesult == curesult && fault.pc == index) {
        fault.threads += static_cast<uint64_t>(std::popcount(lanes));
    }
    if (fault.assertions.size() < kAssertionBytes) fault.assertions += assertions;
}

void Grid::fail(int curesult, std::string what) {
    std::lock_guard lock(mutex);
    if (fault.curesult == 0) {
        fault.curesult = curesult;
        fault.what = std::move(what);
        fault.pc = code->functions[kernel->function].entry;
    }
    faulted = true;
    stopped = true;
}

void Grid::explain(const std::string& lines) {
    std::lock_guard lock(mutex);
    fault.further += lines;
}

bool Exec::surveyed() {
    if (!grid->faulted.load(std::memory_order_relaxed)) return false;
    if (enough == 0) enough = executed + kSurvey;
    if (executed < enough) return false;
    std::lock_guard lock(grid->mutex);
    grid->counted = false;
    return true;
}

}  // namespace juice::softgpu
