// The worker end to end: a real process, a real link, the software GPU.
#include <dirent.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "native/worker/test/harness.h"

namespace juice::worker::test {
namespace {

constexpr uint64_t kModule = 10, kIncrement = 11, kSlow = 12, kFault = 13;

class WorkerTest : public testing::Test {
  protected:
    void start(std::vector<std::string> args = {}, uint64_t memoryLimit = 0, Start how = {}) {
        worker = std::make_unique<WorkerProcess>(std::move(args), how);
        worker->awaitReady();
        worker->claim(memoryLimit);
        link = worker->connect();
        ASSERT_NE(link, nullptr);
        client = std::make_unique<Client>(*link);
        client->retainPrimary();
    }
    void loadKernels() {
        ASSERT_GE(client->loadModule(kModule, kPtx), 0);
        client->getFunction(kModule, kIncrement, "increment");
        client->getFunction(kModule, kSlow, "slow_increment");
        client->getFunction(kModule, kFault, "fault");
    }
    Writer incrementParams(uint64_t address, uint32_t count) {
        Writer params;
        params.put(address).put(count);
        return params;
    }

    std::unique_ptr<WorkerProcess> worker;
    std::unique_ptr<ClientLink> link;
    std::unique_ptr<Client> client;
};

std::vector<uint32_t> words(const std::vector<uint8_t>& bytes) {
    std::vector<uint32_t> out(bytes.size() / 4);
    std::memcpy(out.data(), bytes.data(), out.size() * 4);
    return out;
}

TEST_F(WorkerTest, TheSnapshotDescribesTheGpu) {
    worker = std::make_unique<WorkerProcess>();
    worker->awaitReady();
    ASSERT_GE(worker->snapshot().devices.size(), 1u);
    const DeviceSnapshot& device = worker->snapshot().devices[0];
    EXPECT_FALSE(worker->snapshot().driverText.empty());
    EXPECT_FALSE(device.name.empty());
    EXPECT_FALSE(device.pciBusId.empty());
    EXPECT_GT(device.totalMemory, 0u);
    EXPECT_EQ(device.attributes.at(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS), 0);
    EXPECT_EQ(device.attributes.at(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS), 0);
    EXPECT_GT(device.attributes.at(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 0);
    EXPECT_FALSE(device.limits.empty());
}

TEST(WorkerStart, ADriverThatIsNotThereIsOneClearSentence) {
    WorkerProcess worker({}, {.driver = "/nowhere/libcuda.so.1"});
    const auto message = worker.receive();
    ASSERT_TRUE(message.has_value());
    EXPECT_EQ(message->kind, ControlKind::failed);
    Reader in(message->payload);
    const std::string sentence(in.text());
    EXPECT_NE(sentence.find("/nowhere/libcuda.so.1"), std::string::npos) << sentence;
    EXPECT_NE(sentence.find("install"), std::string::npos) << sentence;
    EXPECT_EQ(worker.awaitExit(), 1);
}

TEST_F(WorkerTest, SmallCopiesComeBack) {
    start();
    const auto bytes = pattern(1000);
    const uint64_t memory = client->alloc(4096);
    client->copyIn(memory, bytes);
    EXPECT_EQ(client->copyOut(memory, bytes.size()), bytes);
}

TEST_F(WorkerTest, DeviceAddressesLieInTheAgreedArena) {
    start();
    const wire::Arena arena = wire::kArenas[link->welcome().arena];
    const uint64_t memory = client->alloc(64 << 20);
    EXPECT_GE(memory, arena.begin);
    EXPECT_LT(memory + (64 << 20), arena.end);
}

TEST_F(WorkerTest, InAContainerThatForbidsTheLayoutTheyLieThereToo) {
    start({}, 0, {.container = true});
    const wire::Arena arena = wire::kArenas[link->welcome().arena];
    const uint64_t memory = client->alloc(64 << 20);
    EXPECT_GE(memory, arena.begin);
    EXPECT_LT(memory + (64 << 20), arena.end);
    loadKernels();
    client->copyIn(memory, std::vector<uint8_t>(64, 0));
    client->launch(kIncrement, 1, 16, incrementParams(memory, 16));
    for (const uint32_t value : words(client->copyOut(memory, 64))) EXPECT_EQ(value, 1u);
}

TEST_F(WorkerTest, BulkCopiesComeBack) {
    start();
    const auto bytes = pattern(37'000'003);
    const uint64_t memory = client->alloc(bytes.size());
    client->copyIn(memory, bytes);
    EXPECT_EQ(client->copyOut(memory, bytes.size()), bytes);
}

TEST_F(WorkerTest, KernelsRunInStreamOrder) {
    start();
    loadKernels();
    const uint64_t memory = client->alloc(1024 * 4);
    client->copyIn(memory, std::vector<uint8_t>(1024 * 4, 0));
    for (int i = 0; i < 50; ++i) client->launch(kIncrement, 4, 256, incrementParams(memory, 1024));
    const auto values = words(client->copyOut(memory, 1024 * 4));
    for (const uint32_t value : values) ASSERT_EQ(value, 50u);
    EXPECT_EQ(client->synchronise(), CUDA_SUCCESS);
    EXPECT_EQ(worker->usage().launches.load(), 50u);
}

TEST_F(WorkerTest, ADeferredErrorIsToldOnceToTheThreadThatPosted) {
    start();
    Client other(*link, 2);
    other.inContext(Client::kContext);
    client->post(Op::cuMemFree_v2, custom::Free{0x1234});
    const Reply others = other.call(Op::cuMemGetInfo_v2, Writer());
    EXPECT_EQ(others.head.deferred, 0);
    const Reply first = client->call(Op::cuMemGetInfo_v2, Writer());
    EXPECT_EQ(first.head.result, CUDA_SUCCESS);
    EXPECT_EQ(first.head.deferred, CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(first.head.deferredOpcode, static_cast<uint16_t>(Op::cuMemFree_v2));
    EXPECT_EQ(client->call(Op::cuMemGetInfo_v2, Writer()).head.deferred, 0);
}

TEST_F(WorkerTest, AFaultingKernelSticksAndIsAnnounced) {
    start();
    loadKernels();
    std::atomic<int> announced{0};
    link->onFault([&](int result, uint16_t) { announced = result; });
    client->launch(kFault, 1, 1, Writer());
    EXPECT_EQ(client->synchronise(), CUDA_ERROR_ILLEGAL_ADDRESS);
    const Reply later = client->call(Op::cuMemAlloc_v2, custom::Alloc{16});
    EXPECT_EQ(later.head.result, CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(later.head.sticky, CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(announced, CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(worker->usage().lastError.load(), CUDA_ERROR_ILLEGAL_ADDRESS);
    link->close();
    EXPECT_EQ(worker->awaitEnded(), 1);  // goodbye
    EXPECT_EQ(worker->awaitExit(), 0);
}

TEST_F(WorkerTest, TheLeaseLimitsMemory) {
    constexpr uint64_t kLimit = 64 << 20;
    start({}, kLimit);
    const uint64_t first = client->alloc(48 << 20);
    const auto info = [&] {
        const Reply reply = client->call(Op::cuMemGetInfo_v2, Writer());
        Reader in = reply.reader();
        const auto free = in.get<uint64_t>();
        return std::pair(free, in.get<uint64_t>());
    };
    EXPECT_EQ(info(), std::pair(uint64_t{16 << 20}, kLimit));
    EXPECT_EQ(client->call(Op::cuMemAlloc_v2, custom::Alloc{17 << 20}).head.result,
              CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(worker->usage().memoryNow.load(), uint64_t{48 << 20});
    client->free(first);
    EXPECT_EQ(info().first, kLimit);
    client->free(client->alloc(kLimit));
    EXPECT_EQ(info().first, kLimit);
    EXPECT_EQ(worker->usage().memoryNow.load(), 0u);
    EXPECT_EQ(worker->usage().memoryPeak.load(), kLimit);
}

TEST_F(WorkerTest, AnImageIsUploadedOnceAndFoundByTheNextWorker) {
    char directory[] = "/tmp/juice-images-XXXXXX";
    ASSERT_NE(mkdtemp(directory), nullptr);
    start({"--cache", directory});
    EXPECT_EQ(client->loadModule(kModule, kPtx), 1);
    EXPECT_EQ(client->loadModule(kModule + 1, kPtx), 0);
    link->close();
    worker->awaitExit();
    start({"--cache", directory});
    EXPECT_EQ(client->loadModule(kModule, kPtx), 0);
    link->close();
    worker->awaitExit();
    // What is on disk is believed only if it has the right hash.
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
        std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(100).put('?');
    }
    start({"--cache", directory});
    EXPECT_EQ(client->loadModule(kModule, kPtx), 1);
    std::filesystem::remove_all(directory);
}

TEST_F(WorkerTest, ALoadTellsKernelsAndTheirParameters) {
    start();
    ASSERT_GE(client->loadModule(kModule, kPtx), 0);
    const Reply reply = client->call(Op::juiceKernelList, custom::KernelList{kModule, 0, 0});
    Reader in = reply.reader();
    EXPECT_EQ(in.get<uint32_t>(), 3u);
    ASSERT_EQ(in.get<uint32_t>(), 3u);
    bool found = false;
    for (int i = 0; i < 3; ++i) {
        const std::string name(in.text());
        std::vector<std::pair<uint32_t, uint32_t>> params(in.get<uint32_t>());
        for (auto& [offset, size] : params) {
            offset = in.get<uint32_t>();
            size = in.get<uint32_t>();
        }
        if (name != "increment") continue;
        found = true;
        ASSERT_EQ(params.size(), 2u);
        EXPECT_EQ(params[0], std::pair(0u, 8u));
        EXPECT_EQ(params[1], std::pair(8u, 4u));
    }
    EXPECT_TRUE(found);
    EXPECT_TRUE(in.done());
}

TEST_F(WorkerTest, FunctionInfoHasTheAttributes) {
    start();
    loadKernels();
    const Reply reply = client->call(Op::juiceFunctionInfo, custom::FunctionInfo{kIncrement});
    Reader in = reply.reader();
    ASSERT_EQ(in.get<uint32_t>(), 16u);
    EXPECT_GT(in.get<int32_t>(), 0);  // threads per block
}

TEST_F(WorkerTest, BadImagesAreRefusedAsOnALocalGpu) {
    start();
    EXPECT_LT(client->loadModule(kModule, "this is no PTX"), 0);
    EXPECT_EQ(client->loadModule(kModule, ".version 99.0\n.target sm_80\n.address_size 64\n"),
              -CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
    EXPECT_GE(client->loadModule(kModule, kPtx), 0);
}

TEST_F(WorkerTest, TwoThreadsDoNotHoldEachOtherUp) {
    start();
    loadKernels();
    const uint64_t memory = client->alloc(64);
    client->copyIn(memory, std::vector<uint8_t>(64, 0));
    const uint64_t stream = client->makeStream(20, 1);
    client->launch(kSlow, 1, 16, incrementParams(memory, 16), stream);
    Client other(*link, 2);
    other.inContext(Client::kContext);
    EXPECT_EQ(other.call(Op::cuMemGetInfo_v2, Writer()).head.result, CUDA_SUCCESS);
    std::atomic<bool> synchronised{false};
    std::thread waiting([&] {
        EXPECT_EQ(client->synchronise(stream), CUDA_SUCCESS);
        synchronised = true;
    });
    int answered = 0;
    while (!synchronised) {
        EXPECT_EQ(other.call(Op::cuMemGetInfo_v2, Writer()).head.result, CUDA_SUCCESS);
        ++answered;
    }
    waiting.join();
    EXPECT_GT(answered, 2);
    for (const uint32_t value : words(client->copyOut(memory, 64))) EXPECT_EQ(value, 1u);
}

TEST_F(WorkerTest, EachThreadHasADefaultStreamOfItsOwn) {
    start();
    loadKernels();
    const uint64_t memory = client->alloc(64);
    client->copyIn(memory, std::vector<uint8_t>(64, 0), 2);
    client->launch(kSlow, 1, 16, incrementParams(memory, 16), 2);
    client->launch(kIncrement, 1, 16, incrementParams(memory, 16), 2);
    for (const uint32_t value : words(client->copyOut(memory, 64, 2))) EXPECT_EQ(value, 2u);
}

TEST_F(WorkerTest, EventsTellHowFarAStreamHasGot) {
    start();
    loadKernels();
    const uint64_t memory = client->alloc(64);
    client->copyIn(memory, std::vector<uint8_t>(64, 0));
    const uint64_t stream = client->makeStream(20, 1);
    Writer create, record, event;
    create.put(uint64_t{21}).put(0u);
    client->post(Op::cuEventCreate, create);
    client->launch(kSlow, 1, 16, incrementParams(memory, 16), stream);
    record.put(uint64_t{21}).put(stream);
    client->post(Op::cuEventRecord, record);
    event.put(uint64_t{21});
    EXPECT_EQ(client->call(Op::cuEventSynchronize, event).head.result, CUDA_SUCCESS);
    EXPECT_EQ(client->call(Op::cuEventQuery, event).head.result, CUDA_SUCCESS);
}

TEST_F(WorkerTest, KilledItLeavesNothing) {
    start();
    client->alloc(1 << 20);
    kill(worker->pid(), SIGKILL);
    EXPECT_EQ(worker->awaitExit(), -SIGKILL);
    EXPECT_TRUE(client->call(Op::cuMemGetInfo_v2, Writer()).broken);
    EXPECT_FALSE(link->reason().empty());
    EXPECT_EQ(worker->usage().memoryNow.load(), uint64_t{1 << 20});
}

TEST_F(WorkerTest, TheHostEndsItWithASentenceForTheClient) {
    start();
    Writer end;
    end.put(wire::GoodbyeReason::session_ended).text("the lease is over");
    worker->send(ControlKind::end, end.view());
    std::string sentence;
    EXPECT_EQ(worker->awaitEnded(&sentence), 0);
    EXPECT_EQ(sentence, "the lease is over");
    EXPECT_EQ(worker->awaitExit(), 0);
    EXPECT_TRUE(client->call(Op::cuMemGetInfo_v2, Writer()).broken);
    EXPECT_NE(link->reason().find("the lease is over"), std::string::npos) << link->reason();
}

TEST_F(WorkerTest, ItEndsWithItsHost) {
    start();
    worker->hangUp();
    EXPECT_EQ(worker->awaitExit(), 0);
}

TEST_F(WorkerTest, ItEndsWithItsClientEvenInALongKernel) {
    start();
    loadKernels();
    const uint64_t memory = client->alloc(64);
    for (int i = 0; i < 1000; ++i) client->launch(kSlow, 64, 256, incrementParams(memory, 16));
    std::thread stuck([&] { EXPECT_TRUE(client->call(Op::cuCtxSynchronize, Writer()).broken); });
    usleep(200'000);
    link->close();
    stuck.join();
    EXPECT_NE(worker->awaitEnded(), -1);
    EXPECT_EQ(worker->awaitExit(), 0);
}

}  // namespace
}  // namespace juice::worker::test
