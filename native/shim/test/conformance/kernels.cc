#include "native/shim/test/conformance/record.h"

namespace juice::conformance {

// store(u64 out, u32 value), mixed(u32, u8, 24 bytes, u64), bounded (at most 128 threads),
// shared4k (static shared memory), fault (writes to address 16), spin (u64 clock ticks); a global.
const char* const kPtx = R"(.version 7.0
.target sm_52
.address_size 64

.visible .global .align 4 .u32 counter = 7;
.visible .const .align 4 .u32 table[4] = {1, 2, 3, 4};

.visible .entry store(.param .u64 p0, .param .u32 p1)
{
    .reg .u32 %r<3>;
    .reg .u64 %rd<4>;
    ld.param.u64 %rd1, [p0];
    ld.param.u32 %r1, [p1];
    cvta.to.global.u64 %rd2, %rd1;
    mov.u32 %r2, %tid.x;
    mul.wide.u32 %rd3, %r2, 4;
    add.s64 %rd2, %rd2, %rd3;
    st.global.u32 [%rd2], %r1;
    ret;
}

.visible .entry mixed(.param .u32 p0, .param .u8 p1, .param .align 8 .b8 p2[24], .param .u64 p3)
{
    ret;
}

.visible .entry empty()
{
    ret;
}

.visible .entry bounded(.param .u64 p0)
.maxntid 128, 1, 1
{
    ret;
}

.visible .entry shared4k(.param .u64 p0)
{
    .shared .align 4 .b8 buffer[4096];
    .reg .u32 %r<3>;
    .reg .u64 %rd<3>;
    ld.param.u64 %rd1, [p0];
    mov.u32 %r1, 5;
    st.shared.u32 [buffer], %r1;
    ld.shared.u32 %r2, [buffer];
    cvta.to.global.u64 %rd2, %rd1;
    st.global.u32 [%rd2], %r2;
    ret;
}

.visible .entry fault()
{
    .reg .u32 %r<2>;
    .reg .u64 %rd<2>;
    mov.u64 %rd1, 16;
    mov.u32 %r1, 1;
    st.global.u32 [%rd1], %r1;
    ret;
}

.visible .entry spin(.param .u64 p0)
{
    .reg .u64 %rd<5>;
    .reg .pred %p<2>;
    ld.param.u64 %rd1, [p0];
    mov.u64 %rd2, %globaltimer;
LOOP:
    mov.u64 %rd3, %globaltimer;
    sub.u64 %rd4, %rd3, %rd2;
    setp.lt.u64 %p1, %rd4, %rd1;
    @%p1 bra LOOP;
    ret;
}
)";

CUcontext begin(const DriverTable& cu) {
    CUdevice device = 0;
    CUcontext context = nullptr;
    cu.cuInit(0);
    cu.cuDeviceGet(&device, 0);
    cu.cuDevicePrimaryCtxRetain(&context, device);
    cu.cuCtxSetCurrent(context);
    return context;
}

}  // namespace juice::conformance
