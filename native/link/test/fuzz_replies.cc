// A hostile worker: the input is what it sends to a real client after the handshake, over a socket.
#include <cstdlib>
#include <cstring>
#include <memory>

#include "native/link/test/raw.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace juice;
    test::RawServer raw;
    // Exactly as large as announced, so that the sanitizer sees a step over the end.
    const size_t sizes[] = {1, 100, 70'000};
    std::unique_ptr<uint8_t[]> memory[3];
    for (int i = 0; i < 3; ++i) {
        memory[i] = std::make_unique<uint8_t[]>(sizes[i]);
        raw.client().expect(memory[i].get(), sizes[i]);
    }
    uint64_t asked[3];
    for (auto& request : asked) request = raw.client().ask(7, 1, 0, {});
    raw.client().mintTransfer();
    raw.send({data, size});
    raw.hangUp();
    for (const uint64_t request : asked) raw.client().take(request);
    for (auto& block : memory) {
        // After a broken link, or a landed transfer, nobody writes there any more.
        if (raw.client().broken()) block.reset();
    }
    raw.client().close();
    return 0;
}
