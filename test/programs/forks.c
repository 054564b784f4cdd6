/* CUDA and fork: a process that forks before it touches CUDA has a child that may use it; one that
 * has initialised CUDA has a child in which every call gives CUDA_ERROR_NOT_INITIALIZED (3), and
 * goes on itself.
 *
 * usage: forks before|after */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver.h"

/* One kernel, its value compared. */
static int works(void* step) {
    CUdeviceptr memory;
    unsigned value = 0, one = 1, add = 5;
    void* params[] = {&memory, &one, &add};
    check(cuMemAlloc_v2(&memory, 4));
    check(cuMemsetD32_v2(memory, 2, 1));
    check(cuLaunchKernel(step, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    check(cuMemcpyDtoH_v2(&value, memory, sizeof value));
    check(cuMemFree_v2(memory));
    return value == 11;
}

static int exitCodeOf(pid_t child) {
    int status = 0;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(int argc, char** argv) {
    const int before = argc > 1 && strcmp(argv[1], "before") == 0;
    void *context, *step = NULL;
    if (!before) {
        step = openDevice(&context);
        if (!works(step)) return 1;
    }
    const pid_t child = fork();
    if (child == 0) {
        if (before) exit(works(openDevice(&context)) ? 0 : 1);
        CUdeviceptr memory;
        int count = 0;
        /* exit, not _exit: handlers that the child inherited must do no harm. */
        exit(cuMemAlloc_v2(&memory, 4) == 3 && cuInit(0) == 3 && cuDeviceGetCount(&count) == 3 ? 0
                                                                                               : 1);
    }
    const int childCode = exitCodeOf(child);
    if (before) step = openDevice(&context);
    const int parent = works(step) && works(step);
    printf("forks %s: child %d, parent %s\n", before ? "before" : "after", childCode,
           parent ? "ok" : "WRONG");
    return childCode == 0 && parent ? 0 : 1;
}
