// Functions and graphs of a program, with the values that they leave behind: the same on any
// driver.
//   juice_replays LIBCUDA [SECTION...]
#include <cstring>

#include "native/shim/test/replays/play.h"

namespace juice::replays {
namespace {

const char kPtx[] = R"(.version 7.0
.target sm_52
.address_size 64

.visible .entry step(.param .u64 p, .param .u32 n, .param .u32 add)
{
    .reg .pred %q;
    .reg .b32 %i, %size, %block, %n, %v, %a;
    .reg .b64 %p, %o;
    mov.u32 %size, %ntid.x;
    mov.u32 %block, %ctaid.x;
    mov.u32 %i, %tid.x;
    mad.lo.s32 %i, %block, %size, %i;
    ld.param.u32 %n, [n];
    setp.ge.u32 %q, %i, %n;
    @%q ret;
    ld.param.u64 %p, [p];
    cvta.to.global.u64 %p, %p;
    mul.wide.u32 %o, %i, 4;
    add.s64 %p, %p, %o;
    ld.param.u32 %a, [add];
    add.u32 %a, %a, %i;
    ld.global.u32 %v, [%p];
    mad.lo.u32 %v, %v, 3, %a;
    st.global.u32 [%p], %v;
    ret;
}

.visible .entry fault()
{
    .reg .b32 %v;
    .reg .b64 %p;
    mov.u64 %p, 16;
    mov.u32 %v, 1;
    st.global.u32 [%p], %v;
    ret;
}

.visible .entry spin(.param .u64 ticks)
{
    .reg .pred %q;
    .reg .b64 %begin, %now, %ticks;
    ld.param.u64 %ticks, [ticks];
    mov.u64 %begin, %clock64;
again:
    mov.u64 %now, %clock64;
    sub.u64 %now, %now, %begin;
    setp.lt.u64 %q, %now, %ticks;
    @%q bra again;
    ret;
}
)";

struct Section {
    const char* name;
    void (*play)();
};
const Section kSections[] = {
    {"functions_in_order", functionsInOrder},
    {"function_as_gate", functionAsGate},
    {"functions_say_status", functionsSayStatus},
    {"functions_across_streams", functionsAcrossStreams},
    {"captured_and_replayed", capturedAndReplayed},
    {"forked_and_joined", forkedAndJoined},
    {"functions_in_graphs", functionsInGraphs},
    {"built_by_hand", builtByHand},
    {"updated", updated},
    {"captures_forbid", capturesForbid},
    {"user_objects", userObjects},
    {"parts_of_graphs", partsOfGraphs},
    // The last ones: nothing works after a fault, and nothing comes after the end.
    {"functions_at_the_end", functionsAtTheEnd},
    {"functions_after_fault", functionsAfterFault},
};

}  // namespace

Stage::Stage() {
    PLAY(cuInit(0));
    PLAY(cuDevicePrimaryCtxRetain(&context, 0));
    PLAY(cuCtxSetCurrent(context));
    PLAY(cuModuleLoadData(&module, kPtx));
    PLAY(cuModuleGetFunction(&step, module, "step"));
    PLAY(cuModuleGetFunction(&fault, module, "fault"));
    PLAY(cuModuleGetFunction(&spin, module, "spin"));
}

CUstream Stage::stream(unsigned flags) const {
    CUstream out = nullptr;
    PLAY(cuStreamCreate(&out, flags));
    return out;
}

CUevent Stage::event() const {
    CUevent out = nullptr;
    PLAY(cuEventCreate(&out, CU_EVENT_DISABLE_TIMING));
    return out;
}

unsigned* Stage::pinned(unsigned first) const {
    void* out = nullptr;
    PLAY(cuMemHostAlloc(&out, kBytes, 0));
    auto* const values = static_cast<unsigned*>(out);
    for (unsigned i = 0; i < kCount; ++i) values[i] = first + i;
    return values;
}

CUdeviceptr Stage::device() const {
    CUdeviceptr out = 0;
    PLAY(cuMemAlloc_v2(&out, kBytes));
    PLAY(cuMemsetD32Async(out, 0, kCount, nullptr));
    PLAY(cuStreamSynchronize(nullptr));
    return out;
}

void Stage::launchStep(CUdeviceptr p, unsigned add, CUstream on) const {
    unsigned n = kCount;
    void* parameters[] = {&p, &n, &add};
    PLAY(cuLaunchKernel(step, kCount / 256, 1, 1, 256, 1, 1, 0, on, parameters, nullptr));
}

void stepHere(unsigned* p, unsigned add) {
    for (unsigned i = 0; i < kCount; ++i) p[i] = 3 * p[i] + add + i;
}

void compare(const char* name, const unsigned* got, const unsigned* wanted) {
    for (unsigned i = 0; i < kCount; ++i) {
        if (got[i] == wanted[i]) continue;
        std::printf("%s: %u at %u where %u was due\n", name, got[i], i, wanted[i]);
        return;
    }
    std::printf("%s: ok\n", name);
}

}  // namespace juice::replays

int main(int argc, char** argv) {
    using namespace juice::replays;
    std::string error;
    if (argc < 2 || !cu.load(argv[1], error)) {
        std::printf("usage: juice_replays LIBCUDA [SECTION...] %s\n", error.c_str());
        return 2;
    }
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    for (const Section& section : kSections) {
        bool wanted = argc == 2;
        for (int i = 2; i < argc; ++i) wanted = wanted || std::strcmp(argv[i], section.name) == 0;
        if (wanted) section.play();
    }
    return 0;
}
