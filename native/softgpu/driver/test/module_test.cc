#include <cstring>
#include <fstream>
#include <iterator>

#include "native/softgpu/driver/test/driver_fixture.h"

namespace juice::softgpu {
namespace {

std::string fixture(const char* name) {
    std::ifstream file(std::string(JUICE_IMAGE_TEST_DATA) + "/" + name, std::ios::binary);
    EXPECT_TRUE(file) << name;
    return {std::istreambuf_iterator<char>(file), {}};
}

using Modules = DriverTest;

TEST_F(Modules, ComeFromEveryKindOfImageThatHoldsPtx) {
    for (const char* name : {"kernels.ptx", "stored.fatbin", "lz4.fatbin", "zstd.fatbin"}) {
        const std::string image = fixture(name);
        CUmodule loaded = nullptr;
        ASSERT_OK(cuModuleLoadData(&loaded, image.c_str())) << name;
        CUfunction saxpy = nullptr;
        EXPECT_OK(cuModuleGetFunction(&saxpy, loaded, "saxpy"));
        unsigned count = 0;
        EXPECT_OK(cuModuleGetFunctionCount(&count, loaded));
        EXPECT_EQ(count, 2U);
        EXPECT_OK(cuModuleUnload(loaded));
        // A real driver crashes over handles that are no more.
        if (!isSoftwareGpu()) continue;
        EXPECT_EQ(cuModuleUnload(loaded), CUDA_ERROR_INVALID_HANDLE);
        int value = 0;
        EXPECT_EQ(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, saxpy),
                  CUDA_ERROR_INVALID_HANDLE);
    }
    CUmodule loaded = nullptr;
    EXPECT_OK(cuModuleLoad(&loaded, JUICE_IMAGE_TEST_DATA "/kernels.ptx"));
    EXPECT_EQ(cuModuleLoad(&loaded, "/nowhere/at/all.ptx"), CUDA_ERROR_FILE_NOT_FOUND);
}

TEST_F(Modules, AreRefusedWithAReason) {
    CUmodule loaded = nullptr;
    EXPECT_EQ(cuModuleLoadData(&loaded, "this is no image"), CUDA_ERROR_INVALID_IMAGE);
    EXPECT_EQ(cuModuleLoadData(&loaded, nullptr), CUDA_ERROR_INVALID_VALUE);
    const std::string cubin = fixture("sm90.cubin");
    if (isSoftwareGpu()) {
        testing::internal::CaptureStderr();
        EXPECT_EQ(cuModuleLoadData(&loaded, cubin.c_str()), CUDA_ERROR_NO_BINARY_FOR_GPU);
        EXPECT_NE(testing::internal::GetCapturedStderr().find("no PTX"), std::string::npos);
    }

    const char* broken =
        ".version 9.0\n.target sm_75\n.address_size 64\n.visible .entry f() {\n  bogus.op;\n}\n";
    char log[256] = {};
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {log, reinterpret_cast<void*>(sizeof(log))};
    testing::internal::CaptureStderr();
    EXPECT_EQ(cuModuleLoadDataEx(&loaded, broken, 2, options, values), CUDA_ERROR_INVALID_PTX);
    const std::string said = testing::internal::GetCapturedStderr();
    if (isSoftwareGpu()) {
        EXPECT_NE(said.find("line 5"), std::string::npos);
    }
    EXPECT_NE(std::string(log).find("line 5"), std::string::npos);
    EXPECT_EQ(reinterpret_cast<size_t>(values[1]), std::strlen(log));
}

TEST_F(Modules, HaveVariables) {
    CUdeviceptr counter = 0, table = 0;
    size_t size = 0;
    EXPECT_OK(cuModuleGetGlobal_v2(&counter, &size, module, "counter"));
    EXPECT_EQ(size, 4U);
    EXPECT_EQ(read(counter), 7U);
    uint32_t one = 1;
    EXPECT_OK(launch("add", {&counter, &one}));
    EXPECT_EQ(read(counter), 8U);
    EXPECT_OK(cuModuleGetGlobal_v2(&table, &size, module, "table"));
    EXPECT_EQ(size, 8U);
    EXPECT_EQ(read(table + 4), 2U);
    EXPECT_EQ(cuModuleGetGlobal_v2(&table, &size, module, "nothing"), CUDA_ERROR_NOT_FOUND);
    CUmodule second = nullptr;
    EXPECT_OK(cuModuleLoadData(&second, kKernels));
    CUdeviceptr fresh = 0;
    EXPECT_OK(cuModuleGetGlobal_v2(&fresh, &size, second, "counter"));
    EXPECT_EQ(read(fresh), 7U) << "each load has its own";
}

TEST_F(Modules, DescribeTheirFunctions) {
    const CUfunction store = function("store");
    size_t offset = 9, size = 9;
    EXPECT_OK(cuFuncGetParamInfo(store, 1, &offset, &size));
    EXPECT_EQ(offset, 8U);
    EXPECT_EQ(size, 4U);
    EXPECT_EQ(cuFuncGetParamInfo(store, 2, &offset, &size), CUDA_ERROR_INVALID_VALUE);
    const char* name = nullptr;
    EXPECT_OK(cuFuncGetName(&name, store));
    EXPECT_STREQ(name, "store");
    CUmodule owner = nullptr;
    EXPECT_OK(cuFuncGetModule(&owner, store));
    EXPECT_EQ(owner, module);
    int value = 0;
    EXPECT_OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, store));
    EXPECT_EQ(value, 1024);
    EXPECT_OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_PTX_VERSION, store));
    EXPECT_EQ(value, 75);
    EXPECT_OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_BINARY_VERSION, store));
    EXPECT_EQ(value, 90);
    EXPECT_EQ(cuFuncGetAttribute(&value, 99, store), CUDA_ERROR_INVALID_VALUE);
    CUfunction none = nullptr;
    EXPECT_EQ(cuModuleGetFunction(&none, module, "nothing"), CUDA_ERROR_NOT_FOUND);
}

using Libraries = DriverTest;

TEST_F(Libraries, AreLoadedWithoutAContextAndInstantiatedInEach) {
    EXPECT_OK(cuCtxSetCurrent(nullptr));
    CUlibrary library = nullptr;
    ASSERT_OK(cuLibraryLoadData(&library, kKernels, nullptr, nullptr, 0, nullptr, nullptr, 0));
    CUkernel store = nullptr;
    EXPECT_OK(cuLibraryGetKernel(&store, library, "store"));
    EXPECT_EQ(cuLibraryGetKernel(&store, library, "nothing"), CUDA_ERROR_NOT_FOUND);
    unsigned count = 0;
    EXPECT_OK(cuLibraryGetKernelCount(&count, library));
    EXPECT_EQ(count, 5U);
    std::vector<CUkernel> kernels(count);
    EXPECT_OK(cuLibraryEnumerateKernels(kernels.data(), count, library));
    const char* name = nullptr;
    EXPECT_OK(cuKernelGetName(&name, kernels[0]));
    EXPECT_NE(std::string(kKernels).find(name), std::string::npos);
    size_t offset = 0, size = 0;
    EXPECT_EQ(cuKernelGetParamInfo(store, 0, &offset, &size), CUDA_ERROR_INVALID_CONTEXT);
    CUfunction function = nullptr;
    EXPECT_EQ(cuKernelGetFunction(&function, store), CUDA_ERROR_INVALID_CONTEXT);

    EXPECT_OK(cuCtxSetCurrent(context));
    EXPECT_OK(cuKernelGetFunction(&function, store));
    EXPECT_OK(cuKernelGetParamInfo(store, 0, &offset, &size));
    EXPECT_EQ(size, 8U);
    CUdeviceptr word = allocate(4);
    uint32_t value = 17;
    std::vector<void*> parameters = {&word, &value};
    // A kernel may be launched as it is.
    EXPECT_OK(cuLaunchKernel(reinterpret_cast<CUfunction>(store), 1, 1, 1, 1, 1, 1, 0, nullptr,
                             parameters.data(), nullptr));
    EXPECT_EQ(read(word), 17U);

    CUdeviceptr counter = 0, other = 0;
    EXPECT_OK(cuLibraryGetGlobal(&counter, &size, library, "counter"));
    EXPECT_OK(cuMemsetD32_v2(counter, 99, 1));
    CUcontext second = nullptr;
    ASSERT_OK(cuCtxCreate_v2(&second, 0, device));
    EXPECT_OK(cuLibraryGetGlobal(&other, &size, library, "counter"));
    EXPECT_NE(other, counter);
    EXPECT_EQ(read(other), 7U) << "each context has its own";
    EXPECT_OK(cuCtxDestroy_v2(second));

    EXPECT_OK(cuLibraryUnload(library));
    if (!isSoftwareGpu()) return;
    EXPECT_EQ(cuLibraryUnload(library), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(cuKernelGetFunction(&function, store), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Libraries, ShareTheAttributesOfAKernelWithItsFunctions) {
    CUlibrary library = nullptr;
    ASSERT_OK(cuLibraryLoadData(&library, kKernels, nullptr, nullptr, 0, nullptr, nullptr, 0));
    CUkernel store = nullptr;
    EXPECT_OK(cuLibraryGetKernel(&store, library, "store"));
    CUfunction function = nullptr;
    EXPECT_OK(cuKernelGetFunction(&function, store));
    EXPECT_OK(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 90000, store,
                                   device));
    int value = 0;
    EXPECT_OK(
        cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function));
    EXPECT_EQ(value, 90000);
    EXPECT_EQ(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, store, 9),
              CUDA_ERROR_INVALID_DEVICE);
    CUmodule inContext = nullptr;
    EXPECT_OK(cuLibraryGetModule(&inContext, library));
    CUfunction again = nullptr;
    EXPECT_OK(cuModuleGetFunction(&again, inContext, "store"));
    EXPECT_EQ(again, function);
}

TEST_F(Libraries, StartWithFreshVariablesAfterAReset) {
    CUlibrary library = nullptr;
    ASSERT_OK(cuLibraryLoadData(&library, kKernels, nullptr, nullptr, 0, nullptr, nullptr, 0));
    CUdeviceptr counter = 0;
    size_t size = 0;
    EXPECT_OK(cuLibraryGetGlobal(&counter, &size, library, "counter"));
    EXPECT_OK(cuMemsetD32_v2(counter, 99, 1));
    EXPECT_OK(cuDevicePrimaryCtxReset(device));
    EXPECT_OK(cuDevicePrimaryCtxRetain(&context, device));
    EXPECT_OK(cuLibraryGetGlobal(&counter, &size, library, "counter"));
    EXPECT_EQ(read(counter), 7U);
    EXPECT_OK(cuLibraryUnload(library));
}

}  // namespace
}  // namespace juice::softgpu
