// A process that forks before it uses CUDA: parent and child then use it side by side, and neither
// sees anything of the other.
#include <sys/wait.h>
#include <unistd.h>

#include "arrays.h"

__global__ void fill(int* values, int n, int start) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) values[i] = start + i;
}

// 0 if all is right.
int work(int start) {
    const int n = 1'000;
    int* memory = onDevice<int>(n);
    fill<<<(n + 127) / 128, 128>>>(memory, n, start);
    CHECK(cudaGetLastError());
    const std::vector<int> values = fromDevice(memory, n);
    int wrong = 0;
    for (int i = 0; i < n; ++i) wrong += values[i] != start + i;
    return wrong == 0 ? 0 : 1;
}

int main() {
    const pid_t child = fork();
    if (child == 0) return work(1'000'000);
    const int parent = work(7);
    int status = -1;
    waitpid(child, &status, 0);
    const bool ok = parent == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    std::printf("fork_before_use: %s, parent %d, child %d\n", ok ? "ok" : "WRONG", parent,
                WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    return ok ? 0 : 1;
}
