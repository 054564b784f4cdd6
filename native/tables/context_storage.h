// CONTEXT_LOCAL_STORAGE: what the runtime's copies keep per context.
#pragma once

#include <map>
#include <shared_mutex>
#include <utility>

namespace juice::tables {

/// A map (context, key) -> value. Lookups come with nearly every runtime call, so they share a
/// lock.
class ContextStorage {
  public:
    using Destructor = void (*)(void* context, void* key, void* value);

    /// 0; an existing value is replaced, its destructor not run.
    int put(void* context, void* key, void* value, Destructor destructor);
    /// 0 and the value, or 400 when there is none.
    int get(void** value, void* context, void* key) const;
    /// 0, or 400 when there is none. Does not run the destructor: the caller has the value.
    int remove(void* context, void* key);
    /// Takes all of the context's entries out, then runs their destructors, which may call back
    /// here.
    void clear(void* context);

  private:
    struct Value {
        void* value;
        Destructor destructor;
    };
    mutable std::shared_mutex mutex_;
    std::map<std::pair<void*, void*>, Value> values_;
};

}  // namespace juice::tables
