// Two processes and one buffer: the parent makes it, the child opens it by its handle and changes
// it, and the parent sees the change.
#include <sys/wait.h>
#include <unistd.h>

#include "arrays.h"

constexpr int kCount = 1'000;

__global__ void advance(int* values, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) values[i] = 2 * values[i] + 1;
}

int child(int pipe) {
    cudaIpcMemHandle_t handle;
    if (read(pipe, &handle, sizeof handle) != sizeof handle) return 2;
    void* memory = nullptr;
    CHECK(cudaIpcOpenMemHandle(&memory, handle, cudaIpcMemLazyEnablePeerAccess));
    int wrong = 0;
    const std::vector<int> seen = fromDevice(static_cast<int*>(memory), kCount);
    for (int i = 0; i < kCount; ++i) wrong += seen[i] != i;
    advance<<<(kCount + 127) / 128, 128>>>(static_cast<int*>(memory), kCount);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaIpcCloseMemHandle(memory));
    return wrong == 0 ? 0 : 3;
}

int main() {
    int pipes[2];
    if (pipe(pipes) != 0) return 1;
    const pid_t pid = fork();
    if (pid == 0) {
        close(pipes[1]);
        return child(pipes[0]);
    }
    close(pipes[0]);
    std::vector<int> values(kCount);
    for (int i = 0; i < kCount; ++i) values[i] = i;
    int* memory = toDevice(values);
    cudaIpcMemHandle_t handle;
    CHECK(cudaIpcGetMemHandle(&handle, memory));
    if (write(pipes[1], &handle, sizeof handle) != sizeof handle) return 1;
    int status = -1;
    waitpid(pid, &status, 0);
    int wrong = 0;
    const std::vector<int> changed = fromDevice(memory, kCount);
    for (int i = 0; i < kCount; ++i) wrong += changed[i] != 2 * i + 1;
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    const bool ok = code == 0 && wrong == 0;
    std::printf("shared_by_ipc: %s, the child ended with %d, %d of %d values are not its own\n",
                ok ? "ok" : "WRONG", code, wrong, kCount);
    CHECK(cudaFree(memory));
    return ok ? 0 : 1;
}
