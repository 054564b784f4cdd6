// How the ends of a lane get to know each other, and when they refuse.
#include "native/link/handshake.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "native/link/frame.h"
#include "native/link/socket.h"
#include "native/link/test/loopback.h"

namespace juice::test {
namespace {

TEST(Handshake, IsRefusedWhenTheKeysDiffer) {
    Loopback ends({.wrongKey = true});
    EXPECT_EQ(ends.client, nullptr);
    EXPECT_EQ(ends.server, nullptr);
    EXPECT_NE(ends.serverError.find("does not prove"), std::string::npos) << ends.serverError;
    EXPECT_NE(ends.clientError.find("refused"), std::string::npos) << ends.clientError;
}

TEST(Handshake, IsRefusedWhenNoArenaIsCommon) {
    Loopback ends({.clientArenas = 1, .serverArenas = 2});
    EXPECT_EQ(ends.client, nullptr);
    EXPECT_EQ(ends.server, nullptr);
    EXPECT_NE(ends.clientError.find("no address arena"), std::string::npos) << ends.clientError;
}

TEST(Handshake, IsRefusedWithoutStagingMemory) {
    Loopback ends({.slots = 1});
    EXPECT_EQ(ends.client, nullptr);
    EXPECT_NE(ends.clientError.find("no staging memory"), std::string::npos) << ends.clientError;
}

TEST(Handshake, FailsWithASentenceWhenNobodyListens) {
    uint16_t port;
    {
        Listener listener;
        port = listener.port();
    }
    std::string error;
    EXPECT_EQ(ClientLink::connect({"127.0.0.1", port}, randomCredentials(), {}, error), nullptr);
    EXPECT_NE(error.find("no connection to 127.0.0.1"), std::string::npos) << error;
    EXPECT_EQ(ClientLink::connect({"no.such.host.invalid", 1}, randomCredentials(), {}, error),
              nullptr);
    EXPECT_NE(error.find("is unknown"), std::string::npos) << error;
}

TEST(Handshake, FailsWhenTheHostClosesTheConnection) {
    Listener listener;
    std::thread host([&] {
        wire::Preface preface;
        close(listener.accept(preface, 5000));
    });
    std::string error;
    EXPECT_EQ(ClientLink::connect({"127.0.0.1", listener.port()}, randomCredentials(), {}, error),
              nullptr);
    EXPECT_NE(error.find("closed the connection during the handshake"), std::string::npos) << error;
    host.join();
}

TEST(Handshake, RefusesAnImpostorOfTheWorker) {
    Listener listener;
    std::thread impostor([&] {
        wire::Preface preface;
        const int fd = listener.accept(preface, 5000);
        ClientOffer offer;
        std::string error;
        EXPECT_FALSE(admitLane(fd, randomCredentials(), preface, 0, offer, error));
        close(fd);
    });
    std::string error;
    EXPECT_EQ(ClientLink::connect({"127.0.0.1", listener.port()}, randomCredentials(), {}, error),
              nullptr);
    EXPECT_EQ(error, "the worker does not know the session's key");
    impostor.join();
}

TEST(Handshake, RefusesACopiedPrefaceWithoutTheKey) {
    Listener listener;
    const Credentials who = randomCredentials();
    std::string error;
    std::thread worker([&] {
        wire::Preface preface;
        const int fd = listener.accept(preface, 5000);
        ClientOffer offer;
        EXPECT_FALSE(admitLane(fd, who, preface, 0, offer, error));
        close(fd);
    });
    const int fd = connectTo(
        "127.0.0.1", listener.port(), 1000, [] { return false; }, error);
    const auto preface = makePreface(who, 0);  // as seen on the wire
    ASSERT_EQ(send(fd, &preface, sizeof preface, 0), ssize_t{sizeof preface});
    Writer hello;
    hello.put(wire::kVersion).put(uint32_t{0}).put(uint8_t{3}).put(uint32_t{1});
    hello.raw(std::array<uint8_t, 32>{}.data(), 32);
    const auto frame = immediateFrame(wire::Kind::hello, hello.view());
    ASSERT_EQ(send(fd, frame.data(), frame.size(), 0), static_cast<ssize_t>(frame.size()));
    worker.join();
    EXPECT_EQ(error, "the client does not know the process's key");
    close(fd);
}

TEST(Handshake, SaysWhichVersionTheOtherEndSpeaks) {
    Listener listener;
    std::thread worker([&] {
        wire::Preface preface;
        const int fd = listener.accept(preface, 5000);
        Writer hello;
        hello.put(uint16_t{2}).put(uint32_t{0});
        hello.raw(std::array<uint8_t, 48>{}.data(), 48);
        const auto frame = immediateFrame(wire::Kind::hello, hello.view());
        (void)!send(fd, frame.data(), frame.size(), 0);
        char byte;
        while (recv(fd, &byte, 1, 0) > 0) {
        }
        close(fd);
    });
    std::string error;
    EXPECT_EQ(ClientLink::connect({"127.0.0.1", listener.port()}, randomCredentials(), {}, error),
              nullptr);
    EXPECT_EQ(error, "the worker speaks version 2 of the link, this shim 1");
    worker.join();
}

}  // namespace
}  // namespace juice::test
