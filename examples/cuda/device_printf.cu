// printf in a kernel: numbers, texts, and every thread's line exactly once. What it wrote is caught
// and compared with what it must be; the order of the threads is free.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "arrays.h"

__global__ void speak(int blocks) {
    printf("block %d of %d, thread %2u: %s 0x%04x %.3f %lld%%\n", blockIdx.x, blocks, threadIdx.x,
           threadIdx.x % 2 == 0 ? "even" : "odd", threadIdx.x * 257, threadIdx.x / 8.0,
           -1'000'000'000'000ll - threadIdx.x);
}

std::vector<std::string> sortedLines(const std::string& text) {
    std::vector<std::string> lines;
    for (size_t start = 0, end; start < text.size(); start = end + 1) {
        end = std::min(text.find('\n', start), text.size());
        lines.push_back(text.substr(start, end - start));
    }
    std::sort(lines.begin(), lines.end());
    return lines;
}

int main() {
    const int blocks = 3, threads = 40;
    // The driver writes to standard output: for a while that is a file.
    std::FILE* const file = std::tmpfile();
    const int terminal = dup(1);
    dup2(fileno(file), 1);
    speak<<<blocks, threads>>>(blocks);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    std::fflush(stdout);
    dup2(terminal, 1);

    std::string said, expected;
    std::rewind(file);
    for (int c; (c = std::fgetc(file)) != EOF;) said += static_cast<char>(c);
    for (int block = 0; block < blocks; ++block) {
        for (int thread = 0; thread < threads; ++thread) {
            char line[200];
            std::snprintf(line, sizeof line, "block %d of %d, thread %2u: %s 0x%04x %.3f %lld%%\n",
                          block, blocks, thread, thread % 2 == 0 ? "even" : "odd", thread * 257,
                          thread / 8.0, -1'000'000'000'000ll - thread);
            expected += line;
        }
    }
    const std::vector<std::string> lines = sortedLines(said);
    const bool ok = lines == sortedLines(expected);
    std::printf("device_printf: %s, %zu lines of %d\n", ok ? "ok" : "WRONG", lines.size(),
                blocks * threads);
    return ok ? 0 : 1;
}
