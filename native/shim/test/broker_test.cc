#include "native/shim/broker.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "native/abi/cuda_result.h"

namespace juice::broker {
namespace {

/// Answers one request with what `reply` makes of it.
class FakeBroker {
  public:
    explicit FakeBroker(std::function<Writer(Reader)> reply) {
        char directory[] = "/tmp/juice-broker-XXXXXX";
        directory_ = mkdtemp(directory);
        path_ = directory_ + "/socket";
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::strcpy(address.sun_path, path_.c_str());
        fd_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
        EXPECT_EQ(listen(fd_, 1), 0);
        setenv("JUICE_BROKER", path_.c_str(), 1);
        thread_ = std::thread([this, reply] {
            const int client = accept(fd_, nullptr, nullptr);
            uint8_t request[16];
            EXPECT_EQ(recv(client, request, sizeof request, MSG_WAITALL), 16);
            Reader in{Bytes(request)};
            EXPECT_EQ(in.get<uint32_t>(), 12u);
            const Writer out = reply(in);
            send(client, out.data(), out.size(), MSG_NOSIGNAL);
            ::close(client);
        });
    }
    ~FakeBroker() {
        thread_.join();
        ::close(fd_);
        unlink(path_.c_str());
        rmdir(directory_.c_str());
        unsetenv("JUICE_BROKER");
    }

  private:
    std::string directory_, path_;
    int fd_ = -1;
    std::thread thread_;
};

Writer framed(const Writer& body) {
    Writer out;
    out.bytes(body.data(), body.size());
    return out;
}

TEST(Broker, GivesAnIdentityAndTheDevices) {
    Snapshot snapshot;
    snapshot.driverVersion = 13000;
    snapshot.devices.resize(2);
    snapshot.peer = {0, 0, 0, 0};
    const FakeBroker broker([&](Reader in) {
        EXPECT_EQ(in.get<uint32_t>(), 1u);
        EXPECT_EQ(in.get<uint32_t>(), 2u);
        EXPECT_EQ(in.get<uint32_t>(), static_cast<uint32_t>(getpid()));
        Writer body;
        body.put(uint32_t{1}).put(int32_t{0});
        for (uint8_t i = 0; i < 16; ++i) body.put(i);
        body.put(uint64_t{7});
        for (uint8_t i = 0; i < 32; ++i) body.put(static_cast<uint8_t>(100 + i));
        const auto encoded = snapshot.encode();
        body.text("gpu.example").put(uint16_t{4242}).bytes(encoded.data(), encoded.size());
        return framed(body);
    });
    const Answer answer = ask(Ask::process);
    EXPECT_EQ(answer.result, 0) << answer.sentence;
    EXPECT_EQ(answer.who.process, 7u);
    EXPECT_EQ(answer.who.session[15], 15);
    EXPECT_EQ(answer.who.key[31], 131);
    EXPECT_EQ(answer.endpoint.host, "gpu.example");
    EXPECT_EQ(answer.endpoint.port, 4242);
    EXPECT_EQ(answer.snapshot.devices.size(), 2u);
}

TEST(Broker, RefusesWithAResultAndASentence) {
    const FakeBroker broker([](Reader) {
        Writer body;
        body.put(uint32_t{1}).put(int32_t{46}).text("the host is gone");
        return framed(body);
    });
    const Answer answer = ask(Ask::process);
    EXPECT_EQ(answer.result, 46);
    EXPECT_EQ(answer.sentence, "the host is gone");
}

TEST(Broker, OfAnotherVersionIsNamed) {
    const FakeBroker broker([](Reader) {
        Writer body;
        body.put(uint32_t{9}).put(int32_t{0});
        return framed(body);
    });
    const Answer answer = ask(Ask::snapshot);
    EXPECT_EQ(answer.result, CUDA_ERROR_NO_DEVICE);
    EXPECT_NE(answer.sentence.find("version 9"), std::string::npos) << answer.sentence;
}

TEST(Broker, ThatSendsGarbageOrNothingIsAnErrorNotACrash) {
    {
        const FakeBroker broker([](Reader) {
            Writer body;
            body.put(uint32_t{1}).put(int32_t{0}).put(uint64_t{3});
            return framed(body);
        });
        EXPECT_EQ(ask(Ask::snapshot).result, CUDA_ERROR_DEVICE_UNAVAILABLE);
    }
    {
        const FakeBroker broker([](Reader) {
            Writer huge;
            huge.put(uint32_t{0xffffffff});
            return huge;
        });
        EXPECT_EQ(ask(Ask::snapshot).result, CUDA_ERROR_DEVICE_UNAVAILABLE);
    }
    {
        const FakeBroker broker([](Reader) { return Writer(); });
        EXPECT_EQ(ask(Ask::snapshot).result, CUDA_ERROR_DEVICE_UNAVAILABLE);
    }
}

TEST(Broker, ThatIsNotThereIsNoDevice) {
    unsetenv("JUICE_BROKER");
    EXPECT_FALSE(attached());
    Answer answer = ask(Ask::snapshot);
    EXPECT_EQ(answer.result, CUDA_ERROR_NO_DEVICE);
    EXPECT_NE(answer.sentence.find("juice attach -- program"), std::string::npos);
    setenv("JUICE_BROKER", "/nonexistent/socket", 1);
    answer = ask(Ask::snapshot);
    EXPECT_EQ(answer.result, CUDA_ERROR_NO_DEVICE);
    EXPECT_NE(answer.sentence.find("/nonexistent/socket"), std::string::npos);
    setenv("JUICE_BROKER", std::string(300, 'x').c_str(), 1);
    EXPECT_EQ(ask(Ask::snapshot).result, CUDA_ERROR_NO_DEVICE);
    unsetenv("JUICE_BROKER");
}

}  // namespace
}  // namespace juice::broker
