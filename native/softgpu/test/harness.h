// What the engine's tests share: a little device memory, and launches in one line.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "native/softgpu/engine.h"

namespace juice::softgpu::test {

/// Allocations of a test; freed with it.
class TestMemory : public MemoryMap {
  public:
    bool contains(uint64_t address, size_t size) const override {
        auto [begin, end] = rangeOf(address);
        return end != 0 && end - address >= size;
    }
    uint64_t generation() const override { return generation_; }
    std::pair<uint64_t, uint64_t> rangeOf(uint64_t address) const override {
        std::lock_guard lock(mutex_);
        auto after = ranges_.upper_bound(address);
        if (after == ranges_.begin()) return {0, 0};
        --after;
        uint64_t end = after->first + after->second.size();
        return address < end ? std::pair{after->first, end} : std::pair<uint64_t, uint64_t>{0, 0};
    }

    NearbyMemory nearest(uint64_t address) const override {
        std::lock_guard lock(mutex_);
        auto after = ranges_.upper_bound(address);
        if (after == ranges_.begin()) return {};
        --after;
        return {NearbyMemory::State::live, after->first, after->first + after->second.size()};
    }

    /// A buffer of `count` values, zero but for `values`. Nothing that a kernel may access follows
    /// it closely.
    template <class T>
    T* allocate(size_t count, const std::vector<T>& values = {}) {
        std::lock_guard lock(mutex_);
        std::vector<uint8_t> bytes;
        bytes.reserve(count * sizeof(T) + kGap);
        bytes.resize(count * sizeof(T));
        auto* data = reinterpret_cast<T*>(bytes.data());
        if (!values.empty()) std::memcpy(data, values.data(), values.size() * sizeof(T));
        ranges_.emplace(reinterpret_cast<uint64_t>(data), std::move(bytes));
        ++generation_;
        return data;
    }

  private:
    static constexpr size_t kGap = 4096;

    mutable std::mutex mutex_;
    std::map<uint64_t, std::vector<uint8_t>> ranges_;
    uint64_t generation_ = 0;
};

/// Adds a value to a parameter buffer at its alignment.
template <class T>
void push(std::vector<uint8_t>& params, T value) {
    size_t at = (params.size() + alignof(T) - 1) / alignof(T) * alignof(T);
    params.resize(at + sizeof(T));
    std::memcpy(params.data() + at, &value, sizeof(T));
}

inline std::unique_ptr<Program> load(const std::string& ptx) {
    LoadError error;
    auto program = Program::load(ptx, error);
    EXPECT_NE(program, nullptr) << error.message;
    return program;
}

inline std::string refusal(const std::string& ptx) {
    LoadError error;
    auto program = Program::load(ptx, error);
    EXPECT_EQ(program, nullptr) << "was accepted";
    return error.message;
}

inline const Kernel* kernelOf(const Program& program, const std::string& name = "") {
    for (const auto& kernel : program.kernels()) {
        if (name.empty() || kernel->name.find(name) != std::string::npos) return kernel.get();
    }
    return nullptr;
}

template <class... A>
Launch launchOf(const Program& program, const MemoryMap& memory, Dim3 grid, Dim3 block, A... args) {
    Launch launch;
    launch.kernel = kernelOf(program);
    launch.grid = grid;
    launch.block = block;
    launch.memory = &memory;
    (push(launch.params, args), ...);
    return launch;
}

inline constexpr const char* kHead = ".version 9.0\n.target sm_90\n.address_size 64\n";

/// A kernel k(u64 out, u64 in) with plenty of registers: %rd1 = out, %rd2 = in, both advanced to
/// this thread's place for elements of 8 bytes; %r1 = thread.
inline std::string wrap(const std::string& body, const std::string& before = "") {
    return std::string(kHead) + before +
           ".visible .entry k(.param .u64 out, .param .u64 in)\n{\n"
           ".reg .pred %p<16>; .reg .b16 %h<16>; .reg .b32 %r<64>; .reg .f32 %f<32>;\n"
           ".reg .b64 %rd<32>; .reg .f64 %d<16>;\n"
           "ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [in];\n"
           "mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 8;\n"
           "add.s64 %rd1, %rd1, %rd3; add.s64 %rd2, %rd2, %rd3;\n" +
           body + "\nret;\n}\n";
}

/// Runs the body over `in`, one thread per element of 8 bytes; returns what it left in `out`.
inline std::vector<uint64_t> evaluate(const std::string& body, const std::vector<uint64_t>& in,
                                      const std::string& before = "") {
    auto program = load(wrap(body, before));
    if (program == nullptr) return {};
    TestMemory memory;
    auto* from = memory.allocate<uint64_t>(in.size(), in);
    auto* to = memory.allocate<uint64_t>(in.size());
    LaunchResult result =
        run(launchOf(*program, memory, {}, {static_cast<uint32_t>(in.size())}, to, from));
    EXPECT_EQ(result.curesult, 0) << result.report;
    return {to, to + in.size()};
}

std::string fixture(const std::string& name);

}  // namespace juice::softgpu::test
