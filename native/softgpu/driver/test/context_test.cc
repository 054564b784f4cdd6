#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "native/softgpu/driver/test/driver_fixture.h"

namespace juice::softgpu {
namespace {

/// Without a context: the state in which a program finds the driver.
TEST(FreshDriver, AnswersOnlyWhatNeedsNoStart) {
    int version = 0;
    if (cuDeviceGetCount(&version) == CUDA_SUCCESS) GTEST_SKIP() << "another test started it";
    EXPECT_OK(cuDriverGetVersion(&version));
    EXPECT_EQ(version, 13000);
    int count = 0;
    EXPECT_EQ(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
    CUcontext context = nullptr;
    EXPECT_EQ(cuCtxGetCurrent(&context), CUDA_ERROR_NOT_INITIALIZED);
    EXPECT_EQ(cuInit(1), CUDA_ERROR_INVALID_VALUE);
}

TEST(FreshDriver, ShowsAnInactivePrimaryContextUntilItIsRetained) {
    ASSERT_OK(cuInit(0));
    unsigned flags = 9;
    int active = 9;
    EXPECT_OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    EXPECT_EQ(flags, 0U);
    EXPECT_EQ(active, 0);
    CUcontext context = nullptr;
    EXPECT_OK(cuCtxGetCurrent(&context));
    EXPECT_EQ(context, nullptr);
    CUdeviceptr pointer = 0;
    EXPECT_EQ(cuMemAlloc_v2(&pointer, 4), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_OK(cuDevicePrimaryCtxRelease(0)) << "allowed, although nobody retains it";
    EXPECT_EQ(cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_OK(cuDevicePrimaryCtxRetain(&context, 0));
    EXPECT_OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    EXPECT_EQ(active, 1);
    EXPECT_OK(cuDevicePrimaryCtxRelease(0));
    EXPECT_OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    EXPECT_EQ(active, 0);
}

using Device = DriverTest;

TEST_F(Device, CallsItselfJuiceSoftwareGpu) {
    SOFTWARE_GPU_ONLY();
    char name[64] = {};
    EXPECT_OK(cuDeviceGetName(name, sizeof(name), device));
    EXPECT_STREQ(name, "Juice Software GPU");
    int major = 0, minor = 0;
    EXPECT_OK(cuDeviceComputeCapability(&major, &minor, device));
    EXPECT_EQ(major, 9);
    EXPECT_EQ(minor, 0);
    EXPECT_EQ(cuDeviceGetName(name, sizeof(name), 99), CUDA_ERROR_INVALID_DEVICE);
}

TEST_F(Device, AnswersEveryAttributeOfCuda13AndNoOther) {
    int value = 0;
    for (int id = 1; id < CU_DEVICE_ATTRIBUTE_MAX; ++id) {
        EXPECT_OK(cuDeviceGetAttribute(&value, id, device)) << id;
    }
    EXPECT_EQ(cuDeviceGetAttribute(&value, 0, device), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX, device),
              CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Device, DoesNotClaimThatItReachesMemoryOfTheProgramsOwn) {
    SOFTWARE_GPU_ONLY();
    for (const int id : {88, 100}) {
        int value = 1;
        EXPECT_OK(cuDeviceGetAttribute(&value, id, device));
        EXPECT_EQ(value, 0) << id;
    }
}

TEST_F(Device, IsFoundByItsPciBusId) {
    char text[16] = {};
    EXPECT_OK(cuDeviceGetPCIBusId(text, sizeof(text), device));
    CUdevice found = -1;
    EXPECT_OK(cuDeviceGetByPCIBusId(&found, text));
    EXPECT_EQ(found, device);
    EXPECT_EQ(cuDeviceGetByPCIBusId(&found, "0000:ff:00.0"), CUDA_ERROR_INVALID_DEVICE);
    EXPECT_EQ(cuDeviceGetPCIBusId(text, 4, device), CUDA_ERROR_INVALID_VALUE);
}

using Contexts = DriverTest;

TEST_F(Contexts, OfOneDeviceHaveOnePrimaryHandle) {
    CUcontext again = nullptr;
    EXPECT_OK(cuDevicePrimaryCtxRetain(&again, device));
    EXPECT_EQ(again, context);
    EXPECT_OK(cuDevicePrimaryCtxRelease(device));
    EXPECT_OK(cuCtxSynchronize());
}

TEST_F(Contexts, FormAStackInEachThread) {
    CUcontext created = nullptr, current = nullptr;
    ASSERT_OK(cuCtxCreate_v2(&created, CU_CTX_SCHED_SPIN, device));
    EXPECT_OK(cuCtxGetCurrent(&current));
    EXPECT_EQ(current, created);
    unsigned flags = 0;
    EXPECT_OK(cuCtxGetFlags(&flags));
    EXPECT_EQ(flags, static_cast<unsigned>(CU_CTX_SCHED_SPIN));
    std::thread([&] {
        CUcontext elsewhere = created;
        EXPECT_OK(cuCtxGetCurrent(&elsewhere));
        EXPECT_EQ(elsewhere, nullptr);
    }).join();
    EXPECT_OK(cuCtxPushCurrent_v2(context));
    CUcontext popped = nullptr;
    EXPECT_OK(cuCtxPopCurrent_v2(&popped));
    EXPECT_EQ(popped, context);
    EXPECT_OK(cuCtxDestroy_v2(created));
    EXPECT_OK(cuCtxGetCurrent(&current));
    EXPECT_EQ(current, context) << "destroying the current one pops it";
}

TEST_F(Contexts, ThatAreDestroyedSaySoWhereTheyAreStillCurrent) {
    CUcontext created = nullptr;
    ASSERT_OK(cuCtxCreate_v2(&created, 0, device));
    std::thread([&] {
        EXPECT_OK(cuCtxSetCurrent(context));
        EXPECT_OK(cuCtxDestroy_v2(created));
    }).join();
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    EXPECT_EQ(cuCtxDestroy_v2(created), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    EXPECT_OK(cuCtxSetCurrent(created)) << "it can even be made current";
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    EXPECT_OK(cuCtxPopCurrent_v2(nullptr));
}

TEST_F(Contexts, FreeEverythingWhenThePrimaryOneIsReset) {
    SOFTWARE_GPU_ONLY();
    size_t before = 0, during = 0, after = 0, total = 0;
    EXPECT_OK(cuMemGetInfo_v2(&before, &total));
    allocate(10 << 20);
    EXPECT_OK(cuMemGetInfo_v2(&during, &total));
    EXPECT_EQ(before - during, size_t{10} << 20);
    const CUstream oldStream = stream();
    EXPECT_OK(cuDevicePrimaryCtxReset(device));
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    EXPECT_OK(cuDevicePrimaryCtxRetain(&context, device));
    EXPECT_OK(cuMemGetInfo_v2(&after, &total));
    EXPECT_EQ(after, total);
    EXPECT_EQ(cuStreamSynchronize(oldStream), CUDA_ERROR_INVALID_HANDLE);
    CUfunction found = nullptr;
    EXPECT_EQ(cuModuleGetFunction(&found, module, "store"), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Contexts, StopEndlessKernelsWhenTheyGo) {
    SOFTWARE_GPU_ONLY();
    volatile uint32_t* never = pinnedWord();
    // Also those that wait behind one, and waits of streams.
    const CUstream on = stream();
    spin(never, on);
    spin(never, on);
    spin(never, nullptr);
    EXPECT_OK(cuStreamWaitValue32_v2(on, allocate(4), 1, CU_STREAM_WAIT_VALUE_EQ));
    EXPECT_OK(cuDevicePrimaryCtxReset_v2(device)) << "it returns at all";

    // The device is as good as new.
    ASSERT_OK(cuDevicePrimaryCtxRetain(&context, device));
    ASSERT_OK(cuModuleLoadData(&module, kKernels));
    CUdeviceptr word = allocate(4);
    uint32_t value = 5;
    EXPECT_OK(launch("store", {&word, &value}));
    EXPECT_EQ(read(word), 5U);
}

/// An exit handler from before cuInit that waits for all work, as the CUDA runtime has one.
bool waitAtExit = false;
const int kRegistered = std::atexit([] {
    if (waitAtExit) cuCtxSynchronize();
});

TEST_F(Contexts, DoNotKeepAProcessThatEnds) {
    SOFTWARE_GPU_ONLY();
    ASSERT_EQ(kRegistered, 0);
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    EXPECT_EXIT(
        {
            waitAtExit = true;
            spin(pinnedWord(), stream());
            spin(pinnedWord(), nullptr);
            std::exit(3);
        },
        testing::ExitedWithCode(3), "");
}

TEST_F(Contexts, HaveTheLimitsOfARealDevice) {
    size_t value = 0;
    EXPECT_OK(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
    EXPECT_EQ(value, 1024U);
    EXPECT_OK(cuCtxGetLimit(&value, CU_LIMIT_MALLOC_HEAP_SIZE));
    EXPECT_EQ(value, 8388608U);
    EXPECT_EQ(cuCtxGetLimit(&value, CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH), CUDA_ERROR_UNSUPPORTED_LIMIT);
    EXPECT_OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
    EXPECT_OK(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
    EXPECT_EQ(value, 4096U);
    int least = 9, greatest = 9;
    EXPECT_OK(cuCtxGetStreamPriorityRange(&least, &greatest));
    EXPECT_EQ(least, 0);
    EXPECT_EQ(greatest, -5);
}

TEST_F(Contexts, AreOfNoUseInAForkedChild) {
    const pid_t child = fork();
    if (child == 0) {
        int count = 0;
        const bool right = cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED &&
                           cuInit(0) == CUDA_ERROR_NOT_INITIALIZED;
        _exit(right ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    EXPECT_OK(cuCtxSynchronize()) << "the parent goes on";
}

TEST_F(Contexts, NameAnEntryPointThatIsNotSupportedOnce) {
    SOFTWARE_GPU_ONLY();
    testing::internal::CaptureStderr();
    EXPECT_EQ(cuGraphicsUnregisterResource(nullptr), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT_EQ(cuGraphicsUnregisterResource(nullptr), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT_EQ(testing::internal::GetCapturedStderr(),
              "juice softgpu: cuGraphicsUnregisterResource is not supported\n");
}

TEST_F(Contexts, ResolveEntryPointsByNameAndVersionToTheirOwn) {
    void* function = nullptr;
    CUdriverProcAddressQueryResult status{};
    EXPECT_OK(cuGetProcAddress_v2("cuMemAlloc", &function, 12000, 0, &status));
    EXPECT_EQ(function, reinterpret_cast<void*>(&cuMemAlloc_v2));
    EXPECT_OK(cuGetProcAddress_v2("cuMemcpyAsync", &function, 7000, 2, nullptr));
    EXPECT_EQ(function, reinterpret_cast<void*>(&cuMemcpyAsync_ptsz));
    EXPECT_OK(cuGetProcAddress_v2("cuNoSuchThing", &function, 12000, 0, &status));
    EXPECT_EQ(function, nullptr);
    EXPECT_EQ(status, 1);
    EXPECT_EQ(cuGetProcAddress("cuNoSuchThing", &function, 12000, 0), CUDA_ERROR_NOT_FOUND);
    EXPECT_EQ(cuGetProcAddress_v2("cuInit", &function, 99000, 0, &status),
              CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace juice::softgpu
