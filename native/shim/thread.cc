#include "native/shim/thread.h"

#include <pthread.h>

#include <mutex>
#include <set>

namespace juice::shim {
namespace {

// A plain pointer, freed by a thread key: a thread_local with a destructor would be gone when
// destructors of the program, which run after it, still make CUDA calls. With a key they get a
// fresh one, which the key's next round frees.
thread_local Thread* mine = nullptr;

/// Numbers of ended threads go to new ones: the worker keeps something for every number.
struct Numbers {
    std::mutex mutex;
    uint32_t last = 0;
    std::set<uint32_t> free;

    uint32_t take() {
        const std::lock_guard lock(mutex);
        if (free.empty()) return ++last;
        return free.extract(free.begin()).value();
    }
    void give(uint32_t number) {
        const std::lock_guard lock(mutex);
        free.insert(number);
    }
};
Numbers& numbers() {
    static auto& one = *new Numbers;
    return one;
}

void atThreadEnd(void* ended) {
    auto* const thread = static_cast<Thread*>(ended);
    mine = nullptr;
    numbers().give(thread->number);
    delete thread;
}

pthread_key_t makeKey() {
    pthread_key_t key{};
    pthread_key_create(&key, atThreadEnd);
    return key;
}

Thread* make() {
    static const pthread_key_t key = makeKey();
    mine = new Thread;
    mine->number = numbers().take();
    pthread_setspecific(key, mine);
    return mine;
}

}  // namespace

Thread& thread() {
    return *(mine != nullptr ? mine : make());
}

}  // namespace juice::shim
