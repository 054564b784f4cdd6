#include "native/softgpu/driver/device.h"

#include <cstdio>
#include <thread>

#include "native/softgpu/driver/context.h"

namespace juice::softgpu {

Device::Device(int ordinal, const DeviceSettings& settings)
    : ordinal_(ordinal), settings_(settings), primary_(Context::createPrimary(*this)) {}

uint64_t Device::freeMemory() const {
    const std::lock_guard lock(mutex_);
    return settings_.memory - used_;
}

unsigned Device::multiprocessors() const {
    const unsigned cores = std::thread::hardware_concurrency();
    return cores == 0 ? 1 : cores;
}

std::string Device::pciBusId() const {
    char text[16];
    std::snprintf(text, sizeof(text), "%04x:%02x:%02x.0", static_cast<unsigned>(pciDomain()),
                  static_cast<unsigned>(pciBus()), static_cast<unsigned>(pciDevice()));
    return text;
}

bool Device::charge(uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    if (bytes > settings_.memory - used_) return false;
    used_ += bytes;
    return true;
}

void Device::refund(uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    used_ -= bytes;
}

void Device::fail(CUresult failure) {
    CUresult none = CUDA_SUCCESS;
    failure_.compare_exchange_strong(none, failure);
    cancelled_ = true;
}

const std::vector<Device*>& devices() {
    static const auto* const all = [] {
        auto* made = new std::vector<Device*>;
        for (const DeviceSettings& settings : visibleDevices(environment())) {
            made->push_back(new Device(static_cast<int>(made->size()), settings));
        }
        return made;
    }();
    return *all;
}

Device* deviceAt(int ordinal) {
    const auto& all = devices();
    if (ordinal < 0 || static_cast<size_t>(ordinal) >= all.size()) return nullptr;
    return all[static_cast<size_t>(ordinal)];
}

}  // namespace juice::softgpu
