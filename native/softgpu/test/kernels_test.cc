// What nvcc makes of real kernels, against the same computation on the host.
#include <chrono>
#include <cmath>
#include <numeric>
#include <random>

#include "native/softgpu/test/harness.h"

namespace juice::softgpu::test {
namespace {

class Kernels : public ::testing::Test {
  protected:
    static void SetUpTestSuite() { program_ = load(fixture("kernels.ptx")); }
    static void TearDownTestSuite() { program_.reset(); }

    template <class... A>
    LaunchResult launch(const char* name, Dim3 grid, Dim3 block, A... args) {
        Launch launch = launchOf(*program_, memory_, grid, block, args...);
        launch.kernel = kernelOf(*program_, name);
        LaunchResult result = run(launch);
        EXPECT_EQ(result.curesult, 0) << result.report;
        return result;
    }

    static std::unique_ptr<Program> program_;
    TestMemory memory_;
};

std::unique_ptr<Program> Kernels::program_;

TEST_F(Kernels, addVectors) {
    constexpr int kCount = 10007;
    auto* a = memory_.allocate<float>(kCount);
    auto* b = memory_.allocate<float>(kCount);
    auto* c = memory_.allocate<float>(kCount);
    for (int i = 0; i < kCount; ++i) {
        a[i] = 0.25f * static_cast<float>(i);
        b[i] = 1.0f / static_cast<float>(i + 1);
    }
    launch("vectorAdd", {40}, {256}, a, b, c, kCount);
    for (int i = 0; i < kCount; ++i) ASSERT_EQ(c[i], a[i] + b[i]) << i;
}

TEST_F(Kernels, multiplyMatricesInTilesFastEnough) {
    constexpr int kSize = 256;
    auto* a = memory_.allocate<float>(kSize * kSize);
    auto* b = memory_.allocate<float>(kSize * kSize);
    auto* c = memory_.allocate<float>(kSize * kSize);
    std::mt19937 random(1);
    std::uniform_real_distribution<float> number(-1, 1);
    for (int i = 0; i < kSize * kSize; ++i) {
        a[i] = number(random);
        b[i] = number(random);
    }
    auto start = std::chrono::steady_clock::now();
    LaunchResult result = launch("matrixProduct", {16, 16}, {16, 16}, a, b, c, kSize);
    std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    std::printf("256x256x256 product: %.3f s, %.1f million warp instructions/s\n", seconds.count(),
                static_cast<double>(result.instructions) / seconds.count() / 1e6);
    for (int row = 0; row < kSize; row += 7) {
        for (int column = 0; column < kSize; ++column) {
            float sum = 0;
            for (int k = 0; k < kSize; ++k) {
                sum = std::fma(a[row * kSize + k], b[k * kSize + column], sum);
            }
            ASSERT_EQ(c[row * kSize + column], sum) << row << " " << column;
        }
    }
}

TEST_F(Kernels, reduceWithShufflesAndAtomics) {
    constexpr int kCount = 100000;
    auto* values = memory_.allocate<int>(kCount);
    std::iota(values, values + kCount, 0);
    auto* total = memory_.allocate<uint64_t>(1);
    launch("reduceSum", {17}, {256}, values, kCount, total);
    EXPECT_EQ(*total, uint64_t{kCount} * (kCount - 1) / 2);
}

TEST_F(Kernels, iterateWithDivergentLoops) {
    constexpr int kWidth = 61, kHeight = 47, kLimit = 500;
    auto* out = memory_.allocate<uint32_t>(kWidth * kHeight);
    launch("mandelbrot", {8, 6}, {8, 8}, out, kWidth, kHeight, kLimit);
    for (int y = 0; y < kHeight; ++y) {
        for (int x = 0; x < kWidth; ++x) {
            double cr = std::fma(3.0, x, 0.0) / kWidth + -2.0, ci = 3.0 * y / kHeight + -1.5;
            double zr = 0, zi = 0;
            int n = 0;
            while (n < kLimit && std::fma(zr, zr, zi * zi) < 4.0) {
                // As nvcc contracts it.
                double next = std::fma(zr, zr, -(zi * zi)) + cr;
                zi = std::fma(zr + zr, zi, ci);
                zr = next;
                ++n;
            }
            EXPECT_NEAR(out[y * kWidth + x], n, 2) << x << " " << y;
        }
    }
}

TEST_F(Kernels, callFunctionsDirectlyRecursivelyAndThroughPointers) {
    struct Pair {
        int key;
        double value;
        char text[9];
    } pair{100, 2.5, {1, 2, 3, 4, 5, 6, 7, 8, 9}};
    auto* out = memory_.allocate<int>(64);
    launch("calls", {1}, {64}, out, pair);
    int numbers[4] = {10, 20, 30, 40};
    float weights[4] = {0.5f, 1.5f, 2.5f, 3.5f};
    auto fibonacci = [](const auto& self, int n) -> int {
        return n < 2 ? n : self(self, n - 1) + self(self, n - 2);
    };
    for (int i = 0; i < 64; ++i) {
        int viaTable = i % 3 == 0 ? i + 1 : i % 3 == 1 ? i * 2 : -i;
        int sum = fibonacci(fibonacci, i % 12) + viaTable + numbers[1 + i % 3];
        sum += 100 + i + 5 + static_cast<char>('a' + i) + 9;
        EXPECT_EQ(out[i], sum + static_cast<int>(weights[i % 4] * 2)) << i;
    }
}

TEST_F(Kernels, computeTheMathLibraryWell) {
    constexpr int kCount = 512;
    std::vector<float> in;
    for (int i = 0; i < kCount; ++i) in.push_back(0.37f * static_cast<float>(i - kCount / 2));
    in[3] = 1e6f;  // needs the slow reduction of arguments
    auto* from = memory_.allocate<float>(kCount, in);
    auto* out = memory_.allocate<float>(kCount * 8);
    auto* wide = memory_.allocate<double>(kCount * 4);
    launch("mathematics", {4}, {128}, from, out, wide, kCount);
    for (int i = 0; i < kCount; ++i) {
        double x = in[i];
        const float* got = out + i * 8;
        auto near = [&](double value, double want) {
            EXPECT_NEAR(value, want, 1e-6 * std::max(1.0, std::fabs(want))) << x;
        };
        near(got[0], std::sin(x));
        near(got[1], std::cos(x));
        float grown = std::exp(in[i] * 0.1f);  // infinite for the largest
        if (std::isinf(grown))
            EXPECT_EQ(got[2], grown);
        else
            near(got[2] / std::exp(static_cast<double>(in[i] * 0.1f)), 1.0);
        near(got[3], std::log(static_cast<double>(std::fabs(in[i]) + 1e-3f)));
        near(got[4], std::pow(std::fabs(x), 1.25));
        near(got[5], std::tanh(x));
        near(got[6], std::sqrt(std::fabs(x)) / (x + 1e6));
        near(got[7], std::fmod(x, 3.0));
        EXPECT_NEAR(wide[i * 4 + 0], std::sin(x), 1e-14);
        double wideGrown = std::exp(x * 0.1);
        if (std::isinf(wideGrown))
            EXPECT_EQ(wide[i * 4 + 1], wideGrown);
        else
            EXPECT_NEAR(wide[i * 4 + 1] / wideGrown, 1.0, 1e-14);
        EXPECT_NEAR(wide[i * 4 + 2], std::log(std::fabs(x) + 1.0), 1e-13);
        EXPECT_NEAR(wide[i * 4 + 3], std::cbrt(x), 1e-13);
    }
}

TEST_F(Kernels, spinOnALockWithinAWarpWithoutDeadlock) {
    auto* lock = memory_.allocate<int>(1);
    auto* counter = memory_.allocate<int>(1);
    launch("spinLocks", {4}, {96}, lock, counter, 3);
    EXPECT_EQ(*counter, 4 * 96 * 3);
}

}  // namespace
}  // namespace juice::softgpu::test
