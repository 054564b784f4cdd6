// Bodies that attract each other: every step each body sums up the pull of all others, tile by tile
// through shared memory. Compared with the same steps in double precision on the CPU.
#include <cmath>

#include "arrays.h"

constexpr int kTile = 64;
constexpr float kStep = 0.01f, kSoftening = 0.05f;

__global__ void step(const float4* from, float4* to, float3* velocity, int n) {
    __shared__ float4 tile[kTile];
    const int i = blockIdx.x * kTile + threadIdx.x;
    const float4 me = from[min(i, n - 1)];
    float3 pull = {0, 0, 0};
    for (int start = 0; start < n; start += kTile) {
        const int other = start + threadIdx.x;
        tile[threadIdx.x] = other < n ? from[other] : make_float4(0, 0, 0, 0);
        __syncthreads();
        for (int k = 0; k < kTile; ++k) {
            const float4 body = tile[k];
            const float x = body.x - me.x, y = body.y - me.y, z = body.z - me.z;
            const float inverse = rsqrtf(x * x + y * y + z * z + kSoftening);
            const float strength = body.w * inverse * inverse * inverse;
            pull.x += strength * x;
            pull.y += strength * y;
            pull.z += strength * z;
        }
        __syncthreads();
    }
    if (i >= n) return;
    float3 v = velocity[i];
    v = {v.x + kStep * pull.x, v.y + kStep * pull.y, v.z + kStep * pull.z};
    velocity[i] = v;
    to[i] = {me.x + kStep * v.x, me.y + kStep * v.y, me.z + kStep * v.z, me.w};
}

struct Body {
    double at[3], velocity[3], mass;
};

void stepOnCpu(std::vector<Body>& bodies) {
    const std::vector<Body> before = bodies;
    for (Body& body : bodies) {
        double pull[3] = {0, 0, 0};
        for (const Body& other : before) {
            double away[3], square = kSoftening;
            for (int k = 0; k < 3; ++k) {
                away[k] = other.at[k] - body.at[k];
                square += away[k] * away[k];
            }
            for (int k = 0; k < 3; ++k) {
                pull[k] += other.mass * away[k] / (square * std::sqrt(square));
            }
        }
        for (int k = 0; k < 3; ++k) body.velocity[k] += kStep * pull[k];
        for (int k = 0; k < 3; ++k) body.at[k] += kStep * body.velocity[k];
    }
}

int main(int argc, char** argv) {
    const int n = argument(argc, argv, 1, 200), steps = 5;
    std::vector<float4> start(n);
    std::vector<Body> bodies(n);
    uint64_t state = 3;
    const auto coordinate = [&] { return static_cast<float>(nextRandom(state) >> 40) / (1 << 23); };
    for (int i = 0; i < n; ++i) {
        start[i] = {coordinate() - 1, coordinate() - 1, coordinate() - 1, coordinate() / n};
        bodies[i] = {{start[i].x, start[i].y, start[i].z}, {0, 0, 0}, start[i].w};
    }
    float4 *from = toDevice(start), *to = onDevice<float4>(n);
    float3* velocity = toDevice(std::vector<float3>(n, float3{0, 0, 0}));
    for (int s = 0; s < steps; ++s) {
        step<<<(n + kTile - 1) / kTile, kTile>>>(from, to, velocity, n);
        CHECK(cudaGetLastError());
        std::swap(from, to);
        stepOnCpu(bodies);
    }
    const std::vector<float4> end = fromDevice(from, n);
    double farthest = 0, moved = 0;
    for (int i = 0; i < n; ++i) {
        const double got[3] = {end[i].x, end[i].y, end[i].z};
        for (int k = 0; k < 3; ++k) {
            farthest = std::max(farthest, std::abs(got[k] - bodies[i].at[k]));
        }
        moved = std::max(moved, std::abs(end[i].x - double{start[i].x}));
    }
    const bool ok = farthest < 1e-5 && moved > 1e-4;
    std::printf("n_body: %s, %d bodies, %d steps, positions %s those of the CPU\n",
                ok ? "ok" : "WRONG", n, steps, ok ? "match" : "do not match");
    return ok ? 0 : 1;
}
