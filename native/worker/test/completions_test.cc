// Completions against a driver of a few lines: streams are counters of what they have executed.
#include "native/worker/completions.h"

#include <gtest/gtest.h>

#include <chrono>

namespace juice::worker {
namespace {

struct FakeEvent {
    CUstream stream;
    int position;
};
std::mutex fakeMutex;
std::map<CUstream, int> recorded, executed;
CUresult fault = CUDA_SUCCESS;

CUresult createEvent(CUevent* out, unsigned) {
    *out = reinterpret_cast<CUevent>(new FakeEvent{});
    return CUDA_SUCCESS;
}
CUresult recordEvent(CUevent event, CUstream stream) {
    const std::lock_guard lock(fakeMutex);
    *reinterpret_cast<FakeEvent*>(event) = {stream, ++recorded[stream]};
    return fault;
}
CUresult queryEvent(CUevent event) {
    const std::lock_guard lock(fakeMutex);
    const auto* fake = reinterpret_cast<FakeEvent*>(event);
    if (fault != CUDA_SUCCESS) return fault;
    return executed[fake->stream] >= fake->position ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
CUresult setCurrent(CUcontext) {
    return CUDA_SUCCESS;
}

class CompletionsTest : public testing::Test {
  protected:
    void SetUp() override {
        const std::lock_guard lock(fakeMutex);
        recorded.clear();
        executed.clear();
        fault = CUDA_SUCCESS;
        driver.cuEventCreate = createEvent;
        driver.cuEventRecord = recordEvent;
        driver.cuEventQuery = queryEvent;
        driver.cuCtxSetCurrent = setCurrent;
    }
    static CUstream stream(uint64_t n) { return reinterpret_cast<CUstream>(n << 4); }
    static CUcontext context(uint64_t n) { return reinterpret_cast<CUcontext>(n << 8); }
    static void execute(CUstream of, int count) {
        const std::lock_guard lock(fakeMutex);
        executed[of] += count;
    }
    static void waitUntil(const std::function<bool()>& holds) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (!holds() && std::chrono::steady_clock::now() < end)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        EXPECT_TRUE(holds());
    }
    DriverTable driver{};
};

TEST_F(CompletionsTest, WhatIsDueIsDoneInOrderWithoutAnybodyAsking) {
    Completions completions(driver);
    std::vector<int> order;
    std::atomic<int> done{0};
    for (int i = 0; i < 3; ++i)
        completions.after(context(1), stream(1), false, [&, i](CUresult result) {
            EXPECT_EQ(result, CUDA_SUCCESS);
            order.push_back(i);
            ++done;
        });
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(done, 0);
    execute(stream(1), 2);
    waitUntil([&] { return done == 2; });
    execute(stream(1), 1);
    waitUntil([&] { return done == 3; });
    EXPECT_EQ(order, (std::vector<int>{0, 1, 2}));
}

TEST_F(CompletionsTest, DeliverHasDoneAllThatIsDueWhenItReturns) {
    Completions completions(driver);
    for (int round = 0; round < 2000; ++round) {
        std::atomic<bool> sent{false};
        completions.after(context(1), stream(1), true, [&](CUresult) { sent = true; });
        execute(stream(1), 1);
        completions.deliver();
        ASSERT_TRUE(sent);
    }
}

TEST_F(CompletionsTest, OneContextsLegacyStreamDoesNotHoldUpAnothers) {
    Completions completions(driver);
    // The same handle in both contexts; here only the second has got there.
    std::atomic<bool> first{false}, second{false};
    completions.after(context(1), stream(1), true, [&](CUresult) { first = true; });
    completions.after(context(2), nullptr, true, [&](CUresult) { second = true; });
    completions.after(context(1), nullptr, true, [&](CUresult) { first = true; });
    execute(nullptr, 1);
    completions.deliver();
    EXPECT_TRUE(second);
    EXPECT_FALSE(first);
    execute(nullptr, 1);
    execute(stream(1), 1);
    completions.deliver();
    EXPECT_TRUE(first);
}

TEST_F(CompletionsTest, ANewStreamUnderAnOldHandleIsNotHeldUpByTheOldOne) {
    Completions completions(driver);
    std::atomic<bool> old{false}, young{false};
    completions.after(context(1), stream(1), true, [&](CUresult) { old = true; });
    completions.retire(context(1), stream(1));
    {
        // The old stream's work is stuck; the new one's position counts for itself.
        const std::lock_guard lock(fakeMutex);
        recorded[stream(1)] = -10;
        executed[stream(1)] = -9;
    }
    completions.after(context(1), stream(1), true, [&](CUresult) { young = true; });
    completions.deliver();
    EXPECT_TRUE(young);
    EXPECT_FALSE(old);
    execute(stream(1), 100);
    completions.deliver();
    EXPECT_TRUE(old);
}

TEST_F(CompletionsTest, AnErrorEndsAllThatIsPending) {
    Completions completions(driver);
    std::atomic<int> results{0};
    for (int i = 0; i < 3; ++i)
        completions.after(context(1), stream(i + 1), false,
                          [&](CUresult result) { results += result; });
    {
        const std::lock_guard lock(fakeMutex);
        fault = CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    waitUntil([&] { return results == 3 * CUDA_ERROR_ILLEGAL_ADDRESS; });
    completions.after(context(1), stream(1), false, [&](CUresult result) { results = result; });
    EXPECT_EQ(results, CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(CompletionsTest, AForgottenContextLeavesOthersAlone) {
    Completions completions(driver);
    std::atomic<int> gone{0}, kept{0};
    completions.after(context(1), stream(1), true, [&](CUresult result) { gone = result; });
    completions.after(context(2), stream(2), true, [&](CUresult) { kept = 1; });
    completions.forget(context(1));
    EXPECT_EQ(gone, CUDA_ERROR_CONTEXT_IS_DESTROYED);
    EXPECT_EQ(kept, 0);
    execute(stream(2), 1);
    completions.deliver();
    EXPECT_EQ(kept, 1);
}

}  // namespace
}  // namespace juice::worker
