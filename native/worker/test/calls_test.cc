// Calls of every other kind: allocations, fills, launches with attributes, peers, options of a
// load.
#include <climits>

#include "native/worker/test/harness.h"

namespace juice::worker::test {
namespace {

constexpr uint64_t kModule = 10, kIncrement = 11;

class CallsTest : public testing::Test {
  protected:
    void SetUp() override { start(); }
    void start() {
        worker = std::make_unique<WorkerProcess>();
        worker->awaitReady();
        worker->claim();
        link = worker->connect();
        ASSERT_NE(link, nullptr);
        client = std::make_unique<Client>(*link);
        client->retainPrimary();
    }
    Writer launchOf(uint64_t address, uint32_t attributes) {
        custom::Launch launch{kIncrement, {1, 1, 1}, {16, 1, 1}, 0, 12, 0, attributes, 0};
        Writer out;
        custom::put(out, launch);
        return std::move(out.put(address).put(uint32_t{16}));
    }
    void putAttribute(Writer& out, uint32_t id, int value) {
        custom::LaunchAttribute attribute{id, 0, {}};
        std::memcpy(attribute.value, &value, sizeof value);
        custom::put(out, attribute);
    }
    void loadIncrement() {
        ASSERT_GE(client->loadModule(kModule, kPtx), 0);
        client->getFunction(kModule, kIncrement, "increment");
    }
    int firstWord(uint64_t address) {
        int value = 0;
        std::memcpy(&value, client->copyOut(address, 4).data(), 4);
        return value;
    }

    std::unique_ptr<WorkerProcess> worker;
    std::unique_ptr<ClientLink> link;
    std::unique_ptr<Client> client;
};

TEST_F(CallsTest, FillsAndCopiesInsideTheDevice) {
    const uint64_t a = client->alloc(4096), b = client->alloc(4096);
    client->post(Op::cuMemsetD8Async,
                 Writer().put(a).put(uint8_t{0x5a}).put(uint64_t{4096}).put(uint64_t{0}));
    client->post(Op::cuMemcpyDtoDAsync_v2, custom::CopyDevice{0, b, a, 4096});
    EXPECT_EQ(client->copyOut(b, 4096), std::vector<uint8_t>(4096, 0x5a));
}

TEST_F(CallsTest, PitchedMemoryIsCountedWithItsPitch) {
    const Reply reply = client->call(Op::cuMemAllocPitch_v2, custom::AllocPitch{100, 10, 4, 0});
    ASSERT_EQ(reply.head.result, CUDA_SUCCESS);
    Reader in = reply.reader();
    const auto address = in.get<uint64_t>();
    const auto pitch = in.get<uint64_t>();
    EXPECT_GE(pitch, 100u);
    EXPECT_EQ(worker->usage().memoryNow.load(), pitch * 10);
    client->free(address);
    client->synchronise();
    EXPECT_EQ(worker->usage().memoryNow.load(), 0u);
    EXPECT_EQ(client->call(Op::cuMemAllocPitch_v2, custom::AllocPitch{1ull << 40, 1ull << 40, 4, 0})
                  .head.result,
              CUDA_ERROR_INVALID_VALUE);
}

TEST_F(CallsTest, StreamOrderedMemoryIsMemoryToo) {
    const uint64_t stream = client->makeStream(20, 1);
    const Reply reply = client->call(Op::cuMemAllocAsync, custom::AllocAsync{8192, stream});
    ASSERT_EQ(reply.head.result, CUDA_SUCCESS);
    const auto address = reply.reader().get<uint64_t>();
    client->copyIn(address, pattern(8192), stream);
    EXPECT_EQ(client->copyOut(address, 8192, stream), pattern(8192));
    client->post(Op::cuMemFreeAsync, custom::FreeAsync{address, stream});
    EXPECT_EQ(client->synchronise(stream), CUDA_SUCCESS);
    EXPECT_EQ(worker->usage().memoryNow.load(), 0u);
}

TEST_F(CallsTest, ALaunchCarriesItsAttributes) {
    loadIncrement();
    const uint64_t memory = client->alloc(64);
    client->copyIn(memory, std::vector<uint8_t>(64, 0));
    Writer plain = launchOf(memory, 1);
    putAttribute(plain, CU_LAUNCH_ATTRIBUTE_PRIORITY, 0);
    EXPECT_EQ(client->call(Op::cuLaunchKernelEx, plain).head.result, CUDA_SUCCESS);
    EXPECT_EQ(client->call(Op::cuLaunchCooperativeKernel, launchOf(memory, 0)).head.result,
              CUDA_SUCCESS);
    EXPECT_EQ(firstWord(memory), 2);
    Writer updatable = launchOf(memory, 1);
    putAttribute(updatable, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, 1);
    EXPECT_EQ(client->call(Op::cuLaunchKernelEx, updatable).head.result, CUDA_ERROR_NOT_SUPPORTED);
    Writer stale = launchOf(memory, 1);
    putAttribute(stale, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, 77);
    EXPECT_EQ(client->call(Op::cuLaunchKernelEx, stale).head.result, CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(firstWord(memory), 2);
}

TEST_F(CallsTest, ALaunchThatTheDriverRefusesIsADeferredError) {
    loadIncrement();
    Writer params;
    params.put(uint64_t{0}).put(0u);
    client->launch(kIncrement, 1, 5000, params);
    const Reply reply = client->call(Op::cuMemGetInfo_v2, Writer());
    EXPECT_EQ(reply.head.deferred, CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(reply.head.deferredOpcode, static_cast<uint16_t>(Op::cuLaunchKernel));
}

TEST_F(CallsTest, TheTimeBetweenEventsIsTold) {
    Writer first, second;
    client->post(Op::cuEventCreate, first.put(uint64_t{21}).put(0u));
    client->post(Op::cuEventCreate, second.put(uint64_t{22}).put(0u));
    client->post(Op::cuEventRecord, Writer().put(uint64_t{21}).put(uint64_t{0}));
    client->post(Op::cuEventRecord, Writer().put(uint64_t{22}).put(uint64_t{0}));
    client->synchronise();
    const Reply reply =
        client->call(Op::cuEventElapsedTime, Writer().put(uint64_t{21}).put(uint64_t{22}));
    EXPECT_EQ(reply.head.result, CUDA_SUCCESS);
    EXPECT_GE(reply.reader().get<float>(), 0.0f);
}

TEST_F(CallsTest, ALibraryHasKernelsAModuleAndFunctions) {
    constexpr uint64_t kLibrary = 40, kKernel = 41, kOf = 42, kFunction = 43;
    const std::string ptx = kPtx;
    const Bytes image{reinterpret_cast<const uint8_t*>(ptx.c_str()), ptx.size() + 1};
    custom::PartName name{};
    const auto hash = sha256(image);
    std::copy(hash.begin(), hash.end(), name.sha256);
    name.size = image.size();
    Writer part, load;
    custom::put(part, custom::ImagePart{name, 0});
    part.raw(image.data(), image.size());
    client->post(Op::juiceImagePart, part);
    custom::put(load, custom::ImageLoad{kLibrary, 4, 0, 1, 1, 0, 0});
    custom::put(load, name);
    custom::put(load, custom::LoadOption{CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, 0, 1000});
    const Reply reply = client->call(Op::cuLibraryLoadData, load);
    ASSERT_EQ(reply.head.result, CUDA_SUCCESS);

    Writer kernel;
    custom::put(kernel, custom::Child{kLibrary, kKernel});
    client->post(Op::cuLibraryGetKernel, std::move(kernel.text("increment")));
    client->post(Op::cuLibraryGetModule, custom::Child{kLibrary, kOf});
    client->post(Op::cuKernelGetFunction, custom::Child{kKernel, kFunction});
    const uint64_t memory = client->alloc(64);
    client->copyIn(memory, std::vector<uint8_t>(64, 0));
    Writer params;
    params.put(memory).put(16u);
    client->launch(kKernel, 1, 16, params);  // as a program that casts a CUkernel does
    client->launch(kFunction, 1, 16, params);
    EXPECT_EQ(firstWord(memory), 2);
    EXPECT_EQ(client->call(Op::juiceFunctionInfo, custom::FunctionInfo{kKernel}).head.result,
              CUDA_SUCCESS);
    EXPECT_EQ(client->call(Op::juiceKernelList, custom::KernelList{kOf, 0, 0}).head.result,
              CUDA_SUCCESS);
    EXPECT_EQ(client->call(Op::cuLibraryUnload, custom::Unload{kLibrary}).head.result,
              CUDA_SUCCESS);
    for (const uint64_t gone : {kKernel, kFunction}) {
        client->launch(gone, 1, 16, params);
        EXPECT_EQ(client->call(Op::cuMemGetInfo_v2, Writer()).head.deferred,
                  CUDA_ERROR_INVALID_HANDLE);
    }
}

TEST_F(CallsTest, MemoryOfTwoDevicesIsCopiedAcross) {
    if (worker->snapshot().devices.size() < 2) {
        setenv("JUICE_SOFTGPU_DEVICES", "2", 1);
        start();
        unsetenv("JUICE_SOFTGPU_DEVICES");
    }
    if (worker->snapshot().devices.size() < 2) GTEST_SKIP() << "one GPU only";
    constexpr uint64_t kOther = 2;
    EXPECT_EQ(
        client->call(Op::cuDevicePrimaryCtxRetain, custom::PrimaryRetain{kOther, 1, 0}).head.result,
        CUDA_SUCCESS);
    const uint64_t here = client->alloc(100'000);
    client->copyIn(here, pattern(100'000));
    client->synchronise();
    client->inContext(kOther);
    const uint64_t there = client->alloc(100'000);
    client->post(Op::cuMemcpyPeerAsync,
                 custom::CopyPeer{0, there, kOther, here, Client::kContext, 100'000});
    EXPECT_EQ(client->copyOut(there, 100'000), pattern(100'000));
}

}  // namespace
}  // namespace juice::worker::test
