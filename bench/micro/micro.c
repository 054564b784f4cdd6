/* The costs that decide whether a program notices that its GPU is elsewhere. Run it natively and
 * through `juice attach`; each prints one JSON object with medians.
 *
 * usage: micro [MiB of the bulk copies, default 256] */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st* CUcontext;
typedef struct CUmod_st* CUmodule;
typedef struct CUfunc_st* CUfunction;
typedef struct CUstream_st* CUstream;
typedef struct CUevent_st* CUevent;
CUresult cuInit(unsigned flags);
CUresult cuDeviceGet(CUdevice* device, int ordinal);
CUresult cuDeviceGetName(char* name, int size, CUdevice device);
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuModuleLoadData(CUmodule* module, const void* image);
CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name);
CUresult cuMemAlloc_v2(CUdeviceptr* pointer, size_t size);
CUresult cuMemFree_v2(CUdeviceptr pointer);
CUresult cuMemHostAlloc(void** pointer, size_t size, unsigned flags);
CUresult cuMemFreeHost(void* pointer);
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t size);
CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t size);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t size, CUstream stream);
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t size, CUstream stream);
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream);
CUresult cuStreamCreate(CUstream* stream, unsigned flags);
CUresult cuStreamSynchronize(CUstream stream);
CUresult cuEventCreate(CUevent* event, unsigned flags);
CUresult cuEventRecord(CUevent event, CUstream stream);
CUresult cuEventQuery(CUevent event);
CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                        unsigned by, unsigned bz, unsigned shared, CUstream stream, void** params,
                        void** extra);
CUresult cuCtxSynchronize(void);

static const char kPtx[] =
    ".version 7.0\n.target sm_52\n.address_size 64\n"
    ".visible .entry tiny(.param .u64 p, .param .u32 v)\n{\n"
    "  .reg .b64 %p; .reg .b32 %v;\n"
    "  ld.param.u64 %p, [p];\n  ld.param.u32 %v, [v];\n"
    "  cvta.to.global.u64 %p, %p;\n  st.global.u32 [%p], %v;\n  ret;\n}\n";

static double now(void) { /* microseconds */
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec * 1e-3;
}

#define CHECK(call)                                                        \
    do {                                                                   \
        CUresult result_ = (call);                                         \
        if (result_ != 0) {                                                \
            fprintf(stderr, "micro: %s failed with %d\n", #call, result_); \
            exit(1);                                                       \
        }                                                                  \
    } while (0)

static int ascending(const void* a, const void* b) {
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

enum { kMost = 2000 };
static double samples[kMost];

static double median(int count) {
    qsort(samples, count, sizeof *samples, ascending);
    return samples[count / 2];
}

static CUfunction tiny;
static CUstream stream;
static CUdeviceptr word;

static void launch(unsigned value) {
    void* params[] = {&word, &value};
    CHECK(cuLaunchKernel(tiny, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
}

static double launch_and_synchronise(int count) {
    for (int i = 0; i < count; ++i) {
        const double t = now();
        launch(i);
        CHECK(cuStreamSynchronize(stream));
        samples[i] = now() - t;
    }
    return median(count);
}

/* Per launch, over bursts that end with one synchronisation outside of the clock. */
static double asynchronous_launch(int bursts, int length) {
    for (int i = 0; i < bursts; ++i) {
        const double t = now();
        for (int k = 0; k < length; ++k) launch(k);
        samples[i] = (now() - t) / length;
        CHECK(cuStreamSynchronize(stream));
    }
    return median(bursts);
}

/* Per launch including the wait for all of them: what sustained throughput costs. */
static double launch_throughput(int bursts, int length) {
    for (int i = 0; i < bursts; ++i) {
        const double t = now();
        for (int k = 0; k < length; ++k) launch(k);
        CHECK(cuStreamSynchronize(stream));
        samples[i] = (now() - t) / length;
    }
    return median(bursts);
}

static double small_copy_back(int count) {
    unsigned value;
    for (int i = 0; i < count; ++i) {
        const double t = now();
        CHECK(cuMemcpyDtoH_v2(&value, word, sizeof value));
        samples[i] = now() - t;
    }
    return median(count);
}

static double allocate_and_free(int count) {
    for (int i = 0; i < count; ++i) {
        CUdeviceptr p;
        const double t = now();
        CHECK(cuMemAlloc_v2(&p, 1 << 20));
        CHECK(cuMemFree_v2(p));
        samples[i] = now() - t;
    }
    return median(count);
}

static double event_query(int count) {
    CUevent event;
    CHECK(cuEventCreate(&event, 2));
    for (int i = 0; i < count; ++i) {
        launch(i);
        CHECK(cuEventRecord(event, stream));
        CHECK(cuStreamSynchronize(stream));
        const double t = now();
        CHECK(cuEventQuery(event));
        samples[i] = now() - t;
    }
    return median(count);
}

/* GB/s, median of `count`, and the bytes compared once. */
static double bulk(int to_device, int pinned, CUdeviceptr device, uint8_t* host, size_t size,
                   int count) {
    for (int i = 0; i < count; ++i) {
        const double t = now();
        if (to_device && pinned) CHECK(cuMemcpyHtoDAsync_v2(device, host, size, stream));
        if (to_device && !pinned) CHECK(cuMemcpyHtoD_v2(device, host, size));
        if (!to_device && pinned) CHECK(cuMemcpyDtoHAsync_v2(host, device, size, stream));
        if (!to_device && !pinned) CHECK(cuMemcpyDtoH_v2(host, device, size));
        CHECK(cuCtxSynchronize());
        samples[i] = size * 1e-3 / (now() - t);
    }
    return median(count);
}

static void fill(uint8_t* p, size_t size, uint64_t seed) {
    for (size_t i = 0; i + 8 <= size; i += 8) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        memcpy(p + i, &seed, 8);
    }
}

int main(int argc, char** argv) {
    const size_t size = (size_t)(argc > 1 ? atoi(argv[1]) : 256) << 20;
    const int soft = getenv("MICRO_FEW") != NULL; /* a software GPU: fewer rounds */
    const int count = soft ? 200 : kMost, repeat = soft ? 3 : 7;
    char name[256] = "";
    CUdevice device;
    CUcontext context;
    CUmodule module;
    const double started = now();
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuMemAlloc_v2(&word, 4));
    CHECK(cuMemFree_v2(word));
    const double first = now() - started;
    CHECK(cuDeviceGetName(name, sizeof name, device));
    CHECK(cuModuleLoadData(&module, kPtx));
    CHECK(cuModuleGetFunction(&tiny, module, "tiny"));
    CHECK(cuStreamCreate(&stream, 1));
    CHECK(cuMemAlloc_v2(&word, 4));
    launch_and_synchronise(count / 4); /* warm */

    printf("{\"device\":\"%s\",\"first_call_ms\":%.1f", name, first * 1e-3);
    printf(",\"launch_sync_us\":%.2f", launch_and_synchronise(count));
    printf(",\"launch_async_us\":%.3f", asynchronous_launch(count / 20, 200));
    printf(",\"launch_throughput_us\":%.3f", launch_throughput(count / 20, 200));
    printf(",\"dtoh_4_bytes_us\":%.2f", small_copy_back(count));
    printf(",\"alloc_free_1MiB_us\":%.2f", allocate_and_free(count));
    printf(",\"event_query_us\":%.2f", event_query(count / 4));

    CUdeviceptr buffer;
    void* pinned;
    uint8_t* pageable = malloc(size);
    uint8_t* check = malloc(size);
    if (pageable == NULL || check == NULL) return 1;
    CHECK(cuMemAlloc_v2(&buffer, size));
    CHECK(cuMemHostAlloc(&pinned, size, 0));
    fill(pageable, size, 1);
    fill(pinned, size, 2);
    printf(",\"bulk_MiB\":%zu", size >> 20);
    printf(",\"htod_pageable_GBps\":%.2f", bulk(1, 0, buffer, pageable, size, repeat));
    memset(check, 0, size);
    printf(",\"dtoh_pageable_GBps\":%.2f", bulk(0, 0, buffer, check, size, repeat));
    const int pageable_ok = memcmp(check, pageable, size) == 0;
    printf(",\"htod_pinned_GBps\":%.2f", bulk(1, 1, buffer, pinned, size, repeat));
    memcpy(check, pinned, size);
    memset(pinned, 0, size);
    printf(",\"dtoh_pinned_GBps\":%.2f", bulk(0, 1, buffer, pinned, size, repeat));
    const int pinned_ok = memcmp(check, pinned, size) == 0;
    printf(",\"values\":\"%s\"}\n", pageable_ok && pinned_ok ? "ok" : "WRONG");
    CHECK(cuMemFreeHost(pinned));
    return pageable_ok && pinned_ok ? 0 : 1;
}
