#include "native/worker/worker.h"

#include <chrono>
#include <new>
#include <optional>
#include <thread>
#include <utility>

namespace juice::worker {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMaxThreads = 1 << 20;
/// How long one client thread's wait may hold up the calls of others.
constexpr int kSharedPollMicros = 15;

bool manyCores() {
    return std::thread::hardware_concurrency() > 2;
}

void relax() {
    __builtin_ia32_pause();
}

}  // namespace

Worker::Worker(const DriverTable& driver, ServerLink& link, Output& output, Staging& staging,
               Images& images, UsagePage& usage, WarmContexts warm, uint64_t memoryLimit)
    : driver(driver),
      link(link),
      output(output),
      staging(staging),
      images(images),
      usage(usage),
      memory(driver, usage, memoryLimit),
      mirrors(driver),
      coherence(link),
      gates(driver),
      completions(driver),
      captures(driver),
      graphRuns(link, mirrors, coherence),
      warm_(std::move(warm)),
      spinMicros_(manyCores() ? 200 : 20) {
    link.onAnswers({[this](uint64_t address, Bytes bytes) { mirrors.write(address, bytes); },
                    [this](uint64_t id) {
                        if (!graphRuns.release(id)) gates.release(id);
                    }});
}

bool Worker::run() {
    // Captures forbid things to the client's threads, not to this one.
    const Relaxed mode(driver);
    // None is current until the client's first call names one.
    driver.cuCtxSetCurrent(nullptr);
    Call call;
    while (!violated_) {
        const Next next = link.next(call, spinMicros_, -1);
        if (next == Next::closed) return true;
        if (next == Next::call) execute(call);
    }
    link.goodbye(wire::GoodbyeReason::protocol, violation_);
    return false;
}

void Worker::publishUsage() {
    usage.bytesIn.store(link.bytesIn(), std::memory_order_relaxed);
    usage.bytesOut.store(link.bytesOut(), std::memory_order_relaxed);
}

void Worker::violate(std::string sentence) {
    if (violated_) return;
    violated_ = true;
    violation_ = std::move(sentence);
}

void Worker::enterContext(uint32_t id) {
    if (id == current_ && (context_ != nullptr || id == 0)) return;
    current_ = id;
    context_ = contexts.find(id);
    // With none current the driver itself answers "invalid context" where one is needed.
    driver.cuCtxSetCurrent(context_ == nullptr ? nullptr : context_->handle);
}

void Worker::execute(const Call& call) {
    const wire::Header& header = call.header;
    const Handler* handler = header.opcode < kHandlerCount ? &kHandlers[header.opcode] : nullptr;
    if (handler == nullptr || handler->execute == nullptr) {
        violate("opcode " + std::to_string(header.opcode) + " is unknown");
        return;
    }
    if (header.thread != lastThread_) {
        const std::lock_guard lock(threadsMutex_);
        threads_.try_emplace(header.thread);
        severalThreads_ = threads_.size() > 1;
        lastThread_ = header.thread;
        if (threads_.size() > kMaxThreads) violate("too many threads");
    }
    usage.calls.fetch_add(1, std::memory_order_relaxed);
    enterContext(header.context);

    Incoming in(*this, header, call.payload);
    CUresult result = CUDA_SUCCESS;
    try {
        std::optional<Relaxed> asTheClient;
        if (captures.forbidden(header.thread))
            asTheClient.emplace(driver, CU_STREAM_CAPTURE_MODE_GLOBAL);
        result = handler->execute(in);
    } catch (const std::bad_alloc&) {
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (violated_) {
        violation_ = std::string(handler->name) + ": " + violation_;
        return;
    }
    link.executed(header);
    if (!in.detached()) answer(header, result, in.out().view());
}

void Worker::noteSticky(const wire::Header& header, CUresult result) {
    if (!isSticky(result)) return;
    usage.lastError.store(result, std::memory_order_relaxed);
    const auto context = contexts.find(header.context);
    if (context != nullptr && context->sticky.exchange(result) == 0)
        link.fault(result, header.opcode);
}

void Worker::answer(const wire::Header& header, CUresult result, Bytes payload) {
    // What waits for the device, or fails as it did, tells of what it has printed.
    const bool tells = result != CUDA_SUCCESS || kHandlers[header.opcode].mayBlock;
    if (tells && header.request != 0) output.flush();
    noteSticky(header, result);
    if (header.request == 0) {
        if (result == CUDA_SUCCESS) return;
        const std::lock_guard lock(threadsMutex_);
        Deferred& deferred = threads_[header.thread];
        if (deferred.result == 0) deferred = {result, header.opcode};
        return;
    }
    completions.deliver();
    coherence.deliver();
    wire::ReplyHead head{};
    head.result = result;
    {
        const std::lock_guard lock(threadsMutex_);
        Deferred& deferred = threads_[header.thread];
        head.deferred = deferred.result;
        head.deferredOpcode = deferred.opcode;
        deferred = {};
    }
    const auto context = contexts.find(header.context);
    if (context != nullptr) head.sticky = context->sticky.load(std::memory_order_relaxed);
    link.reply(header, head, payload);
}

CUresult Worker::poll(const std::function<CUresult()>& query) const {
    const auto end =
        Clock::now() + std::chrono::microseconds(severalThreads_ ? kSharedPollMicros : spinMicros_);
    for (;;) {
        const CUresult result = query();
        if (result != CUDA_ERROR_NOT_READY || Clock::now() >= end) return result;
        relax();
    }
}

CUresult Worker::runBlocking(Incoming& in, const std::function<CUresult(Writer&)>& job) {
    // What a capture forbids is refused at once, but only on this thread.
    if (!mayHoldUp() && context_ != nullptr && !captures.forbidden(in.header().thread)) {
        const wire::Header header = in.header();
        const bool started = helpers_.run([this, header, job, context = context_] {
            const Relaxed mode(driver);
            driver.cuCtxSetCurrent(context->handle);
            Writer out;
            const CUresult result = job(out);
            answer(header, result, out.view());
        });
        if (started) {
            in.detach();
            return CUDA_SUCCESS;
        }
    }
    const Blocking blocking(*this);
    return job(in.out());
}

CUresult Worker::awaitStream(Incoming& in, CUstream stream, const Then& then) {
    const CUresult polled = poll([&] { return driver.cuStreamQuery(stream); });
    // To be asked is not enough for a driver to hand out what kernels have printed.
    if (polled == CUDA_SUCCESS) return then(driver.cuStreamSynchronize(stream), in.out());
    if (polled != CUDA_ERROR_NOT_READY) return then(polled, in.out());
    if (mayHoldUp())
        return runBlocking(
            in, [=, this](Writer& out) { return then(driver.cuStreamSynchronize(stream), out); });
    // An event, since other threads may go on to fill the stream.
    CUevent event = nullptr;
    CUresult result = driver.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    if (result == CUDA_SUCCESS) result = driver.cuEventRecord(event, stream);
    if (result != CUDA_SUCCESS) {
        if (event != nullptr) driver.cuEventDestroy_v2(event);
        return then(result, in.out());
    }
    return runBlocking(in, [=, this](Writer& out) {
        const CUresult waited = driver.cuEventSynchronize(event);
        driver.cuEventDestroy_v2(event);
        return then(waited, out);
    });
}

CUresult Worker::cohere(const Mirror& mirror) {
    // Pages of the driver's own managed memory travel when they are looked at.
    constexpr uint64_t kOftenAtMost = 64u << 10;
    const bool drivers = mirror.drivers || mirror.kind == Mirror::Kind::variable;
    return coherence.add(mirror.begin, mirror.size, mirror.context,
                         {.fresh = !drivers, .often = !drivers || mirror.size <= kOftenAtMost});
}

void Worker::forgetVariables() {
    const auto live = [this](uint64_t id) { return objects.find(id) != nullptr; };
    for (const uint64_t begin : mirrors.orphans(live)) {
        coherence.remove(begin);
        mirrors.forget(begin);
    }
}

void Worker::retireStream(uint64_t id, CUstream stream) {
    const auto of = contexts.find(objects.find(id)->context);
    if (of != nullptr) completions.retire(of->handle, stream);
    captures.forget(stream);
}

CUcontext Worker::takeWarm(CUdevice device) {
    if (device < 0 || static_cast<size_t>(device) >= warm_.size()) return nullptr;
    return std::exchange(warm_[device], nullptr);
}

CUresult Worker::endContext(const std::shared_ptr<Context>& context,
                            const std::function<CUresult()>& destroy) {
    const auto id = static_cast<uint32_t>(context->id);
    const Blocking blocking(*this);
    driver.cuCtxSetCurrent(context->handle);
    captures.forgetOf(id);
    driver.cuCtxSynchronize();
    completions.poll();
    while (mirrors.leaving(id)) std::this_thread::sleep_for(std::chrono::microseconds(100));
    completions.forget(context->handle);
    coherence.removeOf(id);
    gates.forget(context->handle);
    staging.unpin(driver, context->handle);
    const CUresult result = destroy();
    std::erase_if(graphExecs, [id](const auto& one) { return one.second->contextId == id; });
    objects.removeOf(id);
    memory.removeOf(id);
    mirrors.removeOf(id);
    contexts.remove(id);
    context_ = nullptr;
    current_ = 0;
    driver.cuCtxSetCurrent(nullptr);
    return result;
}

}  // namespace juice::worker
