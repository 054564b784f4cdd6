// Runs the same PTX snippets on the software GPU and, through libcuda.so.1, on a real one, over
// the same random and special inputs, and reports where they differ. By hand, on a GPU machine:
//   softgpu_differential [libcuda.so.1] [seed]
#include <dlfcn.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

#include "native/softgpu/engine.h"
#include "native/softgpu/test/differential_cases.h"

namespace juice::softgpu::test {
namespace {

constexpr uint32_t kThreads = 256, kBlocks = 32, kCount = kThreads * kBlocks;

/// As much of the driver API as this takes.
class Device {
  public:
    explicit Device(const char* path) {
        library_ = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
        if (library_ == nullptr) return;
        int device = 0;
        void* context = nullptr;
        auto init = find<int(unsigned)>("cuInit");
        auto get = find<int(int*, int)>("cuDeviceGet");
        auto retain = find<int(void**, int)>("cuDevicePrimaryCtxRetain");
        auto current = find<int(void*)>("cuCtxSetCurrent");
        works_ = init && get && retain && current && init(0) == 0 && get(&device, 0) == 0 &&
                 retain(&context, device) == 0 && current(context) == 0;
        if (!works_) return;
        auto allocate = find<int(uint64_t*, size_t)>("cuMemAlloc_v2");
        works_ = allocate(&in_, kCount * 24) == 0 && allocate(&out_, kCount * 8) == 0;
    }

    bool works() const { return works_; }

    int load(const std::string& ptx, void** module) {
        return find<int(void**, const void*)>("cuModuleLoadData")(module, ptx.c_str());
    }

    int run(void* module, const std::string& kernel, const std::vector<uint64_t>& in,
            std::vector<uint64_t>& out) {
        void* function = nullptr;
        int status = find<int(void**, void*, const char*)>("cuModuleGetFunction")(&function, module,
                                                                                  kernel.c_str());
        if (status != 0) return status;
        find<int(uint64_t, const void*, size_t)>("cuMemcpyHtoD_v2")(in_, in.data(), in.size() * 8);
        void* params[] = {&out_, &in_};
        using Launch = int(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                           unsigned, void*, void**, void**);
        status = find<Launch>("cuLaunchKernel")(function, kBlocks, 1, 1, kThreads, 1, 1, 0, nullptr,
                                                params, nullptr);
        if (status != 0) return status;
        out.resize(kCount);
        return find<int(void*, uint64_t, size_t)>("cuMemcpyDtoH_v2")(out.data(), out_, kCount * 8);
    }

  private:
    template <class F>
    F* find(const char* name) {
        return reinterpret_cast<F*>(dlsym(library_, name));
    }

    void* library_ = nullptr;
    bool works_ = false;
    uint64_t in_ = 0, out_ = 0;
};

std::string kernelText(size_t index, const Case& one) {
    return ".visible .entry k" + std::to_string(index) +
           "(.param .u64 out, .param .u64 in)\n{\n"
           ".reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<16>; .reg .f32 %f<8>;\n"
           ".reg .f64 %d<8>; .reg .b64 %q<8>; .reg .b64 %rd<8>;\n"
           "ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [in];\n"
           "mov.u32 %r10, %tid.x; mov.u32 %r11, %ctaid.x; mad.lo.u32 %r10, %r11, 256, %r10;\n"
           "mul.wide.u32 %rd3, %r10, 8; add.s64 %rd1, %rd1, %rd3;\n"
           "mul.wide.u32 %rd3, %r10, 24; add.s64 %rd2, %rd2, %rd3;\n"
           "ld.global.u64 %q1, [%rd2]; ld.global.u64 %q2, [%rd2+8]; ld.global.u64 %q3, [%rd2+16];\n"
           "cvt.u32.u64 %r1, %q1; cvt.u32.u64 %r2, %q2; cvt.u32.u64 %r3, %q3;\n"
           "cvt.u16.u64 %h1, %q1; cvt.u16.u64 %h2, %q2; cvt.u16.u64 %h3, %q3;\n"
           "mov.b32 %f1, %r1; mov.b32 %f2, %r2; mov.b32 %f3, %r3;\n"
           "mov.b64 %d1, %q1; mov.b64 %d2, %q2; mov.b64 %d3, %q3;\n" +
           one.body + "\nst.global.u64 [%rd1], %q4; ret;\n}\n";
}

/// Values that often make trouble in one of the types, and random ones of all magnitudes.
std::vector<uint64_t> inputs(unsigned seed) {
    const uint64_t kSpecial[] = {
        0, 1, 2, 31, 32, 33, 63, 64, 0xff, 0x100, 0x7fff, 0x8000, 0xffff, 0x10000, 0x7fffffff,
        0x80000000, 0xffffffff, 0x100000000, 0x7fffffffffffffff, 0x8000000000000000, ~0ull,
        // f32: 1, -1, 0.5, inf, -inf, NaNs, subnormals, the largest, integers near limits
        0x3f800000, 0xbf800000, 0x3f000000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00001,
        0x7f800001, 0x00000001, 0x807fffff, 0x00800000, 0x7f7fffff, 0x4f000000, 0xcf000000,
        0x4f7fffff, 0x5f000000, 0xdf000000, 0x3effffff, 0x4b000001, 0x7e800000, 0x7f000000,
        // f64
        0x3ff0000000000000, 0xbff0000000000000, 0x7ff0000000000000, 0xfff0000000000000,
        0x7ff8000000000000, 0xfff8000000000001, 0x7ff0000000000001, 0x000fffffffffffff,
        0x0010000000000000, 0x7fefffffffffffff, 0x41dfffffffc00000, 0xc1e0000000000000,
        0x43e0000000000000, 0x3fe0000000000000, 0x47efffffe0000000, 0x36a0000000000000,
        // f16 and bf16
        0x3c00, 0xbc00, 0x7c00, 0xfc00, 0x7e00, 0x0400, 0x03ff, 0x7bff, 0x3c003c00, 0x3f803f80,
        0x7f80, 0x7f81, 0x0080, 0x007f, 0x7f7f};
    std::mt19937_64 random(seed);
    std::vector<uint64_t> values;
    for (uint32_t i = 0; i < kCount * 3; ++i) {
        uint64_t value = random();
        switch (random() % 6) {
            case 0:
                value = kSpecial[value % std::size(kSpecial)];
                break;
            case 1:
                value &= (2ull << (random() % 64)) - 1;
                break;
            case 2:  // f32 of moderate size, in both halves
                for (int half = 0; half < 64; half += 32) {
                    auto number = static_cast<float>(std::ldexp(
                        1.0 + (random() >> 40) * 0x1p-24, static_cast<int>(random() % 40) - 20));
                    if (random() & 1) number = -number;
                    uint64_t bits = std::bit_cast<uint32_t>(number);
                    value = (value & ~(0xffffffffull << half)) | bits << half;
                }
                break;
            case 3:  // f64 of moderate size
                value = std::bit_cast<uint64_t>(std::ldexp(1.0 + (random() >> 11) * 0x1p-53,
                                                           static_cast<int>(random() % 80) - 40));
                if (random() & 1) value |= 1ull << 63;
                break;
            default:
                break;
        }
        values.push_back(value);
    }
    return values;
}

bool closeEnough(double a, double b, double relative, double absolute) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
    if (a == b) return true;
    double difference = std::fabs(a - b);
    return difference <= absolute || difference <= relative * std::max(std::fabs(a), std::fabs(b));
}

bool agree(const Case& one, uint64_t a, uint64_t b) {
    if (a == b) return true;
    bool wide = one.name.find("f64") != std::string::npos;
    double x = wide ? std::bit_cast<double>(a) : std::bit_cast<float>(static_cast<uint32_t>(a));
    double y = wide ? std::bit_cast<double>(b) : std::bit_cast<float>(static_cast<uint32_t>(b));
    switch (one.match) {
        case Match::exact:
            return false;
        case Match::lastBit:
            return a + 1 == b || b + 1 == a;
        case Match::logarithm:
            return closeEnough(x, y, 0x1p-21, 0x1p-21);
        case Match::near:
            return closeEnough(x, y, 0x1p-21, 0x1p-149);
        case Match::coarse:
            return closeEnough(x, y, 0x1p-10, 0x1p-149);
        case Match::absolute:
            return closeEnough(x, y, 0, 0x1p-19);
    }
    return false;
}

/// One range holds both buffers of the software run.
class Buffers : public MemoryMap {
  public:
    explicit Buffers(std::vector<uint64_t>& memory)
        : begin_(reinterpret_cast<uint64_t>(memory.data())), end_(begin_ + memory.size() * 8) {}
    bool contains(uint64_t address, size_t size) const override {
        return address >= begin_ && address < end_ && end_ - address >= size;
    }
    uint64_t generation() const override { return 0; }
    std::pair<uint64_t, uint64_t> rangeOf(uint64_t address) const override {
        return contains(address, 1) ? std::pair{begin_, end_} : std::pair<uint64_t, uint64_t>{0, 0};
    }

  private:
    uint64_t begin_, end_;
};

int compare(const char* path, unsigned seed) {
    std::vector<uint64_t> in = inputs(seed);
    std::vector<uint64_t> memory(in);
    memory.resize(in.size() + kCount);
    Buffers buffers(memory);
    Device device(path);
    if (!device.works()) std::printf("no real GPU behind %s: the software GPU runs alone\n", path);
    int failures = 0, compared = 0;
    std::vector<Case> cases = differentialCases();
    for (size_t i = 0; i < cases.size(); ++i) {
        std::string text =
            ".version 8.6\n.target sm_90\n.address_size 64\n" + kernelText(i, cases[i]);
        LoadError error;
        auto program = Program::load(text, error);
        if (program == nullptr) {
            std::printf("%s: refused: %s\n", cases[i].name.c_str(), error.message.c_str());
            ++failures;
            continue;
        }
        Launch launch;
        launch.kernel = program->kernels()[0].get();
        launch.grid.x = kBlocks;
        launch.block.x = kThreads;
        launch.memory = &buffers;
        uint64_t pointers[2] = {reinterpret_cast<uint64_t>(memory.data() + in.size()),
                                reinterpret_cast<uint64_t>(memory.data())};
        launch.params.assign(reinterpret_cast<uint8_t*>(pointers),
                             reinterpret_cast<uint8_t*>(pointers + 2));
        LaunchResult result = run(launch);
        if (result.curesult != 0) {
            std::printf("%s: %s\n", cases[i].name.c_str(), result.report.c_str());
            ++failures;
            continue;
        }
        if (!device.works()) continue;
        void* module = nullptr;
        std::vector<uint64_t> real;
        int status = device.load(text, &module);
        if (status == 0) status = device.run(module, "k" + std::to_string(i), in, real);
        if (status != 0) {
            std::printf("%s: the real GPU says %d\n", cases[i].name.c_str(), status);
            ++failures;
            continue;
        }
        ++compared;
        int differences = 0;
        for (uint32_t k = 0; k < kCount; ++k) {
            uint64_t soft = memory[in.size() + k];
            if (agree(cases[i], soft, real[k])) continue;
            if (++differences <= 3) {
                std::printf("%s of %llx %llx %llx: software %llx, real %llx\n",
                            cases[i].name.c_str(), static_cast<unsigned long long>(in[k * 3]),
                            static_cast<unsigned long long>(in[k * 3 + 1]),
                            static_cast<unsigned long long>(in[k * 3 + 2]),
                            static_cast<unsigned long long>(soft),
                            static_cast<unsigned long long>(real[k]));
            }
        }
        if (differences != 0) {
            std::printf("%s: %d of %u differ\n", cases[i].name.c_str(), differences, kCount);
            ++failures;
        }
    }
    std::printf("%zu snippets, %d compared with a real GPU, %d differ or fail\n", cases.size(),
                compared, failures);
    return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace juice::softgpu::test

int main(int argc, char** argv) {
    return juice::softgpu::test::compare(argc > 1 ? argv[1] : "libcuda.so.1",
                                         argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 1);
}
