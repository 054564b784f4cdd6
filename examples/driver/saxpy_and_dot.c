/* A CUDA driver-API program with its kernels inside as PTX: it needs no toolkit to build, only a
 * libcuda.so.1 to run. It computes y = a*x + y and then the dot product of y with itself, compares
 * both with the CPU and prints one line. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* The few declarations that <cuda.h> would give. */
typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st* CUcontext;
typedef struct CUmod_st* CUmodule;
typedef struct CUfunc_st* CUfunction;
typedef struct CUstream_st* CUstream;
CUresult cuInit(unsigned flags);
CUresult cuDeviceGet(CUdevice* device, int ordinal);
CUresult cuDeviceGetName(char* name, int size, CUdevice device);
CUresult cuCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device);
CUresult cuCtxDestroy_v2(CUcontext context);
CUresult cuModuleLoadData(CUmodule* module, const void* image);
CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name);
CUresult cuMemAlloc_v2(CUdeviceptr* pointer, size_t size);
CUresult cuMemFree_v2(CUdeviceptr pointer);
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t size);
CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t size);
CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t count);
CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                        unsigned by, unsigned bz, unsigned shared, CUstream stream, void** params,
                        void** extra);
CUresult cuCtxSynchronize(void);
CUresult cuGetErrorName(CUresult error, const char** name);

static const char kPtx[] =
    ".version 7.0\n"
    ".target sm_52\n"
    ".address_size 64\n"
    /* y[i] = a * x[i] + y[i] */
    ".visible .entry saxpy(.param .f32 a, .param .u64 x, .param .u64 y, .param .u32 n)\n"
    "{\n"
    "  .reg .pred %p;\n"
    "  .reg .f32 %a, %xv, %yv;\n"
    "  .reg .b32 %i, %size, %block, %thread, %n;\n"
    "  .reg .b64 %x, %y, %o;\n"
    "  mov.u32 %size, %ntid.x;\n"
    "  mov.u32 %block, %ctaid.x;\n"
    "  mov.u32 %thread, %tid.x;\n"
    "  mad.lo.s32 %i, %block, %size, %thread;\n"
    "  ld.param.u32 %n, [n];\n"
    "  setp.ge.u32 %p, %i, %n;\n"
    "  @%p ret;\n"
    "  ld.param.f32 %a, [a];\n"
    "  ld.param.u64 %x, [x];\n"
    "  ld.param.u64 %y, [y];\n"
    "  cvta.to.global.u64 %x, %x;\n"
    "  cvta.to.global.u64 %y, %y;\n"
    "  mul.wide.u32 %o, %i, 4;\n"
    "  add.s64 %x, %x, %o;\n"
    "  add.s64 %y, %y, %o;\n"
    "  ld.global.f32 %xv, [%x];\n"
    "  ld.global.f32 %yv, [%y];\n"
    "  fma.rn.f32 %yv, %a, %xv, %yv;\n"
    "  st.global.f32 [%y], %yv;\n"
    "  ret;\n"
    "}\n"
    /* *sum += y . y: a tree in shared memory for each block, then one atomic */
    ".visible .entry dot(.param .u64 y, .param .u32 n, .param .u64 sum)\n"
    "{\n"
    "  .reg .pred %p;\n"
    "  .reg .f32 %v, %w;\n"
    "  .reg .b32 %i, %size, %block, %thread, %n, %half, %at, %other, %base;\n"
    "  .reg .b64 %y, %o, %sum;\n"
    "  .shared .align 4 .b8 partial[1024];\n"
    "  mov.u32 %size, %ntid.x;\n"
    "  mov.u32 %block, %ctaid.x;\n"
    "  mov.u32 %thread, %tid.x;\n"
    "  mad.lo.s32 %i, %block, %size, %thread;\n"
    "  ld.param.u32 %n, [n];\n"
    "  mov.f32 %v, 0f00000000;\n"
    "  setp.ge.u32 %p, %i, %n;\n"
    "  @%p bra LOADED;\n"
    "  ld.param.u64 %y, [y];\n"
    "  cvta.to.global.u64 %y, %y;\n"
    "  mul.wide.u32 %o, %i, 4;\n"
    "  add.s64 %y, %y, %o;\n"
    "  ld.global.f32 %v, [%y];\n"
    "  mul.rn.f32 %v, %v, %v;\n"
    "LOADED:\n"
    "  mov.u32 %base, partial;\n"
    "  shl.b32 %at, %thread, 2;\n"
    "  add.u32 %at, %at, %base;\n"
    "  st.shared.f32 [%at], %v;\n"
    "  shr.u32 %half, %size, 1;\n"
    "TREE:\n"
    "  bar.sync 0;\n"
    "  setp.ge.u32 %p, %thread, %half;\n"
    "  @%p bra NEXT;\n"
    "  shl.b32 %other, %half, 2;\n"
    "  add.u32 %other, %other, %at;\n"
    "  ld.shared.f32 %v, [%at];\n"
    "  ld.shared.f32 %w, [%other];\n"
    "  add.rn.f32 %v, %v, %w;\n"
    "  st.shared.f32 [%at], %v;\n"
    "NEXT:\n"
    "  shr.u32 %half, %half, 1;\n"
    "  setp.ne.u32 %p, %half, 0;\n"
    "  @%p bra TREE;\n"
    "  setp.ne.u32 %p, %thread, 0;\n"
    "  @%p ret;\n"
    "  ld.shared.f32 %v, [%at];\n"
    "  ld.param.u64 %sum, [sum];\n"
    "  cvta.to.global.u64 %sum, %sum;\n"
    "  red.global.add.f32 [%sum], %v;\n"
    "  ret;\n"
    "}\n";

static void check(CUresult result, const char* call) {
    if (result == 0) return;
    const char* name = NULL;
    if (cuGetErrorName(result, &name) != 0 || name == NULL) name = "unknown error";
    fprintf(stderr, "saxpy_and_dot: %s: %s (%d)\n", call, name, result);
    exit(1);
}
#define CHECK(call) check((call), #call)

int main(int argc, char** argv) {
    unsigned n = argc > 1 ? (unsigned)atoi(argv[1]) : 100000;
    if (n == 0) n = 1;
    float a = 2.5f, sum = -1;
    float* x = malloc(n * sizeof *x);
    float* y = malloc(n * sizeof *y);
    float* expected = malloc(n * sizeof *expected);
    double expected_sum = 0;
    if (x == NULL || y == NULL || expected == NULL) return 1;
    for (unsigned i = 0; i < n; ++i) {
        x[i] = (float)(i % 1000) / 8.0f;
        y[i] = (float)(i % 77) / 4.0f;
        expected[i] = a * x[i] + y[i]; /* exact in float: no rounding to disagree about */
        expected_sum += (double)expected[i] * expected[i];
    }

    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction saxpy, dot;
    CUdeviceptr dx, dy, dsum;
    char name[256] = "";
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDeviceGetName(name, sizeof name, device));
    CHECK(cuCtxCreate_v2(&context, 0, device));
    CHECK(cuModuleLoadData(&module, kPtx));
    CHECK(cuModuleGetFunction(&saxpy, module, "saxpy"));
    CHECK(cuModuleGetFunction(&dot, module, "dot"));
    CHECK(cuMemAlloc_v2(&dx, n * sizeof *x));
    CHECK(cuMemAlloc_v2(&dy, n * sizeof *y));
    CHECK(cuMemAlloc_v2(&dsum, sizeof sum));
    CHECK(cuMemcpyHtoD_v2(dx, x, n * sizeof *x));
    CHECK(cuMemcpyHtoD_v2(dy, y, n * sizeof *y));
    CHECK(cuMemsetD32_v2(dsum, 0, 1));

    const unsigned block = 256, grid = (n + block - 1) / block;
    void* saxpy_params[] = {&a, &dx, &dy, &n};
    void* dot_params[] = {&dy, &n, &dsum};
    CHECK(cuLaunchKernel(saxpy, grid, 1, 1, block, 1, 1, 0, NULL, saxpy_params, NULL));
    CHECK(cuLaunchKernel(dot, grid, 1, 1, block, 1, 1, 0, NULL, dot_params, NULL));
    CHECK(cuCtxSynchronize());
    CHECK(cuMemcpyDtoH_v2(y, dy, n * sizeof *y));
    CHECK(cuMemcpyDtoH_v2(&sum, dsum, sizeof sum));

    unsigned wrong = 0;
    for (unsigned i = 0; i < n; ++i) wrong += y[i] != expected[i];
    const double error = expected_sum == 0 ? 0 : ((double)sum - expected_sum) / expected_sum;
    const int ok = wrong == 0 && error < 1e-4 && error > -1e-4;
    CHECK(cuMemFree_v2(dx));
    CHECK(cuMemFree_v2(dy));
    CHECK(cuMemFree_v2(dsum));
    CHECK(cuCtxDestroy_v2(context));
    /* The order of the atomic additions is the GPU's: within the bound, the last digits vary. */
    printf("saxpy_and_dot: %s on %s, %u elements, %u differ from the CPU, dot product %s\n",
           ok ? "ok" : "WRONG", name, n, wrong, ok ? "within 1e-4" : "too far off");
    free(x);
    free(y);
    free(expected);
    return ok ? 0 : 1;
}
