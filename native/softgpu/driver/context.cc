#include "native/softgpu/driver/context.h"

#include <pthread.h>

#include <algorithm>

#include "native/softgpu/driver/capture.h"
#include "native/softgpu/driver/device.h"
#include "native/softgpu/driver/event.h"
#include "native/softgpu/driver/memory.h"
#include "native/softgpu/driver/module.h"
#include "native/softgpu/driver/registry.h"
#include "native/tables/tables.h"

namespace juice::softgpu {
namespace {

/// What still runs when a context goes has so long to end by itself.
constexpr auto kGrace = std::chrono::seconds(1);

uint64_t nextId() {
    static std::atomic<uint64_t> next{1};
    return next++;
}

/// The limits of a fresh context, as a real device of this kind has them.
const std::map<CUlimit, size_t>& freshLimits() {
    static const auto* const limits = new std::map<CUlimit, size_t>{
        {CU_LIMIT_STACK_SIZE, 1024},
        {CU_LIMIT_PRINTF_FIFO_SIZE, 8650752},
        {CU_LIMIT_MALLOC_HEAP_SIZE, 8388608},
        {CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, 2048},
        {CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 64},
        {CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0},
        {CU_LIMIT_SHMEM_SIZE, kSharedPerBlockOptIn},
    };
    return *limits;
}

}  // namespace

Context::Context(Device& device, bool primary, unsigned flags)
    : device_(device), primary_(primary), id_(nextId()), flags_(flags) {}

std::shared_ptr<Context> Context::createPrimary(Device& device) {
    std::shared_ptr<Context> context(new Context(device, true, 0));
    Registry<Context>::instance().add(context);
    return context;
}

std::shared_ptr<Context> Context::create(Device& device, unsigned flags) {
    std::shared_ptr<Context> context(new Context(device, false, flags));
    context->start();
    Registry<Context>::instance().add(context);
    return context;
}

void Context::start() {
    limits_ = freshLimits();
    cancelled_ = false;
    peers_.clear();
    legacy_ = std::make_shared<Stream>(*this, StreamKind::legacy, 0);
    active_.store(true, std::memory_order_release);
}

void Context::retain() {
    const std::lock_guard<std::recursive_mutex> lock(life_);
    ++retained_;
    if (!active()) start();
}

bool Context::release() {
    const std::lock_guard<std::recursive_mutex> lock(life_);
    if (retained_ == 0) return false;
    if (--retained_ == 0) reset();
    return true;
}

void Context::reset() {
    const std::lock_guard<std::recursive_mutex> lock(life_);
    if (!active()) return;
    captureForgets(*this);
    const auto limit = std::chrono::steady_clock::now() + kGrace;
    for (const Fence& fence : tails()) {
        if (!fence->waitUntil(limit)) cancelled_ = true;
    }
    synchronize();
    active_.store(false, std::memory_order_release);
    if (primary_) flags_ = 0;
    tables::contextGone(this);
    const auto mine = [this](const auto& object) { return &object.context() == this; };
    Registry<Stream>::instance().takeIf(mine);
    Registry<Event>::instance().takeIf(mine);
    Registry<Function>::instance().takeIf(mine);
    Registry<Module>::instance().takeIf(mine);
    forgetModules(*this);
    {
        const std::lock_guard order(submission_);
        streams_.clear();
        closed_.clear();
        threadStreams_.clear();
        legacy_.reset();
    }
    AddressSpace::instance().releaseAll(*this);
}

void Context::stop() {
    cancelled_ = true;
    const auto limit = std::chrono::steady_clock::now() + kGrace;
    for (const Fence& fence : tails()) fence->waitUntil(limit);
}

CUresult Context::failure() const {
    return device_.failure();
}

std::shared_ptr<Stream> Context::threadStream() {
    const std::lock_guard order(submission_);
    auto& stream = threadStreams_[std::this_thread::get_id()];
    if (!stream) {
        stream = std::make_shared<Stream>(*this, StreamKind::blocking, 0);
        streams_.push_back(stream);
    }
    return stream;
}

std::shared_ptr<Stream> Context::createStream(StreamKind kind, int priority) {
    auto stream = std::make_shared<Stream>(*this, kind, priority);
    Registry<Stream>::instance().add(stream);
    const std::lock_guard order(submission_);
    // A good moment to forget closed streams whose work has ended.
    std::erase_if(streams_, [this](const auto& old) {
        const Fence last = old->tail();
        return (!last || last->done()) && closed_.erase(old.get()) > 0;
    });
    streams_.push_back(stream);
    return stream;
}

void Context::closeStream(const Stream& stream) {
    const std::lock_guard order(submission_);
    closed_.insert(&stream);
}

std::vector<Fence> Context::tails() {
    std::vector<Fence> fences;
    const std::lock_guard order(submission_);
    if (legacy_) fences.push_back(legacy_->tail());
    for (const auto& stream : streams_) fences.push_back(stream->tail());
    std::erase(fences, nullptr);
    return fences;
}

void Context::synchronize() {
    for (const Fence& fence : tails()) fence->wait();
}

CUresult Context::limit(CUlimit limit, size_t& value) const {
    const std::lock_guard lock(state_);
    if (limit < 0 || limit >= CU_LIMIT_MAX) return CUDA_ERROR_INVALID_VALUE;
    const auto found = limits_.find(limit);
    if (found == limits_.end()) return CUDA_ERROR_UNSUPPORTED_LIMIT;
    value = found->second;
    return CUDA_SUCCESS;
}

CUresult Context::setLimit(CUlimit limit, size_t value) {
    const std::lock_guard lock(state_);
    if (limit < 0 || limit >= CU_LIMIT_MAX) return CUDA_ERROR_INVALID_VALUE;
    const auto found = limits_.find(limit);
    if (found == limits_.end()) return CUDA_ERROR_UNSUPPORTED_LIMIT;
    // A stack is given in whole 16 bytes.
    found->second = limit == CU_LIMIT_STACK_SIZE ? (value + 15) / 16 * 16 : value;
    return CUDA_SUCCESS;
}

bool Context::enablePeer(const Device& device) {
    const std::lock_guard lock(state_);
    if (!peers_.insert(device.ordinal()).second) return false;
    AddressSpace::instance().touch();
    return true;
}

bool Context::disablePeer(const Device& device) {
    const std::lock_guard lock(state_);
    if (peers_.erase(device.ordinal()) == 0) return false;
    AddressSpace::instance().touch();
    return true;
}

std::pair<uint64_t, uint64_t> Context::rangeOf(uint64_t address) const {
    const auto found = AddressSpace::instance().find(address);
    if (!found) return {0, 0};
    if (found->kind == MemoryKind::mapped) {
        return AddressSpace::instance().mappedRange(address, device_.ordinal());
    }
    const bool everybodys = isHostKind(found->kind) || isManagedKind(found->kind);
    if (!everybodys && found->device != device_.ordinal()) {
        // A pool says itself who reaches its memory.
        const std::lock_guard lock(state_);
        const bool reached =
            found->pooled ? found->rights.of(device_.ordinal()) != CU_MEM_ACCESS_FLAGS_PROT_NONE
                          : peers_.contains(found->device);
        if (!reached) return {0, 0};
    }
    return {found->address, found->end()};
}

bool Context::contains(uint64_t address, size_t size) const {
    const auto [begin, end] = rangeOf(address);
    return begin != end && size <= end - address;
}

NearbyMemory Context::nearest(uint64_t address) const {
    using State = NearbyMemory::State;
    NearbyMemory near = AddressSpace::instance().nearest(address);
    const bool inside = address >= near.begin && address < near.end;
    if (near.state == State::live && inside && rangeOf(address).second == 0) {
        near.state = State::foreign;
    }
    return near;
}

uint64_t Context::generation() const {
    return AddressSpace::instance().generation();
}

ContextStack& ContextStack::ofThread() {
    // Not a thread_local object: the main thread's would be gone when the program's exit handlers,
    // the CUDA runtime's among them, call in here. A key's destructor spares the main thread.
    static const pthread_key_t key = [] {
        pthread_key_t made;
        pthread_key_create(&made, [](void* stack) { delete static_cast<ContextStack*>(stack); });
        return made;
    }();
    auto* stack = static_cast<ContextStack*>(pthread_getspecific(key));
    if (stack == nullptr) {
        stack = new ContextStack;
        pthread_setspecific(key, stack);
    }
    return *stack;
}

std::shared_ptr<Context> ContextStack::current() const {
    return stack_.empty() ? nullptr : stack_.back();
}

void ContextStack::push(std::shared_ptr<Context> context) {
    stack_.push_back(std::move(context));
}

std::shared_ptr<Context> ContextStack::pop() {
    auto top = current();
    if (top) stack_.pop_back();
    return top;
}

void ContextStack::set(std::shared_ptr<Context> context) {
    if (!stack_.empty()) stack_.pop_back();
    if (context) stack_.push_back(std::move(context));
}

void ContextStack::drop(const Context& context) {
    if (!stack_.empty() && stack_.back().get() == &context) stack_.pop_back();
}

}  // namespace juice::softgpu
