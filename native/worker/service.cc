#include "native/worker/service.h"

#include <unistd.h>

#include <chrono>

#include "native/link/wire.h"

namespace juice::worker {
namespace {

/// How often usage is published, and the link's end looked for, while a client is attached.
constexpr int kTickMillis = 100;
/// What the executor gets to run what the client posted before it said goodbye.
constexpr int64_t kDrainMillis = 500;

int64_t nowMillis() {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

}  // namespace

Service::Service(Control& control, UsagePage& usage, Output& output, Machine& machine,
                 Staging& staging, Images& images, uint8_t arenas, std::string description)
    : control_(control),
      usage_(usage),
      output_(output),
      machine_(machine),
      staging_(staging),
      images_(images),
      arenas_(arenas),
      description_(std::move(description)) {}

void Service::run() {
    for (;;) {
        Control::Message message;
        switch (control_.receive(message, served_ ? kTickMillis : -1)) {
            case Control::Received::message:
                receive(std::move(message));
                break;
            case Control::Received::nothing:
                break;
            case Control::Received::closed:
                end(Ending::open, "the host has gone");
        }
        watchEnding();
    }
}

void Service::receive(Control::Message message) {
    switch (message.kind) {
        case ControlKind::claim:
            return claim(message.reader());
        case ControlKind::lane:
            return lane(std::move(message));
        case ControlKind::end: {
            Reader in = message.reader();
            const auto reason = static_cast<wire::GoodbyeReason>(in.get<uint16_t>());
            const std::string sentence(in.text());
            std::shared_ptr<ServerLink> link;
            {
                const std::lock_guard lock(mutex_);
                link = link_;
            }
            takeLastWord();
            if (link != nullptr) link->goodbye(reason, sentence);
            sayLast(Ending::open, sentence);
        }
        default:
            end(Ending::open, "the host sent a message that this worker does not know");
    }
}

void Service::claim(Reader in) {
    in.raw(who_.session.data(), who_.session.size());
    in.get(who_.process);
    in.raw(who_.key.data(), who_.key.size());
    in.get(memoryLimit_);
    if (!in.done() || claimed_) end(Ending::open, "the host's claim is malformed or not its first");
    claimed_ = true;
}

void Service::lane(Control::Message message) {
    Lane lane{message.fd, {}};
    if (message.payload.size() == sizeof lane.preface)
        std::memcpy(&lane.preface, message.payload.data(), sizeof lane.preface);
    if (!claimed_ || lane.fd < 0 || message.payload.size() != sizeof lane.preface)
        end(Ending::open, "the host passed a connection before its claim, or without its preface");
    if (!served_) {
        served_ = true;
        executor_ = std::thread([this, lane] { serve(lane); });
        return;
    }
    const std::lock_guard lock(mutex_);
    if (link_ == nullptr)
        early_.push_back(lane);
    else
        link_->addLane(lane.fd, lane.preface);
}

void Service::serve(Lane lane) {
    ServerLink::Options options;
    options.fd = lane.fd;
    options.preface = lane.preface;
    options.who = who_;
    options.arenas = arenas_;
    options.worker = description_;
    options.slots = staging_.slots();
    std::string error;
    std::shared_ptr<ServerLink> link = ServerLink::accept(std::move(options), error);
    if (link == nullptr) end(Ending::closed, error);

    usage_.clientPid.store(link->clientPid(), std::memory_order_relaxed);
    Writer attached;
    attached.put(link->clientPid());
    control_.send(ControlKind::attached, attached.view());
    output_.attach(link);
    auto worker = std::make_shared<Worker>(machine_.driver, *link, output_, staging_, images_,
                                           usage_, machine_.contexts, memoryLimit_);
    {
        const std::lock_guard lock(mutex_);
        link_ = link;
        worker_ = worker;
        for (const Lane& early : early_) link->addLane(early.fd, early.preface);
        early_.clear();
    }
    const bool sound = worker->run();
    end(sound ? link->ending() : Ending::violation, sound ? link->reason() : worker->violation());
}

void Service::watchEnding() {
    std::shared_ptr<ServerLink> link;
    {
        const std::lock_guard lock(mutex_);
        if (worker_ == nullptr) return;
        worker_->publishUsage();
        link = link_;
    }
    if (link->ending() == Ending::open) return;
    if (endingSince_ == 0) endingSince_ = nowMillis();
    if (nowMillis() - endingSince_ >= kDrainMillis) end(link->ending(), link->reason());
}

void Service::end(Ending ending, const std::string& sentence) {
    takeLastWord();
    sayLast(ending, sentence);
}

void Service::takeLastWord() {
    // Where the other thread has it, the process is about to end.
    while (ended_.exchange(true)) pause();
}

void Service::sayLast(Ending ending, const std::string& sentence) {
    {
        const std::lock_guard lock(mutex_);
        if (worker_ != nullptr) worker_->publishUsage();
    }
    output_.flush();
    usage_.ending.store(static_cast<uint64_t>(ending), std::memory_order_relaxed);
    Writer out;
    out.put(static_cast<uint8_t>(ending))
        .put(static_cast<int32_t>(usage_.lastError.load(std::memory_order_relaxed)))
        .text(sentence);
    control_.send(ControlKind::ended, out.view());
    _exit(0);
}

}  // namespace juice::worker
