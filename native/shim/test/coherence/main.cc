// Usage: juice_coherence LIBCUDA [CHECK...]
#include <map>
#include <string>

#include "native/shim/test/coherence/checks.h"

namespace juice::coherence_test {

DriverTable cu;

namespace {

int failures = 0;
CUmodule module = nullptr;

const char kPtx[] = R"(.version 7.0
.target sm_52
.address_size 64

.visible .global .align 8 .u64 table;
.extern .func (.param .b32 result) vprintf(.param .b64 format, .param .b64 values);
.global .align 1 .b8 sentence[16] = {107, 101, 114, 110, 101, 108, 32, 115, 97, 121, 115, 32, 37, 100, 10, 0};

// data[i] += n, for i < count
.visible .entry add(.param .u64 data, .param .u32 n, .param .u32 count)
{
    .reg .pred %p;
    .reg .u32 %r<6>;
    .reg .u64 %rd<4>;
    ld.param.u64 %rd1, [data];
    ld.param.u32 %r1, [n];
    ld.param.u32 %r5, [count];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.u32 %r2, %r2, %r3, %r4;
    setp.ge.u32 %p, %r2, %r5;
    @%p bra done;
    cvta.to.global.u64 %rd1, %rd1;
    mul.wide.u32 %rd2, %r2, 4;
    add.s64 %rd1, %rd1, %rd2;
    ld.global.u32 %r3, [%rd1];
    add.u32 %r3, %r3, %r1;
    st.global.u32 [%rd1], %r3;
done:
    ret;
}

// The same, through an address that lies in memory.
.visible .entry add_behind(.param .u64 place, .param .u32 n)
{
    .reg .u32 %r<4>;
    .reg .u64 %rd<4>;
    ld.param.u64 %rd1, [place];
    ld.param.u32 %r1, [n];
    cvta.to.global.u64 %rd1, %rd1;
    ld.global.u64 %rd2, [%rd1];
    cvta.to.global.u64 %rd2, %rd2;
    mov.u32 %r2, %tid.x;
    mul.wide.u32 %rd3, %r2, 4;
    add.s64 %rd2, %rd2, %rd3;
    ld.global.u32 %r3, [%rd2];
    add.u32 %r3, %r3, %r1;
    st.global.u32 [%rd2], %r3;
    ret;
}

// The same, through the module's variable.
.visible .entry add_table(.param .u32 n)
{
    .reg .u32 %r<3>;
    .reg .u64 %rd<3>;
    ld.param.u32 %r1, [n];
    ld.global.u64 %rd1, [table];
    cvta.to.global.u64 %rd1, %rd1;
    ld.global.u32 %r2, [%rd1];
    add.u32 %r2, %r2, %r1;
    st.global.u32 [%rd1], %r2;
    ret;
}

// bytes[2 * i] = value: every other byte is the CPU's.
.visible .entry even_bytes(.param .u64 bytes, .param .u32 value)
{
    .reg .u32 %r<5>;
    .reg .u64 %rd<4>;
    ld.param.u64 %rd1, [bytes];
    ld.param.u32 %r1, [value];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.u32 %r2, %r2, %r3, %r4;
    cvta.to.global.u64 %rd1, %rd1;
    mul.wide.u32 %rd2, %r2, 2;
    add.s64 %rd1, %rd1, %rd2;
    st.global.u8 [%rd1], %r1;
    ret;
}

// For round = 1 .. rounds: waits until *request = round, then *answer = round * 3.
.visible .entry echo(.param .u64 request, .param .u64 answer, .param .u32 rounds)
{
    .reg .pred %p;
    .reg .u32 %r<5>;
    .reg .u64 %rd<3>;
    ld.param.u64 %rd1, [request];
    ld.param.u64 %rd2, [answer];
    ld.param.u32 %r1, [rounds];
    cvta.to.global.u64 %rd1, %rd1;
    cvta.to.global.u64 %rd2, %rd2;
    mov.u32 %r2, 1;
next:
    ld.volatile.global.u32 %r3, [%rd1];
    setp.ne.u32 %p, %r3, %r2;
    @%p bra next;
    mul.lo.u32 %r4, %r2, 3;
    st.volatile.global.u32 [%rd2], %r4;
    membar.sys;
    add.u32 %r2, %r2, 1;
    setp.le.u32 %p, %r2, %r1;
    @%p bra next;
    ret;
}

// Prints its parameter.
.visible .entry say(.param .u32 value)
{
    .local .align 8 .b8 values[8];
    .reg .u32 %r<3>;
    .reg .u64 %rd<4>;
    ld.param.u32 %r1, [value];
    st.local.u32 [values], %r1;
    mov.u64 %rd1, values;
    cvta.local.u64 %rd1, %rd1;
    mov.u64 %rd2, sentence;
    cvta.global.u64 %rd2, %rd2;
    {
        .param .b64 format;
        .param .b64 arguments;
        .param .b32 result;
        st.param.b64 [format], %rd2;
        st.param.b64 [arguments], %rd1;
        call.uni (result), vprintf, (format, arguments);
        ld.param.b32 %r2, [result];
    }
    ret;
}
)";

/// What kernels print comes out between what the program prints, as it happened.
void kernelsPrint() {
    std::printf("program says 1\n");
    launch("say", 1, nullptr, 2u);
    OK(cuCtxSynchronize());
    std::printf("program says 3\n");
    CUstream stream = nullptr;
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    launch("say", 1, stream, 4u);
    OK(cuStreamSynchronize(stream));
    std::printf("program says 5\n");
    OK(cuStreamDestroy_v2(stream));
}

constexpr Check kPrints[] = {{"prints", kernelsPrint}, {nullptr, nullptr}};

void run(const Check* check, int count, char** wanted) {
    for (; check->name != nullptr; ++check) {
        bool asked = count == 0;
        for (int i = 0; i < count; ++i) asked = asked || std::strcmp(wanted[i], check->name) == 0;
        if (!asked) continue;
        const int before = failures;
        check->run();
        std::printf("%s: %s\n", check->name, failures == before ? "right" : "wrong");
        std::fflush(stdout);
    }
}

}  // namespace

void expect(bool holds, const char* what, int line) {
    if (holds) return;
    std::printf("  line %d: not %s\n", line, what);
    ++failures;
}

void succeed(CUresult result, const char* what, int line) {
    if (result == CUDA_SUCCESS) return;
    std::printf("line %d: %s: error %d\n", line, what, result);
    std::exit(1);
}

CUfunction kernel(const char* name) {
    static std::map<std::string, CUfunction> known;
    CUfunction& function = known[name];
    if (function == nullptr) OK(cuModuleGetFunction(&function, module, name));
    return function;
}

CUdeviceptr tableOfModule() {
    CUdeviceptr address = 0;
    size_t size = 0;
    OK(cuModuleGetGlobal_v2(&address, &size, module, "table"));
    return address;
}

bool comesTrue(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition()) {
        if (std::chrono::steady_clock::now() > end) return false;
        __builtin_ia32_pause();
    }
    return true;
}

}  // namespace juice::coherence_test

using namespace juice::coherence_test;

int main(int argc, char** argv) {
    std::string error;
    if (argc < 2 || !cu.load(argv[1], error)) {
        std::fprintf(stderr, "usage: juice_coherence LIBCUDA [CHECK...]\n%s\n", error.c_str());
        return 2;
    }
    CUcontext context = nullptr;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    OK(cuModuleLoadData(&module, kPtx));
    for (const Check* checks : {kFills, kCopies, kKernels, kTalks, kManaged, kPrints})
        run(checks, argc - 2, argv + 2);
    return failures == 0 ? 0 : 1;
}
