// Pinned memory with its mirrors, boxes, and copies between streams and contexts.
#include <sys/mman.h>

#include <map>
#include <mutex>

#include "native/link/delta.h"
#include "native/worker/test/harness.h"

namespace juice::worker::test {
namespace {

constexpr uint64_t kModule = 10, kIncrement = 11, kSlow = 12;

class CopiesTest : public testing::Test {
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

    /// cuMemHostAlloc; the client's half of the mirror is not mapped: tests read it from `landed`.
    uint64_t hostAlloc(uint64_t size) {
        const Reply reply = client->call(Op::cuMemHostAlloc, custom::HostAlloc{size, 0, 0});
        EXPECT_EQ(reply.head.result, CUDA_SUCCESS);
        Reader in = reply.reader();
        const auto host = in.get<uint64_t>();
        EXPECT_EQ(in.get<uint64_t>(), host);
        in.get<uint64_t>();
        EXPECT_TRUE(in.done());
        return host;
    }
    void push(uint64_t address, const std::vector<uint8_t>& bytes) {
        Writer out;
        custom::MirrorPush push{address, bytes.size(), 0};
        if (bytes.size() > wire::kInlineLimit) push.transfer = link->mintTransfer();
        custom::put(out, push);
        if (push.transfer == 0) out.raw(bytes.data(), bytes.size());
        client->post(Op::juiceMirrorPush, out);
        if (push.transfer != 0) link->send(push.transfer, bytes.data(), bytes.size());
    }
    void mirrorIn(uint64_t destination, uint64_t host, uint64_t size, uint64_t stream) {
        client->post(Op::cuMemcpyHtoDAsync_v2,
                     custom::CopyIn{stream, destination, size, 2, 0, host});
    }
    uint64_t mirrorOut(uint64_t source, uint64_t host, std::vector<uint8_t>& landed,
                       uint64_t stream) {
        const uint64_t transfer = link->expect(landed.data(), landed.size());
        client->post(Op::cuMemcpyDtoHAsync_v2,
                     custom::CopyOut{stream, source, landed.size(), 2, 0, host, transfer});
        return transfer;
    }

    std::unique_ptr<WorkerProcess> worker;
    std::unique_ptr<ClientLink> link;
    std::unique_ptr<Client> client;
};

TEST_F(CopiesTest, AMirroredCopyHasLandedWhenItsStreamIsSynchronised) {
    const auto bytes = pattern(5'000'000);
    const uint64_t memory = client->alloc(bytes.size());
    const uint64_t host = hostAlloc(bytes.size());
    const uint64_t stream = client->makeStream(20, 1);
    client->copyIn(memory, bytes, stream);
    std::vector<uint8_t> landed(bytes.size());
    const uint64_t transfer = mirrorOut(memory, host, landed, stream);
    EXPECT_EQ(client->synchronise(stream), CUDA_SUCCESS);
    EXPECT_TRUE(link->landed(transfer));
    EXPECT_EQ(landed, bytes);
}

TEST_F(CopiesTest, ACopyFromAMirrorSeesWhatTheGpuWroteThereEarlierInTheStream) {
    ASSERT_GE(client->loadModule(kModule, kPtx), 0);
    client->getFunction(kModule, kSlow, "slow_increment");
    const uint64_t from = client->alloc(64), to = client->alloc(64);
    const uint64_t host = hostAlloc(64);
    push(host, std::vector<uint8_t>(64, 0xee));
    client->copyIn(from, std::vector<uint8_t>(64, 0));
    client->synchronise();
    const uint64_t stream = client->makeStream(20, 1);
    Writer params;
    params.put(from).put(uint32_t{16});
    client->launch(kSlow, 1, 16, params, stream);
    std::vector<uint8_t> landed(64);
    mirrorOut(from, host, landed, stream);
    mirrorIn(to, host, 64, stream);  // posted long before the kernel has ended
    const auto result = client->copyOut(to, 64, stream);
    EXPECT_EQ(result, landed);
    EXPECT_EQ(result[0], 1);
}

TEST_F(CopiesTest, APushedRangeIsWhatTheGpuReads) {
    const auto bytes = pattern(3'000'000);
    const uint64_t memory = client->alloc(bytes.size());
    const uint64_t host = hostAlloc(bytes.size());
    push(host, bytes);
    mirrorIn(memory, host, bytes.size(), 0);
    EXPECT_EQ(client->copyOut(memory, bytes.size()), bytes);
}

TEST_F(CopiesTest, AWaitedMirroredCopyIsThereWhenItIsAnswered) {
    const auto bytes = pattern(100'000);
    const uint64_t memory = client->alloc(bytes.size());
    const uint64_t host = hostAlloc(bytes.size());
    client->copyIn(memory, bytes);
    std::vector<uint8_t> landed(bytes.size());
    const uint64_t transfer = link->expect(landed.data(), landed.size());
    const Reply reply = client->call(
        Op::cuMemcpyDtoHAsync_v2, custom::CopyOut{0, memory, bytes.size(), 2, 1, host, transfer});
    EXPECT_EQ(reply.head.result, CUDA_SUCCESS);
    EXPECT_EQ(landed, bytes);
}

TEST_F(CopiesTest, WhatTheGpuChangesInCoherentMemoryComesAsAPatchBeforeTheAnswer) {
    std::map<uint64_t, uint64_t> words;  // as the client would see them
    uint64_t watches = 0;
    std::mutex mutex;
    link->onPatch([&](uint64_t over, Bytes pieces) -> std::string {
        const std::lock_guard lock(mutex);
        watches = over;
        Reader in(pieces);
        for (delta::Piece piece; delta::next(in, piece);)
            for (uint32_t i = 0; i < piece.words; ++i)
                if (piece.masks[i] != 0) words[piece.address + 8 * i] = piece.value(i);
        return in.ok() ? "" : "malformed";
    });
    const uint64_t host = hostAlloc(4096);
    client->call(Op::juiceMirrorCohere, custom::MirrorCohere{host});
    ASSERT_EQ(client->loadModule(kModule, kPtx), 1);
    client->getFunction(kModule, kIncrement, "increment");
    // The client's words, and then a kernel that adds one to each 32 bits of the first 1000.
    Writer patch;
    patch.put(host).put(uint32_t{2}).put(uint32_t{0}).put(uint8_t{0xff}).put(uint8_t{0x0f});
    patch.put(uint64_t{0x0000'0010'0000'0020}).put(uint64_t{0xffff'ffff'0000'0030});
    link->patch(patch.view());
    client->launch(kIncrement, 4, 256, Writer().put(host).put(uint32_t{1000}));
    client->post(Op::juiceWatch, custom::Watch{0});
    EXPECT_EQ(client->synchronise(), CUDA_SUCCESS);
    const std::lock_guard lock(mutex);
    EXPECT_EQ(watches, 1u);
    EXPECT_EQ(words.size(), 500u);
    EXPECT_EQ(words[host], 0x0000'0011'0000'0021u);
    EXPECT_EQ(words[host + 8], 0x0000'0001'0000'0031u);
    EXPECT_EQ(words[host + 499 * 8], 0x0000'0001'0000'0001u);
}

TEST_F(CopiesTest, RegisteredPagesAreMirroredAtTheirOwnAddress) {
    // An address that neither process uses, as a client's heap is to the worker.
    void* mine = mmap(reinterpret_cast<void*>(0x5200'0000'0000), 3 << 20, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    ASSERT_NE(mine, MAP_FAILED);
    const uint64_t address = reinterpret_cast<uint64_t>(mine) + 100;
    const auto attach = [&](uint64_t at, uint64_t size) {
        return client->call(Op::cuMemHostRegister_v2, custom::HostRegister{at, size, 0, 0});
    };
    const Reply reply = attach(address, 1 << 20);
    ASSERT_EQ(reply.head.result, CUDA_SUCCESS);
    Reader in = reply.reader();
    EXPECT_EQ(in.get<uint64_t>(), address);
    in.get<uint32_t>();
    EXPECT_EQ(in.get<uint32_t>(), 1u);
    EXPECT_EQ(attach(address + 5, 10).head.result, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);

    const auto bytes = pattern(1 << 20);
    const uint64_t memory = client->alloc(bytes.size());
    push(address, bytes);
    mirrorIn(memory, address, bytes.size(), 0);
    EXPECT_EQ(client->copyOut(memory, bytes.size()), bytes);

    const auto detach = [&](uint64_t at) {
        return client->call(Op::cuMemHostUnregister, custom::HostFree{at}).head.result;
    };
    EXPECT_EQ(detach(address), CUDA_SUCCESS);
    EXPECT_EQ(detach(address), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    EXPECT_EQ(attach(address, 1 << 20).head.result, CUDA_SUCCESS);
    munmap(mine, 3 << 20);
}

TEST_F(CopiesTest, NeighboursOnOnePageAreBothRegistered) {
    const uint64_t page = 0x5300'0000'0000;
    for (const uint64_t at : {page + 64, page + 1024}) {
        const Reply reply =
            client->call(Op::cuMemHostRegister_v2, custom::HostRegister{at, 256, 0, 0});
        ASSERT_EQ(reply.head.result, CUDA_SUCCESS) << std::hex << at;
    }
    EXPECT_EQ(client->call(Op::cuMemHostUnregister, custom::HostFree{page + 64}).head.result,
              CUDA_SUCCESS);
    push(page + 1024, pattern(256));
    const uint64_t memory = client->alloc(256);
    mirrorIn(memory, page + 1024, 256, 0);
    EXPECT_EQ(client->copyOut(memory, 256), pattern(256));
}

TEST_F(CopiesTest, RegisteringWhereTheWorkerLivesIsCopyOnly) {
    if (*JUICE_SANITIZED != '\0') GTEST_SKIP() << "a sanitised worker is linked anywhere";
    // The worker's own code: linked at a place of its choosing.
    const Reply reply =
        client->call(Op::cuMemHostRegister_v2, custom::HostRegister{0x7000'0000, 4096, 0, 0});
    ASSERT_EQ(reply.head.result, CUDA_SUCCESS);
    Reader in = reply.reader();
    EXPECT_EQ(in.get<uint64_t>(), 0u);
    in.get<uint32_t>();
    EXPECT_EQ(in.get<uint32_t>(), 0u);
}

TEST_F(CopiesTest, FreeingAMirrorWaitsForCopiesToIt) {
    const auto bytes = pattern(8 << 20);
    const uint64_t memory = client->alloc(bytes.size());
    client->copyIn(memory, bytes);
    for (int i = 0; i < 4; ++i) {
        const uint64_t host = hostAlloc(bytes.size());
        std::vector<uint8_t> landed(bytes.size());
        mirrorOut(memory, host, landed, 0);
        EXPECT_EQ(client->call(Op::cuMemFreeHost, custom::HostFree{host}).head.result,
                  CUDA_SUCCESS);
        EXPECT_EQ(landed, bytes);
    }
}

TEST_F(CopiesTest, BoxesGoInAndOutOfPitchedMemory) {
    constexpr uint64_t kWidth = 300, kHeight = 40, kDepth = 3, kPitch = 512, kRows = 64;
    const uint64_t memory = client->alloc(kPitch * kRows * kDepth);
    const auto packed = pattern(kWidth * kHeight * kDepth);
    const custom::BoxSide device{3, 0, memory, kPitch, kRows};

    Writer in;
    custom::put(in, custom::CopyBox{0, kWidth, kHeight, kDepth, {0, 0, 0, 0, 0}, device, 0, 0, 0});
    in.raw(packed.data(), packed.size());
    client->post(Op::cuMemcpy3DAsync_v2, in);

    const Reply inlined =
        client->call(Op::cuMemcpy3DAsync_v2,
                     custom::CopyBox{0, kWidth, kHeight, kDepth, device, {0, 0, 0, 0, 0}, 0, 0, 0});
    EXPECT_EQ(inlined.head.result, CUDA_SUCCESS);
    EXPECT_EQ(inlined.payload, packed);

    std::vector<uint8_t> landed(packed.size());
    const uint64_t transfer = link->expect(landed.data(), landed.size());
    const Reply sent = client->call(
        Op::cuMemcpy3DAsync_v2,
        custom::CopyBox{0, kWidth, kHeight, kDepth, device, {1, 0, transfer, 0, 0}, 0, 0, 0});
    EXPECT_EQ(sent.head.result, CUDA_SUCCESS);
    EXPECT_EQ(landed, packed);

    // The rows lie where the pitch says.
    const auto row = client->copyOut(memory + kPitch * (kRows + 5), kWidth);
    EXPECT_TRUE(std::equal(row.begin(), row.end(), packed.begin() + kWidth * (kHeight + 5)));
}

TEST_F(CopiesTest, BoxesTravelAsTransfersAndThroughMirrors) {
    constexpr uint64_t kWidth = 4000, kHeight = 500, kPitch = 4096;
    const uint64_t memory = client->alloc(kPitch * kHeight);
    const auto packed = pattern(kWidth * kHeight);
    const custom::BoxSide device{3, 0, memory, kPitch, kHeight};
    const uint64_t transfer = link->mintTransfer();
    client->post(Op::cuMemcpy3DAsync_v2,
                 custom::CopyBox{0, kWidth, kHeight, 1, {1, 0, transfer, 0, 0}, device, 0, 0, 0});
    link->send(transfer, packed.data(), packed.size());

    const uint64_t host = hostAlloc(kPitch * kHeight);
    std::vector<uint8_t> landed(packed.size());
    const uint64_t back = link->expect(landed.data(), landed.size());
    client->post(
        Op::cuMemcpy3DAsync_v2,
        custom::CopyBox{0, kWidth, kHeight, 1, device, {2, 0, host, kPitch, kHeight}, back, 0, 0});
    EXPECT_EQ(client->synchronise(), CUDA_SUCCESS);
    EXPECT_EQ(landed, packed);
}

TEST_F(CopiesTest, ACopyThatIsRefusedStillTakesItsTransfer) {
    const auto bytes = pattern(40 << 20);  // more than all credit
    const uint64_t transfer = link->mintTransfer();
    client->post(Op::cuMemcpyHtoDAsync_v2, custom::CopyIn{0, 0x1234, bytes.size(), 1, 0, transfer});
    link->send(transfer, bytes.data(), bytes.size());
    const Reply reply = client->call(Op::cuMemGetInfo_v2, Writer());
    EXPECT_EQ(reply.head.deferred, CUDA_ERROR_INVALID_VALUE);
    const uint64_t memory = client->alloc(bytes.size());
    client->copyIn(memory, bytes);
    EXPECT_EQ(client->copyOut(memory, bytes.size()), bytes);
}

TEST_F(CopiesTest, AReleasedContextTakesItsMemoryAlong) {
    client->alloc(1 << 20);
    hostAlloc(1 << 20);
    client->makeStream(20);
    EXPECT_EQ(client->call(Op::cuDevicePrimaryCtxRelease_v2, custom::PrimaryEnd{0, 0}).head.result,
              CUDA_SUCCESS);
    EXPECT_EQ(worker->usage().memoryNow.load(), 0u);
    client->retainPrimary();
    const auto bytes = pattern(2 << 20);
    const uint64_t memory = client->alloc(bytes.size());
    client->copyIn(memory, bytes);
    EXPECT_EQ(client->copyOut(memory, bytes.size()), bytes);
}

TEST_F(CopiesTest, AContextOfItsOwnWorksBesideThePrimaryOne) {
    constexpr uint64_t kOther = 2;
    EXPECT_EQ(client->call(Op::cuCtxCreate_v2, custom::ContextCreate{kOther, 0, 0}).head.result,
              CUDA_SUCCESS);
    client->inContext(kOther);
    const auto bytes = pattern(1000);
    const uint64_t memory = client->alloc(1000);
    client->copyIn(memory, bytes);
    EXPECT_EQ(client->copyOut(memory, 1000), bytes);
    client->inContext(Client::kContext);
    EXPECT_EQ(client->call(Op::cuCtxDestroy_v2, custom::ContextDestroy{kOther}).head.result,
              CUDA_SUCCESS);
    client->inContext(kOther);
    EXPECT_EQ(client->call(Op::cuMemAlloc_v2, custom::Alloc{16}).head.result,
              CUDA_ERROR_INVALID_CONTEXT);
}

}  // namespace
}  // namespace juice::worker::test
