// The first 64 bytes of a connection: nothing proves a key but what was made with it.
#include <cstdlib>
#include <cstring>

#include "native/link/keys.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace juice;
    static const Key key = deriveKey({}, {}, "fuzz");
    wire::Preface preface{};
    std::memcpy(&preface, data, size < sizeof preface ? size : sizeof preface);
    if (provesKey(preface, key)) std::abort();  // a 128-bit proof is not found by chance
    // With the right proof every session, process, lane and nonce is accepted.
    Credentials who;
    std::memcpy(who.session.data(), preface.session, who.session.size());
    who.process = preface.process;
    who.key = key;
    const wire::Preface proven = makePreface(who, preface.lane);
    if (!provesKey(proven, key)) std::abort();
    if (proven.lane != preface.lane || proven.process != preface.process) std::abort();
    return 0;
}
