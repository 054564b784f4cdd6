#include "native/link/client_outflow.h"

#include <algorithm>
#include <cerrno>

namespace juice {
namespace {

/// On the command lane chunks are shorter, so that Calls of other threads get in between.
constexpr size_t kShortChunk = 256u << 10;

}  // namespace

void Outflow::Chunk::parts(iovec (&out)[3]) {
    out[0] = {&header, sizeof header};
    out[1] = {&head, sizeof head};
    out[2] = {const_cast<uint8_t*>(job->from + head.offset), size};
}

uint64_t Outflow::mint() {
    std::lock_guard lock(desk_.state);
    grants_.emplace(++lastTransfer_, 0);
    return lastTransfer_;
}

bool Outflow::payable(const Job& job) const {
    if (credit_ >= wire::kChunkSize) return true;
    const auto granted = grants_.find(job.transfer);
    return granted != grants_.end() && granted->second >= wire::kChunkSize;
}

Outflow::Chunk Outflow::take(Job& job, size_t most) {
    Chunk chunk;
    chunk.job = &job;
    chunk.size = std::min<uint64_t>(most, job.size - job.next);
    chunk.head = {job.transfer, 0, job.next};
    // A grant first: it lapses, credit does not.
    uint64_t& granted = grants_[job.transfer];
    const bool useGrant = granted >= wire::kChunkSize;
    (useGrant ? granted : credit_) -= wire::kChunkSize;
    chunk.header = immediate(wire::Kind::chunk, wire::kChunkHeader + chunk.size,
                             useGrant ? wire::kGranted : wire::kNone);
    job.next += chunk.size;
    ++job.sending;
    return chunk;
}

void Outflow::sent(const Chunk& chunk) {
    bytesSent_.fetch_add(chunk.size + sizeof chunk.header + sizeof chunk.head,
                         std::memory_order_relaxed);
    --chunk.job->sending;
    chunk.job->unsent -= chunk.size;
}

void Outflow::send(uint64_t transfer, const void* source, uint64_t size, bool bulk) {
    Job job{transfer, static_cast<const uint8_t*>(source), size, bulk};
    job.unsent = size;
    std::unique_lock lock(desk_.state);
    if (size == 0 || desk_.closed()) {
        grants_.erase(transfer);
        return;
    }
    jobs_.push_back(&job);
    if (bulk && lanes_ > 0) {
        work_.notify_all();
        lock.unlock();
        outbox_.flush();  // the Call that names the transfer
        lock.lock();
    }
    while (job.next < job.size && !desk_.closed()) {
        if (job.bulk && lanes_ > 0) {
            lock.unlock();
            WaiterFor sentAll([&] { return job.unsent == 0; });
            desk_.wait(sentAll);
            lock.lock();
        } else if (payable(job)) {
            sendOnCommandLane(job, lock);
        } else {
            lock.unlock();
            outbox_.flush();
            WaiterFor maySend([&] { return payable(job) || (job.bulk && lanes_ > 0); });
            desk_.wait(maySend);
            lock.lock();
        }
    }
    jobs_.remove(&job);
    grants_.erase(transfer);
    // The bulk senders may still be reading the memory; the link being over, they stop soon.
    work_.wait(lock, [&] { return job.sending == 0; });
}

void Outflow::sendOnCommandLane(Job& job, std::unique_lock<std::mutex>& lock) {
    Chunk chunk = take(job, kShortChunk);
    lock.unlock();
    iovec parts[3];
    chunk.parts(parts);
    outbox_.send(parts, 3);
    lock.lock();
    sent(chunk);
}

std::string Outflow::credit(uint64_t bytes, uint64_t transfer) {
    if (bytes == 0 || bytes % wire::kChunkSize != 0 || bytes > window_)
        return "a credit of " + std::to_string(bytes) + " bytes";
    if (transfer == 0) {
        if (bytes > window_ - credit_) return "more credit than its window";
        credit_ += bytes;
    } else {
        if (transfer > lastTransfer_) return "a grant for a transfer that does not exist";
        const auto granted = grants_.find(transfer);
        if (granted == grants_.end()) return {};  // complete meanwhile: the grant has lapsed
        if (bytes > window_ - std::min(window_, granted->second))
            return "more grants than its window";
        granted->second += bytes;
    }
    work_.notify_all();
    desk_.settle();
    return {};
}

Outflow::Job* Outflow::nextBulkJob() {
    for (Job* job : jobs_)
        if (job->bulk && job->next < job->size && payable(*job)) return job;
    return nullptr;
}

void Outflow::serve(int fd, const std::function<void(int)>& failed) {
    std::unique_lock lock(desk_.state);
    while (!desk_.closed()) {
        Job* job = nextBulkJob();
        if (job == nullptr) {
            work_.wait(lock);
            continue;
        }
        Chunk chunk = take(*job, wire::kChunkSize);
        lock.unlock();
        iovec parts[3];
        chunk.parts(parts);
        const Sent result = sendAll(fd, parts, 3, [this] { return desk_.closed(); });
        const int cause = errno;
        lock.lock();
        sent(chunk);
        desk_.settle();
        if (job->sending == 0) work_.notify_all();
        if (result == Sent::all) continue;
        lock.unlock();
        if (result == Sent::failed) failed(cause);
        return;
    }
}

void Outflow::laneReady() {
    std::lock_guard lock(desk_.state);
    ++lanes_;
    work_.notify_all();
    desk_.settle();
}

void Outflow::close() {
    std::lock_guard lock(desk_.state);
    work_.notify_all();
}

}  // namespace juice
