// What the shim knows of each object that it has given a handle for.
#pragma once

#include <array>
#include <atomic>
#include <climits>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "native/shim/handles.h"

namespace juice::shim {

/// Memory for objects of one kind, never given back: see Object.
template <typename T>
class Recycler {
  public:
    T* take() {
        const std::lock_guard lock(mutex_);
        if (free_.empty()) return new T;
        T* const one = free_.back();
        free_.pop_back();
        return one;
    }
    void give(T* one) {
        const std::lock_guard lock(mutex_);
        free_.push_back(one);
    }
    static Recycler& get() {
        static auto& one = *new Recycler;
        return one;
    }

  private:
    std::mutex mutex_;
    std::vector<T*> free_;
};

/// The most devices that a session can have; an array of this size costs little.
constexpr int kMaxDevices = 16;
constexpr int kLimits = 16;

struct Context : Object {
    static constexpr ObjectKind kKind = ObjectKind::context;
    int device = 0;  // the program's ordinal
    bool primary = false;
    std::atomic<bool> alive{false};
    std::atomic<unsigned> flags{0};
    std::atomic<int> cacheConfig{0};
    std::atomic<int> attached{1};  // cuCtxAttach's count
    uint64_t number = 0;           // what cuCtxGetId tells
    /// Values of CUlimit as set; -1 where the device's default holds.
    std::array<std::atomic<int64_t>, kLimits> limits{};
    /// Everything that was submitted before this ticket (event.cc) has completed.
    std::atomic<uint64_t> completed{0};
};

struct Stream : Object {
    static constexpr ObjectKind kKind = ObjectKind::stream;
    Context* context = nullptr;
    unsigned flags = 0;
    int priority = 0;
    std::atomic<uint64_t> completed{0};  // as in Context
    std::atomic<uint64_t> capture{0};    // the last capture that it was in: see capture.h
};

struct Event : Object {
    static constexpr ObjectKind kKind = ObjectKind::event;
    Context* context = nullptr;
    unsigned flags = 0;
    std::atomic<uint64_t> recorded{0};     // the ticket of the last record; 0: never
    std::atomic<uint64_t> completed{0};    // the last ticket that is known to have completed
    std::atomic<Stream*> stream{nullptr};  // that it was recorded in; null for a default stream
    std::atomic<uint64_t> streamId{0};     // its id then: the object may serve another stream now
    std::atomic<uint64_t> capture{0};      // that it was last recorded in, or 0
    std::atomic<bool> inGraph{false};      // launches of graphs may record it, unseen from here
};

/// The values of CUfunction_attribute of one function on one device.
struct Attributes {
    static constexpr int kCount = CU_FUNC_ATTRIBUTE_MAX;
    static constexpr int kRefused = INT32_MIN;
    enum class State : int { unasked, asked, known };
    std::atomic<State> state{State::unasked};
    std::mutex mutex;      // around the transitions
    uint64_t request = 0;  // while asked: ClientLink's number of the answer
    std::array<std::atomic<int>, kCount> values{};
};

struct Parameter {
    uint32_t offset, size;
};

/// One kernel's code: what function and kernel handles point at.
struct Code {
    std::string name;
    std::vector<Parameter> parameters;
    uint32_t parameterBytes = 0;
    /// By the program's device ordinal; made when first asked for.
    std::array<std::atomic<Attributes*>, kMaxDevices> attributes{};

    Code() = default;
    Code(const Code&) = delete;
    Code& operator=(const Code&) = delete;
    ~Code() {
        for (auto& one : attributes) delete one.load();
    }
};

/// What a loaded image contains.
struct Contents {
    std::vector<std::unique_ptr<Code>> codes;  // in the driver's order
    std::unordered_map<std::string_view, Code*> byName;
    Code* named(std::string_view name) const {
        const auto found = byName.find(name);
        return found == byName.end() ? nullptr : found->second;
    }
};

struct Library;
struct Module;

/// A CUfunction: code in a context.
struct Function : Object {
    static constexpr ObjectKind kKind = ObjectKind::function;
    Code* code = nullptr;
    Context* context = nullptr;
    Module* module = nullptr;    // null until asked for, when it came from a kernel
    Library* library = nullptr;  // where it came from a library
};

/// A CUkernel: code without a context.
struct Kernel : Object {
    static constexpr ObjectKind kKind = ObjectKind::kernel;
    Code* code = nullptr;
    Library* library = nullptr;
};

struct Module : Object {
    static constexpr ObjectKind kKind = ObjectKind::module;
    Context* context = nullptr;
    Library* library = nullptr;  // when it is a library's, whose contents then count
    std::shared_ptr<Contents> contents;
    std::mutex mutex;  // guards what follows
    std::unordered_map<Code*, Function*> functions;
    std::vector<uint64_t> globals;  // addresses that were asked for
};

struct Library : Object {
    static constexpr ObjectKind kKind = ObjectKind::library;
    std::shared_ptr<Contents> contents;
    std::mutex mutex;  // guards what follows
    std::unordered_map<Code*, Kernel*> kernels;
    std::unordered_map<Context*, Module*> modules;
    std::unordered_map<Context*, std::unordered_map<Code*, Function*>> functions;
    std::unordered_map<Context*, std::vector<uint64_t>> globals;
};

/// A function, or a kernel where a function is expected: its code, or null when it is neither.
struct Callable {
    Object* object = nullptr;
    Code* code = nullptr;
};
inline Callable findCallable(const void* handle) {
    Object* const object = handles::find(handle);
    if (object == nullptr) return {};
    if (object->kind == ObjectKind::function) return {object, static_cast<Function*>(object)->code};
    if (object->kind == ObjectKind::kernel) return {object, static_cast<Kernel*>(object)->code};
    return {};
}

}  // namespace juice::shim
