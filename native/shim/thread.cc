#include "native/shim/thread.h"

#include <pthread.h>

#include <atomic>

namespace juice::shim {
namespace {

// A plain pointer, freed by a thread key: a thread_local with a destructor would be gone when
// destructors of the program, which run after it, still make CUDA calls. With a key they get a
// fresh one, which the key's next round frees.
thread_local Thread* mine = nullptr;

void atThreadEnd(void* ended) {
    mine = nullptr;
    delete static_cast<Thread*>(ended);
}

pthread_key_t makeKey() {
    pthread_key_t key{};
    pthread_key_create(&key, atThreadEnd);
    return key;
}

Thread* make() {
    static std::atomic<uint32_t> last{0};
    static const pthread_key_t key = makeKey();
    mine = new Thread;
    mine->number = ++last;
    pthread_setspecific(key, mine);
    return mine;
}

}  // namespace

Thread& thread() {
    return *(mine != nullptr ? mine : make());
}

}  // namespace juice::shim
