#include "native/tables/context_storage.h"

#include <mutex>
#include <tuple>
#include <vector>

#include "native/tables/results.h"

namespace juice::tables {

int ContextStorage::put(void* context, void* key, void* value, Destructor destructor) {
    const std::unique_lock lock(mutex_);
    values_[{context, key}] = {value, destructor};
    return kSuccess;
}

int ContextStorage::get(void** value, void* context, void* key) const {
    const std::shared_lock lock(mutex_);
    const auto found = values_.find({context, key});
    if (found == values_.end()) return kInvalidHandle;
    *value = found->second.value;
    return kSuccess;
}

int ContextStorage::remove(void* context, void* key) {
    const std::unique_lock lock(mutex_);
    return values_.erase({context, key}) == 1 ? kSuccess : kInvalidHandle;
}

void ContextStorage::clear(void* context) {
    std::vector<std::pair<void*, Value>> gone;
    {
        const std::unique_lock lock(mutex_);
        auto at = values_.lower_bound({context, nullptr});
        while (at != values_.end() && at->first.first == context) {
            gone.emplace_back(at->first.second, at->second);
            at = values_.erase(at);
        }
    }
    for (const auto& [key, value] : gone) {
        if (value.destructor != nullptr) value.destructor(context, key, value.value);
    }
}

}  // namespace juice::tables
