// libFuzzer: whatever bytes arrive, measuring them and reading their entries stays within them.
#include <cstddef>
#include <cstdint>

#include "native/image/entries.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace juice::image;
    const auto image = measure(Bytes(data, size));
    if (!image) return 0;
    for (const Bytes part : image->parts) {
        if (part.data() < data || part.data() + part.size() > data + size) __builtin_trap();
    }
    for (const uint32_t sm : {75U, 90U, 120U}) choosePtx(*image, sm);
    return 0;
}
