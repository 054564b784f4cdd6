#include "native/shim/nvml/state.h"

#include <cstring>
#include <memory>
#include <mutex>

#include "native/gen/symbols.h"
#include "native/shim/broker.h"
#include "native/shim/say.h"

namespace juice::nvml {
namespace {

/// Leaked: programs call in here from their own exit handlers.
struct State {
    std::mutex mutex;
    int users = 0;
    bool fetched = false;
    Snapshot snapshot;
    std::vector<std::unique_ptr<Device>> devices;
};
State& state() {
    static auto& one = *new State;
    return one;
}

}  // namespace

int Device::attribute(int which) const {
    const auto found = facts.attributes.find(which);
    return found == facts.attributes.end() ? 0 : found->second;
}

Result initialise() {
    const std::lock_guard lock(state().mutex);
    if (!state().fetched) {
        broker::Answer answer = broker::ask(broker::Ask::snapshot);
        if (answer.result != 0) {
            // Programs try NVML first and then CUDA, which says it aloud.
            whisper("%s", answer.sentence.c_str());
            return kDriverNotLoaded;
        }
        state().snapshot = std::move(answer.snapshot);
        for (const DeviceSnapshot& facts : state().snapshot.devices) {
            auto device = std::make_unique<Device>();
            device->index = static_cast<unsigned>(state().devices.size());
            device->facts = facts;
            state().devices.push_back(std::move(device));
        }
        state().fetched = true;
    }
    ++state().users;
    return kSuccess;
}

Result shutDown() {
    const std::lock_guard lock(state().mutex);
    if (state().users == 0) return kUninitialized;
    --state().users;
    return kSuccess;
}

Result initialised() {
    const std::lock_guard lock(state().mutex);
    return state().users == 0 ? kUninitialized : kSuccess;
}

unsigned deviceCount() {
    return static_cast<unsigned>(state().devices.size());
}

Device* device(unsigned index) {
    return index < deviceCount() ? state().devices[index].get() : nullptr;
}

Result deviceOf(DeviceHandle handle, const Device*& device) {
    if (const Result result = initialised()) return result;
    for (const auto& one : state().devices) {
        if (one.get() != handle) continue;
        device = handle;
        return kSuccess;
    }
    return kInvalidArgument;
}

const Snapshot& snapshot() {
    return state().snapshot;
}

Result copyText(char* out, unsigned length, const std::string& text) {
    if (out == nullptr) return kInvalidArgument;
    if (length < text.size() + 1) return kInsufficientSize;
    std::memcpy(out, text.c_str(), text.size() + 1);
    return kSuccess;
}

}  // namespace juice::nvml

/// Not supported is an everyday answer of NVML, so only the curious hear of it.
extern "C" int juice_nvml_unsupported(const char* name) {
    juice::whisper("%s is not supported (NVML_ERROR_NOT_SUPPORTED)", name);
    return juice::nvml::kNotSupported;
}
