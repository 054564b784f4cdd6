// States and errors: what is answered before anything is sent, and what answers bring.
#include "native/shim/test/fixture.h"

namespace juice::shim::test {
namespace {

TEST(NotInitialised, EveryCallSaysSo) {
    session::installForTest({}, nullptr);
    int count = 0;
    CUdeviceptr pointer = 0;
    CUcontext context = nullptr;
    EXPECT_EQ(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
    EXPECT_EQ(cuMemAlloc_v2(&pointer, 16), CUDA_ERROR_NOT_INITIALIZED);
    EXPECT_EQ(cuCtxGetCurrent(&context), CUDA_ERROR_NOT_INITIALIZED);
    EXPECT_EQ(cuMemsetD8_v2(0, 0, 0), CUDA_ERROR_NOT_INITIALIZED);
    EXPECT_EQ(cuInit(7), CUDA_ERROR_INVALID_VALUE);
}

using Calls = Attached;

TEST_F(Calls, CarryTheThreadAndTheContext) {
    const CUdeviceptr memory = alloc(4096);
    EXPECT_EQ(cuMemsetD8_v2(memory, 1, 4096), CUDA_SUCCESS);
    const Sent fill = link->of(Op::cuMemsetD8Async).at(0);
    EXPECT_EQ(fill.thread, thread().number);
    EXPECT_EQ(fill.context, find<Context>(context)->id);
    EXPECT_FALSE(fill.waited);
}

TEST_F(Calls, NeedACurrentContextThatIsAlive) {
    CUcontext popped = nullptr;
    CUdeviceptr pointer = 0;
    ASSERT_EQ(cuCtxPopCurrent_v2(&popped), CUDA_SUCCESS);
    EXPECT_EQ(cuMemAlloc_v2(&pointer, 16), CUDA_ERROR_INVALID_CONTEXT);
    ASSERT_EQ(cuCtxPushCurrent_v2(popped), CUDA_SUCCESS);
    ASSERT_EQ(cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
    EXPECT_EQ(cuMemAlloc_v2(&pointer, 16), CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

TEST_F(Calls, OfBadHandlesAreNotSent) {
    int local = 0;
    EXPECT_EQ(cuStreamSynchronize(reinterpret_cast<CUstream>(&local)), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(cuEventQuery(reinterpret_cast<CUevent>(&local)), CUDA_ERROR_INVALID_HANDLE);
    // The runtime passes the address of a host function for a kernel that it could not resolve.
    int value = 0;
    EXPECT_EQ(cuFuncGetAttribute(&value, 0, reinterpret_cast<CUfunction>(&local)),
              CUDA_ERROR_INVALID_HANDLE);
    CUstream stream = nullptr;
    ASSERT_EQ(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(link->of(Op::cuStreamSynchronize).size(), 0u);
}

TEST_F(Calls, TellOnceOfAnEarlierPostedCallThatFailed) {
    bool told = false;
    link->answer = [&](const Sent& call) {
        Reply reply = answer(call);
        if (call.op == Op::cuStreamSynchronize && !told) {
            reply.head.deferred = CUDA_ERROR_INVALID_VALUE;
            reply.head.deferredOpcode = static_cast<uint16_t>(Op::cuLaunchKernel);
            told = true;
        }
        return reply;
    };
    testing::internal::CaptureStderr();
    EXPECT_EQ(cuStreamSynchronize(nullptr), CUDA_ERROR_INVALID_VALUE);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("cuLaunchKernel failed: CUDA_ERROR_INVALID_VALUE"), std::string::npos)
        << said;
    EXPECT_EQ(cuStreamSynchronize(nullptr), CUDA_SUCCESS);
}

TEST_F(Calls, ThatMadeSomethingKeepTheEarlierErrorForTheNext) {
    bool told = false;
    link->answer = [&](const Sent& call) {
        Reply reply = answer(call);
        if (call.op == Op::cuMemAlloc_v2 && !told) reply.head.deferred = CUDA_ERROR_INVALID_VALUE;
        told = told || call.op == Op::cuMemAlloc_v2;
        return reply;
    };
    CUdeviceptr pointer = 0;
    EXPECT_EQ(cuMemAlloc_v2(&pointer, 64), CUDA_SUCCESS);
    EXPECT_NE(pointer, 0u);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
}

TEST_F(Calls, AllFailAfterAStickyErrorInEveryThread) {
    const CUdeviceptr memory = alloc(64);
    link->faultHandler(CUDA_ERROR_ILLEGAL_ADDRESS, static_cast<uint16_t>(Op::cuLaunchKernel));
    const size_t before = link->sent.size();
    CUdeviceptr pointer = 0;
    EXPECT_EQ(cuMemAlloc_v2(&pointer, 16), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(cuMemAlloc_v2(&pointer, 0), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(cuMemsetD8_v2(memory, 0, 16), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(cuMemFree_v2(memory), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(link->sent.size(), before);
    // What needs no GPU still answers.
    int count = 0;
    CUdevice device = -1;
    EXPECT_EQ(cuDeviceGetCount(&count), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxGetDevice(&device), CUDA_SUCCESS);
    CUcontext retained = nullptr;
    EXPECT_EQ(cuDevicePrimaryCtxRetain(&retained, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
}

TEST_F(Calls, FailWithOneSentenceWhenTheLinkIsGone) {
    link->brokenBecause = "lost the connection to gpu.example: reset";
    testing::internal::CaptureStderr();
    CUdeviceptr pointer = 0;
    EXPECT_EQ(cuMemAlloc_v2(&pointer, 16), CUDA_ERROR_DEVICE_UNAVAILABLE);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_DEVICE_UNAVAILABLE);
    EXPECT_EQ(cuStreamQuery(nullptr), CUDA_ERROR_DEVICE_UNAVAILABLE);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("reset"), std::string::npos) << said;
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

TEST_F(Calls, AskACachedAnswerOnceUntilSomethingChanges) {
    link->answer = [this](const Sent& call) {
        if (call.op != Op::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)
            return answer(call);
        Reply reply;
        Writer out;
        reply.payload = out.put(int32_t{7}).take();
        return reply;
    };
    const CUfunction function = store();
    const auto asked = [&] {
        return link->of(Op::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags).size();
    };
    int blocks = 0;
    for (int i = 0; i < 3; ++i)
        ASSERT_EQ(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 128, 0),
                  CUDA_SUCCESS);
    EXPECT_EQ(blocks, 7);
    EXPECT_EQ(asked(), 1u);
    cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 64, 0);
    EXPECT_EQ(asked(), 2u);
    ASSERT_EQ(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 65536),
              CUDA_SUCCESS);
    cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 128, 0);
    EXPECT_EQ(asked(), 3u);
}

TEST_F(Calls, ToTheSecondDeviceCarryItsContext) {
    CUcontext second = nullptr;
    ASSERT_EQ(cuCtxCreate_v2(&second, 0, 1), CUDA_SUCCESS);
    const auto create = link->of(Op::cuCtxCreate_v2).at(0).as<custom::ContextCreate>();
    EXPECT_EQ(create.device, 1);
    alloc(64);
    EXPECT_EQ(link->of(Op::cuMemAlloc_v2).at(0).context, create.id);
    EXPECT_EQ(cuCtxDestroy_v2(second), CUDA_SUCCESS);
    EXPECT_EQ(link->of(Op::cuCtxDestroy_v2).at(0).as<custom::ContextDestroy>().id, create.id);
}

}  // namespace
}  // namespace juice::shim::test
