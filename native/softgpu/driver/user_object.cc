#include "native/softgpu/driver/user_object.h"

#include <pthread.h>
#include <signal.h>

#include <thread>

#include "native/softgpu/driver/operation.h"
#include "native/softgpu/driver/registry.h"

namespace juice::softgpu {

UserObject::~UserObject() {
    // Whoever lets go last may hold locks that the function waits for, so it gets its own thread.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread([destroy = destroy_, pointer = pointer_] {
        callHost([&] { destroy(pointer); });
    }).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

bool UserObject::release(unsigned count) {
    unsigned now = references_;
    do {
        if (now < count) return false;
    } while (!references_.compare_exchange_weak(now, now - count));
    if (now == count) Registry<UserObject>::instance().take(this);
    return true;
}

}  // namespace juice::softgpu
