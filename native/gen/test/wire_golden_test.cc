// The generated ends of the link against the golden vectors: the shim's stubs make exactly the
// payloads, the worker's handlers read exactly those and nothing shorter or longer. The two
// contracts (native/shim/calls.h and native/worker/calls.h) are played by stand-ins.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "native/gen/cuda_api.h"
#include "native/gen/launch_config.h"
#include "native/gen/test/worker_standin.h"
#include "native/shim/calls.h"

namespace {

constexpr uint64_t kMinted = 0x77;
constexpr uint64_t kShimBase = 0x10'0000'0000;

template <typename T>
T shimHandle(uint64_t id) {
    return reinterpret_cast<T>(kShimBase + id);
}
uint64_t shimId(const void* handle) {
    return reinterpret_cast<uint64_t>(handle) - kShimBase;
}

/// The call that a stub made last.
struct Sent {
    int calls = 0;
    juice::Op op{};
    bool contextless = false;
    std::vector<uint8_t> payload;
    std::vector<uint8_t> answer;
} sent;

/// What the stand-in of the driver was called with.
juice::Writer seen;

}  // namespace

namespace juice::shim {

struct Outgoing::State {
    bool contextless;
    void** mint;
};

Outgoing::Outgoing(Op op, bool contextless) : op_(op) {
    new (state_) State{contextless, nullptr};
}
Outgoing::~Outgoing() = default;
Outgoing& Outgoing::handle(ObjectKind, const void* handle, bool) {
    return put(shimId(handle));
}
Outgoing& Outgoing::callable(CUfunction function) {
    return put(shimId(function));
}
Outgoing& Outgoing::ordinal(CUdevice device) {
    return put(device);
}
Outgoing& Outgoing::device(CUdeviceptr address, uint64_t, bool) {
    return put(address);
}
Outgoing& Outgoing::stream(CUstream stream, bool perThread) {
    const auto value = reinterpret_cast<uint64_t>(stream);
    return put(value > 2 ? 16 + shimId(stream) : value == 0 && perThread ? uint64_t{2} : value);
}
Outgoing& Outgoing::mint(ObjectKind, void** out) {
    reinterpret_cast<State*>(state_)->mint = out;
    return put(kMinted);
}
Outgoing& Outgoing::drop(ObjectKind, const void* handle) {
    return put(shimId(handle));
}
Outgoing& Outgoing::require(bool condition, CUresult otherwise) {
    if (!condition && error_ == CUDA_SUCCESS) error_ = otherwise;
    return *this;
}
CUresult Outgoing::post() {
    if (error_ != CUDA_SUCCESS) return error_;
    const auto* state = reinterpret_cast<const State*>(state_);
    ++sent.calls;
    sent.op = op_;
    sent.contextless = state->contextless;
    sent.payload = writer_.take();
    if (state->mint != nullptr) *state->mint = shimHandle<void*>(kMinted);
    return CUDA_SUCCESS;
}
Answer Outgoing::wait() {
    const CUresult result = post();
    return {result, result == CUDA_SUCCESS ? sent.answer : std::vector<uint8_t>{}};
}
Answer Outgoing::cached() {
    return wait();
}

}  // namespace juice::shim

namespace {

using namespace juice;           // NOLINT: the included vectors name Op, Writer and DriverTable
using namespace juice::standin;  // NOLINT: and the stand-ins

uint8_t patternByte(size_t index) {
    return static_cast<uint8_t>(index * 7 + 3);
}

template <typename T>
std::vector<T> patterned(size_t count) {
    std::vector<T> values(count);
    auto* bytes = reinterpret_cast<uint8_t*>(values.data());
    for (size_t i = 0; i < count * sizeof(T); ++i) bytes[i] = patternByte(i);
    return values;
}

template <typename T>
void setBytes(T* out, uint64_t value) {
    std::memcpy(out, &value, sizeof *out);
}

/// A launch configuration with one attribute that travels and one that does not.
struct SampleConfig {
    explicit SampleConfig(int attribute) {
        attributes[0].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT;
        attributes[1].id = attribute;
        auto* value = reinterpret_cast<uint8_t*>(&attributes[1].value);
        for (size_t i = 0; i < sizeof attributes[1].value; ++i) value[i] = patternByte(i);
        config.gridDimX = 2, config.gridDimY = 3, config.gridDimZ = 4;
        config.blockDimX = 32, config.blockDimY = 2, config.blockDimZ = 1;
        config.sharedMemBytes = 512;
        config.hStream = shimHandle<CUstream>(1);
        config.attrs = attributes;
        config.numAttrs = 2;
    }
    CUlaunchAttribute attributes[2]{};
    CUlaunchConfig config{};
};

struct Golden {
    const char* name;
    Op op;
    const char* payload;
    const char* results;
    CUresult (*stub)(Writer& results);
    bool handled;
};

#include "native/gen/test/wire_golden.inc"

std::vector<uint8_t> fromHex(const char* text) {
    std::vector<uint8_t> bytes;
    for (const char* at = text; *at != '\0'; at += 2) {
        bytes.push_back(static_cast<uint8_t>(std::stoi(std::string(at, 2), nullptr, 16)));
    }
    return bytes;
}

std::vector<uint8_t> bytesOf(const Writer& writer) {
    return {writer.data(), writer.data() + writer.size()};
}

struct Handled {
    CUresult result;
    std::vector<uint8_t> results;
};

Handled handle(Op op, Bytes payload) {
    recordInto(standin::driver);
    seen.clear();
    Handled handled;
    handled.result = standin::execute(static_cast<uint16_t>(op), payload, handled.results);
    return handled;
}

TEST(WireGolden, StubsMakeThePayloadsAndTakeTheResults) {
    for (const Golden& golden : kGolden) {
        if (golden.stub == nullptr) continue;
        SCOPED_TRACE(golden.name);
        sent = {};
        sent.answer = fromHex(golden.results);
        Writer results;
        EXPECT_EQ(golden.stub(results), CUDA_SUCCESS);
        EXPECT_EQ(sent.calls, 1);
        EXPECT_EQ(sent.op, golden.op);
        EXPECT_EQ(sent.payload, fromHex(golden.payload));
        EXPECT_EQ(bytesOf(results), fromHex(golden.results));
    }
}

TEST(WireGolden, HandlersPassThePayloadsToTheDriverAndReturnItsResults) {
    for (const Golden& golden : kGolden) {
        if (!golden.handled) continue;
        SCOPED_TRACE(golden.name);
        standin::madeId = 0;
        const std::vector<uint8_t> payload = fromHex(golden.payload);
        const Handled handled = handle(golden.op, payload);
        EXPECT_EQ(handled.result, CUDA_SUCCESS);
        EXPECT_EQ(bytesOf(seen), payload);
        EXPECT_EQ(handled.results, fromHex(golden.results));
        if (standin::madeId != 0) {
            EXPECT_EQ(standin::madeId, kMinted);
            EXPECT_EQ(standin::madeHandle, driverHandle<void*>(kMinted));
        }
    }
}

TEST(WireGolden, NoShorterAndNoLongerPayloadReachesTheDriver) {
    for (const Golden& golden : kGolden) {
        if (!golden.handled) continue;
        SCOPED_TRACE(golden.name);
        std::vector<uint8_t> payload = fromHex(golden.payload);
        const auto refused = [&](Bytes bytes) {
            const Handled handled = handle(golden.op, bytes);
            EXPECT_EQ(handled.result, CUDA_ERROR_UNKNOWN) << bytes.size() << " bytes";
            EXPECT_EQ(seen.size(), 0u) << bytes.size() << " bytes";
        };
        for (size_t size = 0; size < payload.size(); ++size) {
            // An exact heap copy: a read past the end is found by the address sanitizer.
            const std::vector<uint8_t> shorter(payload.begin(),
                                               payload.begin() + static_cast<long>(size));
            refused(shorter);
        }
        payload.push_back(0);
        refused(payload);
    }
}

TEST(WireGolden, AnArrayWithAnotherCountThanItsRankIsRefused) {
    for (const Golden& golden : kGolden) {
        if (golden.op != Op::cuTensorMapEncodeTiled) continue;
        for (uint32_t rank : {0u, 1u, 3u, 5u, 0xffffffffu}) {
            std::vector<uint8_t> payload = fromHex(golden.payload);
            std::memcpy(payload.data() + 4, &rank, sizeof rank);  // after the data type
            EXPECT_NE(handle(golden.op, payload).result, CUDA_SUCCESS) << rank;
            EXPECT_EQ(seen.size(), 0u) << rank;
        }
    }
}

TEST(Stubs, PerThreadVariantsSendTheThreadsOwnStream) {
    sent = {};
    EXPECT_EQ(cuMemsetD8_v2_ptds(64, 1, 2), CUDA_SUCCESS);
    EXPECT_EQ(sent.op, Op::cuMemsetD8Async);
    Writer expected;
    expected.put(CUdeviceptr{64}).put(uint8_t{1}).put(uint64_t{2}).put(uint64_t{2});
    EXPECT_EQ(sent.payload, bytesOf(expected));
    EXPECT_EQ(cuMemsetD8_v2(64, 1, 2), CUDA_SUCCESS);
    expected.clear();
    expected.put(CUdeviceptr{64}).put(uint8_t{1}).put(uint64_t{2}).put(uint64_t{0});
    EXPECT_EQ(sent.payload, bytesOf(expected));
}

TEST(Stubs, SayWhichCallsNeedNoContext) {
    int value = 0;
    sent = {};
    sent.answer = {1, 0, 0, 0};
    EXPECT_EQ(cuDeviceGetP2PAttribute(&value, 1, 0, 1), CUDA_SUCCESS);
    EXPECT_TRUE(sent.contextless);
    EXPECT_EQ(value, 1);
    EXPECT_EQ(cuCtxResetPersistingL2Cache(), CUDA_SUCCESS);
    EXPECT_FALSE(sent.contextless);
}

TEST(Stubs, NullWhereAValueMustGoIsInvalidAndSendsNothing) {
    sent = {};
    EXPECT_EQ(cuDeviceGetP2PAttribute(nullptr, 1, 0, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuOccupancyMaxActiveClusters(nullptr, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
    CUtensorMap map;
    EXPECT_EQ(cuTensorMapEncodeTiled(&map, 0, 1'000'000, nullptr, nullptr, nullptr, nullptr,
                                     nullptr, 0, 0, 0, 0),
              CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(sent.calls, 0);
}

TEST(Handlers, AnEntryThatTheDriverLacksIsNotSupported) {
    for (const Golden& golden : kGolden) {
        if (!golden.handled) continue;
        SCOPED_TRACE(golden.name);
        standin::driver = {};
        std::vector<uint8_t> results;
        EXPECT_EQ(
            standin::execute(static_cast<uint16_t>(golden.op), fromHex(golden.payload), results),
            CUDA_ERROR_NOT_SUPPORTED);
    }
}

TEST(Handlers, StandInTheTableUnderTheirOpcode) {
    EXPECT_EQ(worker::kHandlerCount, kOpCount);
    for (uint16_t op = 0; op < kOpCount; ++op) {
        if (kOpNames[op] == nullptr) {
            EXPECT_EQ(worker::kHandlers[op].execute, nullptr);
        } else {
            EXPECT_STREQ(worker::kHandlers[op].name, opName(op));
            EXPECT_NE(worker::kHandlers[op].execute, nullptr);
        }
    }
}

}  // namespace
