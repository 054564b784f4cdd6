/* Eight threads of one process, each with a stream and a buffer of its own, copy, launch and copy
 * back at once; each compares every value with the CPU's.
 *
 * usage: threads [rounds, default 20] */
#include <pthread.h>

#include "driver.h"

enum { kThreads = 8, kElements = 5000, kLaunches = 5 };
static void *context, *step;
static int rounds = 20;
static pthread_barrier_t start;

struct Work {
    pthread_t thread;
    unsigned index;
    unsigned wrong;
};

static void* work(void* argument) {
    struct Work* mine = argument;
    unsigned *values = malloc(kElements * sizeof *values),
             *expected = malloc(kElements * sizeof *expected);
    CUdeviceptr memory;
    void* stream;
    if (values == NULL || expected == NULL) abort();
    check(cuCtxSetCurrent(context));
    check(cuStreamCreate(&stream, 1));
    check(cuMemAlloc_v2(&memory, kElements * sizeof *values));
    pthread_barrier_wait(&start);
    for (int round = 0; round < rounds; ++round) {
        unsigned n = kElements, add = mine->index * 1000 + (unsigned)round;
        void* params[] = {&memory, &n, &add};
        for (unsigned i = 0; i < n; ++i)
            values[i] = expected[i] = mine->index * i + (unsigned)round;
        check(cuMemcpyHtoDAsync_v2(memory, values, n * sizeof *values, stream));
        for (int launch = 0; launch < kLaunches; ++launch) {
            check(cuLaunchKernel(step, (n + 127) / 128, 1, 1, 128, 1, 1, 0, stream, params, NULL));
            for (unsigned i = 0; i < n; ++i) expected[i] = 3 * expected[i] + add + i;
        }
        check(cuMemcpyDtoHAsync_v2(values, memory, n * sizeof *values, stream));
        check(cuStreamSynchronize(stream));
        for (unsigned i = 0; i < n; ++i) mine->wrong += values[i] != expected[i];
    }
    check(cuMemFree_v2(memory));
    check(cuStreamDestroy_v2(stream));
    free(values);
    free(expected);
    return NULL;
}

int main(int argc, char** argv) {
    struct Work all[kThreads];
    unsigned wrong = 0;
    if (argc > 1) rounds = atoi(argv[1]);
    step = openDevice(&context);
    pthread_barrier_init(&start, NULL, kThreads);
    for (unsigned i = 0; i < kThreads; ++i) {
        all[i] = (struct Work){.index = i};
        if (pthread_create(&all[i].thread, NULL, work, &all[i]) != 0) abort();
    }
    for (unsigned i = 0; i < kThreads; ++i) {
        pthread_join(all[i].thread, NULL);
        wrong += all[i].wrong;
    }
    printf("threads: %s, %d threads x %d rounds, %u values differ from the CPU\n",
           wrong == 0 ? "ok" : "WRONG", kThreads, rounds, wrong);
    return wrong == 0 ? 0 : 1;
}
