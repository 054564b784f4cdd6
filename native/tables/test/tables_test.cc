#include "native/tables/tables.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <thread>

#include "native/tables/integrity.h"

namespace juice::tables {
namespace {

using Uuid = std::array<uint8_t, 16>;

Uuid uuid(const std::string& hex) {
    Uuid bytes;
    for (size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = static_cast<uint8_t>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
    }
    return bytes;
}

const Uuid kCudartInterface = uuid("6bd5fb6c5bf4e74a8987d93912fd9df9");
const Uuid kCallbackHooks = uuid("a094798c2e742e7493f20800200c0a66");
const Uuid kThreadLocal = uuid("42d85a8123f6cb478298f6e78a3aecdc");
const Uuid kContextLocalStorage = uuid("c693336e1121df11a8c368f355d89593");
const Uuid kContextChecks = uuid("263e88607cd2614392f6bbd5006dfa7e");
const Uuid kIntegrityCheck = uuid("d4082055bde6704b8d34ba123c66e1f2");
const Uuid kToolsContext = uuid("21318c60971432488ca641ff7324c8f2");
const Uuid kToolsModule = uuid("6e163fbeb958444d835ce182aff1991e");

struct FakeDriver : Driver {
    void* current = nullptr;
    const void* loaded = nullptr;
    int driverVersion() override { return 13000; }
    int deviceCount() override { return 2; }
    DeviceIdentity device(int ordinal) override {
        DeviceIdentity identity{{}, 0, 6 + ordinal, 0};
        identity.uuid[15] = static_cast<uint8_t>(ordinal);
        return identity;
    }
    void* currentContext() override { return current; }
    int primaryContext(int ordinal, void** context) override {
        if (ordinal >= deviceCount()) return 101;
        *context = reinterpret_cast<void*>(uintptr_t{0x1000} + ordinal);
        return 0;
    }
    Topology topology() override { return {gpcs, places}; }
    std::vector<uint8_t> gpcs, places;
    int loadModule(void** module, const void* image) override {
        loaded = image;
        *module = this;
        return 0;
    }
};

class Tables : public testing::Test {
  protected:
    void SetUp() override {
        driver.current = nullptr;
        serve(driver);
    }
    static const void* const* table(const Uuid& id) {
        const void* found = nullptr;
        EXPECT_EQ(getExportTable(&found, id.data()), 0);
        return static_cast<const void* const*>(found);
    }
    template <typename F>
    static F* function(const Uuid& id, size_t slot) {
        return reinterpret_cast<F*>(const_cast<void*>(table(id)[slot]));
    }
    static FakeDriver driver;
};
FakeDriver Tables::driver;

TEST_F(Tables, TellWhereTheMultiprocessorsSit) {
    const Uuid id = uuid("1734dc26800d47458726c0f1e7dd8bca");
    auto* const tell = function<int(uint8_t**, uint8_t**)>(id, 4);
    auto* const release = function<int(uint8_t*, uint8_t*)>(id, 13);
    uint8_t *gpcs = nullptr, *places = nullptr;
    EXPECT_EQ(tell(&gpcs, &places), 201) << "without a context";
    driver.current = &driver;
    EXPECT_EQ(tell(&gpcs, &places), 801) << "of a device that does not tell";
    driver.gpcs = {0, 1, 0};
    driver.places = {0, 0, 1};
    ASSERT_EQ(tell(&gpcs, &places), 0);
    EXPECT_EQ(std::vector<uint8_t>(gpcs, gpcs + 3), driver.gpcs);
    EXPECT_EQ(std::vector<uint8_t>(places, places + 3), driver.places);
    EXPECT_EQ(release(gpcs, places), 0);
}

TEST_F(Tables, BeginWithTheSizesThatARealDriverHas) {
    const auto size = [](const Uuid& id) { return reinterpret_cast<uintptr_t>(table(id)[0]); };
    EXPECT_EQ(size(kCudartInterface), 104U);
    EXPECT_EQ(size(kCallbackHooks), 56U);
    EXPECT_EQ(size(kThreadLocal), 32U);
    EXPECT_EQ(size(kContextChecks), 32U);
    EXPECT_EQ(size(kIntegrityCheck), 24U);
    EXPECT_EQ(size(kToolsContext), 744U);
    EXPECT_EQ(size(kToolsModule), 792U);
    EXPECT_EQ(table(kContextLocalStorage)[3], nullptr);
}

TEST_F(Tables, AreRefusedWhenUnknown) {
    const void* found = this;
    const Uuid skipInit = uuid("f8cff95121468b4eb9e2fb469e7c0dd9");
    EXPECT_EQ(getExportTable(&found, skipInit.data()), 500);
    EXPECT_EQ(found, nullptr);
    EXPECT_EQ(getExportTable(nullptr, skipInit.data()), 1);
    EXPECT_EQ(getExportTable(&found, nullptr), 1);
}

TEST_F(Tables, GiveThePrimaryContextAndLoadModules) {
    void* context = nullptr;
    auto* primary = function<int(void**, int)>(kCudartInterface, 2);
    EXPECT_EQ(primary(&context, 1), 0);
    EXPECT_EQ(context, reinterpret_cast<void*>(0x1001));
    EXPECT_EQ(primary(&context, 7), 101);

    void* module = nullptr;
    const int image = 0;
    EXPECT_EQ((function<int(void**, const void*)>(kCudartInterface, 1)(&module, &image)), 0);
    EXPECT_EQ(driver.loaded, &image);
    auto* extended =
        function<int(void**, const void*, void*, void*, uint32_t)>(kCudartInterface, 6);
    EXPECT_EQ(extended(&module, &image, nullptr, nullptr, 0), 0);
    EXPECT_EQ(extended(&module, &image, nullptr, nullptr, 1), 801);
    auto* container =
        function<int(const void*, void**, void*, void*, uint32_t)>(kCudartInterface, 8);
    EXPECT_EQ(container(&image, &module, nullptr, nullptr, 0), 0);
    EXPECT_EQ(function<int()>(kCudartInterface, 12)(), 0);
    EXPECT_EQ(function<int()>(kCudartInterface, 3)(), 801);
}

TEST_F(Tables, TellTheThreadsCurrentContext) {
    void* context = this;
    auto* current = function<int(void**)>(kThreadLocal, 2);
    EXPECT_EQ(current(&context), 0);
    EXPECT_EQ(context, nullptr);
    driver.current = &driver;
    EXPECT_EQ(current(&context), 0);
    EXPECT_EQ(context, &driver);
}

TEST_F(Tables, StorePerContextAndDestroyWithIt) {
    using Destructor = void(void*, void*, void*);
    auto* put = function<int(void*, void*, void*, Destructor*)>(kContextLocalStorage, 0);
    auto* remove = function<int(void*, void*)>(kContextLocalStorage, 1);
    auto* get = function<int(void**, void*, void*)>(kContextLocalStorage, 2);
    static int destroyed;
    destroyed = 0;
    const auto destructor = [](void* context, void* key, void* value) {
        destroyed += *static_cast<int*>(value);
        contextGone(context);  // calling back must not deadlock
    };
    int a = 1, b = 10, first = 0, second = 0, key = 0, otherKey = 0;
    void* found = nullptr;

    EXPECT_EQ(put(nullptr, &key, &a, destructor), 201) << "no context is current";
    EXPECT_EQ(get(&found, nullptr, &key), 400);
    driver.current = &first;
    EXPECT_EQ(get(&found, nullptr, &key), 400);
    EXPECT_EQ(put(nullptr, &key, &a, destructor), 0);
    EXPECT_EQ(put(&first, &otherKey, &b, destructor), 0);
    EXPECT_EQ(get(&found, &first, &key), 0);
    EXPECT_EQ(found, &a);
    EXPECT_EQ(get(&found, reinterpret_cast<void*>(UINTPTR_MAX), &key), 0);
    EXPECT_EQ(get(&found, &second, &key), 400);
    EXPECT_EQ(remove(&first, &key), 0);
    EXPECT_EQ(remove(&first, &key), 400);
    EXPECT_EQ(destroyed, 0) << "delete does not destroy";
    contextGone(&second);
    EXPECT_EQ(destroyed, 0);
    contextGone(&first);
    EXPECT_EQ(destroyed, 10);
    EXPECT_EQ(get(&found, &first, &otherKey), 400);
}

TEST_F(Tables, AnswerTheValidityQuestionForTheCallingThread) {
    auto* check = function<int(uint32_t, uint64_t, uint64_t*)>(kIntegrityCheck, 1);
    const auto expected = [&] {
        IntegrityQuestion question{};
        question.driverVersion = 13000;
        question.version = 13002;
        question.pid = static_cast<uint32_t>(getpid());
        question.thread = static_cast<uint32_t>(pthread_self());
        question.cudartInterface = reinterpret_cast<uint64_t>(table(kCudartInterface));
        question.integrityCheck = reinterpret_cast<uint64_t>(table(kIntegrityCheck));
        question.checkFunction = reinterpret_cast<uint64_t>(check);
        question.unixSeconds = 1234567890;
        question.devices = {driver.device(0), driver.device(1)};
        return answer(question);
    };
    const auto asked = [&] {
        Digest digest;
        uint64_t out[2];
        EXPECT_EQ(check(13002, 1234567890, out), 0);
        std::memcpy(digest.data(), out, sizeof(out));
        return digest;
    };
    EXPECT_EQ(asked(), expected());
    std::thread([&] { EXPECT_EQ(asked(), expected()); }).join();
}

TEST_F(Tables, ServeTheRestOfWhatTheRuntimeCalls) {
    void* buffer = nullptr;
    size_t size = 0;
    function<void(void**, size_t*)>(kCallbackHooks, 2)(&buffer, &size);
    EXPECT_EQ(size, 1024U);
    // As far as the runtime reads, and well beyond: no tool listens to any entry point.
    for (size_t i = 0; i < 8192; ++i) ASSERT_EQ(static_cast<const uint8_t*>(buffer)[i], 0) << i;
    function<void(void**, size_t*)>(kCallbackHooks, 6)(&buffer, &size);
    EXPECT_EQ(size, 14U);
    EXPECT_EQ(function<int()>(kCallbackHooks, 4)(), 0);

    uint32_t result = 7;
    EXPECT_EQ((function<int(void*, uint32_t*, const void**)>(kContextChecks, 2)(nullptr, &result,
                                                                                nullptr)),
              0);
    EXPECT_EQ(result, 0U);
    EXPECT_EQ(function<uint32_t()>(kContextChecks, 3)(), 0U);

    uint64_t known = 7;
    EXPECT_EQ((function<int(void*, uint64_t*)>(kToolsContext, 4)(&driver, &known)), 0);
    EXPECT_EQ(known, 1U);
    EXPECT_EQ(function<int()>(kToolsContext, 5)(), 801);
    EXPECT_EQ(function<int()>(kToolsModule, 7)(), 1);
}

}  // namespace
}  // namespace juice::tables
