// Fourier transforms, a block for each signal: Stockham's scheme in shared memory, which needs no
// bit reversal. Forwards it must match a transform on the CPU, and backwards give the signal again.
#include <cmath>
#include <complex>

#include "arrays.h"

constexpr int kLength = 512, kThreads = kLength / 2;

__device__ float2 times(float2 a, float2 b) {
    return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x};
}

__global__ void transform(float2* signals, float direction) {
    __shared__ float2 buffers[2][kLength];
    float2 *from = buffers[0], *to = buffers[1], *signal = signals + blockIdx.x * kLength;
    const int t = threadIdx.x;
    from[t] = signal[t];
    from[t + kThreads] = signal[t + kThreads];
    for (int done = 1; done < kLength; done *= 2) {
        __syncthreads();
        const int k = t % done;
        float2 turn;
        sincospif(direction * k / done, &turn.y, &turn.x);
        const float2 a = from[t], b = times(turn, from[t + kThreads]);
        const int place = 2 * (t - k) + k;
        to[place] = {a.x + b.x, a.y + b.y};
        to[place + done] = {a.x - b.x, a.y - b.y};
        float2* const swapped = from;
        from = to;
        to = swapped;
    }
    __syncthreads();
    signal[t] = from[t];
    signal[t + kThreads] = from[t + kThreads];
}

using Signal = std::vector<std::complex<double>>;

Signal transformOnCpu(const Signal& in) {
    if (in.size() == 1) return in;
    Signal parts[2], out(in.size());
    for (size_t i = 0; i < in.size(); ++i) parts[i % 2].push_back(in[i]);
    const Signal even = transformOnCpu(parts[0]), odd = transformOnCpu(parts[1]);
    for (size_t k = 0; k < even.size(); ++k) {
        const auto turned = std::polar(1.0, -2 * M_PI * k / in.size()) * odd[k];
        out[k] = even[k] + turned;
        out[k + even.size()] = even[k] - turned;
    }
    return out;
}

int main(int argc, char** argv) {
    const int count = argument(argc, argv, 1, 6);
    std::vector<float2> in(count * kLength);
    uint64_t state = 6;
    for (float2& z : in) {
        z.x = static_cast<float>(nextRandom(state) % 1'000) / 1'000;
        z.y = static_cast<float>(nextRandom(state) % 1'000) / 1'000;
    }
    float2* signals = toDevice(in);
    transform<<<count, kThreads>>>(signals, -1.0f);
    const std::vector<float2> there = fromDevice(signals, in.size());
    transform<<<count, kThreads>>>(signals, 1.0f);
    CHECK(cudaGetLastError());
    const std::vector<float2> back = fromDevice(signals, in.size());
    double error = 0, returned = 0;
    for (int s = 0; s < count; ++s) {
        Signal signal;
        for (int i = 0; i < kLength; ++i) {
            signal.push_back({in[s * kLength + i].x, in[s * kLength + i].y});
        }
        const Signal expected = transformOnCpu(signal);
        for (int i = 0; i < kLength; ++i) {
            const float2 a = there[s * kLength + i], b = back[s * kLength + i];
            error = std::max(error, std::abs(expected[i] - std::complex<double>(a.x, a.y)));
            const std::complex<double> again(b.x / double{kLength}, b.y / double{kLength});
            returned = std::max(returned, std::abs(signal[i] - again));
        }
    }
    const bool ok = error < 2e-3 && returned < 1e-5;
    std::printf("fft: %s, %d signals of %d, forwards %s, backwards %s\n", ok ? "ok" : "WRONG",
                count, kLength, error < 2e-3 ? "as on the CPU" : "not as on the CPU",
                returned < 1e-5 ? "the same signals" : "other signals");
    return ok ? 0 : 1;
}
