// A link without a worker: notes what is sent and answers as the test says.
#pragma once

#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "native/gen/opcodes.h"
#include "native/link/client_link.h"

namespace juice::shim::test {

struct Sent {
    Op op{};
    uint32_t thread = 0, context = 0;
    bool waited = false;
    std::vector<uint8_t> payload;
    template <typename T>
    T as() const {
        T value{};
        std::memcpy(&value, payload.data(), std::min(sizeof value, payload.size()));
        return value;
    }
};

class FakeLink final : public ClientLink {
  public:
    std::vector<Sent> sent;
    /// The answer to a waited call; by default success without results.
    std::function<Reply(const Sent&)> answer;
    std::map<uint64_t, std::vector<uint8_t>> transfers;  // towards the worker, by id
    std::map<uint64_t, std::pair<void*, size_t>> expected;
    std::set<uint64_t> landedTransfers, cancelled;
    std::function<void(int, uint16_t)> faultHandler;
    std::vector<std::vector<uint8_t>> patches;  // towards the worker
    PatchHandler patchHandler;
    OutputHandler outputHandler;
    std::function<void(const Callback&)> callbackHandler;
    std::vector<std::pair<uint64_t, std::vector<uint8_t>>> written;
    std::vector<uint64_t> calledBack;
    std::string brokenBecause;

    const Welcome& welcome() const override { return welcome_; }
    void post(uint16_t opcode, uint32_t thread, uint32_t context, Bytes payload) override {
        note(opcode, thread, context, payload, false);
    }
    Reply call(uint16_t opcode, uint32_t thread, uint32_t context, Bytes payload) override {
        return reply(note(opcode, thread, context, payload, true));
    }
    uint64_t ask(uint16_t opcode, uint32_t thread, uint32_t context, Bytes payload) override {
        answers_.push_back(reply(note(opcode, thread, context, payload, true)));
        return answers_.size();
    }
    Reply take(uint64_t request) override { return answers_.at(request - 1); }

    uint64_t expect(void* destination, size_t size) override {
        expected[++lastTransfer_] = {destination, size};
        return lastTransfer_;
    }
    bool landed(uint64_t transfer) const override { return landedTransfers.contains(transfer); }
    void cancel(uint64_t transfer) override {
        cancelled.insert(transfer);
        landedTransfers.insert(transfer);
    }
    uint64_t mintTransfer() override { return ++lastTransfer_; }
    void send(uint64_t transfer, const void* source, size_t size) override {
        const auto* const bytes = static_cast<const uint8_t*>(source);
        transfers[transfer].assign(bytes, bytes + size);
    }
    void onFault(std::function<void(int, uint16_t)> handler) override {
        faultHandler = std::move(handler);
    }
    void patch(Bytes pieces) override { patches.emplace_back(pieces.begin(), pieces.end()); }
    void onPatch(PatchHandler handler) override { patchHandler = std::move(handler); }
    void onOutput(OutputHandler handler) override { outputHandler = std::move(handler); }
    void onCallback(std::function<void(const Callback&)> handler) override {
        callbackHandler = std::move(handler);
    }
    bool awaitLanded(uint64_t) override { return !broken(); }
    void write(uint64_t address, const void* source, size_t size) override {
        const auto* const bytes = static_cast<const uint8_t*>(source);
        written.emplace_back(address, std::vector<uint8_t>(bytes, bytes + size));
    }
    void called(uint64_t id) override { calledBack.push_back(id); }
    bool broken() const override { return !brokenBecause.empty(); }
    std::string reason() const override { return brokenBecause; }
    void close() override {}
    void abandon() override {}
    void leave() override {}
    Counters counters() const override { return {}; }

    /// The calls of one kind, in order.
    std::vector<Sent> of(Op op) const {
        std::vector<Sent> found;
        for (const Sent& one : sent)
            if (one.op == op) found.push_back(one);
        return found;
    }

  private:
    const Sent& note(uint16_t opcode, uint32_t thread, uint32_t context, Bytes payload,
                     bool waited) {
        sent.push_back(
            {static_cast<Op>(opcode), thread, context, waited, {payload.begin(), payload.end()}});
        if (sent.back().op == Op::juiceWatch && patchHandler) patchHandler(++watches_, {});
        return sent.back();
    }
    Reply reply(const Sent& call) {
        Reply reply = answer ? answer(call) : Reply{};
        reply.broken = broken();
        return reply;
    }

    Welcome welcome_;
    std::vector<Reply> answers_;
    uint64_t lastTransfer_ = 0, watches_ = 0;
};

}  // namespace juice::shim::test
