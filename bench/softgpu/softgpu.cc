// How fast the software GPU's engine is: warp instructions per second, a tiled product, what a
// launch costs, the bandwidth of a copy, atomics. Prints one line for each, the best of some runs.
//
// usage: softgpu
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "native/softgpu/engine.h"

using namespace juice::softgpu;

namespace {

constexpr char kKernels[] = R"(
.version 8.0
.target sm_75
.address_size 64
.visible .entry nothing() { ret; }
.visible .entry copy(.param .u64 to, .param .u64 from)
{
    .reg .b32 %r<5>; .reg .b64 %q<6>;
    ld.param.u64 %q1, [to]; ld.param.u64 %q2, [from];
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    mul.wide.u32 %q3, %r4, 4;
    add.s64 %q4, %q1, %q3; add.s64 %q5, %q2, %q3;
    ld.global.u32 %r1, [%q5]; st.global.u32 [%q4], %r1;
    ret;
}
.visible .entry count(.param .u64 words, .param .u64 mask)
{
    .reg .pred %p; .reg .b32 %r<6>; .reg .b64 %q<4>;
    ld.param.u64 %q1, [words]; ld.param.u32 %r4, [mask];
    mov.u32 %r1, %tid.x; and.b32 %r1, %r1, %r4; mul.wide.u32 %q2, %r1, 4; add.s64 %q3, %q1, %q2;
    mov.u32 %r2, 0;
AGAIN:
    red.global.add.u32 [%q3], 1;
    add.s32 %r2, %r2, 1;
    setp.lt.s32 %p, %r2, 1000;
    @%p bra AGAIN;
    ret;
}
.visible .entry arithmetic(.param .u64 out)
{
    .reg .pred %p; .reg .b32 %r<4>; .reg .f32 %f<4>; .reg .b64 %q<4>;
    ld.param.u64 %q1, [out];
    mov.u32 %r1, %tid.x; cvt.rn.f32.u32 %f1, %r1; mov.f32 %f2, 0f3F000000; mov.u32 %r2, 0;
AGAIN:
    fma.rn.f32 %f1, %f1, %f2, %f2; fma.rn.f32 %f1, %f1, %f2, %f2;
    fma.rn.f32 %f1, %f1, %f2, %f2; fma.rn.f32 %f1, %f1, %f2, %f2;
    add.s32 %r2, %r2, 1; setp.lt.s32 %p, %r2, 10000;
    @%p bra AGAIN;
    mul.wide.u32 %q2, %r1, 4; add.s64 %q3, %q1, %q2; st.global.f32 [%q3], %f1;
    ret;
}
)";

class Memory : public MemoryMap {
  public:
    bool contains(uint64_t address, size_t size) const override {
        auto [begin, end] = rangeOf(address);
        return end != 0 && end - address >= size;
    }
    uint64_t generation() const override { return ranges_.size(); }
    std::pair<uint64_t, uint64_t> rangeOf(uint64_t address) const override {
        for (const auto& bytes : ranges_) {
            auto begin = reinterpret_cast<uint64_t>(bytes.data());
            if (address - begin < bytes.size()) return {begin, begin + bytes.size()};
        }
        return {0, 0};
    }
    uint64_t allocate(size_t bytes) {
        ranges_.emplace_back(bytes);
        return reinterpret_cast<uint64_t>(ranges_.back().data());
    }

  private:
    std::vector<std::vector<uint8_t>> ranges_;
};

std::unique_ptr<Program> load(const std::string& text) {
    LoadError error;
    auto program = Program::load(text, error);
    if (program != nullptr) return program;
    std::fprintf(stderr, "%s\n", error.message.c_str());
    std::exit(1);
}

std::string readFile(const char* path) {
    std::ifstream in(path);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
}

struct Best {
    double seconds = 1e9;
    uint64_t instructions = 0;
};

/// The quickest of some runs.
Best measure(const Program& program, const char* name, const Memory& memory, Dim3 grid, Dim3 block,
             const std::vector<uint64_t>& arguments, int rounds = 10) {
    Launch launch;
    for (const auto& kernel : program.kernels()) {
        if (kernel->name == name) launch.kernel = kernel.get();
    }
    launch.grid = grid;
    launch.block = block;
    launch.memory = &memory;
    launch.params.resize(arguments.size() * 8);
    if (!arguments.empty())
        std::memcpy(launch.params.data(), arguments.data(), launch.params.size());
    Best best;
    for (int i = 0; i < rounds; ++i) {
        const auto start = std::chrono::steady_clock::now();
        const LaunchResult result = run(launch);
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
        if (result.curesult != 0) {
            std::fprintf(stderr, "%s\n", result.report.c_str());
            std::exit(1);
        }
        best.seconds = std::min(best.seconds, took.count());
        best.instructions = result.instructions;
    }
    return best;
}

}  // namespace

int main() {
    const auto small = load(kKernels);
    const auto kernels = load(readFile(JUICE_KERNELS));
    Memory memory;
    constexpr unsigned kSize = 256, kCopy = 16 << 20;
    const uint64_t a = memory.allocate(kCopy), b = memory.allocate(kCopy),
                   c = memory.allocate(kCopy);

    Best best = measure(*small, "arithmetic", memory, {64}, {256}, {a});
    std::printf("fma loop: %.1f million warp instructions/s, %.2f billion lane instructions/s\n",
                best.instructions / best.seconds / 1e6,
                best.instructions * 32 / best.seconds / 1e9);
    best = measure(*kernels, "matrixProduct", memory, {kSize / 16, kSize / 16}, {16, 16},
                   {a, b, c, kSize});
    std::printf(
        "tiled product 256x256x256: %.1f ms, %.3f GFLOP/s, %.1f million warp instructions/s\n",
        best.seconds * 1e3, 2.0 * kSize * kSize * kSize / best.seconds / 1e9,
        best.instructions / best.seconds / 1e6);
    best = measure(*small, "nothing", memory, {1}, {32}, {}, 2000);
    std::printf("launch of one empty block: %.2f us\n", best.seconds * 1e6);
    best = measure(*small, "nothing", memory, {256}, {32}, {}, 200);
    std::printf("launch of 256 empty blocks: %.1f us\n", best.seconds * 1e6);
    best = measure(*small, "copy", memory, {kCopy / 4 / 256}, {256}, {a, b});
    std::printf("copy of 16 MiB: %.2f GB/s read and as much written\n", kCopy / best.seconds / 1e9);
    best = measure(*small, "count", memory, {16}, {256}, {a, 0});
    std::printf("atomics on one word: %.1f million/s\n", 16 * 256 * 1000 / best.seconds / 1e6);
    best = measure(*small, "count", memory, {16}, {256}, {a, 255});
    std::printf("atomics on a word for each thread of a block: %.1f million/s\n",
                16 * 256 * 1000 / best.seconds / 1e6);
}
