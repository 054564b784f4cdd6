#include "native/softgpu/driver/operation.h"

#include "native/softgpu/driver/event.h"
#include "native/softgpu/driver/guard.h"

namespace juice::softgpu {

void callHost(const std::function<void()>& function) {
    insideHostFunction() = true;
    function();
    insideHostFunction() = false;
}

void HostOperation::run() const {
    callHost([this] { call_.fn(call_.userData); });
}

Work EventRecordOperation::bind() const {
    auto place = std::make_shared<Completion>();
    event_->expect(place);
    return [place] { place->finish(); };
}

Work EventWaitOperation::bind() const {
    Fence fence = event_->last();
    if (!fence) return {};
    return [fence = std::move(fence)] { fence->wait(); };
}

}  // namespace juice::softgpu
