// The worker's parts, each alone.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "native/link/keys.h"
#include "native/worker/contexts.h"
#include "native/worker/helpers.h"
#include "native/worker/images.h"
#include "native/worker/jit_options.h"
#include "native/worker/kernels.h"
#include "native/worker/memory.h"
#include "native/worker/objects.h"

namespace juice::worker {
namespace {

void* handle(uint64_t n) {
    return reinterpret_cast<void*>(n);
}

TEST(Objects, AnIdIsFoundUnderItsGenerationOnly) {
    Objects objects;
    const uint64_t id = (3ull << 24) | 5;
    ASSERT_TRUE(objects.available(id));
    objects.add(id, ObjectKind::stream, handle(1));
    EXPECT_EQ(objects.find(id)->handle, handle(1));
    EXPECT_EQ(objects.find((4ull << 24) | 5), nullptr);
    EXPECT_EQ(objects.find(0), nullptr);
    EXPECT_FALSE(objects.available((4ull << 24) | 5));
    objects.remove(id);
    EXPECT_EQ(objects.find(id), nullptr);
    EXPECT_TRUE(objects.available((4ull << 24) | 5));
    EXPECT_FALSE(objects.available(0));
    EXPECT_FALSE(objects.available(1ull << 40));
}

TEST(Objects, ALibraryTakesWhatWasFoundInItAlong) {
    Objects objects;
    objects.add(1, ObjectKind::library, handle(1));
    objects.add(2, ObjectKind::kernel, handle(2)).parent = 1;
    objects.add(3, ObjectKind::module, handle(3)).parent = 1;
    objects.add(4, ObjectKind::function, handle(4)).parent = 2;
    objects.add(5, ObjectKind::function, handle(5)).parent = 3;
    objects.add(6, ObjectKind::stream, handle(6));
    objects.remove(1);
    EXPECT_EQ(objects.size(), 1u);
    EXPECT_NE(objects.find(6), nullptr);
}

TEST(Objects, AContextTakesItsOwnAlong) {
    Objects objects;
    objects.add(1, ObjectKind::stream, handle(1)).context = 7;
    objects.add(2, ObjectKind::event, handle(2)).context = 8;
    objects.removeOf(7);
    EXPECT_EQ(objects.find(1), nullptr);
    EXPECT_NE(objects.find(2), nullptr);
}

TEST(Objects, ScatteredIdsDoNotCostUnboundedMemory) {
    Objects objects;
    size_t added = 0;
    for (uint64_t slot = 1; slot < 1u << 24; slot += 1024) {
        if (!objects.available(slot)) break;
        objects.add(slot, ObjectKind::event, handle(1));
        ++added;
    }
    EXPECT_EQ(added, 4096u);
}

TEST(Contexts, IdsAreNamedByTheirLowHalf) {
    Contexts contexts;
    ASSERT_TRUE(contexts.add(5, static_cast<CUcontext>(handle(1)), 0, true));
    EXPECT_FALSE(contexts.add(5, static_cast<CUcontext>(handle(2)), 0, false));
    EXPECT_FALSE(contexts.add(0, static_cast<CUcontext>(handle(2)), 0, false));
    EXPECT_EQ(contexts.find(5)->handle, handle(1));
    EXPECT_EQ(contexts.primaryOf(0)->id, 5u);
    EXPECT_EQ(contexts.primaryOf(1), nullptr);
    contexts.remove(5);
    EXPECT_EQ(contexts.find(5), nullptr);
}

TEST(Memory, KeepsTheLeaseAndTheRanges) {
    DriverTable driver{};
    UsagePage usage{};
    Memory memory(driver, usage, 1000);
    EXPECT_TRUE(memory.fits(1000));
    EXPECT_FALSE(memory.fits(1001));
    memory.add(0x1000, 600, 1);
    EXPECT_FALSE(memory.fits(401));
    EXPECT_TRUE(memory.accessible(0x1000, 600));
    EXPECT_TRUE(memory.accessible(0x1000 + 599, 1));
    EXPECT_FALSE(memory.accessible(0x1000 + 599, 2));
    EXPECT_FALSE(memory.accessible(0x1000, ~0ull));
    EXPECT_FALSE(memory.accessible(0xfff, 1));
    uint64_t free = 5000, total = 8000;
    memory.limitInfo(free, total);
    EXPECT_EQ(free, 400u);
    EXPECT_EQ(total, 1000u);
    EXPECT_FALSE(memory.remove(0x1001));
    memory.removeOf(1);
    EXPECT_TRUE(memory.fits(1000));
    EXPECT_EQ(usage.memoryPeak.load(), 600u);
    EXPECT_EQ(usage.memoryNow.load(), 0u);
}

class ImagesTest : public testing::Test {
  protected:
    void SetUp() override { ASSERT_NE(mkdtemp(directory), nullptr); }
    void TearDown() override { std::filesystem::remove_all(directory); }
    static custom::PartName nameOf(const std::string& bytes) {
        custom::PartName name{};
        const auto hash = sha256(textBytes(bytes));
        std::copy(hash.begin(), hash.end(), name.sha256);
        name.size = bytes.size();
        return name;
    }
    static bool put(Images& images, const std::string& bytes) {
        auto upload = images.begin(nameOf(bytes));
        if (upload == nullptr) return false;
        std::memcpy(upload->data(), bytes.data(), bytes.size());
        return images.keep(std::move(upload));
    }
    size_t files() const {
        return static_cast<size_t>(
            std::distance(std::filesystem::directory_iterator(directory), {}));
    }
    char directory[32] = "/tmp/juice-images-XXXXXX";
};

TEST_F(ImagesTest, APartIsFoundAgainByAnotherWorker) {
    const std::string bytes(5000, 'x');
    {
        Images images(directory, 1 << 20);
        EXPECT_EQ(images.find(nameOf(bytes)), nullptr);
        ASSERT_TRUE(put(images, bytes));
    }
    Images images(directory, 1 << 20);
    const auto part = images.find(nameOf(bytes));
    ASSERT_NE(part, nullptr);
    EXPECT_EQ(std::string(part->bytes().begin(), part->bytes().end()), bytes);
    EXPECT_EQ(part->data()[bytes.size()], 0);
    EXPECT_EQ(files(), 1u);
}

TEST_F(ImagesTest, AFullPageIsStillFollowedByAZero) {
    const std::string bytes(8192, 'y');
    Images images(directory, 1 << 20);
    ASSERT_TRUE(put(images, bytes));
    images.find(nameOf(bytes));
    EXPECT_EQ(images.find(nameOf(bytes))->data()[8192], 0);
}

TEST_F(ImagesTest, WrongBytesAreNeitherKeptNorFound) {
    Images images(directory, 1 << 20);
    auto upload = images.begin(nameOf("right"));
    std::memcpy(upload->data(), "wrong", 5);
    EXPECT_FALSE(images.keep(std::move(upload)));
    EXPECT_EQ(images.find(nameOf("right")), nullptr);
    EXPECT_EQ(files(), 0u);
}

TEST_F(ImagesTest, TheLeastRecentlyUsedGivesWay) {
    Images images(directory, 10'000);
    for (const char c : {'a', 'b', 'c'}) {
        ASSERT_TRUE(put(images, std::string(3000, c)));
        images.find(nameOf(std::string(3000, c)));  // takes it out of memory
    }
    namespace fs = std::filesystem;
    const auto age = [&](char c, int hours) {
        std::string hex;
        for (const uint8_t byte : nameOf(std::string(3000, c)).sha256) {
            char two[3];
            std::snprintf(two, sizeof two, "%02x", byte);
            hex += two;
        }
        fs::last_write_time(fs::path(directory) / hex,
                            fs::file_time_type::clock::now() - std::chrono::hours(hours));
    };
    age('a', 1);
    age('b', 3);
    age('c', 2);
    ASSERT_TRUE(put(images, std::string(3000, 'd')));
    EXPECT_NE(images.find(nameOf(std::string(3000, 'a'))), nullptr);
    EXPECT_EQ(images.find(nameOf(std::string(3000, 'b'))), nullptr);
    EXPECT_NE(images.find(nameOf(std::string(3000, 'd'))), nullptr);
}

TEST_F(ImagesTest, WithoutADirectoryPartsStayInMemoryWithinTheLimit) {
    Images images("", 10'000);
    ASSERT_TRUE(put(images, std::string(6000, 'a')));
    EXPECT_NE(images.find(nameOf(std::string(6000, 'a'))), nullptr);
    EXPECT_NE(images.find(nameOf(std::string(6000, 'a'))), nullptr);
    ASSERT_TRUE(put(images, std::string(6000, 'b')));
    EXPECT_EQ(images.find(nameOf(std::string(6000, 'a'))), nullptr);
    EXPECT_FALSE(put(images, std::string(20'000, 'c')));
}

TEST_F(ImagesTest, ADirectoryThatCannotBeMadeIsDoneWithout) {
    std::ofstream(std::string(directory) + "/file") << "x";
    Images images(std::string(directory) + "/file/below", 1 << 20);
    EXPECT_TRUE(put(images, "bytes"));
    EXPECT_NE(images.find(nameOf("bytes")), nullptr);
}

TEST(Kernels, AListThatIsTooLongForOneReplyComesInPages) {
    KernelEntries kernels;
    for (int i = 0; i < 20'000; ++i)
        kernels.push_back(
            {"kernel_with_a_rather_long_name_" + std::to_string(i), {{0, 8}, {8, 4}}});
    size_t seen = 0;
    int pages = 0;
    while (seen < kernels.size()) {
        Writer out;
        putKernelPage(out, kernels, seen);
        ASSERT_LE(out.size(), wire::kMaxPayload / 2 + 8);
        Reader in(out.view());
        EXPECT_EQ(in.get<uint32_t>(), kernels.size());
        const auto count = in.get<uint32_t>();
        ASSERT_GT(count, 0u);
        seen += count;
        ++pages;
    }
    EXPECT_GT(pages, 1);
}

TEST(JitOptions, ScalarsPassAndAddressesDoNot) {
    JitOptions options;
    EXPECT_TRUE(options.add({CU_JIT_MAX_REGISTERS, 0, 32}));
    EXPECT_TRUE(options.add({CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, 0, 1u << 30}));
    EXPECT_FALSE(options.add({CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, 0, 10}));
    EXPECT_FALSE(options.add({CU_JIT_ERROR_LOG_BUFFER, 0, 0x1234}));
    EXPECT_FALSE(options.add({CU_JIT_GLOBAL_SYMBOL_ADDRESSES, 0, 0x1234}));
    EXPECT_FALSE(options.add({999, 0, 0}));
    ASSERT_EQ(options.count(), 3u);
    EXPECT_EQ(options.values()[0], handle(32));
    EXPECT_EQ(options.values()[2], handle(128 << 10));
    std::memcpy(options.values()[1], "bad", 4);
    Writer out;
    options.putLogs(out);
    Reader in(out.view());
    EXPECT_EQ(in.text(), "");
    EXPECT_EQ(in.text(), "bad");
    EXPECT_EQ(in.get<float>(), 0.0f);
}

TEST(Helpers, JobsThatBlockDoNotHoldEachOtherUp) {
    Helpers helpers;
    std::atomic<int> inside{0};
    std::atomic<bool> go{false};
    for (int i = 0; i < 20; ++i)
        ASSERT_TRUE(helpers.run([&] {
            ++inside;
            while (!go) std::this_thread::yield();
        }));
    while (inside < 20) std::this_thread::yield();
    go = true;
}

}  // namespace
}  // namespace juice::worker
