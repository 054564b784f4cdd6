// Live handles of one kind. A handle is the address of its object, but is looked up before use, so
// that a stale or made-up one is an error code and never a crash.
#pragma once

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

namespace juice::softgpu {

template <typename T>
class Registry {
  public:
    /// Registers the object; the returned address is its handle.
    T* add(std::shared_ptr<T> object) {
        const std::unique_lock lock(mutex_);
        T* const handle = object.get();
        live_[handle] = std::move(object);
        return handle;
    }

    /// The object behind a handle, or null.
    std::shared_ptr<T> find(const void* handle) const {
        const std::shared_lock lock(mutex_);
        const auto found = live_.find(handle);
        return found == live_.end() ? nullptr : found->second;
    }

    /// Takes the object out, or null when the handle is not live.
    std::shared_ptr<T> take(const void* handle) {
        const std::unique_lock lock(mutex_);
        const auto found = live_.find(handle);
        if (found == live_.end()) return nullptr;
        auto object = std::move(found->second);
        live_.erase(found);
        return object;
    }

    /// Takes out everything that `gone(object)` is true of.
    template <typename Predicate>
    void takeIf(const Predicate& gone) {
        const std::unique_lock lock(mutex_);
        for (auto at = live_.begin(); at != live_.end();) {
            at = gone(*at->second) ? live_.erase(at) : std::next(at);
        }
    }

    /// Calls `visit(object)` for each live object.
    template <typename Visit>
    void forEach(const Visit& visit) const {
        const std::shared_lock lock(mutex_);
        for (const auto& entry : live_) visit(entry.second);
    }

    /// The process's registry of this kind. Leaked: programs call in from their exit handlers.
    static Registry& instance() {
        static auto* const registry = new Registry;
        return *registry;
    }

  private:
    mutable std::shared_mutex mutex_;
    std::unordered_map<const void*, std::shared_ptr<T>> live_;
};

/// The live object behind a handle of the driver API, or null.
template <typename T, typename Handle>
std::shared_ptr<T> find(Handle handle) {
    return handle == nullptr ? nullptr : Registry<T>::instance().find(handle);
}

}  // namespace juice::softgpu
