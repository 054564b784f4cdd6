#include <cstring>

#include "native/softgpu/driver/test/driver_fixture.h"

namespace juice::softgpu {
namespace {

using Launches = DriverTest;

TEST_F(Launches, AreCheckedForGeometryAtTheCall) {
    const CUdeviceptr word = allocate(4);
    uint32_t value = 1;
    std::vector<void*> parameters = {const_cast<CUdeviceptr*>(&word), &value};
    const auto shaped = [&](unsigned gx, unsigned gy, unsigned bx, unsigned by, unsigned bz,
                            unsigned shared) {
        return cuLaunchKernel(function("store"), gx, gy, 1, bx, by, bz, shared, nullptr,
                              parameters.data(), nullptr);
    };
    EXPECT_OK(shaped(2, 2, 32, 2, 1, 0));
    EXPECT_EQ(shaped(0, 1, 1, 1, 1, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(shaped(1, 65536, 1, 1, 1, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(shaped(1, 1, 1025, 1, 1, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(shaped(1, 1, 1, 1, 65, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(shaped(1, 1, 64, 32, 1, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(shaped(1, 1, 1, 1, 1, 49153), CUDA_ERROR_INVALID_VALUE);
    EXPECT_OK(cuCtxSynchronize());
}

TEST_F(Launches, MayUseMoreSharedMemoryOnceAskedFor) {
    const CUfunction store = function("store");
    int value = 0;
    EXPECT_OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, store));
    EXPECT_EQ(value, 49152);
    EXPECT_OK(cuFuncSetAttribute(store, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000));
    CUdeviceptr word = allocate(4);
    uint32_t three = 3;
    std::vector<void*> parameters = {&word, &three};
    EXPECT_OK(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 100000, nullptr, parameters.data(), nullptr));
    EXPECT_EQ(cuFuncSetAttribute(store, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232449),
              CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuFuncSetAttribute(store, CU_FUNC_ATTRIBUTE_NUM_REGS, 1), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Launches, TakeParametersAsOneBufferToo) {
    const CUdeviceptr word = allocate(4);
    struct {
        CUdeviceptr address;
        uint32_t value;
    } packed{word, 21};
    size_t size = 12;
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    EXPECT_OK(cuLaunchKernel(function("store"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra));
    EXPECT_EQ(read(word), 21U);
    EXPECT_EQ(cuLaunchKernel(function("store"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
              CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Launches, TakeTheirParametersAtTheCall) {
    volatile uint32_t* gate = pinnedWord();
    const CUdeviceptr word = allocate(4);
    CUdeviceptr target = word;
    uint32_t value = 1;
    const CUstream on = stream();
    spin(gate, on);
    EXPECT_OK(launch("store", {&target, &value}, on));
    value = 2;
    target = 0;
    *gate = 1;
    EXPECT_OK(cuStreamSynchronize(on));
    EXPECT_EQ(read(word), 1U);
}

TEST_F(Launches, HonourOrRefuseAttributes) {
    CUdeviceptr word = allocate(4);
    uint32_t value = 8;
    std::vector<void*> parameters = {&word, &value};
    CUlaunchAttribute attribute{};
    CUlaunchConfig config{1, 1, 1, 1, 1, 1, 0, nullptr, &attribute, 1};
    const auto launched = [&] {
        return cuLaunchKernelEx(&config, function("store"), parameters.data(), nullptr);
    };
    attribute.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
    EXPECT_OK(launched());
    attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attribute.value.cooperative = 1;
    EXPECT_OK(launched());
    config.gridDimX = 1 << 20;
    EXPECT_EQ(launched(), CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    config.gridDimX = 2;
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim = {2, 1, 1};
    if (isSoftwareGpu()) {
        EXPECT_EQ(launched(), CUDA_ERROR_NOT_SUPPORTED);
    }
    attribute.value.clusterDim = {1, 1, 1};
    EXPECT_OK(launched());
}

TEST_F(Launches, GiveAGridBarrierItsMemoryWhenTheyAreCooperative) {
    CUdeviceptr words = allocate(8);
    std::vector<void*> parameters = {&words};
    uint64_t workspace = 1;
    EXPECT_OK(launch("workspace", parameters));
    EXPECT_OK(cuMemcpyDtoH_v2(&workspace, words, 8));
    EXPECT_EQ(workspace, 0U);
    EXPECT_OK(cuLaunchCooperativeKernel(function("workspace"), 1, 1, 1, 1, 1, 1, 0, nullptr,
                                        parameters.data()));
    EXPECT_OK(cuMemcpyDtoH_v2(&workspace, words, 8));
    EXPECT_NE(workspace, 0U);
}

TEST_F(Launches, RefuseWhatIsNoFunction) {
    EXPECT_EQ(cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
              CUDA_ERROR_INVALID_HANDLE);
    // As the static runtime does, which passes the address of a host stub.
    auto* const stub = reinterpret_cast<CUfunction>(reinterpret_cast<void*>(&cuInit));
    int value = 0;
    EXPECT_EQ(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, stub),
              CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Launches, TellHowManyBlocksFit) {
    int blocks = 0;
    EXPECT_OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function("store"), 1024, 0));
    EXPECT_EQ(blocks, 2);
    EXPECT_OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function("store"), 32, 0));
    EXPECT_EQ(blocks, 32);
    EXPECT_OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function("store"), 32, 100000));
    EXPECT_EQ(blocks, 0) << "so much must be asked for";
    int grid = 0, size = 0;
    EXPECT_OK(cuOccupancyMaxPotentialBlockSize(&grid, &size, function("store"), nullptr, 0, 0));
    EXPECT_EQ(size, 1024);
    size_t shared = 0;
    EXPECT_OK(cuOccupancyAvailableDynamicSMemPerBlock(&shared, function("store"), 2, 256));
    EXPECT_EQ(shared, 49152U);
    EXPECT_OK(cuFuncSetAttribute(function("store"), CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                 200000));
    EXPECT_OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function("store"), 32, 100000));
    EXPECT_EQ(blocks, 2);
    EXPECT_OK(cuOccupancyAvailableDynamicSMemPerBlock(&shared, function("store"), 2, 256));
    EXPECT_EQ(shared, 233472U / 2 - 1024);
}

using Faults = DriverTest;

TEST_F(Faults, KillEveryContextOfTheirDevice) {
    CUcontext other = nullptr;
    ASSERT_OK(cuCtxCreate_v2(&other, 0, device));
    ASSERT_OK(cuCtxPopCurrent_v2(nullptr));
    const CUdeviceptr word = allocate(4);
    const CUevent mark = event();
    const CUstream on = stream();
    CUdeviceptr nowhere = 0x10;
    uint32_t value = 1;

    EXPECT_OK(launch("store", {&nowhere, &value}, on)) << "the launch itself is right";
    EXPECT_EQ(cuStreamSynchronize(on), CUDA_ERROR_ILLEGAL_ADDRESS);
    // From now on everything.
    uint32_t read = 0;
    CUdeviceptr more = 0;
    size_t free = 0, total = 0;
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(cuMemcpyDtoH_v2(&read, word, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(cuMemAlloc_v2(&more, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(cuMemFree_v2(word), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(cuMemGetInfo_v2(&free, &total), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(cuStreamQuery(on), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(cuEventQuery(mark), CUDA_ERROR_ILLEGAL_ADDRESS);
    // What asks nothing of the context goes on.
    int count = 0;
    EXPECT_OK(cuDeviceGetCount(&count));
    CUcontext current = nullptr;
    EXPECT_OK(cuCtxGetCurrent(&current));
    EXPECT_EQ(current, context);

    EXPECT_OK(cuCtxPushCurrent_v2(other));
    EXPECT_EQ(cuMemAlloc_v2(&more, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(cuCtxCreate_v2(&other, 0, device), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(Faults, StopTheOtherKernelsOfTheContext) {
    volatile uint32_t* never = pinnedWord();
    CUdeviceptr nowhere = 0x10;
    uint32_t value = 1;
    spin(never, stream());
    EXPECT_OK(launch("store", {&nowhere, &value}, stream()));
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS) << "it returns at all";
}

TEST_F(Faults, AreReportedWithTheMemoryThatWasFreed) {
    const CUdeviceptr kept = allocate(4096);
    CUdeviceptr gone = allocate(1000);
    EXPECT_OK(cuMemFree_v2(gone));
    CUdeviceptr inside = gone + 40;
    uint32_t value = 1;
    testing::internal::CaptureStderr();
    EXPECT_OK(launch("store", {&inside, &value}));
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    const std::string report = testing::internal::GetCapturedStderr();
    EXPECT_NE(kept, gone);
    SOFTWARE_GPU_ONLY();
    for (const char* part : {"juice softgpu: error 700", "write of 4 bytes of global memory",
                             "40 bytes into the 1000-byte allocation", "which was freed",
                             "kernel store", "st.global.u32 [%rd2], %r1"}) {
        EXPECT_NE(report.find(part), std::string::npos) << report << "lacks " << part;
    }
}

TEST_F(Faults, IncludeKernelsThatRunPastTheWatchdog) {
    SOFTWARE_GPU_ONLY();
    setenv("JUICE_SOFTGPU_WATCHDOG", "0.05", 1);
    testing::internal::CaptureStderr();
    spin(pinnedWord(), nullptr);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_TIMEOUT);
    const std::string report = testing::internal::GetCapturedStderr();
    EXPECT_NE(report.find("1 thread loop"), std::string::npos) << report;
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_TIMEOUT) << "it stays";
}

TEST_F(Faults, AreToldToCallbacksAndSkipHostFunctions) {
    static CUresult told;
    static bool called;
    told = CUDA_SUCCESS;
    called = false;
    volatile uint32_t* gate = pinnedWord();
    const CUstream on = stream();
    CUdeviceptr nowhere = 0x10;
    uint32_t value = 1;
    spin(gate, on);
    EXPECT_OK(launch("store", {&nowhere, &value}, on));
    EXPECT_OK(cuLaunchHostFunc(
        on, [](void*) { called = true; }, nullptr));
    EXPECT_OK(cuStreamAddCallback(
        on, [](CUstream, CUresult status, void*) { told = status; }, nullptr, 0));
    *gate = 1;
    EXPECT_TRUE(eventually([] { return told != CUDA_SUCCESS; }));
    EXPECT_EQ(told, CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_FALSE(called);
}

TEST_F(Faults, LastAsLongAsTheProcess) {
    CUdeviceptr nowhere = 0x10;
    uint32_t value = 1;
    EXPECT_OK(launch("store", {&nowhere, &value}));
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_OK(cuDevicePrimaryCtxReset(device));
    EXPECT_EQ(cuDevicePrimaryCtxRetain(&context, device), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

}  // namespace
}  // namespace juice::softgpu
