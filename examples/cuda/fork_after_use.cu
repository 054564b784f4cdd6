// A process that forks after it has used CUDA: in the child every call fails, for CUDA does not
// survive a fork; the parent goes on as if nothing had happened.
#include <sys/wait.h>
#include <unistd.h>

#include "arrays.h"

__global__ void increment(int* values) {
    values[threadIdx.x] += 1;
}

int main() {
    int* memory = onDevice<int>(32);
    CHECK(cudaMemset(memory, 0, 32 * sizeof(int)));
    increment<<<1, 32>>>(memory);
    CHECK(cudaDeviceSynchronize());
    const pid_t child = fork();
    if (child == 0) {
        int value = 0;
        void* more = nullptr;
        const bool refused =
            cudaMalloc(&more, 4) == cudaErrorInitializationError &&
            cudaMemcpy(&value, memory, 4, cudaMemcpyDeviceToHost) == cudaErrorInitializationError;
        _exit(refused ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    increment<<<1, 32>>>(memory);
    CHECK(cudaGetLastError());
    int wrong = 0;
    for (const int value : fromDevice(memory, 32)) wrong += value != 2;
    const bool refused = WIFEXITED(status) && WEXITSTATUS(status) == 0, ok = refused && wrong == 0;
    std::printf("fork_after_use: %s, the child was %s, %d values of the parent are wrong\n",
                ok ? "ok" : "WRONG", refused ? "refused" : "not refused", wrong);
    return ok ? 0 : 1;
}
