/* Holds device memory and launches until it is killed or CUDA fails: what the fault tests do things
 * to. Prints "running" once the first kernel has ended; on a CUDA error prints "error N" and exits
 * with 3. SIGUSR1 has it end in order: it compares what its kernels left with what they should have
 * and prints "ok, N launches".
 *
 * usage: keep_busy [MiB of device memory, default 16] [seconds, default for ever] */
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "driver.h"

static volatile sig_atomic_t stop = 0;
static void onStop(int signal) {
    (void)signal;
    stop = 1;
}

int main(int argc, char** argv) {
    const size_t size = (size_t)(argc > 1 ? atoi(argv[1]) : 16) << 20;
    const time_t end = argc > 2 ? time(NULL) + atoi(argv[2]) : 0;
    CUdeviceptr memory;
    void* context;
    unsigned value = 0, expected = 0, one = 1, launches = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGUSR1, onStop);
    void* step = openDevice(&context);
    check(cuMemAlloc_v2(&memory, size));
    check(cuMemsetD32_v2(memory, 0, 1));
    while (!stop && (end == 0 || time(NULL) < end)) {
        void* params[] = {&memory, &one, &launches};
        check(cuLaunchKernel(step, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
        check(cuCtxSynchronize());
        expected = 3 * expected + launches;
        if (launches++ == 0) printf("running\n");
        usleep(2000);
    }
    check(cuMemcpyDtoH_v2(&value, memory, sizeof value));
    printf("%s, %u launches\n", value == expected ? "ok" : "WRONG", launches);
    return value == expected ? 0 : 1;
}
