// What a client that follows no rule can do: end its own worker, and nothing else.
#include <random>

#include "native/worker/test/harness.h"

namespace juice::worker::test {
namespace {

class HostileTest : public testing::Test {
  protected:
    void SetUp() override {
        worker = std::make_unique<WorkerProcess>();
        worker->awaitReady();
        worker->claim();
        link = worker->connect();
        ASSERT_NE(link, nullptr);
        client = std::make_unique<Client>(*link);
        client->retainPrimary();
    }
    void expectViolation(const std::string& word) {
        std::string sentence;
        EXPECT_EQ(worker->awaitEnded(&sentence), 4);
        EXPECT_NE(sentence.find(word), std::string::npos) << sentence;
        EXPECT_EQ(worker->awaitExit(), 0);
    }

    std::unique_ptr<WorkerProcess> worker;
    std::unique_ptr<ClientLink> link;
    std::unique_ptr<Client> client;
};

TEST_F(HostileTest, AShortPayloadEndsTheWorker) {
    client->post(Op::cuMemAlloc_v2, Writer().put(uint32_t{1}));
    expectViolation("cuMemAlloc_v2");
}

TEST_F(HostileTest, ALongPayloadEndsTheWorker) {
    client->post(Op::cuMemFree_v2, Writer().put(uint64_t{1}).put(uint8_t{0}));
    expectViolation("cuMemFree_v2");
}

TEST_F(HostileTest, AnUnknownOpcodeEndsTheWorker) {
    link->post(9999, 1, 1, {});
    expectViolation("9999");
}

TEST_F(HostileTest, AMalformedPatchEndsTheWorker) {
    const uint8_t nonsense[5] = {1, 2, 3, 4, 5};
    link->patch(nonsense);
    expectViolation("a malformed patch");
}

TEST_F(HostileTest, APatchWritesNoMemoryButWhatIsCoherent) {
    const Reply reply = client->call(Op::cuMemHostAlloc, custom::HostAlloc{4096, 0, 0});
    const auto pinned = reply.reader().get<uint64_t>();
    link->onPatch([](uint64_t, Bytes) { return std::string(); });
    // Pinned memory that nobody has made coherent, the worker's code, and nothing at all.
    for (const uint64_t address : {pinned, uint64_t{0x70000000}, uint64_t{8}, UINT64_MAX - 8191}) {
        Writer patch;
        patch.put(address & ~uint64_t{7}).put(uint32_t{1}).put(uint32_t{0}).put(uint8_t{0xff});
        patch.put(uint64_t{0x4141414141414141});
        link->patch(patch.view());
    }
    client->post(Op::juiceWatch, custom::Watch{16 + 999});  // no such stream
    EXPECT_NE(link->call(static_cast<uint16_t>(Op::juiceMirrorCohere), 1, 1,
                         Writer().put(pinned + 8).view())
                  .head.result,
              CUDA_SUCCESS);
    const uint64_t device = client->alloc(8);
    client->post(Op::cuMemcpyHtoDAsync_v2, custom::CopyIn{0, device, 8, 2, 0, pinned});
    EXPECT_EQ(client->copyOut(device, 8), std::vector<uint8_t>(8, 0));
}

TEST_F(HostileTest, AnIdThatIsTakenEndsTheWorker) {
    client->makeStream(20);
    client->makeStream(20);
    expectViolation("cuStreamCreate");
}

TEST_F(HostileTest, BytesUnderAFalseHashEndTheWorker) {
    custom::PartName name{};
    name.size = 4;
    Writer part;
    custom::put(part, custom::ImagePart{name, 0});
    part.raw("abcd", 4);
    client->post(Op::juiceImagePart, part);
    expectViolation("hash");
}

TEST_F(HostileTest, HugeCountsInALoadEndTheWorker) {
    Writer load;
    custom::put(load, custom::ImageLoad{50, 1, 1, 0xffffffff, 0xffffffff, 0xffffffff, 0});
    client->post(Op::cuModuleLoadDataEx, load);
    expectViolation("cuModuleLoadDataEx");
}

TEST_F(HostileTest, StaleAndForeignIdsAreErrorsOnly) {
    Writer stale;
    stale.put(uint64_t{16 + 77});
    EXPECT_EQ(client->call(Op::cuStreamSynchronize, stale).head.result, CUDA_ERROR_INVALID_HANDLE);
    custom::Launch launch{};
    launch.function = 12345;
    EXPECT_EQ(client->call(Op::cuLaunchKernel, launch).head.result, CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(client->call(Op::cuModuleUnload, custom::Unload{3}).head.result,
              CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(client->call(Op::cuStreamSynchronize, Writer().put(uint64_t{5})).head.result,
              CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(HostileTest, TheWorkersOwnMemoryIsOutOfReach) {
    // Its code, whose address is known; and a mirror's end.
    const custom::CopyOut own{0, 0x7000'0000, 64, 0, 0, 0, 0};
    EXPECT_EQ(client->call(Op::cuMemcpyDtoHAsync_v2, own).head.result, CUDA_ERROR_INVALID_VALUE);
    const uint64_t memory = client->alloc(4096);
    const custom::CopyIn from{0, memory, 64, 2, 0, 0x7000'0000};
    EXPECT_EQ(client->call(Op::cuMemcpyHtoDAsync_v2, from).head.result, CUDA_ERROR_INVALID_VALUE);
    const Reply reply = client->call(Op::cuMemHostAlloc, custom::HostAlloc{4096, 0, 0});
    const auto host = reply.reader().get<uint64_t>();
    const custom::CopyIn past{0, memory, 4000, 2, 0, host + 200};
    EXPECT_EQ(client->call(Op::cuMemcpyHtoDAsync_v2, past).head.result, CUDA_ERROR_INVALID_VALUE);
    const custom::CopyIn wrapping{0, memory, ~0ull - 10, 2, 0, host + 200};
    EXPECT_EQ(client->call(Op::cuMemcpyHtoDAsync_v2, wrapping).head.result,
              CUDA_ERROR_INVALID_VALUE);
    const custom::CopyOut beyond{0, memory + 4000, 200, 0, 0, 0, 0};
    EXPECT_EQ(client->call(Op::cuMemcpyDtoHAsync_v2, beyond).head.result, CUDA_ERROR_INVALID_VALUE);
}

TEST_F(HostileTest, BoxesThatOverflowAreRefused) {
    const uint64_t memory = client->alloc(4096);
    const auto result = [&](uint64_t width, uint64_t height, uint64_t depth, uint64_t pitch) {
        const custom::BoxSide device{3, 0, memory, pitch, height};
        return client
            ->call(Op::cuMemcpy3DAsync_v2,
                   custom::CopyBox{0, width, height, depth, device, device, 0, 0, 0})
            .head.result;
    };
    EXPECT_EQ(result(64, 64, 1, 64), CUDA_SUCCESS);
    EXPECT_EQ(result(64, 65, 1, 64), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(result(64, 2, 1, ~0ull), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(result(64, 2, 1, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(result(1ull << 20, 1ull << 13, 1ull << 13, 1ull << 40), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(HostileTest, ATruncatedImageIsNotReadPastItsEnd) {
    // An ELF header that claims sections far beyond the bytes that came.
    std::string elf(64, '\0');
    elf.replace(0, 4,
                "\x7f"
                "ELF");
    elf[4] = 2;
    elf[0x28 + 3] = 1;  // section headers at 16 MiB
    elf[0x3a] = 64;
    elf[0x3c] = 100;
    const Bytes image{reinterpret_cast<const uint8_t*>(elf.data()), elf.size()};
    custom::PartName name{};
    const auto hash = sha256(image);
    std::copy(hash.begin(), hash.end(), name.sha256);
    name.size = image.size();
    Writer part, load;
    custom::put(part, custom::ImagePart{name, 0});
    part.raw(image.data(), image.size());
    client->post(Op::juiceImagePart, part);
    custom::put(load, custom::ImageLoad{50, 3, 0, 1, 0, 0, 0});
    custom::put(load, name);
    EXPECT_EQ(client->call(Op::cuModuleLoadDataEx, load).head.result, CUDA_ERROR_INVALID_IMAGE);
}

constexpr std::pair<Op, size_t> kSizes[] = {
    {Op::cuMemAlloc_v2, sizeof(custom::Alloc)},
    {Op::cuMemAllocPitch_v2, sizeof(custom::AllocPitch)},
    {Op::cuMemFree_v2, sizeof(custom::Free)},
    {Op::cuMemAllocAsync, sizeof(custom::AllocAsync)},
    {Op::cuMemFreeAsync, sizeof(custom::FreeAsync)},
    {Op::cuMemGetInfo_v2, 0},
    {Op::cuMemHostAlloc, sizeof(custom::HostAlloc)},
    {Op::cuMemHostRegister_v2, sizeof(custom::HostRegister)},
    {Op::cuMemHostUnregister, sizeof(custom::HostFree)},
    {Op::cuMemFreeHost, sizeof(custom::HostFree)},
    {Op::cuMemcpyDtoHAsync_v2, sizeof(custom::CopyOut)},
    {Op::cuMemcpyDtoDAsync_v2, sizeof(custom::CopyDevice)},
    {Op::cuMemcpyPeerAsync, sizeof(custom::CopyPeer)},
    {Op::cuModuleUnload, sizeof(custom::Unload)},
    {Op::cuLibraryUnload, sizeof(custom::Unload)},
    {Op::juiceFunctionInfo, sizeof(custom::FunctionInfo)},
    {Op::juiceKernelList, sizeof(custom::KernelList)},
    {Op::cuDevicePrimaryCtxSetFlags_v2, sizeof(custom::PrimaryFlags)},
    {Op::cuDevicePrimaryCtxRelease_v2, sizeof(custom::PrimaryEnd)},
    {Op::cuDevicePrimaryCtxReset_v2, sizeof(custom::PrimaryEnd)},
    {Op::cuCtxDestroy_v2, sizeof(custom::ContextDestroy)},
    {Op::cuCtxSynchronize, 0},
    {Op::cuStreamSynchronize, 8},
    {Op::cuStreamQuery, 8},
    {Op::cuEventQuery, 8},
    {Op::cuStreamDestroy_v2, 8},
};

TEST_F(HostileTest, NoPayloadCrashesIt) {
    // Numbers that mean something here and there, so that calls get past their first check.
    const uint64_t memory = client->alloc(1 << 16);
    const Reply reply = client->call(Op::cuMemHostAlloc, custom::HostAlloc{1 << 16, 0, 0});
    const auto host = reply.reader().get<uint64_t>();
    std::mt19937_64 random(20);
    uint64_t executed = 0;
    for (int round = 0; round < 25; ++round) {
        if (round != 0) SetUp();
        client->makeStream(20);
        const uint64_t known[] = {0,       1,          2,          3,         16,    20,
                                  36,      64,         4096,       memory,    host,  memory + 8,
                                  1 << 16, 1ull << 32, 1ull << 47, ~0ull - 7, ~0ull, 21};
        for (int i = 0; i < 60; ++i) {
            auto op = static_cast<uint16_t>(1 + random() % 92);
            size_t words = random() % 14;
            if (i < 50) {
                // The right size, so that the call is not refused for that alone.
                const auto& [of, bytes] = kSizes[random() % std::size(kSizes)];
                op = static_cast<uint16_t>(of);
                words = bytes / 8;
            }
            Writer payload;
            for (; words > 0; --words) payload.put(known[random() % std::size(known)]);
            if (i >= 55) payload.put(static_cast<uint32_t>(random()));
            if (random() % 2 == 0)
                link->post(op, 1 + random() % 2, random() % 3, payload.view());
            else
                link->ask(op, 1 + random() % 2, random() % 3, payload.view());
        }
        link->close();
        EXPECT_EQ(worker->awaitExit(), 0) << "round " << round;
        executed += worker->usage().calls.load();
    }
    // It is no test of first checks only.
    EXPECT_GT(executed, 25u * 30u);
}

}  // namespace
}  // namespace juice::worker::test
