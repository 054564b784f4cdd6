// How links end, in every state that they can be in.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "native/link/client_outbox.h"
#include "native/link/frame.h"
#include "native/link/socket.h"
#include "native/link/test/raw.h"
#include "native/link/test/rig.h"
#include "native/link/thread.h"

namespace juice::test {
namespace {

/// True when `condition` holds within two seconds.
bool soon(const std::function<bool()>& condition) {
    for (const int64_t end = nowNanos() + 2000 * kMilli; nowNanos() < end; napNanos(kMilli))
        if (condition()) return true;
    return condition();
}

TEST(Ending, AClosedLinkSaysGoodbyeAndAnswersNoMore) {
    Rig rig;
    ASSERT_FALSE(rig.call(kEcho, {}).broken);
    rig.client().close();
    EXPECT_TRUE(rig.client().broken());
    EXPECT_TRUE(rig.call(kEcho, {}).broken);
    EXPECT_EQ(rig.awaitEnding(), Ending::goodbye);
    EXPECT_EQ(rig.server().reason(), "the process ends");
    rig.joinExecutor();
    EXPECT_EQ(rig.endings, 1);
}

TEST(Ending, WhatWasPostedBeforeTheGoodbyeStillArrives) {
    Rig rig;
    for (uint64_t i = 0; i < 1000; ++i)
        rig.client().post(kNote, 1, 0, Writer().put(uint32_t{1}).put(i).view());
    rig.client().close();
    rig.joinExecutor();
    EXPECT_EQ(rig.notes().size(), 1000u);
}

TEST(Ending, AClientThatLeavesSaysGoodbyeBehindWhatItPosted) {
    Rig rig;
    for (uint64_t i = 0; i < 3; ++i)
        rig.client().post(kNote, 1, 0, Writer().put(uint32_t{1}).put(i).view());
    rig.client().leave();
    EXPECT_EQ(rig.awaitEnding(), Ending::goodbye);
    EXPECT_TRUE(soon([&] { return rig.notes().size() == 3; })) << rig.notes().size();
    rig.client().leave();
    rig.client().close();
}

TEST(Ending, AProcessMayLeaveInTheMiddleOfACall) {
    Outbox outbox(-1, [](int) {});
    const Outbox::Ticket ticket = outbox.ticket();
    std::thread([&] { EXPECT_FALSE(outbox.canSpeak(5 * kMilli)); }).join();
}

TEST(Ending, AGoodbyeIsNoticedAtOnceWhileTheExecutorIsBlocked) {
    Rig rig;
    rig.client().post(kSleep, 1, 0, Writer().put(uint32_t{1500}).view());
    napNanos(50 * kMilli);
    const int64_t begin = nowNanos();
    rig.client().close();
    EXPECT_EQ(rig.awaitEnding(), Ending::goodbye);
    EXPECT_LT(nowNanos() - begin, 500 * kMilli);
    EXPECT_EQ(rig.endings, 1);
}

TEST(Ending, AVanishedClientIsNoticedAtOnceWhileTheExecutorIsBlocked) {
    for (const bool abruptly : {false, true}) {
        RawClient raw;
        raw.send(callBytes(1, 0, kNote, {}));
        Call call;
        ASSERT_EQ(raw.server().next(call, 0, 2000), Next::call);
        raw.hangUp(abruptly);  // and this thread, the executor, does not come back to next()
        const Ending expected = abruptly ? Ending::reset : Ending::closed;
        EXPECT_TRUE(soon([&] { return raw.server().ending() == expected; }))
            << raw.server().reason();
        EXPECT_EQ(raw.server().next(call, 0, 0), Next::closed);
    }
}

TEST(Ending, AVanishedWorkerReleasesWhoWaits) {
    for (const bool abruptly : {false, true}) {
        RawServer raw;
        const auto asked = raw.client().ask(kEcho, 1, 0, {});
        ASSERT_TRUE(raw.skip(wire::kHeaderSize));
        raw.hangUp(abruptly);
        EXPECT_TRUE(raw.client().take(asked).broken);
        EXPECT_NE(raw.client().reason().find(abruptly ? "reset by peer" : "closed from the other"),
                  std::string::npos)
            << raw.client().reason();
    }
}

TEST(Ending, AVanishedWorkerIsNoticedWhenNobodyWaits) {
    RawServer raw;
    raw.hangUp();
    EXPECT_TRUE(soon([&] { return raw.client().broken(); }));
}

TEST(Ending, EveryWaitingThreadIsReleasedWhenTheWorkerGoes) {
    Rig rig({.run = false});
    std::vector<std::thread> threads;
    std::atomic<int> released{0};
    for (uint32_t t = 1; t <= 5; ++t)
        threads.emplace_back([&, t] {
            EXPECT_TRUE(rig.client().call(kEcho, t, 0, {}).broken);
            ++released;
        });
    napNanos(50 * kMilli);
    EXPECT_EQ(released, 0);
    rig.server().goodbye(wire::GoodbyeReason::session_ended, "the session has expired");
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(rig.client().reason(), "the worker said goodbye: the session has expired");
}

TEST(Ending, ASenderWithoutCreditIsReleasedWhenTheWorkerGoes) {
    for (const int lanes : {0, 2}) {
        Rig rig({.lanes = lanes, .slots = 4, .run = false});
        std::thread sender([&] {
            const std::vector<uint8_t> data(16u << 20);
            rig.client().send(rig.client().mintTransfer(), data.data(), data.size());
        });
        napNanos(50 * kMilli);
        rig.server().goodbye(wire::GoodbyeReason::session_ended, "over");
        sender.join();
        EXPECT_TRUE(rig.client().broken());
    }
}

TEST(Ending, AnExecutorThatWaitsForDataIsReleasedWhenTheClientGoes) {
    Rig rig;
    const uint64_t transfer = rig.client().mintTransfer();
    rig.client().ask(kUpload, 1, 0, Writer().put(transfer).put(uint64_t{1} << 20).view());
    napNanos(50 * kMilli);
    rig.client().close();
    rig.joinExecutor();
    EXPECT_EQ(rig.server().ending(), Ending::goodbye);
}

TEST(Ending, MemoryIsNotTouchedAnyMoreOnceTheLinkIsBroken) {
    for (const int lanes : {0, 4}) {
        Rig rig({.lanes = lanes});
        if (lanes > 0) rig.download(8u << 20);
        auto data = std::make_unique<std::vector<uint8_t>>(64u << 20);
        const uint64_t transfer = rig.client().expect(data->data(), data->size());
        Writer payload;
        payload.put(transfer).put(uint64_t{data->size()});
        rig.client().post(kDownload, 1, 0, payload.view());
        napNanos(5 * kMilli);
        rig.client().close();
        EXPECT_TRUE(rig.client().broken());
        data.reset();  // the sanitizers watch who still writes
        napNanos(20 * kMilli);
    }
}

TEST(Ending, AClientThatEndsInTheMiddleOfATransferLeavesNobodyWaiting) {
    for (const int lanes : {0, 4}) {
        Rig rig({.lanes = lanes});
        std::vector<uint8_t> data(64u << 20);
        std::thread sender([&] {
            const uint64_t transfer = rig.client().mintTransfer();
            Writer payload;
            payload.put(transfer).put(uint64_t{data.size()});
            rig.client().post(kUpload, 1, 0, payload.view());
            rig.client().send(transfer, data.data(), data.size());
        });
        napNanos(10 * kMilli);
        rig.client().close();
        sender.join();
        rig.joinExecutor();
        EXPECT_NE(rig.server().ending(), Ending::open);
        EXPECT_NE(rig.server().ending(), Ending::violation) << rig.server().reason();
    }
}

/// The network of this thread, and of those that it starts, is a loopback of their own.
bool ownNetwork() {
    return unshare(CLONE_NEWNET) == 0;
}

void setLoopback(bool up) {
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ifreq request{};
    std::strcpy(request.ifr_name, "lo");
    request.ifr_flags = up ? IFF_UP | IFF_RUNNING : 0;
    EXPECT_EQ(ioctl(fd, SIOCSIFFLAGS, &request), 0);
    close(fd);
}

TEST(Ending, APeerThatVanishesFromTheNetworkIsGivenUpInTenSeconds) {
    bool possible = true;
    std::thread apart([&] {
        if (!(possible = ownNetwork())) return;
        setLoopback(true);
        Rig quiet({.run = false}), talking({.run = false});
        const auto asked = quiet.client().ask(kEcho, 1, 0, {});
        std::thread sender([&] {
            const std::vector<uint8_t> data(8u << 20);
            napNanos(100 * kMilli);
            talking.client().send(talking.client().mintTransfer(), data.data(), data.size());
        });
        napNanos(50 * kMilli);
        setLoopback(false);
        const int64_t begin = nowNanos();
        EXPECT_TRUE(quiet.client().take(asked).broken);
        sender.join();
        while (!talking.client().broken() || quiet.server().ending() == Ending::open)
            napNanos(10 * kMilli);
        EXPECT_LT(nowNanos() - begin, 13'000 * kMilli);
        EXPECT_EQ(quiet.server().ending(), Ending::reset) << quiet.server().reason();
    });
    apart.join();
    if (!possible) GTEST_SKIP() << "a network of one's own is not allowed here";
}

TEST(Ending, AClientThatIsStoppedForLongIsWaitedFor) {
    RawClient raw;
    const auto data = pattern(1, 32u << 20);
    const uint64_t ordinal = raw.server().beginSend(1, data.size());
    std::atomic<bool> sent{false};
    raw.server().sendPiece(1, ordinal, 0, data.data(), data.size(), [&] { sent = true; });
    napNanos(15'000 * kMilli);  // longer than a vanished peer is given
    EXPECT_FALSE(sent);
    ASSERT_EQ(raw.server().ending(), Ending::open) << raw.server().reason();
    std::vector<uint8_t> payload;
    for (size_t seen = 0; seen < data.size(); seen += payload.size() - wire::kChunkHeader) {
        wire::Header header;
        ASSERT_TRUE(raw.receive(&header, sizeof header));
        payload.resize(header.size);
        ASSERT_TRUE(raw.receive(payload.data(), payload.size()));
        ASSERT_EQ(std::memcmp(payload.data() + wire::kChunkHeader, data.data() + seen,
                              payload.size() - wire::kChunkHeader),
                  0);
    }
    EXPECT_TRUE(soon([&] { return sent.load(); }));
}

TEST(Ending, AnIdleLinkTakesNoProcessorTime) {
    Rig rig({.lanes = 2});
    rig.upload(5u << 20);
    rig.download(5u << 20);
    napNanos(200 * kMilli);
    const auto used = [] {
        rusage usage;
        getrusage(RUSAGE_SELF, &usage);
        return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1'000'000 +
               usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
    };
    const auto before = used();
    napNanos(500 * kMilli);
    EXPECT_LT(used() - before, 25'000) << "microseconds in half a second";
}

TEST(Ending, TheChildOfAForkGivesTheLinkUpWithoutHarmToTheParent) {
    Rig rig;
    rig.upload(100'000);
    const pid_t child = fork();
    if (child == 0) {
        rig.client().abandon();
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    for (int i = 0; i < 10; ++i) ASSERT_FALSE(rig.call(kEcho, {}).broken);
}

TEST(Ending, DescriptorsAreHighAndCloseOnExec) {
    const int before = dup(0);
    close(before);
    Rig rig;
    rig.upload(100'000);
    // All that the client opened lies above; only the rig's own listener and such are low.
    const int fd = moveHigh(dup(0));
    EXPECT_GE(fd, 500);
    EXPECT_EQ(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    close(fd);
}

TEST(Ending, AProgramsSignalHandlerDoesNotDisturbAWait) {
    Rig rig;
    struct sigaction action {};
    action.sa_handler = [](int) {};  // without SA_RESTART
    sigaction(SIGUSR1, &action, nullptr);
    std::atomic<bool> done{false};
    const pthread_t self = pthread_self();
    std::thread pesterer([&] {
        while (!done) {
            pthread_kill(self, SIGUSR1);
            napNanos(kMilli);
        }
    });
    for (int i = 0; i < 5; ++i) {
        EXPECT_FALSE(rig.call(kSleep, Writer().put(uint32_t{20})).broken);
        rig.upload(3u << 20);
        rig.download(3u << 20);
    }
    done = true;
    pesterer.join();
}

TEST(Ending, ALaneOfAStrangerIsTurnedAway) {
    Rig rig;
    const auto stranger = randomCredentials();
    int pair[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    rig.server().addLane(pair[0], makePreface(stranger, 1));
    char byte;
    EXPECT_EQ(recv(pair[1], &byte, 1, 0), 0);
    close(pair[1]);
    EXPECT_FALSE(rig.call(kEcho, {}).broken);
}

TEST(Ending, ALaneWithACopiedPrefaceIsTurnedAwayAfterItsHello) {
    Rig rig;
    int pair[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    rig.server().addLane(pair[0], makePreface(rig.credentials(), 1));
    close(pair[1]);
    napNanos(50 * kMilli);
    EXPECT_FALSE(rig.call(kEcho, {}).broken) << "the link goes on without the lane";
    EXPECT_TRUE(soon([&] { return rig.server().ending() == Ending::open; }));
}

}  // namespace
}  // namespace juice::test
