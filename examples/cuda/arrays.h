// Arrays that go to the device and come back, and numbers that look random but are the same on
// every run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "check.h"

template <typename T>
T* onDevice(size_t count) {
    T* memory = nullptr;
    CHECK(cudaMalloc(&memory, count * sizeof(T)));
    return memory;
}

template <typename T>
T* toDevice(const std::vector<T>& values) {
    T* memory = onDevice<T>(values.size());
    CHECK(cudaMemcpy(memory, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
    return memory;
}

template <typename T>
std::vector<T> fromDevice(const T* memory, size_t count) {
    std::vector<T> values(count);
    CHECK(cudaMemcpy(values.data(), memory, count * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
}

// A step of the splitmix64 generator: the next state, scrambled.
__host__ __device__ inline uint64_t nextRandom(uint64_t& state) {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}
