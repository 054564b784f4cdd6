// A decoded program: what Program::load makes and run() executes.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "native/softgpu/engine.h"
#include "native/softgpu/exec/instr.h"

namespace juice::softgpu {

/// Zeroed memory aligned for lane vectors.
class AlignedBytes {
  public:
    AlignedBytes() {}
    explicit AlignedBytes(size_t size);
    uint8_t* data() const { return data_.get(); }
    size_t size() const { return size_; }

  private:
    struct Free {
        void operator()(uint8_t* p) const;
    };
    std::unique_ptr<uint8_t[], Free> data_;
    size_t size_ = 0;
};

/// Zeroed pages straight from the system. Programs see addresses in here as device pointers, so
/// they must lie where a driver's memory does and not in the process's heap.
class Pages {
  public:
    Pages() = default;
    explicit Pages(size_t size);
    uint8_t* data() const { return data_.get(); }
    size_t size() const { return data_.get_deleter().size; }

  private:
    struct Unmap {
        size_t size;
        void operator()(uint8_t* p) const;
    };
    std::unique_ptr<uint8_t[], Unmap> data_;
};

/// Where a byte range moves when a call passes arguments or results through local memory.
struct Copy {
    uint32_t from = 0, to = 0, size = 0;
};

/// A decoded function. Addresses of functions are kFunctionWindow + index * 16.
struct FunctionCode {
    std::string name;
    uint32_t entry = 0;  // index into Code::instrs
    uint32_t end = 0;
    uint32_t frameBytes = 0;  // of registers, a multiple of 64
    uint32_t localBytes = 0;  // of .local and .param memory per lane, a multiple of 16
    uint32_t paramBytes = 0;  // leading part of localBytes that holds formals and results
    bool defined = false;
};

/// Where an instruction comes from, for reports.
struct Origin {
    uint32_t line = 0;              // of the PTX text
    uint32_t begin = 0, bytes = 0;  // its text there; no bytes: the end of a function
    int32_t location = -1;          // index into Code::locations
};

/// A place in the source that PTX was made from; `parent` is the call where it was inlined, or -1.
struct SourceLocation {
    uint32_t file = 0, line = 0;
    int32_t parent = -1;
};

struct Code {
    std::unique_ptr<std::string> source;  // the PTX text
    std::vector<Instr> instrs;
    std::vector<Origin> origins;  // one for each instruction
    std::vector<SourceLocation> locations;
    std::map<uint32_t, std::string> files;  // of the locations
    std::vector<Ref> more;                  // further operands of instructions
    std::vector<uint32_t> targets;          // branch tables
    std::vector<Copy> copies;               // of calls
    AlignedBytes constants;
    std::vector<FunctionCode> functions;
    Pages globals;  // all module variables, one range
    uint32_t version = 0;

    const FunctionCode* functionAt(uint32_t pc) const;
};

struct EntryKernel : Kernel {
    const Code* code = nullptr;
    uint32_t function = 0;
    size_t frameBytes = 0;  // registers of the kernel and of all it calls; a first guess
    size_t localStack = 0;  // local memory per lane, callees included
};

inline constexpr uint64_t kSharedWindow = 1ull << 48;
inline constexpr uint64_t kLocalWindow = kSharedWindow + (1ull << 32);
inline constexpr uint64_t kFunctionWindow = kSharedWindow + (2ull << 32);
inline constexpr uint64_t kWindowSize = 1ull << 32;

}  // namespace juice::softgpu
