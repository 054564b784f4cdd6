// What a link costs over loopback: link_bench [seconds for each figure, default 1]
//
//   ping-pong       one byte there and back over a bare TCP socket, both ends spinning: the floor
//   round trip      a waited Call with 64 bytes of payload
//   launch + sync   a posted Call of 256 bytes and a waited one
//   post            a posted Call of 256 bytes, as the calling thread sees it
//   upload/download bulk transfers of 64 MiB for each number of bulk lanes
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "native/link/socket.h"
#include "native/link/test/loopback.h"
#include "native/link/thread.h"

namespace juice::test {
namespace {

enum Opcode : uint16_t { kPost = 1, kSync = 2, kUpload = 3, kDownload = 4, kWork = 5 };

void serve(ServerLink& server, std::vector<uint8_t>& memory) {
    Call call;
    while (server.next(call, 200, -1) == Next::call) {
        Reader in(call.payload);
        wire::ReplyHead head{};
        if (call.header.opcode == kUpload) {
            const auto transfer = in.get<uint64_t>();
            const auto size = in.get<uint64_t>();
            server.receive(transfer, size, [&](uint64_t offset, void* slot, size_t bytes) {
                std::memcpy(memory.data() + offset, slot, bytes);
                server.release(slot);
            });
        } else if (call.header.opcode == kDownload) {
            const auto transfer = in.get<uint64_t>();
            const auto size = in.get<uint64_t>();
            const auto ordinal = server.beginSend(transfer, size);
            server.sendPiece(transfer, ordinal, 0, memory.data(), size, [] {});
        } else if (call.header.opcode == kWork) {
            for (const int64_t end = nowNanos() + 5 * kMicro; nowNanos() < end;) {
            }
        }
        if (call.header.request != 0) server.reply(call.header, head, {});
        server.executed(call.header);
    }
}

struct Figure {
    double median, p99;
};

/// Repeats `once` for so long, in microseconds a time.
template <typename F>
Figure measure(double seconds, const F& once) {
    std::vector<double> times;
    for (int i = 0; i < 200; ++i) once();
    for (const int64_t end = nowNanos() + static_cast<int64_t>(seconds * 1e9); nowNanos() < end;) {
        const int64_t begin = nowNanos();
        once();
        times.push_back(static_cast<double>(nowNanos() - begin) / 1e3);
    }
    std::sort(times.begin(), times.end());
    return {times[times.size() / 2], times[times.size() * 99 / 100]};
}

void report(const char* what, Figure figure) {
    std::printf("%-16s %8.2f us median %8.2f us p99\n", what, figure.median, figure.p99);
    std::fflush(stdout);
}

void pingPong(double seconds) {
    Listener listener;
    std::string error;
    std::thread echo([&] {
        wire::Preface preface;
        const int fd = listener.accept(preface, 5000);
        tuneSocket(fd);
        char byte;
        for (;;) {
            const ssize_t got = recv(fd, &byte, 1, MSG_DONTWAIT);
            if (got == 0) break;
            if (got > 0) (void)!send(fd, &byte, 1, MSG_NOSIGNAL);
            if (got < 0) spinTurn();
        }
        close(fd);
    });
    const int fd = connectTo(
        "127.0.0.1", listener.port(), 5000, [] { return false; }, error);
    const wire::Preface preface{};
    (void)!send(fd, &preface, sizeof preface, 0);
    report("ping-pong", measure(seconds, [&] {
               char byte = 1;
               (void)!send(fd, &byte, 1, MSG_NOSIGNAL);
               while (recv(fd, &byte, 1, MSG_DONTWAIT) < 0) spinTurn();
           }));
    close(fd);
    echo.join();
}

void calls(double seconds) {
    Loopback ends;
    std::vector<uint8_t> memory;
    std::thread worker([&] { serve(*ends.server, memory); });
    ClientLink& client = *ends.client;
    const std::vector<uint8_t> small(64), launch(256);
    report("round trip", measure(seconds, [&] { client.call(kSync, 1, 0, small); }));
    report("launch + sync", measure(seconds, [&] {
               client.post(kWork, 1, 0, launch);
               client.call(kSync, 1, 0, {});
           }));
    // Ten at a time with a sync in between, so that the window never fills.
    double worst = 0, best = 1e9, sum = 0;
    int rounds = 0;
    for (const int64_t end = nowNanos() + static_cast<int64_t>(seconds * 1e9); nowNanos() < end;) {
        constexpr int kPosts = 1000;
        const int64_t begin = nowNanos();
        for (int i = 0; i < kPosts; ++i) client.post(kPost, 1, 0, launch);
        const double each = static_cast<double>(nowNanos() - begin) / 1e3 / kPosts;
        client.call(kSync, 1, 0, {});
        best = std::min(best, each);
        worst = std::max(worst, each);
        sum += each;
        ++rounds;
    }
    std::printf("%-16s %8.2f us mean %8.2f us best %8.2f us worst of bursts of 1000\n", "post",
                sum / rounds, best, worst);
    ends.client->close();
    worker.join();
}

void bulk(double seconds, int lanes) {
    constexpr size_t kSize = 64u << 20;
    Loopback ends({.lanes = lanes});
    std::vector<uint8_t> theirs(kSize), mine(kSize, 7);
    std::thread worker([&] { serve(*ends.server, theirs); });
    ClientLink& client = *ends.client;
    const auto upload = [&] {
        const uint64_t transfer = client.mintTransfer();
        Writer payload;
        payload.put(transfer).put(uint64_t{kSize});
        const auto request = client.ask(kUpload, 1, 0, payload.view());
        client.send(transfer, mine.data(), kSize);
        client.take(request);
    };
    const auto download = [&] {
        Writer payload;
        payload.put(client.expect(mine.data(), kSize)).put(uint64_t{kSize});
        client.call(kDownload, 1, 0, payload.view());
    };
    const auto rate = [&](const auto& once) {
        once();  // opens the lanes
        napNanos(20 * kMilli);
        int times = 0;
        const int64_t begin = nowNanos();
        for (const int64_t end = begin + static_cast<int64_t>(seconds * 1e9); nowNanos() < end;
             ++times)
            once();
        return static_cast<double>(times) * kSize / static_cast<double>(nowNanos() - begin);
    };
    const double up = rate(upload), down = rate(download);
    std::printf("%d bulk lanes     upload %6.2f GB/s   download %6.2f GB/s\n", lanes, up, down);
    std::fflush(stdout);
    ends.client->close();
    worker.join();
}

}  // namespace
}  // namespace juice::test

int main(int count, char** arguments) {
    const double seconds = count > 1 ? std::atof(arguments[1]) : 1;
    juice::test::pingPong(seconds);
    juice::test::calls(seconds);
    for (const int lanes : {0, 1, 2, 4, 8}) juice::test::bulk(seconds, lanes);
    return 0;
}
